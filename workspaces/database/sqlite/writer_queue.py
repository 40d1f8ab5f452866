"""The queue of this process's threads that want to write to one SQLite file."""

from __future__ import annotations

import threading
import time
from typing import Final

OVERTAKEN_SECONDS: Final = 0.25
"""How long others may go first."""


class WriterQueue:
    """A lock that lets whoever is running go first, but for a moment only.

    To hand it to the thread that waits longest costs a switch of threads each time, so whoever comes while it is free
    takes it. Under load a thread could be overtaken for seconds. One that has waited for a moment closes the door to
    newcomers: before it come only those that wait already.
    """

    def __init__(self) -> None:
        self._turn = threading.Lock()
        self._door = threading.Lock()

    def acquire(self, timeout: float) -> bool:
        """Wait for the turn, at most so many seconds; False: it did not come."""
        end = time.monotonic() + timeout
        if self.is_closed() and not self._wait_at_door(end):
            return False
        if self._turn.acquire(timeout=min(OVERTAKEN_SECONDS, _until(end))):
            return True
        if not self._door.acquire(timeout=_until(end)):
            return False
        try:
            return self._turn.acquire(timeout=_until(end))
        finally:
            self._door.release()

    def release(self) -> None:
        """Give the turn up, from whichever thread."""
        self._turn.release()

    def is_closed(self) -> bool:
        """Whether newcomers wait at the door for one that was overtaken."""
        return self._door.locked()

    def _wait_at_door(self, end: float) -> bool:
        is_open = self._door.acquire(timeout=_until(end))
        if is_open:
            self._door.release()
        return is_open


def _until(end: float) -> float:
    return max(0.0, end - time.monotonic())
