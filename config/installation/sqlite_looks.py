"""What takes seconds to find out of SQLite's file: found in a thread beside requests, and kept with its time.

A look goes through the whole file. So it takes the longer, the more an installation keeps.
"""

from __future__ import annotations

import logging
import math
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final, Generic, TypeVar

from django.db import connection

logger = logging.getLogger(__name__)

LONG_SECONDS: Final = 60.0
"""How long one look may go on beside requests."""
FRESH_SECONDS: Final = 60.0
"""A request that finds an older look has the next one begin."""
PATIENCE_SECONDS: Final = 0.25
"""How long a request waits for it: small files are looked through by then."""
_STEPS: Final = 100_000
"""Of SQLite, between two looks at the clock."""

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class FileFinding(Generic[Result]):
    """What a look found."""

    found: Result
    at: datetime

    @property
    def age(self) -> timedelta:
        """How old it is."""
        return datetime.now(UTC) - self.at


class FileLook(Generic[Result]):
    """One question about the database's file, asked by one thread at a time."""

    def __init__(self, name: str, ask: Callable[[sqlite3.Connection], Result]) -> None:
        self._name, self._ask = name, ask
        self._lock = threading.Lock()
        self._running: threading.Event | None = None
        self._path: Path | None = None
        self._last: FileFinding[Result] | None = None
        self._ended_at = -math.inf
        self._fault: Exception | None = None

    @property
    def fault(self) -> Exception | None:
        """Why the newest look failed; None: it did not."""
        return self._fault

    def last(self, path: Path) -> FileFinding[Result] | None:
        """The newest look, which may be minutes old; None: the first one still goes on, or failed."""
        ended = self._begin(path)
        if ended is not None:
            ended.wait(PATIENCE_SECONDS)
        with self._lock:
            return self._last

    def _begin(self, path: Path) -> threading.Event | None:
        """The look that goes on, begun if it is time for one."""
        with self._lock:
            if path != self._path:
                self._path, self._last, self._running, self._fault = path, None, None, None
                self._ended_at = -math.inf
            if self._running is not None:
                return self._running
            if time.monotonic() - self._ended_at < FRESH_SECONDS:
                return None
            ended = self._running = threading.Event()
        thread = threading.Thread(
            target=self._work, args=(path, ended), name=self._name, daemon=True
        )
        try:
            thread.start()
        except RuntimeError as error:  # the process has no threads left
            self._end(path, ended, None, error)
        return ended

    def _work(self, path: Path, ended: threading.Event) -> None:
        seen, fault = None, None
        try:
            with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as own:
                seen = FileFinding(self._ask(own), datetime.now(UTC))
        except Exception as error:
            logger.exception("file_look_failed", extra={"look": self._name})
            fault = error
        finally:
            self._end(path, ended, seen, fault)

    def _end(
        self,
        path: Path,
        ended: threading.Event,
        seen: FileFinding[Result] | None,
        fault: Exception | None,
    ) -> None:
        with self._lock:
            if path == self._path and self._running is ended:
                self._running, self._fault, self._ended_at = None, fault, time.monotonic()
                if seen is not None:
                    self._last = seen
        ended.set()


def database_file() -> Path | None:
    """SQLite's file; None: there is none."""
    name = str(connection.settings_dict["NAME"])
    if connection.vendor != "sqlite" or "memory" in name.partition("?")[2] or name == ":memory:":
        return None
    return Path(name).absolute()


@contextmanager
def ending_in(raw: Any, seconds: float) -> Iterator[None]:
    """Break off what a connection does after so long, with an OperationalError."""
    end = time.monotonic() + seconds
    raw.set_progress_handler(lambda: time.monotonic() > end, _STEPS)
    try:
        yield
    finally:
        raw.set_progress_handler(None, 0)


def find_damage(raw: Any, seconds: float = LONG_SECONDS) -> bool:
    """Whether SQLite finds a fault in its file, as far as it gets in so many seconds."""
    try:
        with ending_in(raw, seconds):
            return [row[0] for row in raw.execute("PRAGMA quick_check(1)")] != ["ok"]
    except sqlite3.OperationalError as error:
        if str(error) == "interrupted":
            return False  # the time was over
        raise
    except sqlite3.DatabaseError:
        return True  # so damaged that it cannot be looked at


def count_pages(raw: Any, seconds: float = LONG_SECONDS) -> dict[str, int] | None:
    """Bytes of each table and index; None: SQLite was built without `dbstat`, or there was no time."""
    known = raw.execute("SELECT 1 FROM pragma_module_list WHERE name = 'dbstat'").fetchone()
    if known is None:
        return None
    try:
        with ending_in(raw, seconds):
            rows = raw.execute("SELECT name, pgsize FROM dbstat WHERE aggregate = TRUE")
            return {str(name): int(size) for name, size in rows}
    except sqlite3.OperationalError as error:
        if str(error) == "interrupted":
            return None
        raise


damage: Final = FileLook("damage", find_damage)
pages: Final = FileLook("pages", count_pages)
