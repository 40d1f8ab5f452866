"""A person's yes to one call, and how it is used up.

An approval names everything it is about; if any of it changes afterwards, it no longer fits. It is consumed in the
transaction that writes *requested*, so a call is either both recorded and paid for, or neither.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final
from uuid import UUID

from django.db import IntegrityError, transaction
from django.db.models.functions import Now
from django.utils.translation import gettext as _

from audit.actions import Action, RefusedBy
from audit.services import EntryDraft, Ref, record
from mcp_servers.client.canonical import JsonValue, arguments_hash, canonical_json
from mcp_servers.models import Approval, McpTool
from mcp_servers.oauth.grants import person_of, principal_of
from mcp_servers.registry.consent.call_policy import details_of
from workspaces.database import database_now
from workspaces.errors import Conflict, InvalidInput, PermissionDenied
from workspaces.models import Membership, User
from workspaces.roles import Permission, Role, has_permission, require

if TYPE_CHECKING:
    from workspaces.actors import Actor

KEPT_DAYS: Final = 30


@transaction.atomic
def grant_approval(
    *,
    call_id: UUID,
    tool: McpTool,
    arguments: Mapping[str, JsonValue],
    requester: Actor,
    approver: Actor,
    expires_at: datetime,
    rule: str = "",
    is_second_person: bool = False,
    note: str = "",
) -> Approval:
    """Note that a person approved exactly this call, and record *approval.granted*.

    Args:
        requester: for whom the call is made; only they can use the approval.
        approver: who said yes.
        rule: what asked for it.
        is_second_person: that rule asks for somebody else than the requester, who manages servers.

    Raises:
        PermissionDenied: the approver may not.
        Conflict: the call has been decided already.
        AuditUnavailable: it could not be recorded, so nothing was granted.
    """
    if not has_permission(approver, Permission.MANAGE_SERVERS, workspace_id=tool.workspace_id):
        require(approver, Permission.USE_CHAT, workspace_id=tool.workspace_id)
    if approver.user_id is None:
        raise InvalidInput(_("Only a person can approve a call."))
    if is_second_person:
        require_second_person(approver, tool.workspace_id, requester.user_id)
    try:
        with transaction.atomic():
            approval = Approval.objects.create(
                workspace_id=tool.workspace_id,
                call_id=call_id,
                server_id=tool.server_id,
                tool_id=tool.pk,
                definition_hash=tool.definition_hash,
                arguments_hash=arguments_hash(arguments),
                principal=principal_of(tool.server, person_of(requester)),
                requester_id=requester.user_id,
                approver_id=approver.user_id,
                approver_label=approver.label[:254],
                expires_at=expires_at,
            )
    except IntegrityError as error:
        raise Conflict(_("This call has been decided already.")) from error
    record(
        _draft(
            Action.APPROVAL_GRANTED,
            call_id=call_id,
            tool=tool,
            arguments=arguments,
            actor=approver,
            approval={
                "approver": approver.label,
                "requester": requester.label,
                "expires_at": expires_at.isoformat(),
                **({"is_second_person": True} if is_second_person else {}),
                **({"note": note[:1000]} if note else {}),
            },
            rule=rule,
        )
    )
    return approval


@transaction.atomic
def refuse_approval(
    *,
    call_id: UUID,
    tool: McpTool,
    arguments: Mapping[str, JsonValue],
    requester: Actor,
    approver: Actor,
    note: str = "",
    rule: str = "",
) -> None:
    """Record that a person refused this call: *approval.refused*, and the call itself as refused.

    Raises:
        PermissionDenied: the person may not decide.
        AuditUnavailable: it could not be recorded.
    """
    require(approver, Permission.USE_CHAT, workspace_id=tool.workspace_id)
    approval = {"approver": approver.label, "requester": requester.label, "note": note[:1000]}
    record(
        _draft(
            Action.APPROVAL_REFUSED,
            call_id=call_id,
            tool=tool,
            arguments=arguments,
            actor=approver,
            approval=approval,
            rule=rule,
        )
    )
    record(
        _draft(
            Action.TOOL_CALL_REFUSED,
            call_id=call_id,
            tool=tool,
            arguments=arguments,
            actor=requester,
            approval=approval,
            refused_by=RefusedBy.APPROVAL,
            rule="approval.refused",
        )
    )


@transaction.atomic
def expire_approval(
    *,
    call_id: UUID,
    tool: McpTool,
    arguments: Mapping[str, JsonValue],
    requester: Actor,
    rule: str = "",
) -> None:
    """Record that nobody decided in time: *approval.expired*, and the call itself as refused.

    Raises:
        AuditUnavailable: it could not be recorded.
    """
    for action in (Action.APPROVAL_EXPIRED, Action.TOOL_CALL_REFUSED):
        is_refusal = action is Action.TOOL_CALL_REFUSED
        record(
            _draft(
                action,
                call_id=call_id,
                tool=tool,
                arguments=arguments,
                actor=requester,
                refused_by=RefusedBy.APPROVAL if is_refusal else None,
                rule="approval.expired" if is_refusal else rule,
            )
        )


def ask_second_person(
    *,
    call_id: UUID,
    tool: McpTool,
    arguments: Mapping[str, JsonValue],
    requester: Actor,
    rule: str,
) -> None:
    """Record that a call, with its arguments as they were edited, now asks for a second person: *approval.requested*.

    Raises:
        AuditUnavailable: it could not be recorded.
    """
    record(
        _draft(
            Action.APPROVAL_REQUESTED,
            call_id=call_id,
            tool=tool,
            arguments=arguments,
            actor=requester,
            rule=rule,
        )
    )


def require_second_person(approver: Actor, workspace_id: UUID, requester_id: UUID | None) -> None:
    """Make sure that this person may decide in the second place.

    Raises:
        PermissionDenied: they asked themselves, or are no admin or owner.
    """
    require(approver, Permission.MANAGE_SERVERS, workspace_id=workspace_id)
    if approver.user_id is None or approver.user_id == requester_id:
        raise PermissionDenied(_("Somebody else has to allow this call: an admin or owner."))


def is_by_second_person(approval: Approval) -> bool:
    """Whether somebody else than the requester said yes, who is an admin or owner at this moment, too."""
    if approval.approver_id is None or approval.approver_id == approval.requester_id:
        return False
    members = Membership.objects.for_workspace(approval.workspace_id)
    may_decide = members.filter(
        user_id=approval.approver_id,
        user__is_active=True,
        role__in=[Role.OWNER.value, Role.ADMIN.value],
    )
    return (
        may_decide.exists()
        or User.objects.filter(pk=approval.approver_id, is_active=True, is_superuser=True).exists()
    )


def find_fault(
    approval: Approval | None,
    *,
    call_id: UUID,
    tool: McpTool,
    arguments: bytes,
    requester: Actor,
    principal: str,
) -> str | None:
    """Why an approval does not fit a call, as the id of the rule; None if it does. Its expiry is checked on use."""
    if approval is None:
        return "approval.unknown"
    if approval.consumed_at is not None:
        return "approval.used"
    if (
        approval.call_id != call_id
        or approval.tool_id != tool.pk
        or approval.server_id != tool.server_id
    ):
        return "approval.other_call"
    if approval.requester_id != requester.user_id or approval.principal != principal:
        return "approval.other_person"
    if approval.definition_hash != tool.definition_hash:
        return "approval.definition_changed"
    if approval.arguments_hash != hash_of(arguments):
        return "approval.arguments_changed"
    return None


def hash_of(canonical: bytes) -> str:
    """The hash that approvals keep of arguments that are in canonical form already."""
    return hashlib.sha256(canonical).hexdigest()


def consume(approval: Approval) -> bool:
    """Use an approval up, in the caller's transaction; False if it was used, or ran out by the database's clock."""
    used = (
        Approval.objects.for_workspace(approval.workspace_id)
        .filter(pk=approval.pk, consumed_at__isnull=True, expires_at__gt=Now())
        .update(consumed_at=Now())
    )
    return used == 1


def trim_approvals() -> int:
    """Forget approvals that ran out long ago, used or not; gives how many. The log keeps who approved what."""
    old = database_now() - timedelta(days=KEPT_DAYS)
    return Approval.objects.across_workspaces().filter(expires_at__lt=old).delete()[0]


def _draft(
    action: Action,
    *,
    call_id: UUID,
    tool: McpTool,
    arguments: Mapping[str, JsonValue],
    actor: Actor,
    approval: Mapping[str, object] | None = None,
    refused_by: RefusedBy | None = None,
    rule: str = "",
) -> EntryDraft:
    return EntryDraft(
        action=action,
        actor=actor,
        workspace_id=tool.workspace_id,
        call_id=call_id,
        server=Ref(id=tool.server_id, name=tool.server.name),
        transport=tool.server.known_transport,
        tool=Ref(id=tool.pk, name=tool.name),
        definition_hash=tool.definition_hash,
        annotations=tool.typed_annotations.as_json(),
        arguments=canonical_json(arguments),
        approval=approval,
        refused_by=refused_by,
        rule=rule,
        details=details_of(tool, arguments) or None,
    )
