"""How requests are served: each by one thread from its first middleware to its last, and threads are kept for the next.

Django gives each request a thread of its own, and under ASGI crosses into it for every middleware. A new thread also
opens a new connection to SQLite. Together that cost more than most pages.
"""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import django
from asgiref.sync import ThreadSensitiveContext, sync_to_async
from django.core.handlers.asgi import ASGIHandler

MOST_IDLE: Final = 8
"""Threads that are kept while nobody asks, each with its connection to SQLite. Busy ones are not counted."""


class Lanes:
    """Threads that serve one request at a time; the one that rested least comes first."""

    def __init__(self) -> None:
        self._idle: list[ThreadPoolExecutor] = []
        self._lock = threading.Lock()

    def take(self) -> ThreadPoolExecutor:
        """A thread that does nothing, if need be a new one."""
        with self._lock:
            if self._idle:
                return self._idle.pop()
        return ThreadPoolExecutor(1, thread_name_prefix="request")

    def give_back(self, lane: ThreadPoolExecutor) -> None:
        """Keep it for others, but not before it has ended what a caller who left had begun."""
        lane.submit(self._keep, lane)

    def _keep(self, lane: ThreadPoolExecutor) -> None:
        with self._lock:
            if len(self._idle) < MOST_IDLE:
                self._idle.append(lane)
                return
        lane.shutdown(wait=False)


class Handler(ASGIHandler):
    """Django's, with one crossing into one thread."""

    def __init__(self) -> None:
        super().__init__()
        self._lanes = Lanes()

    def load_middleware(self, is_async: bool = False) -> None:
        """All of it synchronous, as our views are; Django's would mix both and change over for each."""
        super().load_middleware(is_async=False)
        chain: Any = self._middleware_chain  # type: ignore[has-type]  # the stubs do not know it
        self._middleware_chain = sync_to_async(chain, thread_sensitive=True)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Serve one request."""
        lane = self._lanes.take()
        try:
            async with ThreadSensitiveContext(executor=lane):
                await self.handle(scope, receive, send)
        finally:
            self._lanes.give_back(lane)


def get_application() -> Handler:
    """Load the apps, and give what serves HTTP; as Django's `get_asgi_application`."""
    django.setup(set_prefix=False)
    return Handler()
