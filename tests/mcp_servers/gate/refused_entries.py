"""A database that refuses entries of the log."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection

TABLE = "audit_auditentry"


@contextmanager
def refusing_entries(action: str) -> Iterator[None]:
    """The database itself refuses entries of this kind."""
    drop = f"DROP TRIGGER test_refuse ON {TABLE}; DROP FUNCTION test_refuse()"
    make = f"""
        CREATE FUNCTION test_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN RAISE EXCEPTION 'disk full' USING ERRCODE = 'disk_full'; END $$;
        CREATE TRIGGER test_refuse BEFORE INSERT ON {TABLE} FOR EACH ROW
        WHEN (NEW.action = '{action}') EXECUTE FUNCTION test_refuse()
    """
    if connection.vendor == "sqlite":
        drop = "DROP TRIGGER test_refuse"
        make = f"""
            CREATE TRIGGER test_refuse BEFORE INSERT ON {TABLE} WHEN NEW.action = '{action}'
            BEGIN SELECT RAISE(ABORT, 'disk full'); END
        """
    with connection.cursor() as cursor:
        cursor.execute(make)
    try:
        yield
    finally:
        with connection.cursor() as cursor:
            cursor.execute(drop)
