"""Waiting for a row to be settled, wherever that is done: woken in this process, and looking for the others."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections import defaultdict
from collections.abc import Callable
from typing import Final, TypeVar
from uuid import UUID

from workspaces.database import in_database

T = TypeVar("T")

LOOK_SECONDS: Final = 1.0
"""How often the row is looked at, for what is settled in another process."""

_lock = threading.Lock()
_waiters: defaultdict[UUID, list[tuple[asyncio.AbstractEventLoop, asyncio.Event]]] = defaultdict(
    list
)


def wake(row_id: UUID) -> None:
    """Tell whoever waits in this process to look at the row. Any thread."""
    with _lock:
        waiters = list(_waiters.get(row_id, ()))
    for loop, event in waiters:
        with contextlib.suppress(RuntimeError):  # its loop is closed
            loop.call_soon_threadsafe(event.set)


async def until_settled(row_id: UUID, look: Callable[[], T | None]) -> T:
    """What `look` finds, as soon as that is not None. It uses the database, and ends the wait when time is up."""
    loop, event = asyncio.get_running_loop(), asyncio.Event()
    with _lock:
        _waiters[row_id].append((loop, event))
    try:
        while True:
            event.clear()
            found = await in_database(look)
            if found is not None:
                return found
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LOOK_SECONDS):
                    await event.wait()
    finally:
        with _lock:
            _waiters[row_id].remove((loop, event))
            if not _waiters[row_id]:
                del _waiters[row_id]
