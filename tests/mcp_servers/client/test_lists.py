"""What servers offer: all of it, within bounds, and fresh."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from mcp.server.caching import CacheHint

from mcp_servers.client.connections import runtime
from mcp_servers.client.connections.hooks import hooks
from mcp_servers.client.connections.listing import (
    MAX_LIST_PAGES,
    MAX_PROMPTS,
    MAX_RESOURCES,
    MAX_TOOLS,
)
from mcp_servers.client.connections.pool import pool
from mcp_servers.client.values import Protocol
from tests.fakes.full_server import full_server
from tests.fakes.mcp_server import (
    INITIALIZED,
    Handler,
    RawServer,
    raw_tool,
    reply,
    reply_error,
    reply_result,
)
from tests.mcp_servers.client.conftest import TRANSPORTS, Everywhere
from tests.mcp_servers.client.helpers import send, spec_for, text_of
from tests.patience import PATIENCE

EVERYTHING = {
    **INITIALIZED,
    "capabilities": {"tools": {}, "resources": {"subscribe": True}, "prompts": {}},
}


async def everything(body: Any, scope: Any, answer: Any) -> None:
    await reply_result(answer, body, EVERYTHING)


def pages(key: str, item: Callable[[int], Any], count: int) -> Handler:
    """A list of so many pages of one item each."""

    async def handle(body: Any, scope: Any, answer: Any) -> None:
        number = int((body.get("params") or {}).get("cursor") or 0)
        more = {"nextCursor": str(number + 1)} if number + 1 < count else {}
        await reply_result(answer, body, {key: [item(number)], **more})

    return handle


@pytest.fixture
def serve() -> Iterator[Any]:
    """Starts raw servers, and ends them."""
    made: list[RawServer] = []

    def start(handlers: dict[str, Handler], tools: list[Any] | None = None) -> RawServer:
        made.append(RawServer({"initialize": everything, **handlers}, tools))
        return made[-1]

    yield start
    for server in made:
        server.stop()


def legacy(server: RawServer, **fields: Any) -> Any:
    return spec_for(server.url, protocol=Protocol.LEGACY, transport="streamable_http", **fields)


def resource(number: int) -> dict[str, Any]:
    return {"uri": f"memo://{number}", "name": str(number)}


async def test_all_pages_of_all_lists_are_read(serve: Any) -> None:
    """MCP, Pagination: for each list that the server says it has."""
    server = serve(
        {
            "tools/list": pages("tools", lambda n: raw_tool(f"t{n}"), 3),
            "resources/list": pages("resources", resource, 3),
            "resources/templates/list": pages(
                "resourceTemplates", lambda n: {"uriTemplate": f"x://{{{n}}}", "name": "x"}, 2
            ),
            "prompts/list": pages("prompts", lambda n: {"name": f"p{n}"}, 4),
        }
    )
    listing = await runtime.run(pool.list_offers(legacy(server)))
    assert [tool["name"] for tool in listing.tools] == ["t0", "t1", "t2"]
    assert [one["uri"] for one in listing.resources] == ["memo://0", "memo://1", "memo://2"]
    assert len(listing.resource_templates) == 2
    assert [one["name"] for one in listing.prompts] == ["p0", "p1", "p2", "p3"]
    assert (listing.warnings, listing.unread) == ((), frozenset())
    assert (listing.ttl_seconds, listing.cache_scope) == (None, "private")


@pytest.mark.parametrize(
    ("method", "key", "item", "most"),
    [
        ("tools/list", "tools", lambda n: raw_tool(f"t{n}"), MAX_TOOLS),
        ("resources/list", "resources", resource, MAX_RESOURCES),
        ("prompts/list", "prompts", lambda n: {"name": f"p{n}"}, MAX_PROMPTS),
    ],
)
async def test_each_list_is_bounded(
    serve: Any, method: str, key: str, item: Callable[[int], Any], most: int
) -> None:
    """SEC-80: items, pages and circles of each list; a warning, and a usable rest."""

    async def crowd(body: Any, scope: Any, answer: Any) -> None:
        await reply_result(answer, body, {key: [item(n) for n in range(most + 100)]})

    async def circle(body: Any, scope: Any, answer: Any) -> None:
        await reply_result(answer, body, {key: [item(0)], "nextCursor": "again"})

    empty = {
        "resources/list": pages("resources", resource, 1),
        "resources/templates/list": pages("resourceTemplates", resource, 1),
        "prompts/list": pages("prompts", lambda n: {"name": "p"}, 1),
    }
    for handler, words, count in (
        (crowd, f"more than {most}", most),
        (circle, "circle", 2),
        (pages(key, item, 1000), "pages", MAX_LIST_PAGES),
    ):
        server = serve({**empty, method: handler})
        listing = await runtime.run(pool.list_offers(legacy(server)))
        assert len(getattr(listing, key)) == count
        (warning,) = listing.warnings
        assert words in warning


async def test_only_what_is_announced_is_asked_for(serve: Any) -> None:
    """MCP, Lifecycle, Capability Negotiation."""

    async def bare(body: Any, scope: Any, answer: Any) -> None:
        await reply_result(answer, body, {**INITIALIZED, "capabilities": {"prompts": {}}})

    server = serve(
        {"initialize": bare, "prompts/list": pages("prompts", lambda n: {"name": "p"}, 1)}
    )
    listing = await runtime.run(pool.list_offers(legacy(server)))
    assert (listing.tools, len(listing.prompts)) == ((), 1)
    assert "no tools" in listing.warning
    assert not {"tools/list", "resources/list"} & set(server.methods())


async def test_a_list_that_fails_does_not_hide_the_others(serve: Any) -> None:
    """Design, 7: what cannot be read is named, so that what is known of it is kept."""

    async def fail(body: Any, scope: Any, answer: Any) -> None:
        await reply_error(answer, body, -32603, "a secret of the server's")

    async def odd(body: Any, scope: Any, answer: Any) -> None:
        await reply(answer, 200, b'{"jsonrpc": "2.0", "id": 1, "result": [1]}')

    server = serve(
        {
            "resources/list": fail,
            "resources/templates/list": odd,
            "prompts/list": pages("prompts", lambda n: {"name": "p", "arguments": "odd"}, 1),
        }
    )
    listing = await runtime.run(pool.list_offers(legacy(server)))
    assert len(listing.tools) == 1
    assert listing.prompts == ({"name": "p", "arguments": "odd"},)
    assert listing.unread == {"resources", "resource_templates"}
    assert "secret" not in "".join(listing.warnings)


async def test_the_newest_revision_says_how_long_lists_hold() -> None:
    """MCP 2026-07-28, Caching: the shortest time, and public only if all are."""
    hint = CacheHint(ttl_ms=60_000, scope="public")
    lists: Any = dict.fromkeys(
        ("tools/list", "resources/list", "resources/templates/list", "prompts/list"), hint
    )
    for changed, expected in (
        ({}, (60.0, "public")),
        ({"prompts/list": CacheHint(ttl_ms=5_000, scope="public")}, (5.0, "public")),
        ({"prompts/list": CacheHint(ttl_ms=90_000, scope="private")}, (60.0, "private")),
    ):
        with full_server(cache_hints={**lists, **changed}) as (_, listening):
            spec = spec_for(f"{listening.origin}/mcp", protocol=Protocol.MODERN)
            listing = await runtime.run(pool.list_offers(spec))
            assert (listing.ttl_seconds, listing.cache_scope) == expected


@pytest.mark.parametrize("era", [Protocol.LEGACY, Protocol.MODERN])
@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_changes_of_lists_are_heard(
    everywhere: Everywhere, monkeypatch: pytest.MonkeyPatch, transport: str, era: Protocol
) -> None:
    """MCP: list_changed for tools, prompts and resources, by itself or within a listening request."""
    listed: list[tuple[str, Any]] = []
    for name in ("tools_changed", "prompts_changed", "resources_changed"):
        monkeypatch.setattr(hooks, name, lambda server, name=name: listed.append((name, server)))
    spec = everywhere.spec(transport, protocol=era)
    await text_of(send(spec, "echo", {"text": "warm"}))
    async with asyncio.timeout(PATIENCE):
        while (
            len(set(listed)) < 3
        ):  # the way for the server's own messages opens beside the first call
            for what in ("tools", "prompts", "resources"):
                await send(spec, "change", {"what": what})
            await asyncio.sleep(0.1)
    assert set(listed) == {
        ("tools_changed", spec.server_id),
        ("prompts_changed", spec.server_id),
        ("resources_changed", spec.server_id),
    }


async def test_watched_resources_are_heard_of(
    everywhere: Everywhere, monkeypatch: pytest.MonkeyPatch
) -> None:
    """MCP 2026-07-28, Subscriptions: what is watched may change while the connection is open."""
    listed: list[tuple[Any, ...]] = []
    first: list[Any] = []
    monkeypatch.setattr(hooks, "resource_updated", lambda *facts: listed.append(facts))
    monkeypatch.setattr(hooks, "tools_changed", first.append)
    spec = everywhere.spec("streamable_http", protocol=Protocol.MODERN, watched=("memo://note",))
    await text_of(send(spec, "echo", {"text": "warm"}))
    async with asyncio.timeout(PATIENCE):
        while not first:  # the way for the server's own messages opens beside the first call
            await send(spec, "change", {"what": "tools"})
            await asyncio.sleep(0.1)
    await send(spec, "change", {"what": "memo://note"})
    await send(spec, "change", {"what": "memo://other"})
    async with asyncio.timeout(PATIENCE):
        while not listed:
            await asyncio.sleep(0.02)
    assert listed == [(spec.workspace_id, spec.server_id, "memo://note")]


async def test_older_servers_are_subscribed_to(serve: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """MCP 2025-11-25, Resources, Subscriptions: taken when the connection opens, and given up again."""
    asked: list[tuple[str, str]] = []

    async def note(body: Any, scope: Any, answer: Any) -> None:
        asked.append((body["method"], body["params"]["uri"]))
        await reply_result(answer, body, {})

    server = serve({"resources/subscribe": note, "resources/unsubscribe": note})
    spec = legacy(server, watched=("memo://1", "memo://2"))
    await send(spec, "echo")
    other = legacy(
        server,
        watched=("memo://2", "memo://3"),
        server_id=spec.server_id,
        workspace_id=spec.workspace_id,
    )
    async with asyncio.timeout(PATIENCE):
        while len(asked) < 2:
            await asyncio.sleep(0.02)
    await send(other, "echo")
    async with asyncio.timeout(PATIENCE):
        while len(asked) < 4:
            await asyncio.sleep(0.02)
    assert set(asked[:2]) == {("resources/subscribe", f"memo://{n}") for n in (1, 2)}
    assert set(asked[2:]) == {
        ("resources/unsubscribe", "memo://1"),
        ("resources/subscribe", "memo://3"),
    }


async def test_news_come_at_most_once_a_second_and_the_last_is_not_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """REL-34: fifty at once are two calls of the hook: one now, one a second later."""
    import mcp_types

    listed: list[float] = []
    loop = asyncio.get_running_loop()
    monkeypatch.setattr(hooks, "tools_changed", lambda server: listed.append(loop.time()))
    spec = spec_for("http://127.0.0.1:1234/mcp")

    async def hear(times: int) -> None:
        for _ in range(times):
            pool._news.hear(spec, mcp_types.ToolListChangedNotification())

    async def told_times(wanted: int) -> None:
        async with asyncio.timeout(PATIENCE):
            while len(listed) < wanted:
                await asyncio.sleep(0.02)

    began = loop.time()
    await runtime.run(hear(50))
    await told_times(2)
    await runtime.run(hear(1))
    await told_times(3)
    assert len(listed) == 3
    assert all(at - began >= 0.9 * nth for nth, at in enumerate(listed))
