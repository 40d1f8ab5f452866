"""Servers of the platform and of a provider in a workspace's file: what is decided about them."""

from __future__ import annotations

from typing import Any

import pytest
from django.utils import timezone

from audit.models import AuditEntry
from config.workspace_files import WorkspaceTarget, apply_file, workspace_document
from mcp_servers.client.values import Effect
from mcp_servers.models import (
    ActionRule,
    ApprovalOverride,
    GlobalServer,
    McpPrompt,
    McpResource,
    McpServer,
    McpTool,
)
from mcp_servers.registry import services
from mcp_servers.registry.scopes.platform import switch_on
from mcp_servers.registry.services.actions import set_action_rule
from tests.factories import Tenant, TwoTenants
from tests.mcp_servers.factories import http_server, stored_tool
from workspaces.errors import InvalidInput

pytestmark = pytest.mark.django_db
URI = "note://all"


def place_of(tenant: Tenant) -> WorkspaceTarget:
    return WorkspaceTarget(tenant.workspace, tenant.actor("owner"))


def offered(name: str = "weather", **fields: Any) -> GlobalServer:
    """A server of the platform's file."""
    return GlobalServer.objects.create(
        name=name, transport="streamable_http", definition_hash="0" * 64, **fields
    )


def hosted(tenant: Tenant, name: str = "Gmail") -> McpServer:
    return McpServer.objects.create(
        workspace=tenant.workspace, name=name, hosted_by="klavis", transport="streamable_http"
    )


def with_offers(server: McpServer) -> McpServer:
    """It has told a tool, a resource and a prompt."""
    stored_tool(server, "send")
    known: dict[str, Any] = {
        "workspace_id": server.workspace_id,
        "server": server,
        "last_seen_at": timezone.now(),
    }
    McpResource.objects.create(uri=URI, **known)
    McpPrompt.objects.create(name="tidy", **known)
    return server


def on(tenant: Tenant, known: GlobalServer) -> McpServer:
    return with_offers(
        switch_on(workspace_id=tenant.workspace.pk, global_server=known, actor=tenant.actor())
    )


def decided(server: McpServer) -> tuple[str, bool, bool]:
    """The approval of its tool, and whether its resource and its prompt are on."""
    rows = [
        model.objects.for_workspace(server.workspace_id).get(server=server)
        for model in (McpTool, McpResource, McpPrompt)
    ]
    return rows[0].approval_override, rows[1].is_enabled, rows[2].is_enabled


WEATHER = {
    "name": "weather",
    "tools": {"send": {"approval": "deny"}},
    "resources_off": [URI],
    "prompts_off": ["tidy"],
}


def test_what_is_decided_about_given_servers_goes_into_the_file_and_back(
    two_workspaces: TwoTenants,
) -> None:
    """REL-1236: approvals, switches and rules on actions; applied twice, nothing changes."""
    ours, other = two_workspaces.a, two_workspaces.b
    known = offered()
    on(ours, known)
    gmail = with_offers(hosted(ours))
    set_action_rule(
        server=gmail,
        service="gmail",
        category="",
        action="send_email",
        effect=Effect.DENY,
        actor=ours.actor(),
    )
    apply_file(place_of(ours), {"given_servers": [WEATHER]})
    rule = {"action": "send_email", "service": "gmail", "effect": "deny"}
    document = workspace_document(place_of(ours))
    assert document["given_servers"] == [{"name": "Gmail", "actions": [rule]}, WEATHER]
    assert apply_file(place_of(ours), document).diff == ""

    there, theirs = on(other, known), with_offers(hosted(other))
    apply_file(place_of(other), {"given_servers": document["given_servers"]})
    assert decided(there) == (ApprovalOverride.DENY, False, False)
    [stored] = ActionRule.objects.for_workspace(other.workspace)
    assert (stored.server, stored.action, stored.effect) == (theirs, "send_email", "deny")
    assert workspace_document(place_of(other))["given_servers"] == document["given_servers"]
    entries = AuditEntry.objects.for_workspace(other.workspace).count()
    apply_file(place_of(other), {"given_servers": document["given_servers"]})
    assert AuditEntry.objects.for_workspace(other.workspace).count() == entries


