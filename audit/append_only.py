"""The triggers that keep the log append-only; their SQL stands in ``audit/sql``.

A migration that changes a guarded table calls `remove_triggers` before and `create_triggers` after: SQLite makes a changed
table anew, which loses its triggers, and one of them names the table's columns.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

from workspaces.database.sql_files import read_statements

SQL: Final = Path(__file__).parent / "sql"
ENTRIES: Final = "audit_auditentry"
ERASABLE: Final = frozenset({"arguments_preview", "result_preview"})
"""What retention may empty behind a signed statement; no other column of an entry ever changes."""


def trigger_statements(connection: BaseDatabaseWrapper) -> list[str]:
    """Give the statements that make the triggers (and on PostgreSQL their functions), for the columns of today."""
    statements = read_statements(SQL, "append_only", connection.vendor)
    with connection.cursor() as cursor:
        # Django's introspection parses the whole table on SQLite, which takes a hundred times as long.
        cursor.execute(f"SELECT * FROM {ENTRIES} LIMIT 0")  # noqa: S608 - a name of our own
        columns = [column[0] for column in cursor.description or ()]
    sealed = ", ".join(f'"{name}"' for name in columns if name not in ERASABLE)
    return [statement.replace("{sealed_columns}", sealed) for statement in statements]


def create_triggers(schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Make all triggers; for a migration's ``OnDatabase``."""
    for statement in trigger_statements(schema_editor.connection):
        schema_editor.execute(statement)


def remove_triggers(schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Take the triggers away until the same migration makes them again; for a migration's ``OnDatabase``."""
    is_sqlite = schema_editor.connection.vendor == "sqlite"
    for statement in read_statements(SQL, "append_only", schema_editor.connection.vendor):
        words = statement.split()
        if words[:2] != ["CREATE", "TRIGGER"]:
            continue
        on = "" if is_sqlite else f" ON {words[words.index('ON') + 1]}"
        schema_editor.execute(f"DROP TRIGGER IF EXISTS {words[2]}{on}")
