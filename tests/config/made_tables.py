"""What migrations make of an empty database, one by one, as in a database that was upgraded each time.

python -m tests.config.made_tables
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import nullcontext
from importlib import import_module
from typing import TYPE_CHECKING

from bench.installation import own_or_none, set_up
from tests.extent import IS_FULL

if TYPE_CHECKING:
    from django.db.backends.base.base import BaseDatabaseWrapper

SQUASHED = {
    "chat": "0001_squashed_0031_correct_abilities_of_models",
    "mcp_servers": "0001_squashed_0008_server_icons",
}
_INDEXES = "SELECT name, sql FROM sqlite_master WHERE type <> 'table' OR sql LIKE 'CREATE VIRTUAL%'"
_COLUMNS = """
SELECT t.name, c.name, c.type, c."notnull", c.dflt_value, c.pk
FROM sqlite_master t, pragma_table_info(t.name) c WHERE t.type = 'table'
"""
_KEYS = """
SELECT t.name, f."table", f."from", f."to", f.on_delete
FROM sqlite_master t, pragma_foreign_key_list(t.name) f WHERE t.type = 'table'
"""
_SQLITE = (_INDEXES, _COLUMNS, _KEYS)
"""Columns without their order: Django makes tables anew on SQLite to change them, and columns then move."""
_PG_COLUMNS = """
SELECT attrelid::regclass::text, attname, format_type(atttypid, atttypmod), attnotnull, attidentity, attgenerated,
    attcollation::regcollation::text, attstorage, pg_get_expr(adbin, adrelid)
FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid
LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' AND attnum > 0 AND NOT attisdropped
"""
_PG_TABLES = """
SELECT relname, relkind, relrowsecurity, reloptions
FROM pg_class WHERE relnamespace = 'public'::regnamespace
"""
_PG_INDEXES = "SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = 'public'"
_PG_CONSTRAINTS = """
SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid)
FROM pg_constraint WHERE connamespace = 'public'::regnamespace
"""
_PG_TRIGGERS = """
SELECT tgrelid::regclass::text, tgname, pg_get_triggerdef(oid) FROM pg_trigger WHERE NOT tgisinternal
"""
_PG_FUNCTIONS = """
SELECT proname, prosrc FROM pg_proc JOIN pg_language ON pg_language.oid = prolang
WHERE pronamespace = 'public'::regnamespace AND lanname IN ('plpgsql', 'sql')
"""
_POSTGRESQL = (_PG_COLUMNS, _PG_TABLES, _PG_INDEXES, _PG_CONSTRAINTS, _PG_TRIGGERS, _PG_FUNCTIONS)


def main() -> None:
    """Print a line for each column, index, constraint, trigger and function."""
    with tempfile.TemporaryDirectory() as folder, own_or_none() as database_url:
        set_up(folder, database_url)
        _migrate_one_by_one()
        from django.db import connection

        for line in made_in(connection):
            print(line)
        connection.close()


def made_in(connection: BaseDatabaseWrapper) -> Iterator[str]:
    """Give a line for each of them in a database."""
    with connection.cursor() as cursor:
        for query in _SQLITE if connection.vendor == "sqlite" else _POSTGRESQL:
            cursor.execute(query)
            yield from sorted(map(repr, cursor.fetchall()))


def _migrate_one_by_one() -> None:
    """As in the oldest databases: what their first migrations are called rules out the way at once."""
    from django.core.management import call_command
    from django.db import connection
    from django.db.migrations.recorder import MigrationRecorder

    from workspaces.database.first_tables import only_changed_models
    from workspaces.database.row_security import everywhere

    recorder = MigrationRecorder(connection)
    recorder.ensure_schema()
    for app, squashed in SQUASHED.items():
        first = import_module(f"{app}.migrations.{squashed}").FIRST[0]
        recorder.record_applied(app, first)
    # Half a minute of one processor is what is spared where a database is new. It makes no table another one, as a run
    # for a release shows.
    with everywhere(), nullcontext() if IS_FULL else only_changed_models():
        call_command("migrate", verbosity=0, interactive=False)
    assert not set(SQUASHED.items()) & set(recorder.applied_migrations())


if __name__ == "__main__":
    main()
