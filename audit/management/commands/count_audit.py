"""`manage.py count_audit`: bring the counters of a workspace's log up to date, or count it anew."""

from __future__ import annotations

from typing import Any, Final

from django.core.management.base import BaseCommand, CommandError, CommandParser

from audit import rollups
from audit.management.progress import count_on
from workspaces.errors import Conflict
from workspaces.models import Workspace
from workspaces.words.formats import whole

EVERY: Final = 20_000
"""Entries, after which a person at a terminal is told."""


class Command(BaseCommand):
    """Count what is sealed and not counted yet. With ``--again``, everything."""

    help = "Bring the counters behind the reports up to date."
    requires_system_checks: list[str] = []  # they load every page

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--workspace", required=True, help="Its slug.")
        parser.add_argument(
            "--again", action="store_true", help="Drop the counters and count all entries anew."
        )

    def handle(self, *args: Any, **options: Any) -> None:
        workspace = Workspace.objects.filter(slug=options["workspace"]).first()
        if workspace is None:
            raise CommandError("There is no such workspace.", returncode=2)
        if options["again"]:
            try:
                rollups.forget(workspace.pk)
            except Conflict as error:
                raise CommandError(str(error), returncode=1) from error
        total = 0
        progress = count_on(self.stderr, every=EVERY)
        while number := rollups.roll_up(workspace.pk, waits=True):
            total += number
            progress(total)
        self.stdout.write(f"{whole(total)} entries were counted.")
