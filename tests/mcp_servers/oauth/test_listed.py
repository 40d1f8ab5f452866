"""Lists of tools outside of a turn: where each person signs in, what one account was shown is no other's to read."""

from __future__ import annotations

from typing import Any

import pytest

from chat.models import Bud, Conversation
from chat.tools.toolset import resolve_toolset
from mcp_servers.models import McpServer, McpTool
from mcp_servers.registry.discovery import store_tools
from tests.factories import Tenant
from tests.fakes.protected_server import ProtectedServer
from tests.fakes.signing_in import granted
from tests.mcp_servers.factories import actor_of

ADAS, GRACES = "payroll_of_ada", "payroll_of_grace"


def shown(server: McpServer, tenant: Tenant, role: str, *names: str) -> None:
    """That person's account was shown these tools."""
    raw = [{"name": name, "inputSchema": {"type": "object"}} for name in ("both", *names)]
    actor, viewer = actor_of(tenant, role), tenant.people[role].pk
    store_tools(server=server, raw_tools=raw, actor=actor, viewer=viewer)


@pytest.fixture
def listed(tenant: Tenant, server: McpServer, protected: ProtectedServer) -> McpServer:
    """A member and the auditor are signed in, and were shown different tools; the admin is not."""
    granted(server, protected, tenant.member)
    granted(server, protected, tenant.auditor, "grace@example.com")
    shown(server, tenant, "member", ADAS)
    shown(server, tenant, "auditor", GRACES)
    return server


def names(rows: list[dict[str, Any]]) -> set[str]:
    return {row["name"] for row in rows}


def test_the_servers_page_shows_what_ones_own_account_was_shown(
    tenant: Tenant, listed: McpServer
) -> None:
    """SEC-10: another person's tools are on the card of whoever manages the server, and on no other."""
    page = tenant.client("member").get("/w/acme/servers/").content.decode()
    assert ADAS in page
    assert GRACES not in page
    page = tenant.client("admin").get("/w/acme/servers/").content.decode()
    assert ADAS in page
    assert GRACES in page


def test_the_search_for_servers_finds_by_ones_own_tools_alone(
    tenant: Tenant, listed: McpServer
) -> None:
    """SEC-10: nobody learns by looking for it that another person has a tool of that name."""
    found = {
        (role, name): f'data-server="{listed.pk}"'
        in tenant.client(role).get(f"/w/acme/servers/?q={name}").content.decode()
        for role in ("member", "admin")
        for name in (ADAS, GRACES)
    }
    assert found == {
        ("member", ADAS): True,
        ("member", GRACES): False,
        ("admin", ADAS): True,
        ("admin", GRACES): True,
    }


def test_the_rest_interface_shows_what_ones_own_account_was_shown(
    tenant: Tenant, listed: McpServer
) -> None:
    """SEC-10: neither the list nor one tool's address tells of another person's."""
    headers = {"x-workspace": "acme"}
    member = tenant.client("member", headers=headers)
    assert names(member.get("/api/tools/").json()["results"]) == {"both", ADAS}
    other = McpTool.objects.for_workspace(tenant.workspace).get(name=GRACES)
    assert member.get(f"/api/tools/{other.pk}/").status_code == 404
    admin = tenant.client("admin", headers=headers)
    assert names(admin.get("/api/tools/").json()["results"]) == {"both", ADAS, GRACES}


def test_a_page_on_one_tool_is_not_there_for_others(tenant: Tenant, listed: McpServer) -> None:
    """SEC-10: the addresses of a tool are as its lists."""
    tools = McpTool.objects.for_workspace(tenant.workspace)
    own, other = tools.get(name=ADAS), tools.get(name=GRACES)
    member, base = tenant.client("member"), f"/w/acme/servers/{listed.pk}/tools"
    answers = [
        member.post(f"{base}/{tool.pk}/enabled/", {"is_enabled": "off"}).status_code
        for tool in (own, other)
    ]
    assert answers == [403, 404]


@pytest.mark.parametrize("role", ["member", "auditor", "admin"])
def test_a_chats_servers_and_tools_are_those_of_its_turns(
    tenant: Tenant, listed: McpServer, role: str
) -> None:
    """SEC-10: the switches show exactly what a turn of this person would get, whoever manages the server."""
    bud = Bud.objects.create(
        workspace=tenant.workspace,
        slug="bud",
        name="Bud",
        mcp_config={"servers": [str(listed.pk)]},
    )
    conversation = Conversation.objects.create(
        workspace=tenant.workspace, owner=tenant.people[role], bud=bud
    )
    client = tenant.client(role, headers={"x-workspace": "acme"})
    of_turn = {tool.tool_name for tool in resolve_toolset(bud, conversation).tools}
    for of_what in (f"buds/{bud.pk}", f"conversations/{conversation.pk}"):
        (one,) = client.get(f"/api/{of_what}/servers/").json()["servers"]
        assert names(one["tools"]) == of_turn, of_what
    assert of_turn - {"both"} == {"member": {ADAS}, "auditor": {GRACES}}.get(role, {ADAS, GRACES})
