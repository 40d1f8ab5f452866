"""Locks of PostgreSQL: who waits for one, and statements that do not hold what they look for once they have waited."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any

import pytest
from django.db import connection, transaction
from django.db.models.sql.compiler import SQLUpdateCompiler

from tests.patience import PATIENCE
from tests.threads import Threads


@contextmanager
def refusing_joined_updates() -> Iterator[None]:
    """Fail on `update()` of rows that a join finds.

    Django looks for them in a subquery, and PostgreSQL does not look there again once it has waited for another
    transaction: two who claim a row would both get it. Use `Exists` for what the other table has to say.
    """
    plain = SQLUpdateCompiler.pre_sql_setup

    def look(self: Any) -> None:
        tables = {
            self.query.alias_map[alias].table_name
            for alias, count in self.query.alias_refcount.items()
            if count
        }
        assert len(tables) < 2, f"an update with a join: {sorted(tables)}"
        plain(self)

    SQLUpdateCompiler.pre_sql_setup = look  # type: ignore[method-assign]
    try:
        yield
    finally:
        SQLUpdateCompiler.pre_sql_setup = plain  # type: ignore[method-assign]


def until_somebody_waits(*, unless: Future[Any] | None = None) -> None:
    """For a lock of this database; or until that work has ended, if it waits for nobody."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        if unless is not None and unless.done():
            return
        with connection.cursor() as cursor:
            # Within a transaction, who is connected is told as it was at the first look.
            cursor.execute("SELECT pg_stat_clear_snapshot()")
            # A row that another transaction has changed is waited for by that transaction's number.
            cursor.execute(
                "SELECT EXISTS (SELECT 1 FROM pg_locks l JOIN pg_stat_activity a USING (pid)"
                " WHERE NOT granted AND a.datname = current_database())"
            )
            if cursor.fetchone()[0]:
                return
        time.sleep(0.01)  # another session of the database cannot be awaited
    pytest.fail("nobody waits for a lock")


def beside(first: Callable[[], object], second: Callable[[], object]) -> BaseException | None:
    """Begin `second` on another connection when `first` is done and not committed; gives what `second` raised.

    The commit comes as soon as `second` waits for it, or has ended without. On PostgreSQL only: SQLite has one writer.
    """
    with Threads(1) as threads:
        with transaction.atomic():
            first()
            other = threads.submit(second)
            until_somebody_waits(unless=other)
        return other.exception(PATIENCE)
