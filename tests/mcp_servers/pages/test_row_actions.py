"""Actions on several servers, tools and programs in the admin."""

from __future__ import annotations

import pytest

from mcp_servers.models import McpServer, McpTool, StdioProgram
from mcp_servers.registry.services import withdraw_program
from tests.factories import Tenant, UserFactory, signed_in
from tests.mcp_servers.factories import http_server, stored_tool
from tests.row_actions import act, notices
from workspaces.errors import PermissionDenied

SERVERS = "/admin/mcp_servers/mcpserver/"
TOOLS = "/admin/mcp_servers/mcptool/"
PROGRAMS = "/admin/mcp_servers/stdioprogram/"


@pytest.fixture
def tools(tenant: Tenant) -> list[McpTool]:
    server = http_server(tenant, "https://example.org/mcp", name="garden")
    return [stored_tool(server, name) for name in ("dig", "sow", "water")]


def a_program(slug: str, **fields: object) -> StdioProgram:
    return StdioProgram.objects.create(
        title=slug.title(), slug=slug, command="/usr/bin/true", **fields
    )


def test_tools_are_switched_and_told_when_they_ask(tenant: Tenant, tools: list[McpTool]) -> None:
    """REL-1190: on and off, and whether they run by themselves, ask first or are blocked."""
    client = tenant.client()
    for action, text in (
        ("switch_off", "3 tools switched off."),
        ("switch_on", "3 tools switched on."),
        ("approval_confirm", "3 tools ask first."),
        ("approval_auto", "3 tools run by themselves."),
        ("approval_deny", "3 tools blocked."),
    ):
        assert notices(act(client, TOOLS, action, *tools, confirmed=False)) == [text]
    assert notices(act(client, TOOLS, "approval_inherit", tools[0])) == [
        "1 tool follows the default again."
    ]
    stored = McpTool.objects.for_workspace(tenant.workspace).order_by("name")
    assert [tool.approval_override for tool in stored] == ["inherit", "deny", "deny"]


def test_servers_are_switched(tenant: Tenant) -> None:
    """REL-1190: with one message of the result."""
    rows = [http_server(tenant, f"https://{name}.example.org/mcp") for name in ("one", "two")]
    client = tenant.client()
    assert notices(act(client, SERVERS, "switch_off", *rows)) == ["2 servers switched off."]
    assert not McpServer.objects.for_workspace(tenant.workspace).filter(is_active=True).exists()
    assert notices(act(client, SERVERS, "switch_on", *rows)) == ["2 servers switched on."]


def test_programs_are_withdrawn_and_offered(tenant: Tenant) -> None:
    """REL-1194: with a page that says what stops; offering pins their files as they are now."""
    person = UserFactory.create(is_superuser=True)
    client = signed_in(person)
    rows = [a_program("one"), a_program("two"), a_program("off", is_enabled=False)]
    text = act(client, PROGRAMS, "withdraw", *rows, confirmed=False).content.decode()
    assert "Withdraw 3 programs?" in text
    assert "tools of servers that run it can no longer be called" in text
    assert StdioProgram.objects.filter(is_enabled=True).count() == 2
    assert notices(act(client, PROGRAMS, "withdraw", *rows)) == [
        "2 programs withdrawn.",
        f"{rows[2]}: Off is not on offer.",
    ]
    assert not StdioProgram.objects.filter(is_enabled=True).exists()
    texts = notices(act(client, PROGRAMS, "accept_files", rows[0], confirmed=False))
    assert texts == ["1 program on offer, with its files as they are now."]
    assert StdioProgram.objects.get(is_enabled=True).file_hash


@pytest.mark.parametrize("role", ["owner", "admin", "member"])
def test_programs_are_the_platform_owners(tenant: Tenant, role: str) -> None:
    """REL-1194, SEC-37: on the page and in the service."""
    row = a_program("one")
    body = {"action": "withdraw", "_selected_action": [str(row.pk)], "confirmed": "yes"}
    assert tenant.client(role).post(PROGRAMS, body).status_code in (302, 403)
    with pytest.raises(PermissionDenied):
        withdraw_program(program=row, actor=tenant.actor(role))
    row.refresh_from_db()
    assert row.is_enabled
