"""Finds transactions that stay open while their thread does something else than talking with the database."""

from __future__ import annotations

import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from django.db.backends.utils import CursorWrapper
from django.db.transaction import Atomic

MOST_SECONDS: Final = 1.0
"""Of a thread's CPU between two statements, so that a busy machine is not taken for heavy work."""

_OF_MIGRATIONS: Final = "django/db/migrations/executor.py"
"""Django computes between the statements of a migration, which runs while nobody is served."""

_here = threading.local()
_found: list[str] = []


def take_found() -> list[str]:
    """Where transactions stayed idle since this was asked last."""
    found = list(_found)
    _found.clear()
    return found


@contextmanager
def watching() -> Iterator[None]:
    """Watch every transaction of the process but those that tests put around themselves."""
    enter, leave = Atomic.__enter__, Atomic.__exit__
    plain = {name: getattr(CursorWrapper, name) for name in ("execute", "executemany")}

    def watched_enter(self: Any) -> None:
        enter(self)
        if not self._from_testcase:
            _here.depth = getattr(_here, "depth", 0) + 1
            _begin()

    def watched_leave(self: Any, *about: Any) -> None:
        if not self._from_testcase:
            _look()
            _here.depth -= 1
        leave(self, *about)
        _begin()

    def watched(function: Callable[..., Any]) -> Callable[..., Any]:
        def run(self: Any, *args: Any, **kwargs: Any) -> Any:
            _look()
            try:
                return function(self, *args, **kwargs)
            finally:
                _begin()

        return run

    Atomic.__enter__, Atomic.__exit__ = watched_enter, watched_leave  # type: ignore[method-assign]
    for name, function in plain.items():
        setattr(CursorWrapper, name, watched(function))
    try:
        yield
    finally:
        Atomic.__enter__, Atomic.__exit__ = enter, leave  # type: ignore[method-assign]
        for name, function in plain.items():
            setattr(CursorWrapper, name, function)


def _begin() -> None:
    if getattr(_here, "depth", 0):
        _here.began, _here.since = time.monotonic(), time.thread_time()


def _look() -> None:
    # Asking the kernel for a thread's time costs more than the rest of this, and it is never more than has passed.
    if not getattr(_here, "depth", 0) or time.monotonic() - _here.began <= MOST_SECONDS:
        return
    if time.thread_time() - _here.since <= MOST_SECONDS:
        return
    stack = traceback.format_stack()[:-2]
    if not any(_OF_MIGRATIONS in line for line in stack):
        _found.append("".join(stack[-10:]))
