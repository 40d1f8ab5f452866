"""The transport over WebSockets, against servers that misbehave."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.routing import WebSocketRoute
from starlette.websockets import WebSocket

from mcp_servers.client.connections import connection, runtime
from mcp_servers.client.connections.failures import CallFailed
from mcp_servers.client.connections.pool import pool
from mcp_servers.client.errors import AuthenticationRequired, ConnectionFailed, NotAnMcpServer
from mcp_servers.client.transports.messages import LINES_PER_SECOND
from mcp_servers.client.values import Protocol
from tests.fakes.mcp_server import INITIALIZED, Listening, raw_tool
from tests.mcp_servers.client.helpers import send, spec_for, text_of, within
from tests.patience import PATIENCE
from workspaces import outbound
from workspaces.errors import InvalidEndpoint
from workspaces.outbound import bounds

Handle = Callable[[WebSocket, dict[str, Any]], Awaitable[None]]


class SocketServer:
    """A WebSocket server that does as it is told."""

    def __init__(self, on_call: Handle | None = None, *, refuse: int | None = None) -> None:
        self.on_call = on_call
        self.headers: list[dict[str, str]] = []
        self.subprotocols: list[list[str]] = []
        self._refuse = refuse
        self._listening = Listening(Starlette(routes=[WebSocketRoute("/ws", self._serve)]))

    @property
    def url(self) -> str:
        return f"ws://127.0.0.1:{self._listening.port}/ws"

    def stop(self) -> None:
        self._listening.stop()

    async def _serve(self, socket: WebSocket) -> None:
        self.headers.append(dict(socket.headers))
        self.subprotocols.append(socket.scope["subprotocols"])
        if self._refuse is not None:
            from starlette.responses import PlainTextResponse

            await socket.send_denial_response(PlainTextResponse("no", self._refuse))
            return
        await socket.accept("mcp")
        async for text in socket.iter_text():
            await self._answer(socket, json.loads(text))

    async def _answer(self, socket: WebSocket, body: dict[str, Any]) -> None:
        method = body.get("method")
        if "id" not in body:
            return
        if method == "tools/call" and self.on_call is not None:
            await self.on_call(socket, body)
            return
        results: dict[str, Any] = {
            "initialize": INITIALIZED,
            "tools/list": {"tools": [raw_tool("echo")]},
            "tools/call": {"content": [{"type": "text", "text": "done"}]},
        }
        answer: dict[str, Any] = {"jsonrpc": "2.0", "id": body["id"]}
        if method in results:
            answer["result"] = results[method]
        else:
            answer["error"] = {"code": -32601, "message": "Method not found"}
        await socket.send_text(json.dumps(answer))


@pytest.fixture
def serve() -> Iterator[Any]:
    """Starts servers, and ends them."""
    made: list[SocketServer] = []

    def start(*args: Any, **options: Any) -> SocketServer:
        made.append(SocketServer(*args, **options))
        return made[-1]

    yield start
    for server in made:
        server.stop()


def socket_spec(url: str, **fields: Any) -> Any:
    return spec_for(url, transport="websocket", protocol=Protocol.LEGACY, **fields)


async def test_credentials_and_the_subprotocol_go_along(serve: Any) -> None:
    """The upgrade is an ordinary request of the egress client."""
    server = serve()
    spec = socket_spec(server.url, headers={"Authorization": "Bearer t", "X-Own": "1"})
    assert await text_of(send(spec, "echo")) == "done"
    (headers,) = server.headers
    assert (headers["authorization"], headers["x-own"]) == ("Bearer t", "1")
    assert server.subprotocols == [["mcp"]]


@pytest.mark.parametrize(
    ("status", "error"),
    [(401, AuthenticationRequired), (404, NotAnMcpServer), (500, ConnectionFailed)],
)
async def test_a_refused_upgrade_says_why(serve: Any, status: int, error: type[Exception]) -> None:
    """REL-34: typed, as on the other transports."""
    with pytest.raises(error):
        await runtime.run(pool.list_tools(socket_spec(serve(refuse=status).url)))


async def test_sockets_go_through_the_same_door() -> None:
    """SEC-28: private addresses are refused, and unencrypted sockets outside the owner's networks."""
    for url in ("ws://10.0.0.1/ws", "ws://93.184.216.34/ws", "wss://169.254.169.254/ws"):
        endpoint = outbound.parse_endpoint(url, schemes=outbound.WEBSOCKET_SCHEMES)
        async with outbound.client(networks=()) as client:
            with pytest.raises(outbound_error()):
                async with client.websocket(str(endpoint)):
                    pass


