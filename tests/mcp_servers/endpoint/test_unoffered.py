"""What a client asks for that it is not offered is refused, and stands in the log."""

from __future__ import annotations

from typing import Any

import pytest
from django.utils import timezone

from audit.models import AuditEntry
from mcp_servers.endpoint import unknown_names
from mcp_servers.models import ApprovalOverride, McpServer, McpTool, ServerScope
from tests.factories import Tenant
from tests.mcp_servers.endpoint.client import McpClient, token_for
from tests.mcp_servers.factories import shared_server, stored_tool

pytestmark = pytest.mark.django_db(transaction=True)


def refusals(tenant: Tenant) -> list[tuple[Any, ...]]:
    """What the log has of refused calls, reads and prompts, from the first to the last."""
    entries = AuditEntry.objects.for_workspace(tenant.workspace).filter(action__endswith=".refused")
    return list(
        entries.order_by("id").values_list(
            "source", "tool_name", "server_name", "refused_by", "rule"
        )
    )


@pytest.mark.parametrize(
    ("fields", "refused_by", "rule", "words"),
    [
        ({"approval_override": ApprovalOverride.DENY}, "policy", "tool.deny", "blocked this tool"),
        ({"is_enabled": False}, "disabled", "tool.disabled", "switched off"),
        ({"removed_at": timezone.now()}, "disabled", "tool.removed", "no longer offers"),
        ({"approved_hash": ""}, "quarantine", "tool.quarantined", "new or has changed"),
    ],
    ids=["blocked", "off", "removed", "held"],
)
def test_a_tool_that_is_not_offered_is_refused_with_its_reason(
    tenant: Tenant, fields: dict[str, Any], refused_by: str, rule: str, words: str
) -> None:
    """SEC-562: the client reads why, and the log has the tool, its server and the rule."""
    stored_tool(shared_server(tenant, "S"), "echo", **fields)
    client = McpClient(tenant, token_for(tenant))
    assert client.names() == []
    answer = client.call("S__echo", text="x")
    assert answer["isError"]
    assert words in answer["content"][0]["text"]
    assert refusals(tenant) == [("gateway", "echo", "S", refused_by, rule)]


def test_a_long_name_leaves_room_for_that_of_the_client(tenant: Tenant) -> None:
    """REL-3163: Claude Code ends a session where `mcp__<server>__` and a name have more than 64 characters together."""
    long = "synchronise_each_page_of_the_space_with_its_copy"
    tool = stored_tool(shared_server(tenant, "Wiki"), long)
    client = McpClient(tenant, token_for(tenant))
    [name] = client.names()
    assert len(name) == 44
    assert name.startswith("Wiki__synchronise_each_page_of_the")
    client.call(name, text="x")
    tool.is_enabled = False
    tool.save(update_fields=["is_enabled"])
    assert "switched off" in client.call(name, text="x")["content"][0]["text"]
    assert refusals(tenant) == [
        ("gateway", long, "Wiki", "approval", "hints.untrusted"),  # it was found
        ("gateway", long, "Wiki", "disabled", "tool.disabled"),
    ]


def test_a_tool_of_a_server_that_is_not_for_clients_is_refused(tenant: Tenant) -> None:
    """SEC-562: also if a chat could use it; nothing is sent, and arguments are kept as for each call."""
    server = shared_server(tenant, "S")
    stored_tool(server, "echo")
    McpServer.objects.for_workspace(tenant.workspace).update(is_used_everywhere=False)
    answer = McpClient(tenant, token_for(tenant)).call("S__echo", text="x")
    assert "not offered this tool" in answer["content"][0]["text"]
    assert refusals(tenant) == [("gateway", "echo", "S", "disabled", "tool.not_offered")]


def test_of_anothers_server_nothing_is_told(tenant: Tenant) -> None:
    """SEC-562: a member's own server is as unknown to others as one that never was."""
    server = shared_server(tenant, "Own")
    McpServer.objects.for_workspace(tenant.workspace).filter(pk=server.pk).update(
        owner=tenant.admin, scope=ServerScope.PERSONAL
    )
    stored_tool(server, "echo")
    client = McpClient(tenant, token_for(tenant))
    for name in ("Own__echo", "never__was"):
        body = client.post("tools/call", {"name": name, "arguments": {"text": "x"}}).json()
        assert body["error"] == {"code": -32602, "message": f"Unknown tool: {name}"}
    assert refusals(tenant) == [
        ("gateway", name, "", "not_found", "tool.not_found") for name in ("Own__echo", "never__was")
    ]


def test_of_unknown_names_the_log_has_a_bounded_entry(tenant: Tenant) -> None:
    """SEC-563: the name is cut and cleaned, and nothing else of the call is kept; the same for reads and prompts."""
    client = McpClient(tenant, token_for(tenant))
    arguments = {"text": "y" * 10_000}
    client.post("tools/call", {"name": "a\u202eb\x00" + "x" * 5000, "arguments": arguments})
    client.post("resources/read", {"uri": "trellis://s/" + "x" * 5000})
    client.post("prompts/get", {"name": "x" * 5000})
    entries = AuditEntry.objects.for_workspace(tenant.workspace).filter(action__endswith=".refused")
    assert [(one.action, one.rule) for one in entries.order_by("id")] == [
        ("tool_call.refused", "tool.not_found"),
        ("resource_read.refused", "resource.uri"),
        ("prompt_get.refused", "prompt.not_found"),
    ]
    for one in entries:
        assert len(one.tool_name) <= 256
        assert "\u202e" not in one.tool_name
        assert "\x00" not in one.tool_name
        assert one.arguments_size in (None, 0)


def test_a_client_cannot_fill_the_log(tenant: Tenant, monkeypatch: pytest.MonkeyPatch) -> None:
    """SEC-563: beyond a number within ten minutes, it reads that, and nothing is entered. Others are not affected."""
    monkeypatch.setattr(unknown_names, "MOST_UNKNOWN", 2)
    client, other = (McpClient(tenant, token_for(tenant)) for _ in range(2))
    listed = [
        client.post("tools/call", {"name": f"x__{number}"}).json()["error"]["message"]
        for number in range(4)
    ]
    assert [one.startswith("Unknown tool") for one in listed] == [True, True, False, False]
    assert "Too many" in listed[-1]
    assert len(refusals(tenant)) == 2
    assert other.post("tools/call", {"name": "x"}).json()["error"]["code"] == -32602
    assert len(refusals(tenant)) == 3


def test_names_of_tools_that_are_gone_do_not_hide_others(tenant: Tenant) -> None:
    """SEC-562: where an old and a present tool could have had the name, the present one is meant."""
    server = shared_server(tenant, "S")
    stored_tool(server, "a_b", removed_at=timezone.now())
    stored_tool(server, "a.b", is_enabled=False)
    McpClient(tenant, token_for(tenant)).call("S__a_b", text="x")
    assert [(one[1], one[4]) for one in refusals(tenant)] == [("a.b", "tool.disabled")]
    McpTool.objects.for_workspace(tenant.workspace).filter(name="a.b").update(is_enabled=True)
    assert McpClient(tenant, token_for(tenant)).names() == ["S__a_b"]
