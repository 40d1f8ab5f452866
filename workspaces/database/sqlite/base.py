"""Django's backend for SQLite, with a queue for the threads of this process that want to write.

SQLite has one writer at a time, and who finds it busy sleeps and looks again, for longer each time: under load most of
the time is slept through, and some wait until they give up. Here a thread waits for the one before it instead. Writers
of other processes, and single statements outside a transaction, still wait as SQLite has them wait.
"""

from __future__ import annotations

import os
import threading
import weakref
from functools import lru_cache
from typing import Any, Final

from django.db.backends.sqlite3 import base
from django.db.utils import OperationalError

from workspaces.database.sqlite.writer_queue import WriterQueue

_queues: dict[str, WriterQueue] = {}
_lock = threading.Lock()
_PATIENCE_SECONDS: Final = 20.0
"""Where the settings name no time."""
_LONG_STATEMENT: Final = 10_000
"""Characters. What is longer is made for one occasion, and is not kept."""


class DatabaseWrapper(base.DatabaseWrapper):
    """A connection that stands in the queue from before its transaction begins until it has ended."""

    _leave: weakref.finalize[Any, Any] | None = None

    def create_cursor(self, name: str | None = None) -> Any:
        return self.connection.cursor(factory=_Cursor)

    def _start_transaction_under_autocommit(self) -> None:
        queue = _queue_of(str(self.settings_dict["NAME"]))
        patience = self.settings_dict["OPTIONS"].get("timeout", _PATIENCE_SECONDS)
        if not queue.acquire(timeout=patience):
            raise OperationalError("database is locked: too many writers wait")
        # Once only, and also if the thread ends within its transaction.
        self._leave = weakref.finalize(self, queue.release)
        self._leave.atexit = False
        try:
            super()._start_transaction_under_autocommit()  # type: ignore[misc]  # the stubs leave it out
        except BaseException:
            self._leave_queue()
            raise

    def _commit(self) -> None:
        super()._commit()  # type: ignore[misc]
        self._leave_queue()  # after a commit that failed comes a rollback

    def _rollback(self) -> None:
        try:
            super()._rollback()  # type: ignore[misc]
        finally:
            self._leave_queue()

    def _close(self) -> None:
        try:
            super()._close()  # type: ignore[misc]
        finally:
            self._leave_queue()

    def _leave_queue(self) -> None:
        leave, self._leave = self._leave, None
        if leave is not None:
            leave()


class _Cursor(base.SQLiteCursorWrapper):
    """Django's, which looks through each statement for its places. Those that come again are looked through once."""

    def convert_query(self, query: str, *, param_names: list[str] | None = None) -> str:
        if param_names is not None or len(query) > _LONG_STATEMENT:
            return str(super().convert_query(query, param_names=param_names))
        return _converted(query)


@lru_cache(maxsize=512)
def _converted(query: str) -> str:
    return base.FORMAT_QMARK_REGEX.sub("?", query).replace("%%", "%")


def _queue_of(name: str) -> WriterQueue:
    with _lock:
        return _queues.setdefault(name, WriterQueue())


def _begin_anew() -> None:
    """A forked child begins with its own: nobody there gives back what the parent's threads hold."""
    global _lock
    _lock = threading.Lock()
    _queues.clear()


os.register_at_fork(after_in_child=_begin_anew)
