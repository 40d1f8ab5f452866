"""SQL that migrations run and tests read, kept in files: ``sql/<name>.<vendor>.sql``.

A blank line ends a statement, since the bodies of triggers hold semicolons. An engine without a file has nothing to run.
"""

from __future__ import annotations

from pathlib import Path

from django.db.backends.base.schema import BaseDatabaseSchemaEditor

from workspaces.database.migration_operations import OnDatabase


def read_statements(folder: Path, name: str, vendor: str) -> list[str]:
    """Read the statements of one file for one engine (``postgresql`` or ``sqlite``); none if it has no file."""
    path = folder / f"{name}.{vendor}.sql"
    if not path.exists():
        return []
    lines = [line for line in path.read_text().splitlines() if not line.startswith("--")]
    return [text for block in "\n".join(lines).split("\n\n") if (text := block.strip())]


def run_sql_file(folder: Path, name: str) -> OnDatabase:
    """Make a migration's operation that runs one file."""

    def run(schema_editor: BaseDatabaseSchemaEditor) -> None:
        for statement in read_statements(folder, name, schema_editor.connection.vendor):
            schema_editor.execute(statement)

    return OnDatabase(run)
