"""Servers of the transport with SSE that misbehave, on real sockets."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

from tests.fakes.mcp_server import INITIALIZED, Listening, Receive, Scope, Send, raw_tool, reply

Post = Callable[["SseServer", dict[str, Any], Send], Awaitable[None]]


class SseServer:
    """Speaks the old transport as it is told.

    Args:
        endpoint: what the first event names; None: there is none.
        on_post: what to do with a POST instead of answering it properly.
        on_stream: the status that the stream is refused with.
    """

    def __init__(
        self,
        endpoint: str | None = "/messages?session=1",
        *,
        on_post: dict[str, Post] | None = None,
        on_stream: int = 200,
    ) -> None:
        self.endpoint = endpoint
        self.on_post = on_post or {}
        self.on_stream = on_stream
        self.posts: list[dict[str, Any]] = []
        self.requests: list[tuple[str, str, dict[str, str]]] = []
        self.pings = 0
        self._outbox: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._listening = Listening(self._app)

    @property
    def url(self) -> str:
        """The stream's address."""
        return f"{self._listening.origin}/sse"

    @property
    def port(self) -> int:
        """Where it listens."""
        return self._listening.port

    def stop(self) -> None:
        """End the server."""
        self._listening.stop()

    async def tell(self, message: dict[str, Any] | str, event: str = "message") -> None:
        """Send one event over the stream."""
        data = message if isinstance(message, str) else json.dumps(message)
        await self._outbox.put(f"event: {event}\ndata: {data}\n\n".encode())

    async def write(self, chunk: bytes) -> None:
        """Send these bytes over the stream."""
        await self._outbox.put(chunk)

    async def hang_up(self) -> None:
        """End the stream."""
        await self._outbox.put(None)

    async def answer(self, body: dict[str, Any]) -> None:
        """Answer a request properly."""
        method = body.get("method")
        result: dict[str, Any]
        if "id" not in body or method is None:
            return
        if method == "initialize":
            result = INITIALIZED
        elif method == "tools/list":
            result = {"tools": [raw_tool("echo")]}
        elif method == "tools/call":
            text = json.dumps(body["params"].get("arguments"))
            result = {"content": [{"type": "text", "text": text}]}
        elif method == "ping":
            self.pings += 1
            result = {}
        else:
            error = {"code": -32601, "message": "Method not found"}
            await self.tell({"jsonrpc": "2.0", "id": body["id"], "error": error})
            return
        await self.tell({"jsonrpc": "2.0", "id": body["id"], "result": result})

    async def _app(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            while True:
                message = await receive()
                await send({"type": f"{message['type']}.complete"})
                if message["type"] == "lifespan.shutdown":
                    return
        headers = {name.decode(): value.decode("latin-1") for name, value in scope["headers"]}
        self.requests.append((scope["method"], scope["path"], headers))
        if scope["method"] == "GET":
            await self._stream(send)
            return
        if scope["path"] == "/sse":
            await reply(send, 405)
            return
        raw = bytearray()
        while True:
            message = await receive()
            raw.extend(message.get("body", b""))
            if not message.get("more_body"):
                break
        body = json.loads(raw)
        self.posts.append(body)
        handler = self.on_post.get(str(body.get("method")))
        if handler is not None:
            await handler(self, body, send)
            return
        await reply(send, 202, b"Accepted", "text/plain")
        await self.answer(body)

    async def _stream(self, send: Send) -> None:
        if self.on_stream != 200:
            await reply(send, self.on_stream)
            return
        self._outbox = asyncio.Queue()
        headers = [(b"content-type", b"text/event-stream")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        if self.endpoint is not None:
            await self.tell(self.endpoint, "endpoint")
        while (chunk := await self._outbox.get()) is not None:
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
        await send({"type": "http.response.body", "body": b""})
