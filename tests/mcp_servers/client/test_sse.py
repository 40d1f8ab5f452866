"""The transport with SSE, against servers that misbehave."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from mcp_servers.client.connections import connection, runtime
from mcp_servers.client.connections.failures import CallFailed
from mcp_servers.client.connections.pool import pool
from mcp_servers.client.errors import AuthenticationRequired, ConnectionFailed, NotAnMcpServer
from mcp_servers.client.transports import sse
from mcp_servers.client.values import Protocol
from tests.fakes.mcp_server import Send, reply
from tests.fakes.sse_server import SseServer
from tests.mcp_servers.client.helpers import send, spec_for, text_of, within
from tests.patience import PATIENCE


@pytest.fixture
def serve() -> Iterator[Any]:
    """Starts misbehaving servers, and ends them."""
    made: list[SseServer] = []

    def start(*args: Any, **options: Any) -> SseServer:
        made.append(SseServer(*args, **options))
        return made[-1]

    yield start
    for server in made:
        server.stop()


def sse_spec(url: str, **fields: Any) -> Any:
    return spec_for(url, transport="sse", protocol=Protocol.LEGACY, **fields)


@pytest.mark.parametrize(
    "endpoint",
    [
        "http://localhost:{port}/messages",
        "http://127.0.0.1:{other}/messages",
        "https://127.0.0.1:{port}/messages",
        "//127.0.0.1:{other}/messages",
        "http://me:secret@127.0.0.1:{port}/messages",
        "http://127.0.0.1:{port}@127.0.0.1:{other}/messages",
        "\\\\127.0.0.1:{other}\\messages",
        "file:///etc/passwd",
        "http://[::1]:{port}/",
    ],
)
async def test_a_foreign_address_for_messages_is_refused(serve: Any, endpoint: str) -> None:
    """SEC-32: other host, port, scheme, //host, user information: a connection error, and nothing is sent there."""
    canary = serve()
    server = serve("/")
    server.endpoint = endpoint.format(port=server.port, other=canary.port)
    spec = sse_spec(server.url, headers={"Authorization": "Bearer secret"})
    with pytest.raises(NotAnMcpServer):
        await runtime.run(pool.list_tools(spec))
    assert canary.requests == []
    assert server.posts == []


async def test_an_address_on_the_same_origin_is_used(serve: Any) -> None:
    """SEC-32: relative or whole, as the specification allows."""
    for endpoint in ("/messages?session=1", "messages", "http://127.0.0.1:{port}/elsewhere"):
        server = serve("/")
        server.endpoint = endpoint.format(port=server.port)
        spec = sse_spec(server.url, headers={"Authorization": "Bearer secret"})
        assert await text_of(send(spec, "echo", {"text": "x"})) == '{"text": "x"}'
        posts = [headers for method, _, headers in server.requests if method == "POST"]
        assert all(headers["authorization"] == "Bearer secret" for headers in posts)


