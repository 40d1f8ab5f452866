"""Carries HTTP requests to an ASGI application in this process, and streams its answer back.

httpx2's own ASGI transport gathers the whole body first; a model's answer has to arrive as it is
spoken.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from typing import Any

import httpx2

DEMO_ORIGIN = "http://demo-model"

_Message = MutableMapping[str, Any]
_App = Callable[
    [_Message, Callable[[], Awaitable[_Message]], Callable[[_Message], Awaitable[None]]],
    Awaitable[None],
]
_QUEUED_MESSAGES = 64


def demo_transport() -> httpx2.AsyncBaseTransport:
    """The way to the demo model."""
    from chat.demo_model.server import application

    return StreamingASGITransport(application)


class StreamingASGITransport(httpx2.AsyncBaseTransport):
    """One task per request runs the application; closing the response cancels it."""

    def __init__(self, app: _App) -> None:
        self._app = app

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        body = await request.aread()
        queue: asyncio.Queue[_Message | None] = asyncio.Queue(_QUEUED_MESSAGES)
        scope: _Message = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": request.method,
            "scheme": request.url.scheme,
            "path": request.url.path,
            "raw_path": request.url.raw_path,
            "query_string": request.url.query,
            "headers": [(k.lower(), v) for k, v in request.headers.raw],
        }
        task = asyncio.create_task(self._run(scope, body, queue))
        start = await queue.get()
        if start is None:
            await task
            raise httpx2.RemoteProtocolError("the application sent no response", request=request)
        return httpx2.Response(
            start["status"],
            headers=start.get("headers", []),
            stream=_Body(queue, task),
            request=request,
        )

    async def _run(
        self, scope: _Message, body: bytes, queue: asyncio.Queue[_Message | None]
    ) -> None:
        parts = [{"type": "http.request", "body": body, "more_body": False}]

        async def receive() -> _Message:
            if parts:
                return parts.pop()
            await asyncio.Event().wait()  # a client that never hangs up by itself
            return {"type": "http.disconnect"}

        try:
            await self._app(scope, receive, queue.put)
        finally:
            if not queue.full():
                queue.put_nowait(None)


class _Body(httpx2.AsyncByteStream):
    def __init__(self, queue: asyncio.Queue[_Message | None], task: asyncio.Task[None]) -> None:
        self._queue = queue
        self._task = task

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while True:
            message = await self._queue.get()
            if message is None:
                await self._task
                return
            if message.get("body"):
                yield message["body"]
            if not message.get("more_body"):
                return

    async def aclose(self) -> None:
        if not self._task.done():
            self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
