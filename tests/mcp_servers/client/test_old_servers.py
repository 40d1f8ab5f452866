"""Servers that end at a question which they do not know, as those of the Python SDK did until its version 1.8."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mcp_servers.client.connections.pool import pool
from mcp_servers.client.errors import ConnectionFailed
from mcp_servers.client.values import Protocol
from tests.fakes.mcp_server import reply
from tests.fakes.sse_server import SseServer
from tests.mcp_servers.client.helpers import program, send, spec_for, text_of
from tests.mcp_servers.factories import ZOO


async def hang_up(server: SseServer, body: dict[str, Any], answer: Any) -> None:
    """End the stream instead of answering."""
    await reply(answer, 202)
    await server.hang_up()


async def test_a_program_that_ends_at_the_question_is_asked_in_the_old_way(tmp_path: Path) -> None:
    """REL-2195: it is started again, and greeted as before."""
    spec = spec_for(program(ZOO, tmp_path / "home", "unquestioned"))
    assert '"pid"' in await text_of(send(spec, "probe"))
    facts = pool._connections[spec.key].facts
    assert facts is not None
    assert facts.protocol_revision == "2025-11-25"


async def test_a_stream_that_ends_at_the_question_is_opened_again() -> None:
    """REL-2195: the same over SSE. Where somebody chose the newest revision, nothing else is tried."""
    server = SseServer(on_post={"server/discover": hang_up})
    try:
        spec = spec_for(server.url, transport="sse")
        assert await text_of(send(spec, "echo")) == "{}"
        modern = spec_for(server.url, transport="sse", protocol=Protocol.MODERN)
        streams = len([one for one in server.requests if one[0] == "GET"])
        with pytest.raises(ConnectionFailed):
            await send(modern, "echo")
        assert len([one for one in server.requests if one[0] == "GET"]) == streams + 1
    finally:
        server.stop()
