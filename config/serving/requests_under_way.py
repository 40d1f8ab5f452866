"""Requests that are being answered: at the end of a process they are finished, and no further ones are taken.

Without it whoever sends a form while a server is replaced would not know whether it was stored.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from workspaces.process.shutdown import is_shutting_down

if TYPE_CHECKING:
    from config.serving.edge import Application, Message, Receive, Scope, Send


class RequestsUnderWay:
    """Knows which requests have no answer yet.

    Streams of events that are only read do not count: they last as long as somebody reads, and their readers come back
    by themselves. One that answers what was sent ends with that answer, which nobody gets a second time.
    """

    def __init__(self, app: Application) -> None:
        self._app = app
        self._open: set[object] = set()
        self._are_answered = asyncio.Event()
        self._are_answered.set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        mark = object()
        self._open.add(mark)
        self._are_answered.clear()

        async def send_on(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = list(message.get("headers", ()))
                if scope["method"] == "GET" and any(_is_stream(*header) for header in headers):
                    self._leave(mark)
                if is_shutting_down():
                    # A proxy that kept the connection would send its next request into the end of the process.
                    message = {**message, "headers": [*headers, (b"connection", b"close")]}
            await send(message)

        try:
            await self._app(scope, receive, send_on)
        finally:
            self._leave(mark)

    async def finish(self) -> None:
        """Wait until all have their answers. Whoever calls this bounds the time."""
        await self._are_answered.wait()

    def _leave(self, mark: object) -> None:
        self._open.discard(mark)
        if not self._open:
            self._are_answered.set()


def _is_stream(name: bytes, value: bytes) -> bool:
    return name.lower() == b"content-type" and value.startswith(b"text/event-stream")
