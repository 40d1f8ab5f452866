"""Everything that the database holds, as text."""

from __future__ import annotations

from collections.abc import Iterator

from django.db import connection


def dump() -> Iterator[tuple[str, str]]:
    """Every table as text."""
    with connection.cursor() as cursor:
        for table in connection.introspection.table_names(cursor):
            cursor.execute(f"SELECT * FROM {connection.ops.quote_name(table)}")
            for row in cursor.fetchall():
                yield table, " ".join(as_text(value) for value in row)


def as_text(value: object) -> str:
    raw = bytes(value) if isinstance(value, bytes | memoryview) else None
    return raw.decode("utf-8", "replace") if raw is not None else str(value)