def outbound_error() -> type[Exception]:
    import httpx2

    return httpx2.ConnectError


@pytest.mark.parametrize(
    "url",
    [
        "ws://me:secret@example.com/",
        "wss://example.com/#x",
        "ws:/example.com/",
        "http://example.com/",
    ],
)
def test_socket_urls_are_read_as_strictly(url: str) -> None:
    """SEC-17, SEC-31: user information, fragments and other schemes are refused."""
    with pytest.raises(InvalidEndpoint):
        outbound.parse_endpoint(url, schemes=outbound.WEBSOCKET_SCHEMES)


async def test_a_message_too_large_ends_the_connection_and_no_more(serve: Any) -> None:
    """SEC-33: bounded while read; the next call has a new socket."""

    async def flood(socket: WebSocket, body: dict[str, Any]) -> None:
        await socket.send_text("x" * (9 * 2**20))

    server = serve(flood)
    spec = socket_spec(server.url)
    with pytest.raises(CallFailed) as caught:
        await send(spec, "echo", limits=within(PATIENCE))
    assert caught.value.kind == "broken"
    server.on_call = None
    assert await text_of(send(spec, "echo")) == "done"


async def test_what_is_no_message_is_passed_over(serve: Any) -> None:
    """REL-34: binary and broken messages cost nothing but a note in the trace."""

    async def odd(socket: WebSocket, body: dict[str, Any]) -> None:
        await socket.send_bytes(b"\xff\xfe")
        await socket.send_text("{not json")
        result = {"content": [{"type": "text", "text": "done"}]}
        await socket.send_text(json.dumps({"jsonrpc": "2.0", "id": body["id"], "result": result}))

    assert await text_of(send(socket_spec(serve(odd).url), "echo")) == "done"


async def test_a_socket_that_closes_fails_what_waits(serve: Any) -> None:
    """REL-34: nobody hangs."""

    async def hang_up(socket: WebSocket, body: dict[str, Any]) -> None:
        await socket.close(1011)

    server = serve(hang_up)
    spec = socket_spec(server.url)
    calls = [asyncio.create_task(send(spec, "echo", limits=within(PATIENCE))) for _ in range(3)]
    results = await asyncio.gather(*calls, return_exceptions=True)
    assert all(isinstance(result, CallFailed) for result in results), results
    server.on_call = None
    assert await text_of(send(spec, "echo")) == "done"


async def test_a_peer_that_stops_reading_is_left(
    serve: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REL-36: what cannot be sent any more, the goodbye included, keeps no task and no socket."""
    monkeypatch.setattr(connection, "CLOSING_SECONDS", 0.5)
    is_released = threading.Event()

    async def freeze(socket: WebSocket, body: dict[str, Any]) -> None:
        is_released.wait(PATIENCE)  # on purpose: its whole loop stands still

    spec = socket_spec(serve(freeze).url)
    try:
        with pytest.raises(TimeoutError):
            await send(spec, "echo", limits=within(1))
        with pytest.raises(TimeoutError):
            await send(spec, "echo", {"text": "x" * (7 * 2**20)}, limits=within(1))
        owner = pool._connections[spec.key].owner
        started = time.monotonic()
        await runtime.run(pool.drop(spec.server_id))
        assert owner.done()
        assert time.monotonic() - started < 60
    finally:
        is_released.set()


async def test_a_socket_that_never_stops_talking_is_read_at_a_pace(
    serve: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SEC-689: as an event stream is."""
    monkeypatch.setattr(bounds, "LINES_AT_ONCE", 200)

    async def talk(socket: WebSocket, body: dict[str, Any]) -> None:
        params = {"level": "info", "data": "x"}
        notice = {"jsonrpc": "2.0", "method": "notifications/message", "params": params}
        for _n in range(600):
            await socket.send_text(json.dumps(notice))
        result = {"content": [{"type": "text", "text": "done"}]}
        await socket.send_text(json.dumps({"jsonrpc": "2.0", "id": body["id"], "result": result}))

    spec = socket_spec(serve(talk).url)
    await runtime.run(pool.list_tools(spec))
    started = time.monotonic()
    assert await text_of(send(spec, "echo")) == "done"
    # 1200 lines less 200.
    assert time.monotonic() - started > 800 / LINES_PER_SECOND
