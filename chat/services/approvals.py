"""A person decides about a tool call. A decision is final, and made once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from uuid import UUID

from django.utils.translation import gettext as _

from chat.artifacts.transfers import arguments_for_gate, arguments_for_log
from chat.engine.requests import actor_of
from chat.engine.rows import end_call
from chat.engine.waiting import put_question, tell_second_persons
from chat.live.recording import changing
from chat.models import ToolCall, Turn
from chat.services.turns import queue_again
from chat.values import Decision, Remember, ToolCallStatus
from mcp_servers.client.decisions import Effect, PolicyDecision
from mcp_servers.client.schemas import check_arguments
from mcp_servers.models import McpTool
from mcp_servers.registry.consent import call_rules
from mcp_servers.registry.consent.approvals import (
    ask_second_person,
    expire_approval,
    grant_approval,
    refuse_approval,
    require_second_person,
)
from mcp_servers.registry.consent.permissions import remember_permission
from workspaces.actors import Actor, Source
from workspaces.database import database_now
from workspaces.errors import Conflict, InvalidInput, PermissionDenied
from workspaces.jobs.sweeping import sweep
from workspaces.models import Workspace
from workspaces.process.failpoints import Failpoint, failpoint
from workspaces.roles import Permission, require
from workspaces.scoping import WorkspaceQuerySet

LONGEST_NOTE = 2_000
_MOST_EXPIRED: Final = 500
"""In one round; the next one goes on."""


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

    Of a call that waits for a second person, whoever asked can only take it back. Where the call, with the arguments
    that are approved, asks for a second person, it goes on waiting, for them.

    Where its tool is gone, or one that is approved has changed, the gate refuses the call.

    Raises:
        Conflict: it does not wait any more, its tool has to ask each time, or a rule blocks it.
        PermissionDenied: not the person who asked, it is a second person's to allow, or the workspace does not remember.
        InvalidInput, InvalidArguments: the edited arguments do not fit.
    """
    require(actor, Permission.USE_CHAT, workspace_id=call.workspace_id)
    _check_note(note)
    with changing(_conversation_of(call), call.workspace_id) as changes:
        rows = ToolCall.objects.for_workspace(call.workspace_id)
        call = _fetch_waiting(call)
        turn = call.turn
        if actor.user_id != turn.asked_by_id:
            raise PermissionDenied(_("Only the person who asked can decide about this call."))
        is_approval = decision is Decision.APPROVED
        if is_approval and call.needs_second_person:
            raise PermissionDenied(
                _("Somebody else has to allow this call: an admin or owner. You can take it back.")
            )
        if is_approval and _goes_to_second_person(call, arguments, actor):
            changes.tool_call(call)
            tell_second_persons(call)
            return call
        _note_decision(call, decision, note, actor)
        if is_approval:
            tool = _approve(call, arguments, requester=actor, approver=actor)
            if tool is not None and remember is not Remember.NOT:
                _remember(call, tool, remember, actor, turn.conversation_id)
        else:
            _refuse(call, requester=actor, approver=actor)
        call = rows.select_related("turn", "decided_by").fetch(call.pk)
        changes.tool_call(call)
        queue_again(turn, changes)
        failpoint(Failpoint.DECIDE_BEFORE_COMMIT)
    if call.needs_second_person:
        tell_second_persons(call)
    failpoint(Failpoint.DECIDE_AFTER_COMMIT)
    return call


def calls_to_decide(workspace: Workspace | UUID, person_id: UUID) -> WorkspaceQuerySet[ToolCall]:
    """The calls that wait for a second person, of others than this one. Whether they may decide, the caller asks."""
    rows: WorkspaceQuerySet[ToolCall] = ToolCall.objects.for_workspace(workspace)
    return rows.filter(
        status=ToolCallStatus.WAITING_FOR_APPROVAL.value,
        needs_second_person=True,
        turn__conversation__deleted_at=None,
    ).exclude(turn__asked_by_id=person_id)


def decide_as_second_person(
    *, call: ToolCall, decision: Decision, actor: Actor, note: str = ""
) -> ToolCall:
    """Allow or refuse a call of somebody else that a rule has wait for a second person; as it is, and once.

    Raises:
        PermissionDenied: the actor asked for it themselves, or is no admin or owner.
        Conflict: it does not wait any more.
    """
    _check_note(note)
    with changing(_conversation_of(call), call.workspace_id) as changes:
        call = _fetch_waiting(call)
        turn = call.turn
        require_second_person(actor, call.workspace_id, turn.asked_by_id)
        if not call.needs_second_person:
            raise PermissionDenied(_("Only the person who asked can decide about this call."))
        requester = actor_of(turn)
        _note_decision(call, decision, note, actor)
        if decision is Decision.APPROVED:
            _approve(call, None, requester=requester, approver=actor)
        else:
            _refuse(call, requester=requester, approver=actor)
        rows = ToolCall.objects.for_workspace(call.workspace_id)
        call = rows.select_related("turn", "decided_by").fetch(call.pk)
        changes.tool_call(call)
        queue_again(turn, changes)
        failpoint(Failpoint.DECIDE_BEFORE_COMMIT)
    tell_second_persons(call)
    failpoint(Failpoint.DECIDE_AFTER_COMMIT)
    return call


def _check_note(note: str) -> None:
    if len(note) > LONGEST_NOTE:
        raise InvalidInput(
            fields={"note": [_("At most %(most)s characters.") % {"most": LONGEST_NOTE}]}
        )


def _fetch_waiting(call: ToolCall) -> ToolCall:
    rows = ToolCall.objects.for_workspace(call.workspace_id)
    found: ToolCall = rows.select_related("turn", "decided_by").fetch(call.pk)
    if found.status != ToolCallStatus.WAITING_FOR_APPROVAL:
        raise Conflict(_("This has been decided already."))
    if found.approval_expires_at is not None and found.approval_expires_at <= database_now():
        raise Conflict(_("The time to decide is over."))
    return found


