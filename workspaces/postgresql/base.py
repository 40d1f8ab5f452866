"""Django's backend for PostgreSQL, with lanes in front of the pool of connections.

Each request is served in a thread of its own, so more of them can ask for a connection than the pool has. The threads
of `in_database` commit what the gate records, within seconds, so a part of the pool is theirs alone. All other threads
share lanes, and wait for one longer than the pool would let them.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable
from typing import Any, Final

from django.db.backends.postgresql import base
from psycopg_pool import PoolTimeout

from workspaces.database import THREADS, is_database_thread

PATIENCE_SECONDS: Final = 25.0
"""How long a thread waits for a lane; below the 30 seconds within which a request fails clearly."""

_lanes: dict[tuple[int, str], threading.Semaphore] = {}
_lock = threading.Lock()


class DatabaseWrapper(base.DatabaseWrapper):
    """A connection that holds a lane from when it is taken out of the pool until it is given back."""

    _leave_lane: Callable[[], object] | None = None

    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:
        """As its base; other threads than those of `in_database` take a lane first."""
        if self.pool and not is_database_thread():
            lanes = _lanes_of(self.alias, self.pool.max_size)
            if not lanes.acquire(timeout=PATIENCE_SECONDS):
                raise PoolTimeout(f"no lane became free in {PATIENCE_SECONDS:.0f} seconds")
            # Once only, and also if the thread ends without giving its connection back.
            self._leave_lane = weakref.finalize(self, lanes.release)
        try:
            return super().get_new_connection(conn_params)
        except BaseException:
            self._leave()
            raise

    def _close(self) -> None:
        try:
            super()._close()  # type: ignore[misc]  # the stubs leave it out
        finally:
            self._leave()

    def _leave(self) -> None:
        leave, self._leave_lane = self._leave_lane, None
        if leave is not None:
            leave()


def _lanes_of(alias: str, pool_size: int) -> threading.Semaphore:
    # A forked child begins with its own: nobody there gives back what the parent's threads hold.
    key = os.getpid(), alias
    with _lock:
        if key not in _lanes:
            _lanes[key] = threading.Semaphore(max(1, pool_size - THREADS))
        return _lanes[key]
