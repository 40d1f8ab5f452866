"""A server that was added is used at once, where whoever added it said that it shall be."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest
from django.urls import reverse

from chat.models import Bud, Conversation
from chat.services.buds import create_bud
from chat.tools.toolset import resolve_toolset
from chat.tools.usable_servers import ChatSetting
from chat.values import McpConfigOverrides
from mcp_servers.client import transports
from mcp_servers.models import GlobalServer, McpServer, ServerScope
from mcp_servers.registry.scopes.effective import ServerSource
from mcp_servers.registry.services import ServerDraft, add_personal_server, add_server
from tests.factories import CANARY, Tenant, TwoTenants
from workspaces.errors import InvalidInput

pytestmark = pytest.mark.django_db


def a_bud(tenant: Tenant, slug: str = "helper", **values: Any) -> Bud:
    given = {"slug": slug, "name": slug.title(), **values}
    return create_bud(workspace_id=tenant.workspace.pk, actor=tenant.actor(), values=given)


def draft(name: str = "orders", **values: Any) -> ServerDraft:
    return ServerDraft(
        name=name,
        transport=transports.STREAMABLE_HTTP,
        url=f"https://{name}.example.org/mcp",
        **values,
    )


def a_server(tenant: Tenant, name: str = "orders", **values: Any) -> McpServer:
    return add_server(
        workspace_id=tenant.workspace.pk, draft=draft(name, **values), actor=tenant.actor()
    )


def own_server(tenant: Tenant, role: str = "member", **values: Any) -> McpServer:
    tenant.allow_personal_servers()
    return add_personal_server(
        workspace=tenant.workspace, draft=draft("mine", **values), actor=tenant.actor(role)
    )


def ahead(bud: Bud, user_id: Any = None) -> ChatSetting:
    """A chat with this bud that has not begun."""
    return ChatSetting(bud=bud, user_id=user_id, overrides=McpConfigOverrides())


def used(bud: Bud, person: Any = None) -> dict[str, ServerSource]:
    """The names of the servers that a new chat of this person uses, and why."""
    user_id = person.pk if person is not None else None
    return {one.label: one.source for one in ahead(bud, user_id).servers() if one.is_usable}


def test_every_server_can_be_added_to_a_chat(tenant: Tenant) -> None:
    """REL-875: whoever looks for one in the chat finds it, however many there are."""
    bud = a_bud(tenant, takes_all_tools=False)
    for number in range(103):
        a_server(tenant, f"orders-{number}")
    answer = tenant.client("member").get(
        f"/api/buds/{bud.pk}/servers/", headers={"X-Workspace": tenant.workspace.slug}
    )
    assert len(answer.json()["addable"]) == 103


def test_a_new_bud_takes_all_tools_and_a_new_server_is_for_all(tenant: Tenant) -> None:
    """REL-372: nobody has to open a second page to use what was added."""
    bud = a_bud(tenant)
    assert used(bud) == {}
    server = a_server(tenant)
    assert used(bud) == {"orders": ServerSource.ALL_TOOLS}
    server.is_active = False
    server.save()
    assert used(bud) == {}


def test_a_bud_that_names_its_tools_gets_no_others(tenant: Tenant) -> None:
    """REL-372: and a bud from before that says nothing keeps what it has."""
    a_server(tenant)
    assert used(a_bud(tenant, takes_all_tools=False)) == {}
    stored = Bud.objects.create(workspace=tenant.workspace, slug="old", name="Old")
    assert used(stored) == {}


def test_a_server_is_given_to_chosen_buds_or_to_none(tenant: Tenant) -> None:
    """REL-372: chosen buds use it whatever else they take; on request it waits until a chat adds it."""
    chosen, other = a_bud(tenant, "chosen", takes_all_tools=False), a_bud(tenant, "other")
    a_server(tenant, is_used_everywhere=False, bud_ids=[chosen.pk])
    chosen.refresh_from_db()
    assert used(chosen) == {"orders": ServerSource.BUD}
    assert used(other) == {}
    a_server(tenant, "waiting", is_used_everywhere=False)
    assert used(other) == {}


def test_ones_own_server_is_used_in_ones_own_chats_alone(tenant: Tenant) -> None:
    """REL-372: in all of them, whatever the bud takes, and in nobody else's; the workspace's rule stands above it."""
    bud = a_bud(tenant, takes_all_tools=False)
    own_server(tenant)
    assert used(bud, tenant.member) == {"mine": ServerSource.PERSONAL}
    assert used(bud, tenant.admin) == used(bud) == {}
    conversation = Conversation(workspace=tenant.workspace, bud=bud, owner=tenant.member)
    conversation.mcp_config_overrides = {"disabled_servers": [str(McpServer.unscoped.get().pk)]}
    servers = ChatSetting.of(conversation).servers()
    assert [(one.is_usable, one.code) for one in servers] == [(False, "off_here")]
    tenant.workspace.allows_personal_servers = False
    tenant.workspace.save()
    assert ahead(bud, tenant.member.pk).servers() == ()


def test_ones_own_server_can_be_kept_for_single_chats(tenant: Tenant) -> None:
    """REL-372: "Use in all my chats" is a switch of each server."""
    bud = a_bud(tenant)
    own_server(tenant, is_used_everywhere=False)
    assert used(bud, tenant.member) == {}


def test_buds_and_servers_of_other_workspaces_are_out_of_reach(two_workspaces: TwoTenants) -> None:
    """SEC-322: neither as a bud that gets a server nor as a server that a bud takes."""
    a, b = two_workspaces.a, two_workspaces.b
    theirs = a_bud(b)
    a_server(b, "secrets")
    assert used(a_bud(a)) == {}
    for bud_id in (theirs.pk, uuid4()):
        with pytest.raises(InvalidInput) as refused:
            a_server(a, "spy", is_used_everywhere=False, bud_ids=[bud_id])
        assert "bud_ids" in refused.value.fields
    theirs.refresh_from_db()
    assert theirs.mcp.servers == []
    assert not McpServer.objects.for_workspace(a.workspace).exists()
    with pytest.raises(InvalidInput):
        own_server(a, bud_ids=[a_bud(a, "second").pk])


def test_the_form_asks_where_it_is_used(tenant: Tenant) -> None:
    """REL-372: with the buds by name, if there are any, and a clear word if none is chosen."""
    client = tenant.client("admin")
    home = f"/w/{tenant.workspace.slug}/servers/"
    assert "In the buds chosen below" not in client.get(f"{home}add/").content.decode()
    bud = a_bud(tenant, takes_all_tools=False)
    page = client.get(f"{home}add/").content.decode()
    assert "In the buds chosen below" in page
    assert "In every bud that takes all tools" in page
    assert "Use in all my chats" not in page
    form = {
        "name": "orders",
        "url": "https://orders.example.org/mcp",
        "auth_type": "none",
        "protocol": "auto",
        "use": "chosen_buds",
    }
    answer = client.post(f"{home}add/", form)
    assert answer.status_code == 422
    assert "Choose a bud." in answer.content.decode()
    answer = client.post(f"{home}add/", {**form, "bud_ids": [str(bud.pk)]})
    assert answer.status_code == 302
    bud.refresh_from_db()
    server = McpServer.objects.for_workspace(tenant.workspace).get()
    assert bud.mcp.servers == [server.pk]
    assert not server.is_used_everywhere
    settings = client.get(f"{home}{server.pk}/settings/").content.decode()
    assert "Use in every bud that takes all tools" in settings


def test_the_catalogue_asks_too(tenant: Tenant) -> None:
    """REL-372: page and REST say the same, and what is wrong is said before anything is made."""
    bud = a_bud(tenant)
    client = tenant.client("admin")
    page = client.get(
        reverse("mcp_servers:catalogue", args=[tenant.workspace.slug])
    ).content.decode()
    assert "Only in chats where somebody adds it" in page
    headers = {"X-Workspace": tenant.workspace.slug}
    entries = client.get("/api/catalogue/", headers=headers).json()
    entry = next(
        one for one in entries if not (one["problem"] or one["needs_secret"] or one["is_program"])
    )
    asked = {"source": entry["source"], "slug": entry["slug"], "for_workspace": True}
    answer = client.post(
        "/api/catalogue/install/",
        {**asked, "is_used_everywhere": False, "bud_ids": [str(uuid4())]},
        content_type="application/json",
        headers=headers,
    )
    assert answer.status_code == 422
    assert not McpServer.objects.for_workspace(tenant.workspace).exists()
    answer = client.post(
        "/api/catalogue/install/",
        {**asked, "is_used_everywhere": False, "bud_ids": [str(bud.pk)]},
        content_type="application/json",
        headers=headers,
    )
    assert answer.status_code == 201, answer.content
    server = McpServer.objects.for_workspace(tenant.workspace).get()
    bud.refresh_from_db()
    assert bud.mcp.servers == [server.pk]
    assert not server.is_used_everywhere
    assert CANARY not in str(answer.json())


def test_a_pasted_list_says_where_its_servers_are_used(two_workspaces: TwoTenants) -> None:
    """REL-1222, SEC-596: asked with the preview; buds of others are refused, and nothing is half added."""
    tenant, other = two_workspaces.a, two_workspaces.b
    bud, theirs = a_bud(tenant, takes_all_tools=False), a_bud(other)
    client = tenant.client("admin")
    page = reverse("mcp_servers:import", args=[tenant.workspace.slug])
    listed = '{"mcpServers": {"weather": {"url": "https://w.example/mcp"}, "sea": {"url": "https://s.example/mcp"}}}'
    asked = {"servers": listed, "intent": "apply", "use": "chosen_buds"}
    rows = McpServer.objects.for_workspace(tenant.workspace)
    shown = client.post(page, {"servers": listed, "intent": "preview"})
    assert (shown.status_code, "In the buds chosen below" in shown.content.decode()) == (200, True)
    for faulty in ({}, {"bud_ids": [str(theirs.pk)]}):
        refused = client.post(page, {**asked, **faulty})
        assert refused.status_code == 422
        assert listed.split('"')[3] in refused.content.decode()
        assert not rows.exists()
    assert client.post(page, {**asked, "bud_ids": [str(bud.pk)]}).status_code == 302
    bud.refresh_from_db()
    assert set(bud.mcp.servers) == set(rows.values_list("pk", flat=True))
    assert not any(row.is_used_everywhere or row.is_active for row in rows)


def test_a_list_says_over_rest_where_its_servers_are_used(two_workspaces: TwoTenants) -> None:
    """REL-1222, SEC-596: the same as on the page."""
    tenant, other = two_workspaces.a, two_workspaces.b
    theirs = a_bud(other)
    client = tenant.client("admin", headers={"X-Workspace": tenant.workspace.slug})
    body = {
        "servers": '{"mcpServers": {"weather": {"url": "https://w.example/mcp"}}}',
        "is_used_everywhere": False,
    }

    def send(values: dict[str, Any]) -> Any:
        return client.post("/api/server-lists/", values, content_type="application/json")

    refused = send({**body, "bud_ids": [str(theirs.pk)]})
    assert (refused.status_code, McpServer.objects.for_workspace(tenant.workspace).count()) == (
        422,
        0,
    )
    assert send(body).status_code == 201
    assert not McpServer.objects.for_workspace(tenant.workspace).get().is_used_everywhere


def test_servers_that_are_not_used_for_one_reason_are_told_in_one_sentence(tenant: Tenant) -> None:
    """REL-2034: in a notice of an answer."""
    for name in ("maps", "weather"):
        known = GlobalServer.objects.create(
            name=name, transport="streamable_http", definition_hash="0" * 64, is_present=False
        )
        McpServer.objects.create(
            workspace=tenant.workspace,
            name=name,
            scope=ServerScope.GLOBAL,
            global_server=known,
            is_used_everywhere=True,
        )
    (notice,) = resolve_toolset(a_bud(tenant, takes_all_tools=True), None).notices
    assert notice.startswith("Not used: maps, weather. For each: The platform's file")
