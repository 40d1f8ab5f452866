"""A person's "always": remembered for one tool as it is defined now, listed, and taken back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING
from uuid import UUID

from django.db import transaction
from django.db.models import F, Q
from django.utils.translation import gettext as _

from audit.actions import Action
from audit.services import EntryDraft, Ref, record
from mcp_servers.models import McpTool, ToolPermission
from mcp_servers.registry.consent import call_rules, policy
from mcp_servers.registry.consent.call_policy import action_of, facts_of_call
from workspaces.actors import Actor
from workspaces.errors import Conflict, PermissionDenied
from workspaces.holding import hold
from workspaces.roles import Permission, require

if TYPE_CHECKING:
    from mcp_servers.client.values import ToolFacts
    from workspaces.scoping import WorkspaceQuerySet


@transaction.atomic
def remember_permission(
    *,
    tool: McpTool,
    actor: Actor,
    arguments: Mapping[str, object] | None = None,
    conversation_id: UUID | None = None,
) -> ToolPermission:
    """Let a tool run for this person without asking: in one conversation, or in all of theirs.

    Args:
        arguments: of the call that was shown. Of a tool that runs actions by name, only the one named there is meant.

    Raises:
        PermissionDenied: the workspace does not remember, or the actor is no member.
        Conflict: an administrator or a risk wants this tool to ask each time.
    """
    require(actor, Permission.USE_CHAT, workspace_id=tool.workspace_id)
    given = arguments or {}
    if actor.user_id is None:
        raise PermissionDenied(_("Only a person can allow this."))
    if not tool.workspace.remembers_permissions:
        raise PermissionDenied(
            _("This workspace asks before each call, so nothing can be allowed in advance.")
        )
    facts = facts_of_call(tool, given)
    ruled = call_rules.decide(
        call_rules.enabled_rules(tool.workspace_id),
        call_rules.matched_call(tool, given, call_rules.role_of(actor)),
    )
    if not policy.may_remember(policy.apply_rule(policy.decide(facts), facts, ruled)):
        raise Conflict(_("This tool can't be allowed for good. Trellis asks each time."))
    action = action_of(tool, given)
    permission, _created = ToolPermission.objects.for_workspace(tool.workspace_id).update_or_create(
        user_id=actor.user_id,
        tool=tool,
        conversation_id=conversation_id,
        action=action.key if action is not None else "",
        defaults={"definition_hash": tool.definition_hash, "asks_always": False},
        create_defaults={
            "workspace_id": tool.workspace_id,
            "definition_hash": tool.definition_hash,
            "action_label": action.label[:300] if action is not None else "",
        },
    )
    record(_draft(permission, tool, Action.PERMISSION_REMEMBERED, actor))
    return permission


@transaction.atomic
def ask_always(*, tool: McpTool, actor: Actor) -> ToolPermission:
    """Have a tool ask this person each time, in all their chats, whatever the workspace lets run.

    Raises:
        PermissionDenied: the actor is no member.
    """
    require(actor, Permission.USE_CHAT, workspace_id=tool.workspace_id)
    if actor.user_id is None:
        raise PermissionDenied(_("Only a person can ask for this."))
    permission, _created = ToolPermission.objects.for_workspace(tool.workspace_id).update_or_create(
        user_id=actor.user_id,
        tool=tool,
        conversation_id=None,
        action="",
        defaults={"definition_hash": tool.definition_hash, "asks_always": True},
        create_defaults={
            "workspace_id": tool.workspace_id,
            "definition_hash": tool.definition_hash,
            "asks_always": True,
        },
    )
    record(_draft(permission, tool, Action.PERMISSION_REMEMBERED, actor))
    return permission


def asking_always(workspace_id: UUID, user_id: UUID) -> WorkspaceQuerySet[ToolPermission]:
    """The tools that this person wants to be asked about each time, as they are defined now or were."""
    rows = ToolPermission.objects.for_workspace(workspace_id)
    return rows.filter(user_id=user_id, asks_always=True)


@transaction.atomic
def forget_permission(*, permission: ToolPermission, actor: Actor) -> None:
    """Take it back; the next call asks again.

    Raises:
        PermissionDenied: it is somebody else's.
        NotFound: it is taken back already.
    """
    require(actor, Permission.USE_CHAT, workspace_id=permission.workspace_id)
    if actor.user_id != permission.user_id:
        raise PermissionDenied(_("This permission belongs to someone else."))
    hold(permission, fields=["asks_always"])
    record(_draft(permission, permission.tool, Action.PERMISSION_FORGOTTEN, actor))
    permission.delete()


@transaction.atomic
def revoke_permission(*, permission: ToolPermission, actor: Actor) -> None:
    """Take back what a member has allowed, as who manages members; the next call asks that member again.

    Raises:
        PermissionDenied: the actor does not manage members.
        Conflict: the member wants to be asked each time, which nobody takes back for them.
        NotFound: it is taken back already.
    """
    require(actor, Permission.MANAGE_MEMBERS, workspace_id=permission.workspace_id)
    hold(permission, fields=["asks_always"])
    if permission.asks_always:
        raise Conflict(_("This member wants to be asked. Only they can change that."))
    draft = _draft(permission, permission.tool, Action.PERMISSION_FORGOTTEN, actor)
    record(replace(draft, details={**(draft.details or {}), "given_by": permission.user.email}))
    permission.delete()


def given_by_members(workspace_id: UUID) -> WorkspaceQuerySet[ToolPermission]:
    """All that members have allowed, with what tells of it."""
    rows = ToolPermission.objects.for_workspace(workspace_id).filter(asks_always=False)
    return rows.select_related("tool__server", "workspace", "user")


def forget_permissions_of(workspace_id: UUID, user_id: UUID, actor: Actor) -> None:
    """Take back all that a person allowed in a workspace that they leave."""
    _forget(ToolPermission.objects.for_workspace(workspace_id).filter(user_id=user_id), actor)


def forget_permissions_in(workspace_id: UUID, conversation_id: UUID, actor: Actor) -> None:
    """Take back all that was allowed in a conversation that is erased, by whoever."""
    rows = ToolPermission.objects.for_workspace(workspace_id)
    _forget(rows.filter(conversation_id=conversation_id), actor)


@transaction.atomic
def _forget(rows: WorkspaceQuerySet[ToolPermission], actor: Actor) -> None:
    held = rows.select_for_update(of=("self",), no_key=True).order_by("pk")
    for permission in held.select_related("tool__server"):
        record(_draft(permission, permission.tool, Action.PERMISSION_FORGOTTEN, actor))
        permission.delete()


def valid_permissions(workspace_id: UUID) -> WorkspaceQuerySet[ToolPermission]:
    """Those that still stand: their tool is defined as it was, and the workspace remembers."""
    return ToolPermission.objects.for_workspace(workspace_id).filter(
        workspace__remembers_permissions=True,
        definition_hash=F("tool__definition_hash"),
        asks_always=False,
    )


def is_remembered(
    *,
    tool: McpTool,
    facts: ToolFacts,
    user_id: UUID | None,
    conversation_id: UUID | None,
    arguments: Mapping[str, object],
) -> bool:
    """Whether this person has let this tool run without asking, here or everywhere."""
    if user_id is None or not policy.may_remember(policy.decide(facts)):
        return False
    here = Q(conversation_id__isnull=True)
    if conversation_id is not None:
        here |= Q(conversation_id=conversation_id)
    action = action_of(tool, arguments) if facts.is_indirect else None
    return (
        valid_permissions(tool.workspace_id)
        .filter(here, tool=tool, user_id=user_id, definition_hash=tool.definition_hash)
        .filter(action=action.key if action is not None else "")
        .exists()
    )


def _draft(permission: ToolPermission, tool: McpTool, action: Action, actor: Actor) -> EntryDraft:
    return EntryDraft(
        action=action,
        actor=actor,
        workspace_id=permission.workspace_id,
        conversation_id=permission.conversation_id,
        server=Ref(id=tool.server_id, name=tool.server.name),
        tool=Ref(id=tool.pk, name=tool.name),
        definition_hash=permission.definition_hash,
        details={
            "where": "one conversation" if permission.conversation_id else "everywhere",
            **({"asks": "always"} if permission.asks_always else {}),
            **({"effective_action": permission.action_label} if permission.action else {}),
        },
    )
