"""Empty the test database after a test that commits: only what it wrote to, and past the triggers that guard the log."""

from __future__ import annotations

from functools import cache
from typing import Any, Final

from django.db import connection, transaction

from tests import plain_role

# Django makes their rows after migrations, the same for every test.
_KEPT: Final = {"django_content_type", "auth_permission", "django_site"}


def empty_database() -> None:
    """Delete every row that a test may have left."""
    with transaction.atomic(), connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("RESET ROLE")
        if written := _written(cursor):
            _past_triggers(cursor, written)
        if connection.vendor == "postgresql":
            plain_role.assume(cursor)


@cache
def _tables() -> list[str]:
    names = connection.introspection.django_table_names(only_existing=True, include_views=False)
    indexes: list[str] = []
    if connection.vendor == "sqlite":
        with connection.cursor() as cursor:  # indexes of words, which triggers keep
            cursor.execute("SELECT name FROM sqlite_master WHERE sql LIKE 'CREATE VIRTUAL TABLE%'")
            indexes = [name for (name,) in cursor.fetchall()]
    return [*sorted(set(names) - _KEPT), *indexes]


def _written(cursor: Any) -> list[str]:
    """Give the tables that have rows."""
    asked = (f"SELECT '{name}' WHERE EXISTS (SELECT 1 FROM \"{name}\")" for name in _tables())
    cursor.execute(" UNION ALL ".join(asked))
    return [name for (name,) in cursor.fetchall()]


def _past_triggers(cursor: Any, tables: list[str]) -> None:
    deletions = [f'DELETE FROM "{name}"' for name in tables]
    if connection.vendor == "postgresql":
        role = "SET session_replication_role ="
        cursor.execute("; ".join((f"{role} replica", *deletions, f"{role} DEFAULT")))
        return
    cursor.execute("SELECT tbl_name, name, sql FROM sqlite_master WHERE type = 'trigger'")
    triggers = [(name, sql) for table, name, sql in cursor.fetchall() if table in tables]
    dropped = [f'DROP TRIGGER "{name}"' for name, _ in triggers]
    for statement in (*dropped, *deletions, *(sql for _, sql in triggers)):
        cursor.execute(statement)
