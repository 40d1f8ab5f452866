"""``manage.py export_workspace``: a workspace's settings as YAML, without anything secret."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from config.workspace_files import WorkspaceTarget, write_workspace
from workspaces.command_arguments import add_who, bad_arguments, find_person, find_workspace
from workspaces.errors import DomainError


class Command(BaseCommand):
    """Writes to a file or to the terminal."""

    help = "Write a workspace's rules, servers, buds, alerts, streams, views and schedules as YAML."
    requires_system_checks: list[str] = []  # they load every page

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", nargs="?", type=Path, help="default: the terminal")
        add_who(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        workspace = find_workspace(options["workspace"])
        _, actor = find_person(workspace, options["user"])
        try:
            text = write_workspace(WorkspaceTarget(workspace, actor))
            if options["file"] is None:
                self.stdout.write(text, ending="")
            else:
                options["file"].write_text(text, encoding="utf-8")
        except DomainError as error:
            bad_arguments(error.message)
        except OSError as error:
            bad_arguments(f"{options['file']}: {error.strerror}.")
