"""Real MCP servers on a real port: the SDK's own, which counts what it does, and raw ones that misbehave."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import threading
from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from typing import Any
from uuid import uuid4

import uvicorn
from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import ToolAnnotations
from wsproto.utilities import LocalProtocolError

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Handler = Callable[[dict[str, Any] | None, Scope, Send], Awaitable[None]]

_PATIENCE = 10.0


class _Server(uvicorn.Server):
    """Starts and ends at once. Uvicorn's own looks ten times a second whether it is to end, and then waits a tenth more."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.is_listening = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._end = asyncio.Event()

    def end(self) -> None:
        """Stop listening, and drop every connection; from any thread."""
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):  # it has ended by itself
                self._loop.call_soon_threadsafe(self._end.set)

    async def main_loop(self) -> None:
        """Wait until it is to end."""
        self._loop = asyncio.get_running_loop()
        await self.on_tick(0)
        self.is_listening.set()
        await self._end.wait()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Wait for nobody."""
        for server in self.servers:
            server.close()
        for connection in list(self.server_state.connections):
            with contextlib.suppress(LocalProtocolError):  # its client has just closed it
                connection.shutdown()
        for task in self.server_state.tasks:
            task.cancel()


class Listening:
    """An ASGI app on a port of 127.0.0.1 (a free one, unless it is named), in a thread of its own.

    Args:
        make: makes the app, given the origin, where the app must know its own address.
        tls: files with a certificate and its key; it speaks https then.
    """

    def __init__(
        self,
        app: Any = None,
        port: int = 0,
        make: Callable[[str], Any] | None = None,
        tls: tuple[str, str] | None = None,
    ) -> None:
        self._scheme = "https" if tls else "http"
        certificate, key = tls or (None, None)
        # With the protocol named, asyncio switches the delay of small packets off.
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._socket.bind(("127.0.0.1", port))
        self.port: int = self._socket.getsockname()[1]
        config = uvicorn.Config(
            app if make is None else make(self.origin),
            interface="asgi3",
            log_config=None,
            log_level="critical",
            ssl_certfile=certificate,
            ssl_keyfile=key,
        )
        self._server = _Server(config)
        self._thread = threading.Thread(
            target=self._server.run, kwargs={"sockets": [self._socket]}, daemon=True
        )
        self._thread.start()
        if not self._server.is_listening.wait(_PATIENCE):
            raise RuntimeError("the fake server did not start")

    @property
    def origin(self) -> str:
        """Where it listens."""
        return f"{self._scheme}://127.0.0.1:{self.port}"

    def stop(self) -> None:
        """Drop every connection and stop listening."""
        self._server.end()
        self._thread.join(_PATIENCE)
        self._socket.close()


_CODE = {"fn", "fn_metadata", "context_kwarg"}


class CountingServer:
    """The SDK's server with a tool of each kind; it keeps what it was asked to do outside of our database."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.cancelled: list[str] = []
        self.bodies: list[bytes] = []
        """Raw request bodies, as they came in."""
        self._hurry = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self.headers: list[dict[str, str]] = []
        self.server = MCPServer("counting", version="1.0", log_level="ERROR")
        self._add_tools()
        self._listening = Listening(self._app())

    @property
    def url(self) -> str:
        """The endpoint."""
        return f"{self._listening.origin}/mcp"

    def stop(self) -> None:
        """End the server."""
        self._listening.stop()

    def finish_slow(self) -> None:
        """End each call of the slow tool that waits."""
        assert self._loop is not None
        self._loop.call_soon_threadsafe(self._hurry.set)

    def offers(self) -> str:
        """All that it offers now; two that say the same offer the same."""
        server = self.server
        parts = (
            server._tool_manager.list_tools(),
            server._resource_manager.list_resources(),
            server._resource_manager.list_templates(),
            server._prompt_manager.list_prompts(),
        )
        return json.dumps(
            [[one.model_dump(mode="json", exclude=_CODE) for one in part] for part in parts]
        )

    def names(self) -> list[str]:
        """Names of the tools called so far."""
        return [name for name, _ in self.calls]

    def add_tool(
        self, name: str, annotations: ToolAnnotations | None = None, description: str = ""
    ) -> None:
        """Offer one more tool, which takes a text."""

        def tool(text: str = "") -> str:
            self.calls.append((name, {"text": text}))
            return f"{name}: {text}"

        self.server.add_tool(
            tool, name=name, description=description or name, annotations=annotations
        )

    def _add_tools(self) -> None:
        server, calls = self.server, self.calls

        @server.tool(annotations=ToolAnnotations(read_only_hint=True))
        def echo(text: str) -> str:
            """Say it again."""
            calls.append(("echo", {"text": text}))
            return text

        @server.tool(annotations=ToolAnnotations(read_only_hint=False, destructive_hint=True))
        def destroy(what: str) -> str:
            """Destroy something."""
            calls.append(("destroy", {"what": what}))
            return f"destroyed {what}"

        @server.tool()
        def plain(text: str = "") -> str:
            """Says nothing about itself."""
            calls.append(("plain", {"text": text}))
            return text

        @server.tool(annotations=ToolAnnotations(read_only_hint=True))
        async def slow(seconds: float, ctx: Context) -> str:
            """Take a while, and say how far it is."""
            self._loop = asyncio.get_running_loop()
            calls.append(("slow", {"seconds": seconds}))
            try:
                for step in range(4):
                    await ctx.report_progress(step, 4, f"step {step}")
                    with contextlib.suppress(TimeoutError):
                        async with asyncio.timeout(seconds / 4):
                            await self._hurry.wait()
            except asyncio.CancelledError:
                self.cancelled.append("slow")
                raise
            return "done"

        @server.tool(annotations=ToolAnnotations(read_only_hint=True))
        def fail(text: str) -> str:
            """Report an error."""
            calls.append(("fail", {"text": text}))
            raise ToolError(text)

        @server.tool(annotations=ToolAnnotations(read_only_hint=True))
        async def announce(ctx: Context) -> str:
            """Say that the tools changed."""
            calls.append(("announce", {}))
            await ctx.session.send_tool_list_changed()
            return "said"

        @server.tool(annotations=ToolAnnotations(read_only_hint=True), structured_output=False)
        def big(size: int) -> str:
            """Answer with so many characters."""
            calls.append(("big", {"size": size}))
            return "x" * size

    def _app(self) -> Any:
        inner = self.server.streamable_http_app()

        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] != "http":
                await inner(scope, receive, send)
                return
            self.headers.append(
                {name.decode(): value.decode("latin-1") for name, value in scope["headers"]}
            )
            kept = bytearray()

            async def keep() -> MutableMapping[str, Any]:
                message = await receive()
                if message["type"] == "http.request":
                    kept.extend(message.get("body", b""))
                    if not message.get("more_body"):
                        self.bodies.append(bytes(kept))
                return message

            await inner(scope, keep, send)

        return app


