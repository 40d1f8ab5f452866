"""Empty the test database after a test that commits: only what it wrote to, and past the triggers that guard the log."""

from __future__ import annotations

from functools import cache
from typing import Any, Final

import psycopg
from django.db import connection, transaction

# Django makes their rows after migrations, the same for every test.
_KEPT: Final = {"django_content_type", "auth_permission", "django_site", "django_migrations"}


def empty_database() -> None:
    """Delete every row that a test may have left."""
    if connection.vendor == "postgresql":
        _sweep()
        return
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(_asking())
        if written := [name for (name,) in cursor.fetchall()]:
            _past_triggers(cursor, written)


def _asking() -> str:
    """The statement that gives the tables that have rows."""
    return " UNION ALL ".join(
        f"SELECT '{name}' WHERE EXISTS (SELECT 1 FROM \"{name}\")" for name in _tables()
    )


@cache
def _tables() -> list[str]:
    """Those of models, and the indexes of words, which triggers keep."""
    with connection.cursor() as cursor:
        names = set(connection.introspection.table_names(cursor))
        if connection.vendor == "sqlite":
            cursor.execute("SELECT name FROM sqlite_master WHERE sql LIKE 'CREATE VIRTUAL TABLE%'")
            virtual = tuple(f"{name}_" for (name,) in cursor.fetchall())
            names = {name for name in names if not name.startswith(virtual)}  # what they consist of
    return sorted(names - _KEPT)


_sweeper: psycopg.Connection[Any] | None = None


def _sweep() -> None:
    """Empty PostgreSQL's tables in a session that is there for nothing else.

    There no trigger fires, and the plans of its function stay: to make them takes twenty times as long as to look.
    """
    global _sweeper
    if _sweeper is not None:
        try:
            _sweeper.execute("SELECT pg_temp.sweep()")
        except psycopg.OperationalError:  # a test has ended all sessions of the database
            _sweeper.close()
        else:
            return
    _sweeper = _begin_to_sweep()
    _sweeper.execute("SELECT pg_temp.sweep()")


def _begin_to_sweep() -> psycopg.Connection[Any]:
    made = psycopg.connect(**connection.get_connection_params(), autocommit=True)
    made.execute("SET session_replication_role = replica")
    made.execute(
        "CREATE FUNCTION pg_temp.sweep() RETURNS void LANGUAGE plpgsql AS $made$ DECLARE name text; BEGIN"
        f" FOR name IN {_asking()} LOOP EXECUTE format('DELETE FROM %I', name); END LOOP; END $made$"
    )
    return made


def _past_triggers(cursor: Any, tables: list[str]) -> None:
    cursor.execute("SELECT tbl_name, name, sql FROM sqlite_master WHERE type = 'trigger'")
    triggers = [(name, sql) for table, name, sql in cursor.fetchall() if table in tables]
    dropped = [f'DROP TRIGGER "{name}"' for name, _ in triggers]
    deletions = [f'DELETE FROM "{name}"' for name in tables]
    for statement in (*dropped, *deletions, *(sql for _, sql in triggers)):
        cursor.execute(statement)
