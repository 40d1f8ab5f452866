"""Why a host could not be reached."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import httpx2
import pytest

from mcp_servers.client.connections import runtime
from mcp_servers.client.connections.pool import pool
from mcp_servers.client.errors import ConnectionFailed
from tests.audit.streams.receivers import make_authority
from tests.mcp_servers.client.helpers import spec_for
from tests.ports import free_port
from tests.workspaces.outbound.tls_server import server_context
from workspaces import outbound
from workspaces.outbound import Unreachable, why_unreachable

WORDS = {
    Unreachable.NO_NAME: "Check how the URL is spelled.",
    Unreachable.NOBODY_LISTENS: "Check the port, and whether the server runs.",
    Unreachable.CERTIFICATE: "Its certificate is not valid",
    Unreachable.NO_TLS: "There is no encrypted connection on its port",
    Unreachable.TLS_UNANSWERED: "does not answer encrypted ones. Check the port, and how the URL",
}


@asynccontextmanager
async def place(why: Unreachable, folder: Path) -> AsyncIterator[str]:
    """A URL that cannot be reached for this reason."""
    if why is Unreachable.NO_NAME:
        yield "https://no-such-name.invalid/mcp"
        return
    if why is Unreachable.NOBODY_LISTENS:
        yield f"http://127.0.0.1:{free_port()}/mcp"
        return

    async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            await reader.read(1)
            if why is Unreachable.TLS_UNANSWERED:  # waits for the end of a line
                await reader.read()
            writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    context = server_context(make_authority(), folder) if why is Unreachable.CERTIFICATE else None
    server = await asyncio.start_server(take, "127.0.0.1", 0, ssl=context)
    yield f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/mcp"
    server.close()


@pytest.mark.parametrize("why", WORDS)
async def test_a_server_that_cannot_be_reached_says_why(why: Unreachable, tmp_path: Path) -> None:
    """REL-1664, REL-1743: whoever enters it reads what to look at; the sentence for everybody else stays the same."""
    async with place(why, tmp_path) as url:
        async with outbound.client() as client:
            with pytest.raises(httpx2.ConnectError) as caught:
                await client.get(url)
        assert why_unreachable(caught.value) is why
        with pytest.raises(ConnectionFailed) as failed:
            await runtime.run(pool.list_tools(spec_for(url)))
    assert failed.value.message == "Trellis could not reach the server."
    assert WORDS[why] in failed.value.advice
    assert "127.0.0.1" not in failed.value.advice


@pytest.mark.parametrize(
    "answer", [b"", b"\x15\x03\x03\x00\x02\x02\x46", b"HTTP/1.0 400 Bad\r\n\r\n"]
)
async def test_plain_text_to_a_port_for_tls_says_so(answer: bytes) -> None:
    """REL-1743: such ports hang up, send an alert of TLS, or say 400. Whoever entered the URL reads what to look at."""

    async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            await reader.read(1)
            writer.write(answer)
        writer.close()

    server = await asyncio.start_server(take, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    with pytest.raises(ConnectionFailed) as failed:
        await runtime.run(pool.list_tools(spec_for(f"http://127.0.0.1:{port}/mcp")))
    server.close()
    assert f"encrypted connections on its port {port}" in failed.value.advice


def test_nothing_is_made_up_where_no_reason_is_known() -> None:
    """REL-1664: also where causes go round in a circle."""
    error = OSError("odd")
    error.__cause__ = error
    assert why_unreachable(error) is Unreachable.UNKNOWN
    assert why_unreachable(ssl.SSLError("no")) is Unreachable.NO_TLS
