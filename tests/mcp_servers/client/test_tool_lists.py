"""The tools that a server lists: all pages of them, and no more than fit."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import mcp_types
import pytest

from mcp_servers.client.connections import runtime
from mcp_servers.client.connections.listing import MAX_LIST_PAGES, MAX_TOOLS
from mcp_servers.client.connections.pool import pool
from mcp_servers.client.errors import (
    ConnectionFailed,
    NotAnMcpServer,
)
from mcp_servers.client.values import Protocol
from tests.fakes.mcp_server import (
    CountingServer,
    raw_tool,
    reply_error,
    reply_result,
)
from tests.mcp_servers.client.helpers import send, spec_for
from tests.patience import PATIENCE


async def test_a_list_that_turns_in_a_circle_is_cut(raw: Any) -> None:
    """SEC-80: the same cursor for ever stops, with a warning and a usable rest."""

    async def circle(body: Any, scope: Any, send: Any) -> None:
        await reply_result(send, body, {"tools": [raw_tool("echo")], "nextCursor": "again"})

    server = raw({"tools/list": circle})
    listing = await runtime.run(pool.list_tools(spec_for(server.url, protocol=Protocol.LEGACY)))
    assert "circle" in listing.warning
    assert len(listing.tools) == 2


async def test_a_server_that_refuses_its_list_says_why(raw: Any) -> None:
    """REL-2033: its words, within bounds and without what people do not see, beside the failure."""

    async def refuse(body: Any, scope: Any, send: Any) -> None:
        await reply_error(send, body, -32603, "fetch\u200b failed" + "." * 1000)

    server = raw({"tools/list": refuse})
    with pytest.raises(ConnectionFailed) as caught:
        await runtime.run(pool.list_tools(spec_for(server.url, protocol=Protocol.LEGACY)))
    assert caught.value.message == "The server did not list its tools."
    assert caught.value.advice.startswith("It answered: fetch failed..")
    assert len(caught.value.advice) < 400


async def test_a_server_that_refuses_both_transports_says_why(raw: Any) -> None:
    """REL-3114: its words came over the first, and a bare status over the second."""

    async def refuse(body: Any, scope: Any, send: Any) -> None:
        await reply_error(send, body, -32000, "This key has expired", status=400)

    server = raw({"initialize": refuse, "server/discover": refuse})
    with pytest.raises(ConnectionFailed) as caught:
        await runtime.run(pool.list_tools(spec_for(server.url)))
    assert caught.value.advice == "It answered: This key has expired"


@pytest.mark.parametrize("no_list", [{}, "", 0, False])
async def test_a_list_that_is_none_takes_no_tools_away(raw: Any, no_list: object) -> None:
    """REL-2422: what follows no protocol is a failure. Go's SDK sends null for a list without items."""
    given: object = no_list

    async def answer(body: Any, scope: Any, send: Any) -> None:
        await reply_result(send, body, {"tools": given})

    spec = spec_for(raw({"tools/list": answer}).url, protocol=Protocol.LEGACY)
    with pytest.raises(NotAnMcpServer, match="does not follow"):
        await runtime.run(pool.list_tools(spec))
    given = None
    assert (await runtime.run(pool.list_tools(spec))).tools == ()


async def test_a_list_without_end_is_cut(raw: Any) -> None:
    """SEC-80: pages and items are bounded."""
    count = 0

    async def endless(body: Any, scope: Any, send: Any) -> None:
        nonlocal count
        count += 1
        await reply_result(send, body, {"tools": [raw_tool(f"t{count}")], "nextCursor": str(count)})

    server = raw({"tools/list": endless})
    listing = await runtime.run(pool.list_tools(spec_for(server.url, protocol=Protocol.LEGACY)))
    assert count == MAX_LIST_PAGES
    assert "pages" in listing.warning

    many = raw(tools=[raw_tool(f"t{number}") for number in range(MAX_TOOLS + 500)])
    listing = await runtime.run(pool.list_tools(spec_for(many.url, protocol=Protocol.LEGACY)))
    assert len(listing.tools) == MAX_TOOLS
    assert str(MAX_TOOLS) in listing.warning


async def test_all_pages_are_read(raw: Any) -> None:
    """Pagination is followed."""

    async def pages(body: Any, scope: Any, send: Any) -> None:
        cursor = int((body.get("params") or {}).get("cursor") or 0)
        result = {"tools": [raw_tool(f"t{cursor}")]}
        await reply_result(
            send, body, {**result, "nextCursor": str(cursor + 1)} if cursor < 4 else result
        )

    listing = await runtime.run(
        pool.list_tools(spec_for(raw({"tools/list": pages}).url, protocol=Protocol.LEGACY))
    )
    assert [tool["name"] for tool in listing.tools] == ["t0", "t1", "t2", "t3", "t4"]
    assert listing.warning == ""


async def test_one_odd_tool_does_not_hide_the_others(raw: Any) -> None:
    """Design, 7: the SDK alone would fail the whole list."""
    odd = [
        raw_tool("bad_hint", annotations={"readOnlyHint": "yes"}),
        {"name": "no_schema"},
        {"inputSchema": {}},
        "not even an object",
        raw_tool("good"),
    ]
    listing = await runtime.run(
        pool.list_tools(spec_for(raw(tools=odd).url, protocol=Protocol.LEGACY))
    )
    seen: list[Any] = list(listing.tools)
    assert [tool.get("name") if isinstance(tool, dict) else tool for tool in seen] == [
        *("bad_hint", "no_schema", None, "not even an object", "good"),
    ]


async def test_a_list_changed_storm_is_one_message_a_second(
    counting: CountingServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REL-34: one list per second at most."""
    from mcp_servers.client.connections.hooks import hooks

    listed: list[Any] = []
    monkeypatch.setattr(hooks, "tools_changed", listed.append)
    spec = spec_for(counting.url)

    async def storm() -> None:
        for _ in range(200):
            pool._news.hear(spec, mcp_types.ToolListChangedNotification())

    began = time.monotonic()
    await runtime.run(storm())
    async with asyncio.timeout(PATIENCE):
        while not listed:
            await asyncio.sleep(0.02)
    assert len(listed) <= 1 + (time.monotonic() - began)
    assert set(listed) == {spec.server_id}


async def test_a_server_that_says_its_tools_changed_is_heard(
    counting: CountingServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SEC-58: the notification of the session-based revisions reaches the hook."""
    from mcp_servers.client.connections.hooks import hooks

    listed: list[Any] = []
    monkeypatch.setattr(hooks, "tools_changed", listed.append)
    spec = spec_for(counting.url, protocol=Protocol.LEGACY)
    await send(spec, "echo", {"text": "warm"})
    async with asyncio.timeout(PATIENCE):
        while not listed:  # the stream for the server's own messages opens beside the first call
            await send(spec, "announce")
            await asyncio.sleep(0.02)
    assert set(listed) == {spec.server_id}
