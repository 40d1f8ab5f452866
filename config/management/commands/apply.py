"""``manage.py apply``: make a workspace as a YAML file says; without effect where it is so already.

Values of `auth`, `headers` and `env` may name variables of the environment as ${NAME}, so that no secret need stand in
the file.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from config.workspace_files import KeysUntested, Place, apply_file, fill_variables
from mcp_servers.client.connections import runtime
from workspaces.commanding import add_who, bad_arguments, find_person, find_workspace
from workspaces.errors import DomainError, InvalidInput
from workspaces.yaml_text import read_yaml


class Command(BaseCommand):
    """Prints what changes as a diff. Exit status 0, also where nothing changes; 2 if the file is refused."""

    help = "Make a workspace as a YAML file says. What the file does not name stays as it is."
    requires_system_checks: list[str] = []  # they load every page

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "file", type=Path, help="as export_workspace writes it; - for the input"
        )
        parser.add_argument(
            "--dry-run",
            action="store_true",
            help="only print what would change; new keys of providers are tested",
        )
        parser.add_argument(
            "--untested-keys",
            action="store_true",
            help="store new keys of providers without a test, as while a provider is down",
        )
        add_who(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        workspace = find_workspace(options["workspace"])
        _, actor = find_person(workspace, options["user"])
        path: Path = options["file"]
        try:
            text = sys.stdin.read() if str(path) == "-" else path.read_text()
            document = fill_variables(read_yaml(text), os.environ)
            applied = apply_file(
                Place(workspace, actor),
                document,
                is_dry_run=options["dry_run"],
                tests_keys=not options["untested_keys"],
            )
        except InvalidInput as error:
            lines = [f"{field}: {text}" for field, texts in error.fields.items() for text in texts]
            if isinstance(error, KeysUntested):
                lines.append("With --untested-keys they are stored without a test.")
            bad_arguments("\n".join(["Nothing was changed.", *(lines or [error.message])]))
        except DomainError as error:
            bad_arguments(error.message)
        except OSError as error:
            bad_arguments(f"{path} cannot be read: {error.strerror}.")
        except UnicodeDecodeError:
            bad_arguments(f"{path} cannot be read: it is not text in UTF-8.")
        finally:
            runtime.shutdown(2.0)
        self.stdout.write(applied.diff or "Nothing changes.")
        for note in applied.notes:
            self.stdout.write(f"Note: {note}")
