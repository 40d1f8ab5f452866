"""Reading that may take long on a large database, and is broken off in time."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from django.db import OperationalError, connection, transaction

_OPCODES: Final = 20_000
"""Of SQLite, between two looks at the clock: less than a millisecond."""
_CANCELLED: Final = "57014"


class TookTooLong(Exception):
    """A statement was broken off."""


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """Only read inside, and give each statement so much time; on SQLite, all of them together.

    Raises:
        TookTooLong: one was broken off, and nothing came of it.
    """
    limit = _on_postgresql if connection.vendor == "postgresql" else _on_sqlite
    try:
        with limit(seconds):
            yield
    except OperationalError as error:
        is_cancelled = getattr(error.__cause__, "sqlstate", None) == _CANCELLED
        if is_cancelled or str(error) == "interrupted":
            raise TookTooLong from error
        raise


@contextmanager
def _on_postgresql(seconds: float) -> Iterator[None]:
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SELECT current_setting('statement_timeout')")
            (before,) = cursor.fetchone()
            _set(cursor, f"{int(seconds * 1000)}ms")
        yield
        # The caller's transaction may go on; after a failure its savepoint brings this back.
        with connection.cursor() as cursor:
            _set(cursor, before)


def _set(cursor: object, value: str) -> None:
    cursor.execute("SELECT set_config('statement_timeout', %s, true)", [value])  # type: ignore[attr-defined]


@contextmanager
def _on_sqlite(seconds: float) -> Iterator[None]:
    connection.ensure_connection()
    own = connection.connection
    deadline = time.monotonic() + seconds
    own.set_progress_handler(lambda: time.monotonic() > deadline, _OPCODES)
    try:
        yield
    finally:
        own.set_progress_handler(None, 0)
