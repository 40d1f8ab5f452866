"""One process at a time serves a data folder: without PostgreSQL, two would each believe that they are alone."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Final

FILE_NAME: Final = "serving.lock"
LEAVING_SECONDS: Final = 12.0
"""As long as a process that has been told to end may take."""
_LOOK_SECONDS: Final = 0.2


class AlreadyServed(Exception):
    """Another process serves the data folder; the text is for people."""


@contextmanager
def hold(folder: Path, *, waiting: Callable[[], None]) -> Iterator[None]:
    """Have the folder for oneself, until the block or the process ends, however it ends.

    Args:
        waiting: called once if another process has it, which may be about to end.

    Raises:
        AlreadyServed: that process goes on.
        OSError: the folder cannot be written.
    """
    with _open(folder) as lock:
        end = time.monotonic() + LEAVING_SECONDS
        is_told = False
        while not _take(lock):
            if time.monotonic() > end:
                raise AlreadyServed(_who(lock))
            if not is_told:
                waiting()
                is_told = True
            time.sleep(_LOOK_SECONDS)
        lock.seek(0)
        lock.truncate()
        lock.write(str(os.getpid()))
        lock.flush()
        yield


def is_held(folder: Path) -> bool:
    """Whether a process serves the folder now."""
    if not (folder / FILE_NAME).exists():
        return False
    with _open(folder) as lock:
        return not _take(lock)


def _open(folder: Path) -> IO[str]:
    handle = os.open(folder / FILE_NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    return os.fdopen(handle, "r+")


def _take(lock: IO[str]) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _who(lock: IO[str]) -> str:
    lock.seek(0)
    number = lock.read().strip()
    return f"process {number}" if number.isdigit() else "another process"
