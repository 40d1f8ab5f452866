"""Tools in rows: seen, changed, gone, and quarantined in between."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from mcp_servers import discovery, services
from mcp_servers.connections import runtime
from mcp_servers.connections.listing import MAX_TOOLS
from mcp_servers.models import McpServer, McpTool
from tests.factories import Tenant, make_tenant
from tests.fakes.mcp_server import CountingServer, RawServer, raw_tool
from tests.mcp_servers.factories import http_server, looked_at, tool_of
from workspaces.actors import Actor, Source


@pytest.fixture
def server(tenant: Tenant) -> McpServer:
    return http_server(tenant, "https://example.org/mcp")


def see(server: McpServer, tools: list[Any], actor: Actor) -> discovery.DiscoveryResult:
    return discovery.store_tools(server=server, raw_tools=tools, actor=actor)


def health_actor(tenant: Tenant) -> Actor:
    return Actor.system(source=Source.TASK, workspace_id=tenant.workspace.pk)


def callable_names(server: McpServer) -> set[str]:
    tools = McpTool.objects.for_workspace(server.workspace_id).callable()
    return set(tools.values_list("name", flat=True))


def test_the_first_look_of_an_administrator_accepts(tenant: Tenant, server: McpServer) -> None:
    """SEC-58: what is seen when the server is added may be used."""
    result = see(server, [raw_tool("a"), raw_tool("b")], tenant.actor())
    assert (result.total, result.added) == (2, 2)
    assert callable_names(server) == {"a", "b"}


def test_the_first_look_of_the_platform_accepts_nothing(tenant: Tenant, server: McpServer) -> None:
    """SEC-58: nobody has looked yet; an administrator's look later accepts."""
    see(server, [raw_tool("a")], health_actor(tenant))
    assert callable_names(server) == set()
    see(server, [raw_tool("a")], tenant.actor())
    assert callable_names(server) == {"a"}


def test_a_tool_that_appears_later_rests(tenant: Tenant, server: McpServer) -> None:
    """SEC-58: unless the workspace chose otherwise."""
    see(server, [raw_tool("a")], tenant.actor())
    result = see(server, [raw_tool("a"), raw_tool("b")], tenant.actor())
    assert result.added == 1
    assert callable_names(server) == {"a"}
    services.accept_definition(tool=tool_of(server, "b"), actor=tenant.actor())
    assert callable_names(server) == {"a", "b"}
    server.allows_new_tools = True
    see(server, [raw_tool("a"), raw_tool("b"), raw_tool("c")], health_actor(tenant))
    assert callable_names(server) == {"a", "b", "c"}
    server.allows_new_tools = False
    server.workspace.approves_new_tools = True
    see(server, [raw_tool("a"), raw_tool("d")], health_actor(tenant))
    assert callable_names(server) == {"a", "d"}


def test_a_changed_tool_rests_until_it_is_accepted(tenant: Tenant, server: McpServer) -> None:
    """SEC-57: and one that changed back is accepted already."""
    see(server, [raw_tool("a"), raw_tool("b")], tenant.actor())
    changed = raw_tool("a", description="a\u200b")
    assert see(server, [changed, raw_tool("b")], tenant.actor()).changed == 1
    assert callable_names(server) == {"b"}
    see(server, [raw_tool("a"), raw_tool("b")], health_actor(tenant))
    assert callable_names(server) == {"a", "b"}
    see(server, [changed, raw_tool("b")], health_actor(tenant))
    services.accept_definition(tool=tool_of(server, "a"), actor=tenant.actor())
    assert callable_names(server) == {"a", "b"}


def test_the_order_of_keys_changes_nothing(tenant: Tenant, server: McpServer) -> None:
    """SEC-57: key order only is no change."""
    see(server, [raw_tool("a")], tenant.actor())
    assert see(server, [dict(reversed(list(raw_tool("a").items())))], tenant.actor()).changed == 0
    assert callable_names(server) == {"a"}


