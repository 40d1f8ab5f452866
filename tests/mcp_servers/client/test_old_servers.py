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


@pytest.mark.parametrize("mode", ["exit_unread", "exit_at_the_greeting"])
async def test_a_program_that_ends_for_another_reason_is_started_once(
    tmp_path: Path, mode: str
) -> None:
    """REL-2195: before it read the question, or after the greeting, when a second start would have no time."""
    spec = spec_for(
        program(ZOO, tmp_path / "home", f"counted:{tmp_path}:{mode}"), connect_seconds=12
    )
    with pytest.raises(ConnectionFailed) as caught:
        await send(spec, "probe")
    assert caught.value.details == {"kind": "ended"}
    assert pool.stderr_of(spec) == "the key is missing\n"
    assert (tmp_path / "starts").read_text() == "x"


async def test_a_second_start_hides_nothing_of_the_first(tmp_path: Path) -> None:
    """REL-2195: where it does not answer in time, what the first one said is more."""
    mode = f"counted:{tmp_path}:hang_when_started_again"
    spec = spec_for(program(ZOO, tmp_path / "home", mode), connect_seconds=8)
    with pytest.raises(ConnectionFailed) as caught:
        await send(spec, "probe")
    assert caught.value.details == {"kind": "ended"}
    assert "See what the program said" in str(caught.value.advice)
    assert pool.stderr_of(spec) == "no such question\n"
    assert (tmp_path / "starts").read_text() == "xx"


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
