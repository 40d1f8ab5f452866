"""Answers of the endpoint that take long, as streams."""

from __future__ import annotations

import asyncio
import json
from typing import Any, cast

import pytest

from mcp_servers.client.connections.runtime import Pending
from mcp_servers.endpoint import streaming
from mcp_servers.endpoint.protocol import ClientRequest, EndpointResponse
from tests.patience import PATIENCE

pytestmark = pytest.mark.django_db(transaction=True)


async def test_a_stream_shows_that_it_is_still_there_and_breaks_no_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """REL-2931: some clients end a line where Unicode has a break, and JSON has none."""
    monkeypatch.setattr(streaming, "LOOK_SECONDS", 0.01)
    monkeypatch.setattr(streaming, "KEEP_ALIVE_SECONDS", 0.02)
    text = "one\u2028two\u2029three\x85four"
    go_on = asyncio.Event()
    here = asyncio.get_running_loop()

    async def work() -> EndpointResponse:
        await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(go_on.wait(), here))
        return EndpointResponse(body=json.dumps(text, ensure_ascii=False).encode())

    pending = await asyncio.to_thread(Pending, work())
    asked = ClientRequest(cast("Any", None))
    heard: list[str] = []
    async with asyncio.timeout(PATIENCE):
        async for piece in streaming.stream(pending, asked, b""):
            heard.append(piece)
            if len(heard) == 3:
                go_on.set()
    *signs, answer = heard
    assert set(signs) == {": still here\n\n"}
    kind, data, end = answer.splitlines()
    assert (kind, end) == ("event: message", "")
    assert json.loads(data.removeprefix("data: ")) == text
