"""How requests are served: each by one crossing into one thread, and threads are kept for the next.

Django gives each request a thread of its own, and under ASGI crosses into it for every middleware, for the signal
before them and for the one behind. A new thread also opens a new connection to SQLite. Together that cost more than
most pages.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import django
from asgiref.sync import ThreadSensitiveContext, sync_to_async
from django.core import signals
from django.core.exceptions import RequestAborted
from django.core.handlers.asgi import ASGIHandler, get_script_prefix
from django.http import FileResponse
from django.urls import set_script_prefix

from workspaces.database.patience import REQUEST_SECONDS, patience
from workspaces.process.departures import DEPARTURE, Departure

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

    def give_back(self, lane: ThreadPoolExecutor, *, is_at_rest: bool) -> None:
        """Keep it for others, but not before it has ended what a caller who left had begun.

        Args:
            is_at_rest: it has ended everything.
        """
        if is_at_rest:
            self._keep(lane)
        else:
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
        self._cross = sync_to_async(self._in_thread)

    def load_middleware(self, is_async: bool = False) -> None:
        """All of it synchronous, as our views are; Django's would mix both and change over for each."""
        super().load_middleware(is_async=False)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Serve one request."""
        lane = self._lanes.take()
        is_at_rest = False
        try:
            async with ThreadSensitiveContext(executor=lane):
                is_at_rest = await self._serve(scope, receive, send, lane)
        finally:
            self._lanes.give_back(lane, is_at_rest=is_at_rest)

    async def _serve(self, scope: Any, receive: Any, send: Any, lane: ThreadPoolExecutor) -> bool:
        """Read it and answer it; True once its thread has nothing left to do. As Django's `handle`."""
        try:
            body = await self.read_body(receive)
        except RequestAborted:
            return True
        is_at_rest = False
        try:
            set_script_prefix(get_script_prefix(scope))
            request, refused = self.create_request(scope, body)
            if refused is not None:
                await self.send_response(refused, send)
                is_at_rest = True
            else:
                departure = Departure()
                setattr(request, DEPARTURE, departure)
                work = self._answer(request, send)
                is_at_rest = await self._until_left(work, receive, departure)
        finally:
            if is_at_rest:
                body.close()
            else:
                # Whoever sent it has left, and its thread still reads it.
                lane.submit(body.close)
        return is_at_rest

    async def _until_left(
        self, work: Coroutine[Any, Any, None], receive: Any, departure: Departure
    ) -> bool:
        """Whether the work has ended: whoever leaves before is not answered any more."""
        leaving = asyncio.ensure_future(self.listen_for_disconnect(receive))
        answering = asyncio.ensure_future(work)
        try:
            await asyncio.wait({leaving, answering}, return_when=asyncio.FIRST_COMPLETED)
            if leaving.done() and not isinstance(error := leaving.exception(), RequestAborted):
                assert error is not None  # it ends in no other way
                raise error
        finally:
            is_answered = answering.done()
            if not is_answered:
                departure.happen()
            for task in (leaving, answering):
                task.cancel()
            await asyncio.wait({leaving, answering})
        if is_answered or not answering.cancelled():
            answering.result()
        return is_answered

    async def _answer(self, request: Any, send: Any) -> None:
        response = await self._cross(request)
        try:
            await self.send_response(response, send)
        finally:
            if response.streaming:
                await sync_to_async(response.close)()

    def _in_thread(self, request: Any) -> Any:
        """All that a request needs its thread for; what streams is closed when it has been read."""
        signals.request_started.send(sender=type(self), scope=request.scope)
        try:
            with patience(REQUEST_SECONDS):
                response: Any = self.get_response(request)
        except BaseException:
            signals.request_finished.send(sender=type(self))
            raise
        response._handler_class = type(self)
        if isinstance(response, FileResponse):
            response.block_size = self.chunk_size
        if not response.streaming:
            response.close()
        return response


def get_application() -> Handler:
    """Load the apps, and give what serves HTTP; as Django's `get_asgi_application`."""
    django.setup(set_prefix=False)
    return Handler()