class RawServer:
    """An HTTP server that speaks only as much of the protocol as it is told, and counts its calls.

    Args:
        handlers: what to do for a JSON-RPC method; without one, initialize and tools/list are answered properly.
    """

    def __init__(
        self, handlers: dict[str, Handler] | None = None, tools: list[Any] | None = None
    ) -> None:
        self.handlers = handlers or {}
        self.tools = tools if tools is not None else [raw_tool("echo")]
        self.requests: list[tuple[str, dict[str, str], dict[str, Any] | None]] = []
        self._listening = Listening(self._app)

    @property
    def url(self) -> str:
        """The endpoint."""
        return f"{self._listening.origin}/mcp"

    def stop(self) -> None:
        """End the server."""
        self._listening.stop()

    def methods(self) -> list[str]:
        """JSON-RPC methods asked for so far."""
        return [body.get("method", "") for _, _, body in self.requests if body]

    async def _app(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await _answer_lifespan(receive, send)
            return
        raw = bytearray()
        while True:
            message = await receive()
            raw.extend(message.get("body", b""))
            if not message.get("more_body"):
                break
        body = json.loads(raw) if raw else None
        headers = {name.decode(): value.decode("latin-1") for name, value in scope["headers"]}
        self.requests.append((scope["method"], headers, body))
        method = str((body or {}).get("method", scope["method"]))
        handler = self.handlers.get(method) or self.handlers.get("*")
        if handler is not None:
            await handler(body, scope, send)
            return
        await self._answer(body, send)

    async def _answer(self, body: dict[str, Any] | None, send: Send) -> None:
        method = str((body or {}).get("method"))
        if body is None:
            await reply(send, 405)
        elif "id" not in body:
            await reply(send, 202)
        elif method == "initialize":
            await reply_result(send, body, {**INITIALIZED})
        elif method == "tools/list":
            await reply_result(send, body, {"tools": self.tools})
        elif method == "tools/call":
            text = json.dumps(body["params"].get("arguments"))
            await reply_result(send, body, {"content": [{"type": "text", "text": text}]})
        else:
            await reply_error(
                send,
                body,
                -32601,
                "Method not found",
                status=404 if method == "server/discover" else 200,
            )


INITIALIZED: dict[str, Any] = {
    "protocolVersion": "2025-11-25",
    "capabilities": {"tools": {"listChanged": True}},
    "serverInfo": {"name": "raw", "version": "0"},
}


async def begin_session(body: dict[str, Any] | None, scope: Scope, send: Send) -> None:
    """Answer initialize with a session id."""
    answer = {"jsonrpc": "2.0", "id": (body or {}).get("id"), "result": INITIALIZED}
    await reply(send, 200, json.dumps(answer).encode(), headers={"mcp-session-id": uuid4().hex})


def raw_tool(name: str, /, **parts: Any) -> dict[str, Any]:
    """A tool definition as on the wire."""
    return {
        "name": name,
        "description": name,
        "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}},
        "annotations": {"readOnlyHint": True},
        **parts,
    }


async def reply(
    send: Send,
    status: int,
    body: bytes = b"",
    content_type: str = "application/json",
    headers: dict[str, str] | None = None,
) -> None:
    """Send a whole HTTP answer."""
    named = {"content-type": content_type, **(headers or {})}
    await send(
        {
            "type": "http.response.start",
            "status": status,
            "headers": [(name.encode(), value.encode("latin-1")) for name, value in named.items()],
        }
    )
    await send({"type": "http.response.body", "body": body})


async def reply_result(send: Send, body: dict[str, Any] | None, result: Any) -> None:
    """Send a JSON-RPC result."""
    answer = {"jsonrpc": "2.0", "id": (body or {}).get("id"), "result": result}
    await reply(send, 200, json.dumps(answer).encode())


async def reply_error(
    send: Send, body: dict[str, Any] | None, code: int, message: str, status: int = 200
) -> None:
    """Send a JSON-RPC error."""
    answer = {
        "jsonrpc": "2.0",
        "id": (body or {}).get("id"),
        "error": {"code": code, "message": message},
    }
    await reply(send, status, json.dumps(answer).encode())


async def _answer_lifespan(receive: Receive, send: Send) -> None:
    while True:
        message = await receive()
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return


@contextlib.contextmanager
def listening(app: Any) -> Iterator[Listening]:
    """An ASGI app on a port for the length of a block."""
    server = Listening(app)
    try:
        yield server
    finally:
        server.stop()
