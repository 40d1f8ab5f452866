"""``manage.py migrate``: Django's own, quicker where the database is new."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

from django.core.management.base import CommandParser
from django.core.management.commands import migrate
from django.db import DEFAULT_DB_ALIAS, connections

from config.installation.versions import note_version
from workspaces.database.first_tables import is_new, only_changed_models


class Command(migrate.Command):
    """Bring the database to what the code needs."""

    requires_system_checks: list[str] = []  # they run below

    def add_arguments(self, parser: CommandParser) -> None:
        """Those of Django's command."""
        super().add_arguments(parser)
        parser.add_argument("--skip-checks", action="store_true", help="Skip system checks.")

    def handle(self, *args: Any, **options: Any) -> None:
        """Apply migrations, as Django does."""
        if not options["skip_checks"]:
            self.check(databases=[options["database"]])
        has_nothing = is_new(connections[options["database"]])
        with only_changed_models() if has_nothing else nullcontext():
            super().handle(*args, **options)
        is_whole = not (options["app_label"] or options["plan"] or options["check_unapplied"])
        if is_whole and options["database"] == DEFAULT_DB_ALIAS:
            note_version()