def _note_decision(call: ToolCall, decision: Decision, note: str, actor: Actor) -> None:
    call.decided_by_id = actor.user_id
    call.decided_at = database_now()
    call.decision = decision.value
    call.decision_note = note.strip()


def _goes_to_second_person(
    call: ToolCall, arguments: Mapping[str, Any] | None, actor: Actor
) -> bool:
    """Have the call wait for a second person if a rule wants that for what would be sent; the edited arguments stay.

    Raises:
        Conflict: a rule blocks the call with these arguments.
    """
    tool = _tool_of(call)
    if tool is None or (call.builtin and arguments is not None):
        return False  # refused where it is approved, or called
    given = arguments_for_gate(call) if arguments is None else arguments
    ruled = call_rules.decide(
        call_rules.enabled_rules(call.workspace_id),
        call_rules.matched_call(tool, given, call_rules.role_of(actor)),
    )
    if ruled is None:
        return False
    if ruled.effect is Effect.DENY:
        raise Conflict(ruled.reason)
    if not ruled.needs_second_person:
        return False
    if arguments is not None:
        check_arguments(tool.input_schema, arguments)
        call.arguments = dict(arguments)
    question = PolicyDecision(
        effect=ruled.effect,
        rule=ruled.rule,
        reason=ruled.reason,
        needs_second_person=True,
        rule_name=ruled.rule_name,
    )
    put_question(call, question)
    call.save()
    ask_second_person(
        call_id=call.pk,
        tool=tool,
        arguments=arguments_for_log(call),
        requester=actor,
        rule=ruled.rule,
    )
    return True


def expire_approvals() -> int:
    """End every wait whose time has run out: the call is refused, and the model told why."""
    overdue = ToolCall.objects.across_workspaces().filter(
        status=ToolCallStatus.WAITING_FOR_APPROVAL.value, approval_expires_at__lte=database_now()
    )
    rows = overdue.select_related("turn").order_by("approval_expires_at")
    return sweep(rows, _expire, label="expire_approvals", most=_MOST_EXPIRED)


def _expire(overdue: ToolCall) -> bool:
    call_id, workspace_id = overdue.pk, overdue.workspace_id
    with changing(overdue.turn.conversation_id, workspace_id) as changes:
        rows = ToolCall.objects.for_workspace(workspace_id).select_related("turn", "decided_by")
        call = rows.fetch(call_id)
        tool = _tool_of(call)
        if call.status != ToolCallStatus.WAITING_FOR_APPROVAL or tool is None:
            return False  # where its tool is gone, release_calls ends it
        actor = Actor.system(
            label="approvals",
            source=Source.TASK,
            workspace_id=workspace_id,
            on_behalf_of=call.turn.asked_by.email,
        )
        expire_approval(
            call_id=call.pk,
            tool=tool,
            arguments=arguments_for_log(call),
            requester=actor,
            rule=call.approval_rule,
        )
        end_call(call, ToolCallStatus.REFUSED, "Nobody approved this call in time. It was not run.")
        changes.tool_call(call)
        queue_again(call.turn, changes)
        if call.needs_second_person:
            tell_second_persons(call)
    return True


def _approve(
    call: ToolCall, arguments: Mapping[str, Any] | None, *, requester: Actor, approver: Actor
) -> McpTool | None:
    """Let the call go on. What was granted is for the tool that is given; None: it is not there as it was shown.

    Then nothing is granted. The gate refuses the call and says why, and the answer goes on.
    """
    tool = _tool_of(call)
    if tool is None or tool.definition_hash != call.definition_hash:
        _hand_to_gate(call)
        return None
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
        requester=requester,
        approver=approver,
        expires_at=call.approval_expires_at,
        rule=call.approval_rule,
        is_second_person=call.needs_second_person,
        note=call.decision_note,
    )
    call.approval_id = approval.pk
    _hand_to_gate(call)
    return tool


def _remember(
    call: ToolCall, tool: McpTool, remember: Remember, actor: Actor, conversation_id: UUID
) -> None:
    here = conversation_id if remember is Remember.CONVERSATION else None
    remember_permission(
        tool=tool, actor=actor, arguments=arguments_for_gate(call), conversation_id=here
    )


def _refuse(call: ToolCall, *, requester: Actor, approver: Actor) -> None:
    """End the call; where its tool is gone, the gate does that and says why."""
    tool = _tool_of(call)
    if tool is None:
        _hand_to_gate(call)
        return
    refuse_approval(
        call_id=call.pk,
        tool=tool,
        arguments=arguments_for_log(call),
        requester=requester,
        approver=approver,
        note=call.decision_note,
        rule=call.approval_rule,
    )
    is_own = requester.user_id == approver.user_id
    who = "The user refused" if is_own else "A second person refused"
    reason = f" Their reason: {call.decision_note}" if call.decision_note else ""
    end_call(call, ToolCallStatus.REFUSED, f"{who} this call.{reason}")


def _hand_to_gate(call: ToolCall) -> None:
    """Let it go on: the gate makes the call, or refuses it and says why."""
    call.status = ToolCallStatus.QUEUED.value
    call.save()


def _tool_of(call: ToolCall) -> McpTool | None:
    return (
        McpTool.objects.for_workspace(call.workspace_id).select_related("server").find(call.tool_id)
    )


def _conversation_of(call: ToolCall) -> UUID:
    turns = Turn.objects.for_workspace(call.workspace_id)
    return turns.values_list("conversation_id", flat=True).get(pk=call.turn_id)
