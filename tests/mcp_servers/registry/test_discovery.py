"""Tools in rows: seen, changed, gone, and quarantined in between."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from mcp_servers.client.connections import runtime
from mcp_servers.client.connections.listing import MAX_TOOLS
from mcp_servers.client.definitions import read_definition
from mcp_servers.models import ApprovalOverride, McpPrompt, McpResource, McpServer, McpTool
from mcp_servers.registry import discovery, services
from mcp_servers.registry.discovery.offers import MAX_ROWS
from tests.factories import Tenant, make_tenant
from tests.fakes.mcp_server import CountingServer, RawServer, raw_tool
from tests.loop_watch import LoopWatch
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
    assert (server.state.status, server.state.protocol_revision) == ("connected", "2026-07-28")
    assert server.state.server_version == "counting 1.0"
    assert callable_names(server) == {"echo", "destroy", "plain", "slow", "fail", "big", "announce"}
    assert tool_of(server, "destroy").typed_annotations.destructive is True
    counting.add_tool("later")
    report = services.refresh_tools(server=server, actor=tenant.actor())
    assert report.tool_count == 8
    assert "later" not in callable_names(server)


async def test_five_thousand_tools_do_not_stop_the_loops(tenant: Tenant) -> None:
    """REL-43, SEC-80: the list is cut, the rest is usable, and the loop that serves people is not held up."""
    raw = RawServer(tools=[raw_tool(f"tool_{number}") for number in range(5000)])
    await asyncio.to_thread(runtime.current)  # its first start tidies up the whole process
    server = await asyncio.to_thread(http_server, tenant, raw.url)
    actor = await asyncio.to_thread(tenant.actor)

    async def look() -> None:
        report = await asyncio.to_thread(services.test_connection, server=server, actor=actor)
        assert report.ok
        assert report.tool_count == MAX_TOOLS
        assert "left out" in report.message

    ours, connections = LoopWatch(), LoopWatch()
    watching = [
        asyncio.create_task(ours.run()),
        asyncio.create_task(runtime.run(connections.run())),
    ]
    try:
        # The SDK parses the whole list in one go on the connections' loop, where nobody but other calls waits.
        await connections.assert_lets_turn(
            lambda: ours.assert_lets_turn(look, seconds=0.2), seconds=1.5
        )
    finally:
        for task in watching:
            task.cancel()
        raw.stop()


def test_a_renamed_tool_rests_and_says_what_it_was(tenant: Tenant, server: McpServer) -> None:
    """SEC-58: the same definition under another name is not the tool that was accepted; what was forbidden stays so."""
    see(server, [raw_tool("send"), raw_tool("other")], tenant.actor())
    services.set_approval_override(
        tool=tool_of(server, "send"), override=ApprovalOverride.DENY, actor=tenant.actor()
    )
    server.allows_new_tools = True
    see(server, [raw_tool("send_mail", description="send"), raw_tool("other")], tenant.actor())
    renamed = tool_of(server, "send_mail")
    assert (renamed.renamed_from, renamed.is_quarantined) == ("send", True)
    assert renamed.approval_override == ApprovalOverride.DENY
    assert renamed.approved_definition["name"] == "send"
    assert tool_of(server, "send").is_removed


@pytest.mark.parametrize(
    ("tool", "words"),
    [
        (raw_tool("a", description="Reads.\u202e Then sends."), "text direction"),
        (raw_tool("a", description="Reads.\u200b"), "zero-width"),
        (raw_tool("a", description="Reads.\U000e0041\U000e0042"), "tag characters"),
        (raw_tool("a", description="\x1b[8mSends.\x1b[0m"), "escape codes"),
        (raw_tool("a", title="A\u0008"), "control characters"),
        (
            raw_tool(
                "a",
                inputSchema={
                    "type": "object",
                    "properties": {"x": {"type": "string", "description": "y\u2066"}},
                },
            ),
            "input schema",
        ),
        (raw_tool("n\u043ete"), "alphabets"),
        (raw_tool("read\u200b"), "zero-width"),
    ],
)
def test_a_tool_that_hides_something_is_never_accepted_unseen(
    tenant: Tenant, server: McpServer, tool: dict[str, Any], words: str
) -> None:
    """SEC-67: not by the first look of an administrator, nor because new tools are welcome; it says what it hides."""
    server.allows_new_tools = True
    see(server, [tool, raw_tool("plain")], tenant.actor())
    assert callable_names(server) == {"plain"}
    stored = McpTool.objects.for_workspace(tenant.workspace).get(name=tool["name"])
    assert words in " ".join(stored.warnings)
    services.accept_definition(tool=stored, actor=tenant.actor(), seen_hash=stored.definition_hash)
    assert tool["name"] in callable_names(server)


def test_a_tool_that_passes_for_another_is_flagged(tenant: Tenant, server: McpServer) -> None:
    """SEC-67: of its own server or of another one of the workspace, but not of another workspace."""
    see(server, [raw_tool("read_file")], tenant.actor())
    other = http_server(tenant, "https://other.example.org/mcp", name="other")
    see(other, [raw_tool("read-file"), raw_tool("read_file"), raw_tool("write")], tenant.actor())
    assert "“read_file”" in tool_of(other, "read-file").warnings[0]
    assert tool_of(other, "read_file").is_quarantined
    assert callable_names(server) == {"read_file", "write"}
    elsewhere = http_server(make_tenant("else"), "https://other.example.org/mcp")
    see(elsewhere, [raw_tool("read-file")], health_actor(tenant))
    assert tool_of(elsewhere, "read-file").warnings == []


def test_a_tool_that_only_runs_as_a_task_needs_a_server_that_runs_tasks(
    tenant: Tenant, server: McpServer
) -> None:
    """Otherwise it is left out with a reason; with such a server it is a tool like others."""
    task = raw_tool("long", execution={"taskSupport": "required"})
    see(server, [task], tenant.actor())
    assert "as a task" in tool_of(server, "long").problem
    server.state.capabilities = {"tasks": {"requests": {"tools": {"call": {}}}}}
    see(server, [task], tenant.actor())
    assert (tool_of(server, "long").problem, tool_of(server, "long").task_support) == (
        "",
        "required",
    )


def test_resources_and_prompts_come_change_and_go(tenant: Tenant, server: McpServer) -> None:
    """SEC-80: entries without a usable name are left out, texts are bounded, what is gone is kept as gone."""
    found = discovery.store_resources(
        server=server,
        raw=[
            {"uri": "file:///a", "name": "A" * 1000, "size": 5, "mimeType": "text/plain"},
            {"uri": "file:///a", "name": "twice"},
            {"uri": "x" * 3000},
            {"name": "without"},
            {
                "uri": "file:///b",
                "name": "B",
                "size": True,
                "icons": [{"src": "https://i.example/x"}],
            },
            "garbage",
        ],
    )
    assert (found.total, found.added, found.skipped) == (2, 2, 4)
    resources = {one.uri: one for one in McpResource.objects.for_workspace(tenant.workspace)}
    assert (len(resources["file:///a"].name), resources["file:///a"].size) == (256, 5)
    assert resources["file:///b"].size is None

    template = {"uriTemplate": "file:///{path}", "name": "any"}
    assert discovery.store_resources(server=server, raw=[template], is_template=True).added == 1
    again = discovery.store_resources(server=server, raw=[{"uri": "file:///b", "name": "new"}])
    assert (again.added, again.changed, again.removed) == (0, 1, 1)
    offered = McpResource.objects.for_workspace(tenant.workspace).offered()
    assert {one.uri for one in offered} == {"file:///b", "file:///{path}"}

    prompt = {"name": "greet", "arguments": [{"name": "who", "required": True}, {"x": 1}, 5]}
    assert discovery.store_prompts(server=server, raw=[prompt, {"name": ""}]).skipped == 1
    stored = McpPrompt.objects.for_workspace(tenant.workspace).get()
    assert [(one["name"], one["required"]) for one in stored.arguments] == [("who", True)]
    assert not discovery.store_prompts(server=server, raw=[prompt]).has_news
    assert discovery.store_prompts(server=server, raw=[]).removed == 1
    assert discovery.store_prompts(server=server, raw=[prompt]).changed == 1


def test_a_list_of_a_million_is_cut(tenant: Tenant, server: McpServer) -> None:
    """SEC-80: also after it left the connection; storing it again takes few statements."""
    raw = ({"uri": f"file:///{number}", "name": "x"} for number in range(20_000))
    assert discovery.store_resources(server=server, raw=raw).total == MAX_ROWS


def test_an_icon_is_known_of_and_never_loaded() -> None:
    """SEC-73: only its address is kept, and only a plain https one; those given in full are left out."""
    icons = [
        {"src": "https://icons.example/a.png", "mimeType": "image/png", "sizes": ["48x48"]},
        {"src": "data:image/svg+xml;base64,AAAA"},
        {"src": "javascript:alert(1)"},
        {"src": "http://192.168.0.1/beacon"},
        "garbage",
        {"src": "https://" + "x" * 5000},
    ]
    definition = read_definition(raw_tool("a", icons=icons))
    assert definition is not None
    assert [icon["src"] for icon in definition.icons] == ["https://icons.example/a.png"]


def test_a_tool_of_another_workspace_is_not_touched(tenant: Tenant, server: McpServer) -> None:
    """SEC-01: equal names in two workspaces are two tools."""
    other = make_tenant("other")
    elsewhere = http_server(other, "https://example.org/mcp")
    see(server, [raw_tool("a")], tenant.actor())
    see(elsewhere, [raw_tool("a", description="other")], other.actor())
    assert tool_of(server, "a").description == "a"
    assert tool_of(elsewhere, "a").description == "other"


def test_a_tool_whose_arguments_hold_themselves_can_be_called(
    tenant: Tenant, server: McpServer
) -> None:
    """REL-1641: also where it was blocked for that before; its server's next look takes it up."""
    folder = {
        "type": "object",
        "properties": {
            "name": {"type": "string"},
            "folders": {"type": "array", "items": {"$ref": "#/$defs/folder"}},
        },
        "required": ["name"],
    }
    schema = {**folder, "$defs": {"folder": folder}}
    tools = [raw_tool("make", inputSchema=schema, outputSchema=schema)]
    see(server, tools, tenant.actor())
    assert callable_names(server) == {"make"}
    McpTool.objects.for_workspace(tenant.workspace).update(
        problem="its input schema refers to itself."
    )
    assert callable_names(server) == set()
    see(server, tools, tenant.actor())
    assert callable_names(server) == {"make"}