async def test_a_server_that_names_no_address_is_given_up(
    serve: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REL-34: a deadline, where the SDK would wait for ever."""
    monkeypatch.setattr(sse, "ENDPOINT_SECONDS", 0.3)
    with pytest.raises(ConnectionFailed):
        await runtime.run(pool.list_tools(sse_spec(serve(None).url)))


@pytest.mark.parametrize(
    ("status", "error"),
    [(401, AuthenticationRequired), (404, NotAnMcpServer), (503, ConnectionFailed)],
)
async def test_a_refused_stream_says_why(serve: Any, status: int, error: type[Exception]) -> None:
    """REL-34: typed, as on the newer transport."""
    with pytest.raises(error):
        await runtime.run(pool.list_tools(sse_spec(serve(on_stream=status).url)))


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (401, "auth_required"),
        (404, "session_refused"),
        (429, "rate_limited"),
        (500, "http_status"),
        (302, "redirect"),
    ],
)
async def test_a_refused_message_fails_its_call_at_once(serve: Any, status: int, kind: str) -> None:
    """REL-34: with the status, where the SDK would leave the call hanging; the connection lives on."""

    async def refuse(server: SseServer, body: dict[str, Any], answer: Send) -> None:
        await reply(answer, status, b"no", "text/plain", {"location": "http://10.0.0.1/"})

    server = serve(on_post={"tools/call": refuse})
    spec = sse_spec(server.url)
    await runtime.run(pool.list_tools(spec))
    with pytest.raises(CallFailed) as caught:
        await send(spec, "echo", limits=within(PATIENCE))
    assert (caught.value.kind, caught.value.http_status) == (kind, status)
    server.on_post.clear()
    assert await text_of(send(spec, "echo", {"text": "x"})) == '{"text": "x"}'


async def test_a_stream_that_ends_fails_what_waits(serve: Any) -> None:
    """REL-34: nobody hangs; the next call has a new stream."""

    async def hang_up(server: SseServer, body: dict[str, Any], answer: Send) -> None:
        await reply(answer, 202)
        await server.hang_up()

    server = serve(on_post={"tools/call": hang_up})
    spec = sse_spec(server.url)
    with pytest.raises(CallFailed) as caught:
        await send(spec, "echo", limits=within(PATIENCE))
    assert caught.value.kind == "broken"
    server.on_post.clear()
    assert await text_of(send(spec, "echo", {"text": "x"})) == '{"text": "x"}'


async def test_an_event_without_end_is_not_kept(serve: Any) -> None:
    """SEC-33: one event is bounded; the connection ends, and its calls with a typed error."""

    async def flood(server: SseServer, body: dict[str, Any], answer: Send) -> None:
        await reply(answer, 202)
        for _ in range(12):
            await server.write(b"data: " + b"x" * 2**20 + b"\n")

    server = serve(on_post={"tools/call": flood})
    with pytest.raises(CallFailed) as caught:
        await send(sse_spec(server.url), "echo", limits=within(PATIENCE))
    assert caught.value.kind == "broken"


async def test_odd_events_harm_nobody_else(serve: Any) -> None:
    """REL-34: what cannot be read fails the call it answers; strangers' answers are dropped."""

    async def odd(server: SseServer, body: dict[str, Any], answer: Send) -> None:
        await reply(answer, 202)
        await server.tell("not json at all")
        await server.tell({"jsonrpc": "2.0", "id": 9999, "result": {}})
        await server.tell("/elsewhere", "endpoint")
        await server.tell({"jsonrpc": "2.0", "id": body["id"], "result": [1]})

    server = serve(on_post={"tools/call": odd})
    spec = sse_spec(server.url)
    with pytest.raises(CallFailed) as caught:
        await send(spec, "echo", limits=within(PATIENCE))
    assert caught.value.kind == "unreadable"
    server.on_post.clear()
    assert await text_of(send(spec, "echo", {"text": "x"})) == '{"text": "x"}'


async def test_a_server_with_sse_alone_is_found_by_itself(serve: Any) -> None:
    """MCP 2025-11-25, Transports, Backwards Compatibility: Streamable HTTP first, then SSE; and remembered."""
    server = serve()
    spec = spec_for(server.url)
    listing = await runtime.run(pool.list_tools(spec))
    assert listing.facts.transport == "sse"
    assert server.requests[0][0] == "POST"
    again = pool._connections[spec.key]
    runtime.current().loop.call_soon_threadsafe(again.stop)
    async with asyncio.timeout(PATIENCE):
        while not again.owner.done():
            await asyncio.sleep(0.02)
    server.requests.clear()
    await runtime.run(pool.list_tools(spec))
    assert server.requests[0][0] == "GET"
    await runtime.run(pool.drop(spec.server_id))
    server.requests.clear()
    known = spec_for(server.url, remembered="sse")
    await runtime.run(pool.list_tools(known))
    assert server.requests[0][0] == "GET"


async def test_a_silent_call_keeps_its_stream_alive(
    serve: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REL-20: while a call is silent, something goes over the stream."""
    monkeypatch.setattr(connection, "KEEPALIVE_SECONDS", 0.5)

    async def slowly(server: SseServer, body: dict[str, Any], answer: Send) -> None:
        await reply(answer, 202)
        async with asyncio.timeout(PATIENCE):
            while server.pings < 2:
                await asyncio.sleep(0.02)
        await server.answer(body)

    server = serve(on_post={"tools/call": slowly})
    assert await text_of(send(sse_spec(server.url), "echo", {"text": "x"})) == '{"text": "x"}'
    assert server.pings >= 2
