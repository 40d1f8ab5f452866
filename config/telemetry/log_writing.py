"""Writing the log beside the work: whoever reads it may be slow or have stopped, as a terminal does at Ctrl-S."""

from __future__ import annotations

import atexit
import contextlib
import io
import logging
import os
import queue
import threading
from typing import Final

logger = logging.getLogger(__name__)

MOST_LINES: Final = 5_000
"""That may wait to be written."""
_ENDING_SECONDS: Final = 2.0
"""How long a process that ends waits until what it said is written."""


class BackgroundLineWriter(io.TextIOBase):
    """A stream whose lines a thread of its own writes. Those that find no room are left out, and it says how many."""

    def __init__(self, fd: int) -> None:
        # One of its own: if somebody closes theirs, the next file that is opened gets its number.
        self._fd = os.dup(fd)
        self._begin()
        # Threads do not come along into a process that forks from this one.
        os.register_at_fork(after_in_child=self._begin)

    def _begin(self) -> None:
        self._lines: queue.Queue[str] = queue.Queue(MOST_LINES)
        self._lost = 0
        threading.Thread(target=self._work, name="log", daemon=True).start()

    def write(self, text: str) -> int:
        """Hand on a line; never waits."""
        try:
            self._lines.put_nowait(text)
        except queue.Full:
            self._lost += 1
        return len(text)

    def drain(self, seconds: float) -> None:
        """Wait until all is written, or for so long."""
        done = self._lines.all_tasks_done
        with done:
            done.wait_for(lambda: not self._lines.unfinished_tasks, seconds)

    def _work(self) -> None:
        while True:
            rest = memoryview(self._lines.get().encode(errors="backslashreplace"))
            # Nobody may be left to read it. Not by `sys.stderr`: its lock would be held while this waits.
            with contextlib.suppress(OSError):
                while rest:
                    rest = rest[os.write(self._fd, rest) :]
            self._lines.task_done()
            if self._lost and self._lines.empty():
                lost, self._lost = self._lost, 0
                logger.warning("log lines were left out", extra={"lines": lost})


def write_the_rest(seconds: float = _ENDING_SECONDS) -> None:
    """Wait until all that was said is written, or for so long: before a process ends."""
    for handler in logging.getLogger().handlers:
        stream = getattr(handler, "stream", None)
        if isinstance(stream, BackgroundLineWriter):
            stream.drain(seconds)


def write_beside() -> None:
    """Have the log of this process written by a thread, so that no event loop waits for a terminal, a pipe or a disk."""
    for handler in logging.getLogger().handlers:
        if (
            not isinstance(handler, logging.StreamHandler)
            or isinstance(handler, logging.FileHandler)  # opens and closes its file itself
            or isinstance(handler.stream, BackgroundLineWriter)
        ):
            continue
        with contextlib.suppress(OSError):  # it stands for no file, as in tests
            handler.setStream(BackgroundLineWriter(handler.stream.fileno()))
            atexit.register(write_the_rest)
