"""How much of an answer is read, and for how long."""

from __future__ import annotations

import asyncio
import gzip
import time
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest

from mcp_servers.client.transports.http import http_client
from mcp_servers.client.transports.messages import LINES_PER_SECOND
from mcp_servers.client.transports.targets import HttpSpec
from tests.fakes.mcp_server import Listening, Receive, Scope, Send, listening, reply
from tests.workspaces.outbound.networks import LOOPBACK
from workspaces import outbound
from workspaces.outbound import Bounds, bounds, parse_endpoint


class Answering:
    """An HTTP server whose next answer the test writes."""

    def __init__(self) -> None:
        self.respond: Any = None
        self.seen: list[Scope] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            while True:
                message = await receive()
                await send({"type": f"{message['type']}.complete"})
                if message["type"] == "lifespan.shutdown":
                    return
        self.seen.append(scope)
        await self.respond(send)


@pytest.fixture
def answering() -> Answering:
    return Answering()


@pytest.fixture
def server(answering: Answering) -> Iterator[Listening]:
    with listening(answering) as found:
        yield found


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_redirects_are_not_followed(
    status: int, answering: Answering, server: Listening
) -> None:
    """SEC-30: neither header nor body reaches another address."""
    canary = Answering()

    async def redirect(send: Send) -> None:
        await reply(send, status, headers={"location": f"{elsewhere.origin}/"})

    answering.respond = redirect
    with listening(canary) as elsewhere:
        async with outbound.client(headers={"X-Key": "secret"}) as client:
            response = await client.post(f"{server.origin}/", content=b"body")
    assert response.status_code == status
    assert canary.seen == []


async def test_an_answer_that_is_too_large_is_cut_off(
    answering: Answering, server: Listening
) -> None:
    """SEC-33: the body is bounded while it is read."""

    async def flood(send: Send) -> None:
        await send(
            {
                "type": "http.response.start",
                "status": 200,
                "headers": [(b"content-type", b"application/json")],
            }
        )
        for _ in range(1000):
            await send({"type": "http.response.body", "body": b"x" * 2**16, "more_body": True})

    answering.respond = flood
    async with outbound.client(bounds=Bounds(body_bytes=2**20)) as client:
        with pytest.raises(outbound.ResponseTooLarge):
            await client.get(f"{server.origin}/")


async def test_a_compressed_answer_is_refused(answering: Answering, server: Listening) -> None:
    """SEC-33: no bomb is unpacked, because nothing compressed is asked for or read."""
    bomb = gzip.compress(b"x" * 2**24)

    async def answer(send: Send) -> None:
        await reply(send, 200, bomb, headers={"content-encoding": "gzip"})

    answering.respond = answer
    async with outbound.client() as client:
        with pytest.raises(httpx2.DecodingError):
            await client.get(f"{server.origin}/")
    sent = dict(answering.seen[0]["headers"])
    assert sent[b"accept-encoding"] == b"identity"


async def test_an_endless_line_of_a_stream_is_cut_off(
    answering: Answering, server: Listening
) -> None:
    """SEC-33: an event stream is bounded by its lines."""

    async def endless(send: Send) -> None:
        await send(
            {
                "type": "http.response.start",
                "status": 200,
                "headers": [(b"content-type", b"text/event-stream")],
            }
        )
        for _ in range(1000):
            await send({"type": "http.response.body", "body": b"x" * 2**16, "more_body": True})

    answering.respond = endless
    async with outbound.client() as client:
        with pytest.raises(outbound.ResponseTooLarge):
            await client.get(f"{server.origin}/")


async def test_a_header_of_a_megabyte_is_refused(answering: Answering, server: Listening) -> None:
    """SEC-33: the head is bounded."""

    async def answer(send: Send) -> None:
        await reply(send, 200, b"{}", headers={"x-large": "x" * 2**20})

    answering.respond = answer
    async with outbound.client() as client:
        with pytest.raises(httpx2.TransportError):
            await client.get(f"{server.origin}/")


async def test_a_dripping_answer_ends_in_time(answering: Answering, server: Listening) -> None:
    """SEC-33: silence and total time are bounded, separately."""

    async def drip(send: Send) -> None:
        await send(
            {
                "type": "http.response.start",
                "status": 200,
                "headers": [(b"content-type", b"application/json")],
            }
        )
        for _ in range(200):
            await send({"type": "http.response.body", "body": b"x", "more_body": True})
            await asyncio.sleep(0.1)

    async def silence(send: Send) -> None:
        await asyncio.sleep(20)

    for respond in (drip, silence):
        answering.respond = respond
        started = time.monotonic()
        async with outbound.client(bounds=Bounds(total_seconds=0.8, idle_seconds=5)) as client:
            with pytest.raises(httpx2.ReadTimeout):
                await client.get(f"{server.origin}/")
        assert time.monotonic() - started < 15


async def test_cookies_are_dropped(answering: Answering, server: Listening) -> None:
    """One fetch leaves nothing for the next."""

    async def answer(send: Send) -> None:
        await reply(send, 200, b"{}", headers={"set-cookie": "session=abc"})

    answering.respond = answer
    async with outbound.client() as client:
        await client.get(f"{server.origin}/")
        await client.get(f"{server.origin}/")
    assert b"cookie" not in dict(answering.seen[1]["headers"])


async def read_lines(client: httpx2.AsyncClient, url: str) -> tuple[int, float]:
    """How many, and in how many seconds."""
    started = time.monotonic()
    async with client.stream("GET", url) as response:
        count = sum([chunk.count(b"\n") async for chunk in response.aiter_bytes()])
    return count, time.monotonic() - started


async def test_streams_of_a_client_are_read_at_a_pace(monkeypatch: pytest.MonkeyPatch) -> None:
    """SEC-689: some at once, the rest slowly, all streams of a client together; other answers and clients as ever."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            kind = "text/event-stream" if scope["path"] == "/events" else "text/plain"
            await reply(send, 200, b"data: x\n\n" * 200, kind)

    monkeypatch.setattr(bounds, "LINES_AT_ONCE", 500)
    with listening(app) as server:
        events, plain = f"{server.origin}/events", f"{server.origin}/plain"
        async with outbound.client(
            networks=LOOPBACK, bounds=Bounds(stream_lines_per_second=400)
        ) as paced:
            first = await read_lines(paced, events)
            again = await read_lines(paced, events)
            beside = await read_lines(paced, plain)
        async with outbound.client(networks=LOOPBACK) as other:
            ever = await read_lines(other, events)
    assert {first[0], again[0], beside[0], ever[0]} == {400}
    # 800 lines less 500 are 300, and what came back meanwhile.
    assert again[1] > 0.4
    assert max(first[1], beside[1], ever[1]) < again[1]


async def test_every_mcp_server_is_read_at_a_pace() -> None:
    """SEC-689: all connections share one loop."""
    async with http_client(HttpSpec(endpoint=parse_endpoint("https://mcp.example.org/"))) as client:
        transport = client._transport
        assert isinstance(transport, outbound.EgressTransport)
        assert transport._bounds.stream_lines_per_second == LINES_PER_SECOND
