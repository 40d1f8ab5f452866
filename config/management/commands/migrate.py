"""``manage.py migrate``: Django's own, quicker where the database is new."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

from django.core.management.commands import migrate
from django.db import connections

from workspaces.database.first_tables import is_new, only_changed_models


class Command(migrate.Command):
    """Bring the database to what the code needs."""

    def handle(self, *args: Any, **options: Any) -> None:
        """Apply migrations, as Django does."""
        has_nothing = is_new(connections[options["database"]])
        with only_changed_models() if has_nothing else nullcontext():
            super().handle(*args, **options)
