"""Connections of the HTTP library, over real sockets: bounded, timed, and gone when they are closed."""

from __future__ import annotations

import asyncio
import socket
import ssl
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import httpcore2
import pytest

from tests.audit.streams.receivers import make_authority
from tests.patience import PATIENCE
from tests.workspaces.outbound.tls_server import server_context
from workspaces.outbound.streams import LoopStream, TlsUnanswered

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def served(
    serve: Serve, context: ssl.SSLContext | None = None
) -> AsyncIterator[tuple[LoopStream, asyncio.Event]]:
    """A connection to a server that does this with it, and an event that it has ended there."""
    is_gone = asyncio.Event()

    async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            await serve(reader, writer)
        writer.close()
        is_gone.set()

    server = await asyncio.start_server(take, "127.0.0.1", 0, ssl=context)
    port = server.sockets[0].getsockname()[1]
    stream = await LoopStream.connect("127.0.0.1", port, PATIENCE, None, ())
    try:
        yield stream, is_gone
    finally:
        await stream.aclose()
        server.close()


async def read_all(stream: httpcore2.AsyncNetworkStream) -> bytes:
    pieces = []
    while piece := await stream.read(1000, PATIENCE):
        pieces.append(piece)
    return b"".join(pieces)


async def test_what_was_sent_is_read_to_its_end() -> None:
    """REL-1454: in pieces no larger than asked for, also what came long before it is read."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(await reader.readexactly(5))
        await writer.drain()

    async with served(serve) as (stream, is_gone):
        await stream.write(b"hello", PATIENCE)
        await is_gone.wait()
        assert await stream.read(3, PATIENCE) == b"hel"
        assert await stream.read(3, PATIENCE) == b"lo"
        assert await stream.read(3, PATIENCE) == b""
        assert stream.get_extra_info("is_readable")


async def test_who_sends_faster_than_is_read_waits() -> None:
    """REL-1454: of 64 MB less than one is in memory; all of it arrives."""
    size = 64 * 2**20

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for _ in range(size // 2**16):
            writer.write(b"x" * 2**16)
            await writer.drain()

    async with served(serve) as (stream, is_gone):
        async with asyncio.timeout(PATIENCE):
            while stream._transport.is_reading():
                await asyncio.sleep(0)
        assert not is_gone.is_set()
        assert len(stream._unread) < 2**20
        assert len(await read_all(stream)) == size


async def test_a_server_that_takes_nothing_is_given_up() -> None:
    """REL-1454: what is written waits in bounds, and not for ever."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await asyncio.Event().wait()

    async with served(serve) as (stream, _):
        with pytest.raises(httpcore2.WriteTimeout):
            for _ in range(1000):
                await stream.write(b"x" * 2**20, 0.05)


async def test_silence_ends_in_time_and_the_connection_can_still_be_read() -> None:
    """REL-1454: the timer ends one read; no byte is lost by it."""
    may_go_on = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await may_go_on.wait()
        writer.write(b"late")
        await writer.drain()

    async with served(serve) as (stream, _):
        with pytest.raises(httpcore2.ReadTimeout):
            await stream.read(10, 0.01)
        reading = asyncio.ensure_future(stream.read(10, None))
        await asyncio.sleep(0)
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading
        may_go_on.set()
        assert await stream.read(10, PATIENCE) == b"late"


async def test_a_connection_that_breaks_off_is_told() -> None:
    """REL-1454: after what had arrived; and nothing is written to it any more."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(5)
        line = writer.get_extra_info("socket")
        line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # a reset
        writer.transport.abort()

    async with served(serve) as (stream, is_gone):
        await stream.write(b"hello", PATIENCE)
        await is_gone.wait()
        with pytest.raises(httpcore2.ReadError):
            await read_all(stream)
        with pytest.raises(httpcore2.WriteError):
            await stream.write(b"z", PATIENCE)


async def test_closing_reaches_the_server() -> None:
    """REL-1454: what was written before arrives, and the connection ends, also while the server says nothing."""
    listed: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        listed.append(await reader.read())

    async with served(serve) as (stream, is_gone):
        await stream.write(b"goodbye", PATIENCE)
        await stream.aclose()
        async with asyncio.timeout(PATIENCE):
            await is_gone.wait()
    assert listed == [b"goodbye"]


async def test_nobody_there_is_told_as_what_it_is() -> None:
    """REL-1454: refused at once, and not as a timeout."""
    server = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    server.close()
    await server.wait_closed()
    with pytest.raises(httpcore2.ConnectError):
        await LoopStream.connect("127.0.0.1", port, PATIENCE, None, ())


async def test_over_tls_all_is_the_same(tmp_path: Path) -> None:
    """REL-1454: large texts in both directions, over a certificate that we trust."""
    authority = make_authority()
    text = b"0123456789" * 100_000

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(await reader.readexactly(len(text)))
        await writer.drain()

    async with served(serve, server_context(authority, tmp_path)) as (stream, _):
        context = ssl.create_default_context(cadata=authority.ca)
        encrypted = await stream.start_tls(context, "127.0.0.1", PATIENCE)
        assert isinstance(encrypted.get_extra_info("ssl_object"), ssl.SSLObject)
        reading = asyncio.ensure_future(read_all(encrypted))
        await encrypted.write(text, PATIENCE)
        assert await reading == text


async def test_a_certificate_that_nobody_trusts_ends_it(tmp_path: Path) -> None:
    """REL-1454: with the reason, and the connection is gone."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()

    async with served(serve, server_context(make_authority(), tmp_path)) as (stream, _):
        with pytest.raises(httpcore2.ConnectError, match="certificate verify failed"):
            await stream.start_tls(ssl.create_default_context(), "127.0.0.1", PATIENCE)


async def test_a_server_that_never_greets_is_given_up() -> None:
    """REL-1454: the handshake has a limit."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await asyncio.Event().wait()

    async with served(serve) as (stream, _):
        with pytest.raises(TlsUnanswered):
            await stream.start_tls(ssl.create_default_context(), "127.0.0.1", 0.05)
