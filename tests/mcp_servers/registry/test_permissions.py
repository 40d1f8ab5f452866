"""What a person lets a tool do once and for all."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from asgiref.sync import sync_to_async
from django.db import transaction
from uuid_utils.compat import uuid7

from audit.actions import Action
from audit.models import AuditEntry
from mcp_servers.client.errors import ApprovalMissing
from mcp_servers.gate import call_tool
from mcp_servers.models import ApprovalOverride, McpServer, McpTool, ToolPermission
from mcp_servers.registry import services
from mcp_servers.registry.consent.permissions import (
    forget_permission,
    forget_permissions_of,
    remember_permission,
    revoke_permission,
    valid_permissions,
)
from tests.factories import Tenant
from tests.fakes.mcp_server import CountingServer
from tests.locks import beside
from tests.mcp_servers.factories import a_request, actor_of, tool_of
from workspaces.errors import Conflict, NotFound, PermissionDenied


@pytest.fixture
def plain(trusted: McpServer) -> McpTool:
    """A tool that says nothing about itself, so it asks."""
    return tool_of(trusted, "plain")


def remember(
    tenant: Tenant, tool: McpTool, role: str = "member", **where: object
) -> ToolPermission:
    return remember_permission(tool=tool, actor=actor_of(tenant, role), **where)  # type: ignore[arg-type]


async def test_always_spares_the_question_for_that_person_alone(
    tenant: Tenant, plain: McpTool
) -> None:
    """SEC-62: per user."""
    with pytest.raises(ApprovalMissing):
        await call_tool(a_request(tenant, plain, {"text": "x"}))
    await sync_to_async(remember)(tenant, plain)
    assert not (await call_tool(a_request(tenant, plain, {"text": "x"}))).is_error
    with pytest.raises(ApprovalMissing):
        await call_tool(a_request(tenant, plain, {"text": "x"}, actor=actor_of(tenant, "admin")))
    entries = AuditEntry.objects.for_workspace(tenant.workspace)
    finished = await entries.filter(action=Action.TOOL_CALL_FINISHED.value).alast()
    assert finished is not None
    assert finished.rule == "user.always"


async def test_always_in_a_conversation_is_for_that_one(tenant: Tenant, plain: McpTool) -> None:
    """SEC-62: for this conversation."""
    here = uuid7()
    await sync_to_async(remember)(tenant, plain, conversation_id=here)
    assert not (
        await call_tool(a_request(tenant, plain, {"text": "x"}, conversation_id=here))
    ).is_error
    with pytest.raises(ApprovalMissing):
        await call_tool(a_request(tenant, plain, {"text": "x"}, conversation_id=uuid7()))


async def test_a_change_of_the_tool_voids_it(tenant: Tenant, plain: McpTool) -> None:
    """SEC-62: void on change; accepting the new definition does not bring it back."""
    await sync_to_async(remember)(tenant, plain)

    def change() -> McpTool:
        plain.description = "now something else"
        plain.definition_hash = "f" * 64
        plain.save(update_fields=["description", "definition_hash"])
        services.accept_definition(tool=plain, actor=tenant.actor())
        return tool_of(plain.server, "plain")

    changed = await sync_to_async(change)()
    with pytest.raises(ApprovalMissing):
        await call_tool(a_request(tenant, changed, {"text": "x"}))
    assert not await valid_permissions(tenant.workspace.pk).aexists()


@pytest.mark.parametrize("override", [ApprovalOverride.DENY, ApprovalOverride.CONFIRM])
async def test_what_an_administrator_says_wins(
    tenant: Tenant, plain: McpTool, counting: CountingServer, override: ApprovalOverride
) -> None:
    """SEC-62: `deny` wins, and so does "ask first"."""
    await sync_to_async(remember)(tenant, plain)
    await sync_to_async(services.set_approval_override)(
        tool=plain, override=override, actor=actor_of(tenant, "admin")
    )
    with pytest.raises(Exception, match=r"(?i)administrator"):
        await call_tool(a_request(tenant, plain, {"text": "x"}))
    assert counting.names() == []


async def test_after_untrusted_content_it_asks_again(tenant: Tenant, plain: McpTool) -> None:
    """SEC-70: an "always" does not reach into a turn that has read something from outside."""
    await sync_to_async(remember)(tenant, plain)
    with pytest.raises(ApprovalMissing) as caught:
        await call_tool(a_request(tenant, plain, {"text": "x"}, has_read_untrusted=True))
    assert caught.value.decision.rule == "turn.untrusted_content"


def test_it_can_be_taken_back_by_whoever_gave_it(tenant: Tenant, plain: McpTool) -> None:
    """SEC-62: listed, revocable; both are entries."""
    permission = remember(tenant, plain)
    again = remember(tenant, plain)
    assert again.pk == permission.pk
    with pytest.raises(PermissionDenied):
        forget_permission(permission=permission, actor=actor_of(tenant, "admin"))
    forget_permission(permission=permission, actor=actor_of(tenant, "member"))
    assert not ToolPermission.objects.for_workspace(tenant.workspace).exists()
    actions = AuditEntry.objects.for_workspace(tenant.workspace).values_list("action", flat=True)
    assert {"permission.remembered", "permission.forgotten"} <= set(actions)


def test_a_workspace_may_not_remember(tenant: Tenant, plain: McpTool) -> None:
    """SEC-62: where policy does not let people, each call asks."""
    permission = remember(tenant, plain)
    tenant.workspace.remembers_permissions = False
    tenant.workspace.save()
    plain.refresh_from_db()
    with pytest.raises(PermissionDenied):
        remember(tenant, plain)
    assert permission not in valid_permissions(tenant.workspace.pk)


def test_what_must_ask_each_time_cannot_be_remembered(tenant: Tenant, plain: McpTool) -> None:
    """SEC-62: an administrator's "ask first" leaves nothing to remember."""
    services.set_approval_override(
        tool=plain, override=ApprovalOverride.CONFIRM, actor=tenant.actor()
    )
    plain.refresh_from_db()
    with pytest.raises(Conflict):
        remember(tenant, plain)


@pytest.mark.parametrize("takes_back", [forget_permission, revoke_permission])
def test_it_is_taken_back_once(
    tenant: Tenant, plain: McpTool, takes_back: Callable[..., None]
) -> None:
    """REL-1821: whoever comes second is told that it is gone, and the log says it once."""
    read_before = remember(tenant, plain)
    taken = ToolPermission.objects.for_workspace(tenant.workspace).get()
    actor = actor_of(tenant, "member" if takes_back is forget_permission else "admin")
    takes_back(permission=taken, actor=actor)
    with pytest.raises(NotFound):
        takes_back(permission=read_before, actor=actor)
    entries = AuditEntry.objects.for_workspace(tenant.workspace)
    assert entries.filter(action=Action.PERMISSION_FORGOTTEN.value).count() == 1


@pytest.mark.postgresql
def test_it_is_taken_back_once_by_one_who_leaves_at_that_moment(
    tenant: Tenant, plain: McpTool
) -> None:
    """REL-1821: an administrator revokes it, and their member leaves meanwhile."""
    permission = remember(tenant, plain)
    actor = actor_of(tenant, "admin")

    def leave() -> None:
        with transaction.atomic():
            forget_permissions_of(tenant.workspace.pk, tenant.member.pk, actor)

    outcomes = beside(lambda: revoke_permission(permission=permission, actor=actor), leave)
    assert outcomes is None
    entries = AuditEntry.objects.for_workspace(tenant.workspace)
    assert entries.filter(action=Action.PERMISSION_FORGOTTEN.value).count() == 1