def test_a_tool_that_is_gone_is_kept_as_gone(tenant: Tenant, server: McpServer) -> None:
    """Its settings wait for it."""
    see(server, [raw_tool("a"), raw_tool("b")], tenant.actor())
    services.set_tool_enabled(tool=tool_of(server, "b"), is_enabled=False, actor=tenant.actor())
    assert see(server, [raw_tool("a")], tenant.actor()).removed == 1
    assert callable_names(server) == {"a"}
    see(server, [raw_tool("a"), raw_tool("b")], tenant.actor())
    assert not tool_of(server, "b").is_enabled
    assert not tool_of(server, "b").is_removed


def test_one_bad_tool_does_not_hide_the_others(tenant: Tenant, server: McpServer) -> None:
    """SEC-74: excluded with a reason, the others kept; nothing is fetched."""
    tools = [
        raw_tool("remote", inputSchema={"$ref": "https://evil.example/x"}),
        raw_tool("hints", annotations={"readOnlyHint": "yes"}),
        {"name": "nothing"},
        "garbage",
        raw_tool("good"),
        raw_tool("good", description="the same name again"),
    ]
    result = see(server, tools, tenant.actor())
    assert (result.total, result.excluded, result.skipped) == (4, 2, 2)
    assert callable_names(server) == {"hints", "good"}
    assert "another document" in tool_of(server, "remote").problem


def test_the_whole_way_from_a_real_server(tenant: Tenant, counting: CountingServer) -> None:
    """A real server's tools, with its hints; a new one rests until it is accepted."""
    server = looked_at(tenant, http_server(tenant, counting.url))
    assert (server.status, server.protocol_revision) == ("connected", "2026-07-28")
    assert server.server_version == "counting 1.0"
    assert callable_names(server) == {"echo", "destroy", "plain", "slow", "fail", "big", "announce"}
    assert tool_of(server, "destroy").typed_annotations.destructive is True
    counting.add_tool("later")
    report = services.refresh_tools(server=server, actor=tenant.actor())
    assert report.tool_count == 8
    assert "later" not in callable_names(server)


class LoopWatch:
    """The longest stretch that a loop's thread worked without letting the loop turn.

    In the thread's own CPU time, so that a busy machine does not count.
    """

    def __init__(self) -> None:
        self.worst_seconds = 0.0

    async def run(self) -> None:
        while True:
            before = time.thread_time()
            await asyncio.sleep(0.001)
            self.worst_seconds = max(self.worst_seconds, time.thread_time() - before)


async def test_five_thousand_tools_do_not_stop_the_loops(tenant: Tenant) -> None:
    """REL-43, SEC-80: the list is cut, the rest is usable, and the loop that serves people is not held up."""
    raw = RawServer(tools=[raw_tool(f"tool_{number}") for number in range(5000)])
    ours, connections = LoopWatch(), LoopWatch()
    try:
        server = await asyncio.to_thread(http_server, tenant, raw.url)
        watching = [
            asyncio.create_task(ours.run()),
            asyncio.create_task(runtime.run(connections.run())),
        ]
        actor = await asyncio.to_thread(tenant.actor)
        report = await asyncio.to_thread(services.test_connection, server=server, actor=actor)
        for task in watching:
            task.cancel()
    finally:
        raw.stop()
    assert report.ok
    assert report.tool_count == MAX_TOOLS
    assert "left out" in report.message
    assert ours.worst_seconds < 0.1
    # The SDK parses the whole list in one go on the connections' loop, where nobody but other calls waits.
    assert connections.worst_seconds < 0.5


def test_a_tool_of_another_workspace_is_not_touched(tenant: Tenant, server: McpServer) -> None:
    """SEC-01: equal names in two workspaces are two tools."""
    other = make_tenant("other")
    elsewhere = http_server(other, "https://example.org/mcp")
    see(server, [raw_tool("a")], tenant.actor())
    see(elsewhere, [raw_tool("a", description="other")], other.actor())
    assert tool_of(server, "a").description == "a"
    assert tool_of(elsewhere, "a").description == "other"
