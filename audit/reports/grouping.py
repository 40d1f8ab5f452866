"""What reports group entries by: pieces of time and buckets of durations, so that few rows come of many entries.

SQLite calls Python for both. Django's own truncation reads each moment anew there, which took most of a report's time.
"""

from __future__ import annotations

from datetime import UTC, tzinfo
from functools import lru_cache
from typing import Any

from django.db.backends.sqlite3._functions import (  # type: ignore[import-untyped]  # has no types
    _sqlite_datetime_trunc,
)
from django.db.models import Func, IntegerField
from django.db.models.functions import Trunc

from audit.rollups.histogram import BOUNDS, bucket_of
from audit.rollups.pieces import Unit

_QUARTERS = ("00:00", "15:00", "30:00", "45:00")


def truncated(unit: Unit, zone: tzinfo) -> Trunc:
    """Give the beginning of an entry's piece of time. An hour that clocks repeat is two pieces, so they are taken in UTC."""
    return _Piece("created_at", unit, tzinfo=UTC if unit in {"minute", "hour"} else zone)


class BucketOfDuration(Func):
    """The bucket of a duration on the scale of histograms, as `bucket_of` gives it."""

    output_field = IntegerField()

    def as_sqlite(self, compiler: Any, connection: Any, **extra: Any) -> tuple[str, Any]:
        """Ask Python."""
        _offer_functions(connection)
        return self.as_sql(compiler, connection, function="trellis_bucket", **extra)

    def as_postgresql(self, compiler: Any, connection: Any, **extra: Any) -> tuple[str, Any]:
        """Have PostgreSQL search the bounds."""
        bounds = ",".join(map(str, BOUNDS))
        template = f"(width_bucket(GREATEST(%(expressions)s, 0), ARRAY[{bounds}]::bigint[]) - 1)"
        return self.as_sql(compiler, connection, template=template, **extra)


class _Piece(Trunc):
    def as_sqlite(self, compiler: Any, connection: Any, **_extra: Any) -> tuple[str, Any]:
        _offer_functions(connection)
        sql, values = self.as_sql(compiler, connection)
        return sql.replace("django_datetime_trunc", "trellis_piece"), values


def _offer_functions(connection: Any) -> None:
    """Have a connection of SQLite know both, once: while a statement of it runs, no function can be replaced."""
    connection.ensure_connection()
    if getattr(connection, "trellis_functions_of", None) is not connection.connection:
        offer = connection.connection.create_function
        offer("trellis_piece", 4, _begin, deterministic=True)
        offer("trellis_bucket", 1, bucket_of, deterministic=True)
        connection.trellis_functions_of = connection.connection


def _begin(unit: str, moment: str, zone: str, stored_in: str) -> str | None:
    if unit == "minute":
        return _begin_of_quarter(unit, moment[:17] + "00", zone, stored_in)
    # Every zone of now begins its days at a quarter of an hour.
    quarter = _QUARTERS[int(moment[14:16]) // 15]
    return _begin_of_quarter(unit, moment[:14] + quarter, zone, stored_in)


@lru_cache(maxsize=10_000)
def _begin_of_quarter(unit: str, moment: str, zone: str, stored_in: str) -> str | None:
    begin: str | None = _sqlite_datetime_trunc(unit, moment, zone, stored_in)
    return begin
