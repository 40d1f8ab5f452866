"""What something costs the database: statements, transactions that write, and crossings of threads, whoever asks."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.utils import CursorWrapper

from workspaces.database import connections

_WRITES = ("INSERT", "UPDATE", "DELETE")


@dataclass
class Price:
    """What was counted so far, in all threads."""

    statements: list[str] = field(default_factory=list)
    """Those on tables: the beginning of a transaction, savepoints and the clock do not count."""
    clocks: int = 0
    """How often PostgreSQL was asked for the time. Each takes as long as a short statement."""
    commits: int = 0
    """Transactions that wrote something."""
    crossings: int = 0
    """From a loop into a thread with the database, and back."""

    def in_words(self) -> str:
        """For a test that fails: what was asked, shortened."""
        asked = "\n".join(one[:160] for one in self.statements)
        return f"{len(self.statements)} statements, {self.commits} commits, {self.crossings} crossings\n{asked}"


@contextmanager
def counted() -> Iterator[Price]:
    """Count until the end of the block."""
    price, lock = Price(), threading.Lock()
    has_written: set[int] = set()
    execute, commit, cross = (
        CursorWrapper.execute,
        BaseDatabaseWrapper._commit,  # type: ignore[attr-defined]
        connections._with_fresh_connections,
    )

    def executed(self: Any, sql: Any, params: Any = None) -> Any:
        text = str(sql)
        with lock:
            if '"' in text and "SAVEPOINT" not in text:
                price.statements.append(text)
            price.clocks += "statement_timestamp()" in text
            if text.lstrip().startswith(_WRITES):
                if self.db.in_atomic_block:
                    has_written.add(id(self.db))
                else:
                    price.commits += 1
        return execute(self, sql, params)

    def committed(self: Any) -> Any:
        with lock:
            if id(self) in has_written:
                has_written.discard(id(self))
                price.commits += 1
        return commit(self)

    def crossed(work: Any) -> Any:
        with lock:
            price.crossings += 1
        return cross(work)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(CursorWrapper, "execute", executed)
        patch.setattr(BaseDatabaseWrapper, "_commit", committed)
        patch.setattr(connections, "_with_fresh_connections", crossed)
        yield price
