"""Whether the database's tables are those of this code: which migrations it lacks, and which a newer version made."""

from __future__ import annotations

from collections.abc import Iterable

from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder


def count_missing() -> int:
    """How many migrations wait to be applied."""
    executor = MigrationExecutor(connection)
    return len(executor.migration_plan(executor.loader.graph.leaf_nodes()))


def find_unknown(applied: Iterable[tuple[str, str]]) -> list[str]:
    """Which applied migrations this version of an app does not have: a newer one made them."""
    migrations = MigrationLoader(None).disk_migrations or {}
    known = set(migrations)
    for migration in list(migrations.values()):
        known.update(migration.replaces)
    # Klavis can be taken out; what it did before is no newer version's work.
    apps = {app for app, _name in known}
    return [f"{app}.{name}" for app, name in applied if app in apps and (app, name) not in known]


def find_newer() -> list[str]:
    """Which migrations of the database are of a newer version than this code."""
    return find_unknown(sorted(MigrationRecorder(connection).applied_migrations()))


def is_of_this_version() -> bool:
    """Whether the tables are this code's own, neither older nor newer."""
    return not count_missing() and not find_newer()
