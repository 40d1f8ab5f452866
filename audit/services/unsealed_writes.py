"""Whether this process has written to the log since somebody last asked: what it wrote waits to be sealed."""

from __future__ import annotations

import threading

_written = threading.Event()


def tell() -> None:
    """An entry was committed."""
    _written.set()


def take() -> bool:
    """Whether one was since the last time."""
    if not _written.is_set():
        return False
    _written.clear()
    return True
