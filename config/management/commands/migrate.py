"""``manage.py migrate``: Django's own, quicker where the database is new."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any, Final

from django.core.management.base import CommandParser
from django.core.management.commands import migrate
from django.db import DEFAULT_DB_ALIAS, connections
from django.db.migrations import Migration

from config.installation.versions import note_version
from workspaces.database import hold_lock
from workspaces.database.first_tables import is_new, only_changed_models

LOCK: Final = 0x7472_6D67
"""Number of the advisory lock under which migrations are applied."""


class Command(migrate.Command):
    """Bring the database to what the code needs. Of many processes that begin to at once, one does and the others wait."""

    requires_system_checks: list[str] = []  # they run below
    _under_way: Migration | None = None

    def add_arguments(self, parser: CommandParser) -> None:
        """Those of Django's command."""
        super().add_arguments(parser)
        parser.add_argument("--skip-checks", action="store_true", help="Skip system checks.")

    def handle(self, *args: Any, **options: Any) -> None:
        """Apply migrations, as Django does."""
        if not options["skip_checks"]:
            self.check(databases=[options["database"]])
        only_looks = options["plan"] or options["check_unapplied"]
        with nullcontext() if only_looks else hold_lock(LOCK, waiting=self._tell):
            has_nothing = is_new(connections[options["database"]])
            with only_changed_models() if has_nothing else nullcontext():
                self._apply(*args, **options)
            is_whole = not (options["app_label"] or only_looks)
            if is_whole and options["database"] == DEFAULT_DB_ALIAS:
                note_version()

    def _apply(self, *args: Any, **options: Any) -> None:
        try:
            super().handle(*args, **options)
        except Exception as error:
            if self._under_way is not None:
                error.add_note(
                    f"The migration {self._under_way} failed. Those before it are done, and the next 'migrate' or start tries it again. "
                    "How to go back: docs/operations.md, Upgrading."
                )
            raise

    def migration_progress_callback(
        self, action: str, migration: Migration | None = None, fake: bool = False
    ) -> None:
        """Remember which one is being applied."""
        if action == "apply_start":
            self._under_way = migration
        elif action == "apply_success":
            self._under_way = None
        super().migration_progress_callback(action, migration, fake)

    def _tell(self) -> None:
        self.stdout.write(
            "Another process is bringing the database up to date. Waiting for it to finish …"
        )
        self.stdout.flush()