def test_servers_of_the_platform_are_switched_on_and_off_and_none_is_added(
    tenant: Tenant,
) -> None:
    """REL-1236: one that is not here is told of; what the file leaves out goes back to its usual settings."""
    known, place = offered(), place_of(tenant)
    notes = apply_file(place, {"given_servers": [WEATHER, {"name": "Gmail"}]}).notes
    assert any("has not told its tools yet" in note for note in notes)
    assert any("“Gmail” is not here." in note for note in notes)
    row = with_offers(McpServer.objects.for_workspace(place.pk).get(global_server=known))
    apply_file(place_of(tenant), {"given_servers": [WEATHER]})
    assert decided(row) == (ApprovalOverride.DENY, False, False)
    apply_file(place_of(tenant), {"given_servers": [{"name": "weather"}]})
    assert decided(row) == (ApprovalOverride.INHERIT, True, True)
    apply_file(place_of(tenant), {"given_servers": [{"name": "weather", "is_on": False}]})
    assert not McpServer.objects.for_workspace(place.pk).exists()


def test_rules_on_actions_are_those_of_the_file(tenant: Tenant) -> None:
    """REL-1236: another spelling of an action is the same one; a rule that the file leaves out goes."""
    server = hosted(tenant)
    place = place_of(tenant)

    def apply(*actions: dict[str, str]) -> dict[str, str]:
        apply_file(place, {"given_servers": [{"name": "Gmail", "actions": list(actions)}]})
        rules = ActionRule.objects.for_workspace(place.pk).filter(server=server)
        return {one.action: one.effect for one in rules}

    send = {"action": "send_email", "effect": "deny"}
    assert apply(send, {"action": "read", "effect": "auto"}) == {
        "send_email": "deny",
        "read": "auto",
    }
    assert apply({"action": "Send-Email", "effect": "confirm"}) == {"send_email": "confirm"}
    assert apply() == {}


def test_what_a_file_cannot_do_to_a_providers_server_is_told(tenant: Tenant) -> None:
    """REL-1236: it is neither switched off, nor has it two rules for one action; nothing of the file is applied."""
    server = hosted(tenant)
    rules = ActionRule.objects.for_workspace(tenant.workspace).filter(server=server)
    twice = [{"action": "send", "effect": "deny"}, {"action": "Send", "effect": "confirm"}]
    for fields in ({"is_on": False}, {"actions": twice}):
        with pytest.raises(InvalidInput) as refused:
            apply_file(place_of(tenant), {"given_servers": [{"name": "Gmail", **fields}]})
        assert all(name.startswith("given_servers.Gmail") for name in refused.value.fields)
    assert not rules.exists()


def test_a_required_server_stays_and_stands_in_the_file_only_with_decisions(
    tenant: Tenant,
) -> None:
    """REL-1236: the platform's word is above the file."""
    on(tenant, offered(is_required=True))
    place = place_of(tenant)
    assert "given_servers" not in workspace_document(place)
    with pytest.raises(InvalidInput) as refused:
        apply_file(place, {"given_servers": [{"name": "weather", "is_on": False}]})
    assert list(refused.value.fields) == ["given_servers.weather"]
    apply_file(place, {"given_servers": [WEATHER]})
    assert workspace_document(place)["given_servers"] == [WEATHER]


@pytest.mark.parametrize(
    ("faulty", "field"),
    [
        ({"tools": {"none": {}}}, "given_servers.weather.tools.none"),
        ({"resources_off": ["note://none"]}, "given_servers.weather.resources_off"),
        ({"prompts_off": ["none"]}, "given_servers.weather.prompts_off"),
        (
            {"actions": [{"action": "send", "effect": "deny"}]},
            "given_servers.weather.actions",
        ),
    ],
)
def test_what_a_given_server_does_not_have_is_told_at_its_field(
    tenant: Tenant, faulty: dict[str, Any], field: str
) -> None:
    """REL-1236: and nothing is half applied."""
    row = on(tenant, offered())
    wanted = {**WEATHER, **faulty}
    with pytest.raises(InvalidInput) as refused:
        apply_file(place_of(tenant), {"given_servers": [wanted]})
    assert list(refused.value.fields) == [field]
    assert decided(row) == (ApprovalOverride.INHERIT, True, True)


def test_the_workspaces_own_servers_have_their_switches_in_the_file_too(tenant: Tenant) -> None:
    """REL-1236: resources and prompts that are off; a file names no given server among its own."""
    server = with_offers(http_server(tenant, "https://notes.example.org/mcp", name="notes"))
    resource = McpResource.objects.for_workspace(tenant.workspace).get(server=server)
    services.set_offer_enabled(offer=resource, is_enabled=False, actor=tenant.actor())
    document = workspace_document(place_of(tenant))
    assert document["servers"][0]["resources_off"] == [URI]
    assert apply_file(place_of(tenant), document).diff == ""
    del document["servers"][0]["resources_off"]
    apply_file(place_of(tenant), document)
    resource.refresh_from_db()
    assert resource.is_enabled
