"""Texts that a server cut in the middle of an emoji."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

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
    (rb'"\\ud83d\ude00"', rb'"\\ud83d\ufffd"'),
    (rb'"\\ud83d\ud83d"', rb'"\\ud83d\ufffd"'),
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


def plainly_mended(text: bytes) -> bytes:
    """The same, escape by escape."""
    mended, at = b"", 0
    while at < len(text):
        escape = re.compile(rb"\\u[0-9a-fA-F]{4}").match(text, at)
        if escape is None:
            size = 2 if text[at : at + 1] == b"\\" and text[at + 1 : at + 2] != b"u" else 1
            mended += text[at : at + size]
            at += size
            continue
        code = int(escape[0][2:], 16)
        partner = re.compile(rb"\\u[dD][c-fC-F][0-9a-fA-F]{2}").match(text, at + 6)
        size = 12 if 0xD800 <= code < 0xDC00 and partner else 6
        is_half = size == 6 and 0xD800 <= code < 0xE000
        mended += rb"\ufffd" if is_half else text[at : at + size]
        at += size
    return mended


@given(
    st.lists(
        st.sampled_from(
            [rb"\\", b"\\", rb"\ud83d", rb"\uDE00", b"ud83d", b"ude00", rb"\n", b"d8", b"a"]
        ),
        max_size=10,
    ).map(b"".join)
)
def test_each_escape_is_read_as_json_reads_it(text: bytes) -> None:
    """REL-2194: whatever stands before it, and wherever a piece ends."""
    whole = plainly_mended(text)
    assert without_halves(text) == whole
    for at in range(len(text) + 1):
        mender = HalfMender()
        assert mender.feed(text[:at]) + mender.feed(text[at:]) + mender.end() == whole


def test_what_is_no_half_does_not_count_as_one() -> None:
    """REL-2194: a long text of whole emojis, or of JSON within JSON, is mended to its end."""
    before = rb"\ud83d\ude00\\ud83d " * 20_000
    assert without_halves(before + rb"\ud83d") == before + rb"\ufffd"


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
