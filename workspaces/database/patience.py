"""How long a thread waits for the database to say anything.

A server whose processes stand still keeps its connections open: the system acknowledges what arrives, so no timeout of
the network ends a statement, and no timeout of the server's own.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

REQUEST_SECONDS: Final = 60.0
"""For a statement of a request or a page's socket: longer than any lock is waited for, and than what people wait."""

_seconds: ContextVar[Callable[[], float] | None] = ContextVar("patience", default=None)


@contextmanager
def patience(seconds: float) -> Iterator[None]:
    """Wait so long for each statement inside, and for a connection. Outside, as in tasks and commands, without end."""
    with _waiting(lambda: seconds):
        yield


@contextmanager
def shared_patience(seconds: float) -> Iterator[None]:
    """Wait so long for all statements inside together, and for their connections."""
    end = time.monotonic() + seconds
    with _waiting(lambda: max(0.0, end - time.monotonic())):
        yield


@contextmanager
def _waiting(left: Callable[[], float]) -> Iterator[None]:
    token = _seconds.set(left)
    try:
        yield
    finally:
        _seconds.reset(token)


def current_patience() -> float | None:
    """How long this thread waits for a statement; None: without end."""
    left = _seconds.get()
    return None if left is None else left()
