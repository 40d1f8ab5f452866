"""Texts that a server cut in the middle of an emoji."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mcp_servers.client.transports.surrogates import HalfMender, without_halves
from mcp_servers.client.values import Protocol
from tests.fakes.mcp_server import raw_tool, reply, reply_result
from tests.fakes.sse_server import SseServer
from tests.mcp_servers.client.helpers import send, spec_for, text_of

HALF = {"content": [{"type": "text", "text": "cut \ud83d"}]}
READ = "cut \ufffd"

TEXTS = [
    (rb'"\ud83d"', rb'"\ufffd"'),
    (rb'"\uDE00 \uD83D"', rb'"\ufffd \ufffd"'),
    (rb'"\ud83d\ud83d\ude00\ude00"', rb'"\ufffd\ud83d\ude00\ufffd"'),
    (rb'"\ud83d\ude00 \n\u00e9 whole"', rb'"\ud83d\ude00 \n\u00e9 whole"'),
    (rb'"\\ud83d \\\ud83d \"\\\\ud83d"', rb'"\\ud83d \\\ufffd \"\\\\ud83d"'),
    (rb'"\ud83d\\ude00 \ud83\n"', rb'"\ufffd\\ude00 \ud83\n"'),
]


@pytest.mark.parametrize(("text", "whole"), TEXTS)
def test_half_a_character_becomes_a_replacement(text: bytes, whole: bytes) -> None:
    """REL-2194: what a backslash escapes is no escape, and whole characters stay."""
    assert without_halves(text) == whole


@pytest.mark.parametrize(("text", "whole"), TEXTS)
def test_pieces_may_end_anywhere(text: bytes, whole: bytes) -> None:
    """REL-2194: what a stream brings is mended alike, and what is certain is not kept back."""
    for size in range(1, len(text) + 1):
        mender = HalfMender()
        pieces = [mender.feed(text[at : at + size]) for at in range(0, len(text), size)]
        assert b"".join([*pieces, mender.end()]) == whole
    assert HalfMender().feed(text + b"\n\n").endswith(b"\n\n")


@pytest.mark.parametrize("is_stream", [False, True])
async def test_a_result_over_http_is_read(raw: Any, is_stream: bool) -> None:
    """REL-2194: the whole result was lost for it."""

    async def call_tool(body: Any, scope: Any, answer: Any) -> None:
        if is_stream:
            message = {"jsonrpc": "2.0", "id": body["id"], "result": HALF}
            event = f"data: {json.dumps(message)}\n\n".encode()
            await reply(answer, 200, event, "text/event-stream")
        else:
            await reply_result(answer, body, HALF)

    server = raw({"tools/call": call_tool}, [raw_tool("echo", description="Says \ud83d")])
    assert await text_of(send(spec_for(server.url, protocol=Protocol.LEGACY), "echo")) == READ


async def test_a_result_over_a_transport_of_ours_is_read() -> None:
    """REL-2194: SSE, WebSocket and stdio read messages in one place."""

    async def call_tool(server: SseServer, body: dict[str, Any], answer: Any) -> None:
        await reply(answer, 202)
        await server.tell({"jsonrpc": "2.0", "id": body["id"], "result": HALF})

    server = SseServer(on_post={"tools/call": call_tool})
    try:
        spec = spec_for(server.url, transport="sse", protocol=Protocol.LEGACY)
        assert await text_of(send(spec, "echo")) == READ
    finally:
        server.stop()
