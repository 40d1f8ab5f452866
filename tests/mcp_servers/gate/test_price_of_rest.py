"""What a call of a tool over REST costs, from the server's loop and back: none of it may creep back."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest
from channels.db import database_sync_to_async as sync_to_async

from tests.fakes.mcp_server import CountingServer
from tests.mcp_servers.gate.crowds import Crowd, make_tools, sign_in
from tests.price import counted
from workspaces.database.threads import DatabaseThreads

_OURS = ("request", "database")
"""Threads of requests, and those of `in_database`; others work on the process's own account."""


@contextmanager
def hand_overs() -> Iterator[Counter[str]]:
    """Count what wakes another thread on a request's way, by who is woken."""
    found: Counter[str] = Counter()
    lock = threading.Lock()
    submit, wake = ThreadPoolExecutor.submit, asyncio.BaseEventLoop.call_soon_threadsafe
    start = DatabaseThreads.start

    def submitted(self: Any, *args: Any, **kwargs: Any) -> Any:
        prefix: str = self._thread_name_prefix
        if prefix == "request":
            with lock:
                found["thread: request"] += 1
        return submit(self, *args, **kwargs)

    def started(self: Any, *args: Any, **kwargs: Any) -> Any:
        with lock:
            found["thread: database"] += 1
        return start(self, *args, **kwargs)

    def woken(self: Any, *args: Any, **kwargs: Any) -> Any:
        caller = threading.current_thread().name
        if caller.startswith(_OURS):
            with lock:
                found[f"loop, by {caller.partition('_')[0]}"] += 1
        return wake(self, *args, **kwargs)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ThreadPoolExecutor, "submit", submitted)
        patch.setattr(DatabaseThreads, "start", started)
        patch.setattr(asyncio.BaseEventLoop, "call_soon_threadsafe", woken)
        yield found


@pytest.mark.both_engines
async def test_a_call_over_rest(transactional_db: None, counting: CountingServer) -> None:
    """REL-1766: there and back once for the request, once to where connections live, and twice for its entries."""
    from tests.factories import make_tenant

    tenant = await sync_to_async(make_tenant)("acme")
    [tool] = await sync_to_async(make_tools)(tenant, [counting], "echo")
    crowd = Crowd(tenant, *await sync_to_async(sign_in)(tenant))
    async with crowd.http:
        assert await crowd.call(tool, 0) == 200
        with hand_overs() as found:
            assert await crowd.call(tool, 1) == 200
        with counted() as price:
            assert await crowd.call(tool, 2) == 200
    assert sum(found.values()) <= 7, found
    assert len(price.statements) <= 8, price.in_words()
    assert price.commits <= 2, price.in_words()
    assert price.crossings <= 2, price.in_words()
