"""The tools that a member may use, and why."""

from __future__ import annotations

from typing import Any

from django.db import connection
from django.test.utils import CaptureQueriesContext

from mcp_servers.models import ApprovalOverride, McpServer, ServerScope
from mcp_servers.registry.access import read_tools
from tests.factories import Tenant, TwoTenants
from tests.mcp_servers.call_rules import make
from tests.mcp_servers.factories import http_server, stored_tool
from workspaces.models import Membership, User
from workspaces.people.access import AccessCursor

URL = "https://tools.example.org/mcp"


def member_of(tenant: Tenant) -> Membership:
    return Membership.objects.for_workspace(tenant.workspace).get(user=tenant.member)


def access_of(tenant: Tenant, after: AccessCursor | None = None, most: int = 50) -> dict[str, str]:
    return {one.name: one.why for one in read_tools(member_of(tenant), after, most)}


def own_server(tenant: Tenant, person: User) -> McpServer:
    return McpServer.objects.create(
        workspace=tenant.workspace,
        name="mine",
        scope=ServerScope.PERSONAL,
        owner=person,
        url=URL,
    )


def changing(server: McpServer, name: str, **fields: Any) -> None:
    stored_tool(server, name, annotations={"readOnlyHint": False}, **fields)


def test_each_tool_says_whether_it_runs_asks_or_is_blocked(tenant: Tenant) -> None:
    """REL-1235: by its own setting, by what it says of itself, and by the call rules as they see this person."""
    server = http_server(tenant, URL, trusts_annotations=True)
    stored_tool(server, "read")
    changing(server, "write")
    changing(server, "send", approval_override=ApprovalOverride.AUTO)
    changing(server, "never", approval_override=ApprovalOverride.DENY)
    changing(server, "off", is_enabled=False)
    found = access_of(tenant)
    assert set(found) == {"read", "write", "send"}
    assert "runs without asking. This tool only reads data." in found["read"]
    assert "asks first. This tool changes data." in found["write"]
    assert "An administrator lets this tool run without asking." in found["send"]
    make(tenant, tools=["send"])
    assert "It is blocked." in access_of(tenant)["send"]
    assert f"Of {server.name}." in found["read"]


def test_tools_come_page_by_page_and_cost_no_more_statements(tenant: Tenant) -> None:
    """REL-1235: by name."""
    server = http_server(tenant, URL)
    stored_tool(server, "a")
    with CaptureQueriesContext(connection) as one:
        access_of(tenant)
    for number in range(30):
        stored_tool(server, f"b{number:02}")
    with CaptureQueriesContext(connection) as many:
        assert list(access_of(tenant)) == ["a", *(f"b{number:02}" for number in range(30))]
    assert len(many) == len(one)
    [first, *_] = read_tools(member_of(tenant), None, 1)
    assert list(access_of(tenant, AccessCursor.after(first), 2)) == ["b00", "b01"]


def test_tools_of_others_are_not_theirs(two_workspaces: TwoTenants) -> None:
    """SEC-598: not of another workspace, and not of somebody else's own server."""
    ours, theirs = two_workspaces.a, two_workspaces.b
    stored_tool(http_server(theirs, URL), "there")
    stored_tool(own_server(ours, ours.admin), "private")
    assert access_of(ours) == {}
    stored_tool(own_server(ours, ours.member), "note")
    assert list(access_of(ours)) == ["note"]
