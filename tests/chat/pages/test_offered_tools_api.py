"""The tools that a bud may name, over REST as in its editor."""

from __future__ import annotations

from typing import Any

import pytest
from django.urls import reverse
from django.utils import timezone

from chat.models import Bud
from mcp_servers.models import McpServer, ServerScope
from tests.factories import Tenant, make_tenant
from tests.mcp_servers.factories import stored_tool


@pytest.fixture
def acme(db: None) -> Tenant:
    """A workspace with a server of three tools, one of them gone, and somebody's own server."""
    tenant = make_tenant("acme")
    server = McpServer.objects.create(
        workspace=tenant.workspace, name="files", url="https://drive.example.org/mcp"
    )
    own = McpServer.objects.create(
        workspace=tenant.workspace,
        name="mine",
        scope=ServerScope.PERSONAL,
        owner=tenant.member,
        url="https://mine.example.org/mcp",
    )
    for row, name in ((server, "write"), (server, "read"), (own, "peek")):
        stored_tool(row, name, description=f"{name}s")
    stored_tool(server, "gone", removed_at=timezone.now())
    return tenant


def get(tenant: Tenant, path: str, role: str = "admin") -> Any:
    headers = {"X-Workspace": tenant.workspace.slug}
    return tenant.client(role).get(f"/api/buds/{path}", headers=headers)


def test_the_editors_tools_are_listed_in_pages(acme: Tenant) -> None:
    """REL-1109: the same that the editor's picker has, and nobody's own."""
    first = get(acme, "tools/?page_size=1").json()
    headers = {"X-Workspace": "acme"}
    rest = acme.client("admin").get(first["next"], headers=headers).json()
    listed = first["results"] + rest["results"]
    assert [(one["server"], one["name"]) for one in listed] == [
        ("files", "read"),
        ("files", "write"),
    ]
    page = acme.client("admin").get(reverse("chat:bud_tools", args=["acme"])).json()
    [shown] = page["tools"].values()
    assert [one["name"] for one in shown] == ["read", "write"]
    [found] = get(acme, f"tools/?search=RI&server={listed[0]['server_id']}").json()["results"]
    assert found["description"] == "writes"
    assert get(acme, "tools/", "member").status_code == 403


def test_who_may_edit_a_bud_sees_its_tools(acme: Tenant) -> None:
    """REL-1109, SEC-552: also a member, of a bud that members may edit."""
    bud = Bud.objects.create(workspace=acme.workspace, name="Planner", slug="planner")
    assert get(acme, f"{bud.pk}/tools/", "member").status_code == 403
    bud.members_may_edit = True
    bud.save()
    listed = get(acme, f"{bud.pk}/tools/", "member").json()["results"]
    assert [one["name"] for one in listed] == ["read", "write"]
