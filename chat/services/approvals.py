"""A person decides about a tool call. A decision is final, and made once."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any
from uuid import UUID

from django.utils.translation import gettext as _

from chat.artifacts.transfers import arguments_for_gate, arguments_for_log
from chat.engine.rows import end_call
from chat.models import ToolCall, Turn
from chat.recording import changing
from chat.services.turns import queue_again
from chat.values import Decision, Remember, ToolCallStatus
from mcp_servers.client.schemas import check_arguments
from mcp_servers.models import McpTool
from mcp_servers.registry.consent.approvals import expire_approval, grant_approval, refuse_approval
from mcp_servers.registry.consent.permissions import remember_permission
from workspaces.actors import Actor, Source
from workspaces.database import database_now
from workspaces.errors import Conflict, DomainError, InvalidInput, PermissionDenied
from workspaces.process.failpoints import Failpoint, failpoint
from workspaces.roles import Permission, require

logger = logging.getLogger(__name__)

LONGEST_NOTE = 2_000


def decide(
    *,
    call: ToolCall,
    decision: Decision,
    actor: Actor,
    arguments: Mapping[str, Any] | None = None,
    note: str = "",
    remember: Remember = Remember.NOT,
) -> ToolCall:
    """Approve a waiting call, with its arguments as they are or as edited; or refuse it.

    Args:
        remember: whether calls of this tool shall need no asking from now on, here or everywhere.

    Raises:
        Conflict: it does not wait any more, its tool is gone, or has to ask each time.
        PermissionDenied: not the person who asked, or the workspace does not remember.
        InvalidInput, InvalidArguments: the edited arguments do not fit.
    """
    require(actor, Permission.USE_CHAT, workspace_id=call.workspace_id)
    if len(note) > LONGEST_NOTE:
        raise InvalidInput(
            fields={"note": [_("At most %(most)s characters.") % {"most": LONGEST_NOTE}]}
        )
    with changing(_conversation_of(call), call.workspace_id) as changes:
        rows = ToolCall.objects.for_workspace(call.workspace_id)
        call = rows.select_related("turn", "decided_by").fetch(call.pk)
        turn = call.turn
        if actor.user_id != turn.asked_by_id:
            raise PermissionDenied(_("Only the person who asked can decide about this call."))
        if call.status != ToolCallStatus.WAITING_FOR_APPROVAL:
            raise Conflict(_("This has been decided already."))
        if call.approval_expires_at is not None and call.approval_expires_at <= database_now():
            raise Conflict(_("The time to decide is over."))
        call.decided_by_id = actor.user_id
        call.decided_at = database_now()
        call.decision = decision.value
        call.decision_note = note.strip()
        if decision is Decision.APPROVED:
            _approve(call, arguments, actor)
            if remember is not Remember.NOT:
                _remember(call, remember, actor, turn.conversation_id)
        else:
            _refuse(call, actor)
        call = rows.select_related("turn", "decided_by").fetch(call.pk)
        changes.tool_call(call)
        queue_again(turn, changes)
        failpoint(Failpoint.DECIDE_BEFORE_COMMIT)
    failpoint(Failpoint.DECIDE_AFTER_COMMIT)
    return call


def expire_approvals() -> int:
    """End every wait whose time has run out: the call is refused, and the model told why."""
    overdue = ToolCall.objects.across_workspaces().filter(
        status=ToolCallStatus.WAITING_FOR_APPROVAL.value, approval_expires_at__lte=database_now()
    )
    ids = list(overdue.values_list("pk", "workspace_id", "turn__conversation_id")[:500])
    for call_id, workspace_id, conversation_id in ids:
        try:
            _expire(call_id, workspace_id, conversation_id)
        except DomainError as error:
            # One that cannot be ended now does not keep the others waiting.
            logger.warning("approval_not_expired", extra={"call": str(call_id), "code": error.code})
    return len(ids)


def _expire(call_id: UUID, workspace_id: UUID, conversation_id: UUID) -> None:
    with changing(conversation_id, workspace_id) as changes:
        rows = ToolCall.objects.for_workspace(workspace_id).select_related("turn", "decided_by")
        call = rows.fetch(call_id)
        if call.status != ToolCallStatus.WAITING_FOR_APPROVAL:
            return
        tool = _tool_of(call)
        if tool is not None:
            actor = Actor.system(
                label="approvals",
                source=Source.TASK,
                workspace_id=workspace_id,
                on_behalf_of=call.turn.asked_by.email,
            )
            expire_approval(
                call_id=call.pk, tool=tool, arguments=arguments_for_log(call), requester=actor
            )
        end_call(call, ToolCallStatus.REFUSED, "Nobody approved this call in time. It was not run.")
        changes.tool_call(call)
        queue_again(call.turn, changes)


def _approve(call: ToolCall, arguments: Mapping[str, Any] | None, actor: Actor) -> None:
    tool = _tool_of(call)
    if tool is None:
        raise Conflict(_("This tool no longer exists."))
    if tool.definition_hash != call.definition_hash:
        raise Conflict(_("This tool has changed since it was shown to you. Please ask again."))
    if arguments is not None:
        if call.builtin:
            raise InvalidInput(
                fields={"arguments": [_("The arguments of this call can't be edited.")]}
            )
        check_arguments(tool.input_schema, arguments)
        call.arguments = dict(arguments)
    assert call.approval_expires_at is not None
    approval = grant_approval(
        call_id=call.pk,
        tool=tool,
        arguments=arguments_for_gate(call),
        requester=actor,
        approver=actor,
        expires_at=call.approval_expires_at,
    )
    call.approval_id = approval.pk
    call.status = ToolCallStatus.QUEUED.value
    call.save()


def _remember(call: ToolCall, remember: Remember, actor: Actor, conversation_id: UUID) -> None:
    tool = _tool_of(call)
    if tool is None:
        raise Conflict(_("This tool no longer exists."))
    here = conversation_id if remember is Remember.CONVERSATION else None
    remember_permission(
        tool=tool, actor=actor, arguments=arguments_for_gate(call), conversation_id=here
    )


def _refuse(call: ToolCall, actor: Actor) -> None:
    reason = f" Their reason: {call.decision_note}" if call.decision_note else ""
    tool = _tool_of(call)
    if tool is not None:
        refuse_approval(
            call_id=call.pk,
            tool=tool,
            arguments=arguments_for_log(call),
            requester=actor,
            approver=actor,
            note=call.decision_note,
        )
    end_call(call, ToolCallStatus.REFUSED, f"The user refused this call.{reason}")


def _tool_of(call: ToolCall) -> McpTool | None:
    return (
        McpTool.objects.for_workspace(call.workspace_id).select_related("server").find(call.tool_id)
    )


def _conversation_of(call: ToolCall) -> UUID:
    turns = Turn.objects.for_workspace(call.workspace_id)
    return turns.values_list("conversation_id", flat=True).get(pk=call.turn_id)
