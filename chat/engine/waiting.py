"""Waiting for people: for their decision about a call, or for what a server asked them while it worked.

A call waits in one of two ways. Parked: the server's question ended the request (revision 2026-07-28), the gate's
checkpoint is in the row, and nobody holds the turn. In place: the request is still open (older revisions), and the
turn keeps its lease.
"""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

from django.conf import settings

from chat.engine.endings import end_turn
from chat.engine.leases import Lease
from chat.engine.rows import (
    calls_of,
    go_on,
    held_turn,
    held_with_call,
    let_go,
    move_call,
    move_turn,
    pending_inputs,
)
from chat.live.recording import Changes
from chat.models import ToolCall
from chat.values import ToolCallStatus, TurnStatus
from chat.webhooks.events import tell_approval_wanted
from mcp_servers.client.decisions import PolicyDecision
from mcp_servers.models import InputRequest
from workspaces.database import database_now
from workspaces.delivery.announcements import REQUEST_CHANGED, Announcement, announce
from workspaces.process.failpoints import Failpoint, failpoint


def ask_for_approval(lease: Lease, call_id: UUID, decision: PolicyDecision) -> None:
    """Put a call before a person; it waits, with a deadline."""
    with held_with_call(lease, call_id) as (changes, turn, call):
        move_call(call, ToolCallStatus.WAITING_FOR_APPROVAL)
        seconds = settings.TRELLIS.approval_ttl_seconds
        call.started_at = None
        put_question(call, decision)
        call.approval_expires_at = database_now() + timedelta(seconds=seconds)
        call.save()
        changes.tool_call(call)
        tell_approval_wanted(call, turn)
        if call.needs_second_person:
            tell_second_persons(call)
        failpoint(Failpoint.ASK_BEFORE_COMMIT)
    failpoint(Failpoint.ASK_AFTER_COMMIT)


def put_question(call: ToolCall, decision: PolicyDecision) -> None:
    """Write down what is asked of a person, and by which rule."""
    call.approval_rule = decision.rule
    call.approval_reason = decision.reason
    call.approval_rule_name = decision.rule_name
    call.needs_second_person = decision.needs_second_person


def tell_second_persons(call: ToolCall) -> None:
    """Have the pages of those who may decide look again at what waits for them."""
    announce(call.workspace_id, Announcement(kind=REQUEST_CHANGED, id=str(call.pk)))


def keep_checkpoint(lease: Lease, call_id: UUID, checkpoint: str) -> None:
    """Store where a call goes on, whoever goes on with it."""
    with held_with_call(lease, call_id) as (_, _, call):
        call.checkpoint = checkpoint
        call.save(update_fields=["checkpoint", "updated_at"])


def park_call(lease: Lease, call_id: UUID, *, work_ms: int) -> None:
    """The server asked, and its request is over: the call waits for the answers."""
    with held_with_call(lease, call_id) as (changes, turn, call):
        _tell_inputs(lease.workspace_id, call_id, changes)
        move_call(call, ToolCallStatus.WAITING_FOR_INPUT)
        call.save(update_fields=["status", "updated_at"])
        changes.tool_call(call)
        turn.work_ms += work_ms
        turn.save(update_fields=["work_ms", "updated_at"])


def wait_in_place(lease: Lease, call_id: UUID) -> None:
    """The server asked, and its request stays open meanwhile; the turn shows that it waits."""
    with held_with_call(lease, call_id) as (changes, turn, call):
        _tell_inputs(lease.workspace_id, call_id, changes)
        if call.status == ToolCallStatus.RUNNING:
            move_call(call, ToolCallStatus.WAITING_FOR_INPUT)
            call.save(update_fields=["status", "updated_at"])
            changes.tool_call(call)
        if turn.status == TurnStatus.RUNNING:
            move_turn(turn, TurnStatus.WAITING_FOR_INPUT)
            turn.save(update_fields=["status", "updated_at"])
            changes.turn(turn)


def go_on_in_place(lease: Lease, call_id: UUID) -> None:
    """Nothing that the server asked during this open call is open any more. It may have ended meanwhile, with its connection."""
    with held_with_call(lease, call_id) as (changes, turn, call):
        _tell_inputs(lease.workspace_id, call_id, changes)
        if call.status == ToolCallStatus.WAITING_FOR_INPUT:
            move_call(call, ToolCallStatus.RUNNING)
            call.save(update_fields=["status", "updated_at"])
            changes.tool_call(call)
        go_on(turn, changes)


def decided_calls(lease: Lease) -> tuple[UUID, ...]:
    """Calls of the turn that may begin; of a held turn, those that somebody has just decided about."""
    rows = ToolCall.objects.for_workspace(lease.workspace_id).filter(
        turn_id=lease.turn_id, status=ToolCallStatus.QUEUED.value
    )
    return tuple(rows.values_list("pk", flat=True))


def wait_for_reading(lease: Lease, attachment_id: UUID, is_waiting: bool) -> None:
    """A server asked, or has its answer, while an attachment is read."""
    with held_turn(lease) as (changes, turn):
        _tell_inputs(lease.workspace_id, attachment_id, changes)
        status = TurnStatus.WAITING_FOR_INPUT if is_waiting else TurnStatus.RUNNING
        if turn.status != status:
            move_turn(turn, status)
            turn.save(update_fields=["status", "updated_at"])
            changes.turn(turn)


def park(lease: Lease) -> bool:
    """Let go of a turn that waits for people; False if there is something to do after all."""
    with held_turn(lease) as (changes, turn):
        for call in calls_of(turn, ToolCallStatus.WAITING_FOR_INPUT).select_related("decided_by"):
            release_answered(call, changes)
        if calls_of(turn, ToolCallStatus.QUEUED).exists():
            return False
        waits_for_approval = calls_of(turn, ToolCallStatus.WAITING_FOR_APPROVAL).exists()
        waits_for_input = calls_of(
            turn, ToolCallStatus.WAITING_FOR_INPUT, ToolCallStatus.OUTCOME_UNKNOWN
        ).exists()
        if not waits_for_approval and not waits_for_input:
            return False
        if turn.stop_requested_at is not None:
            end_turn(turn, TurnStatus.CANCELLED, changes, can_retry=True)
            return True
        if waits_for_approval:
            move_turn(turn, TurnStatus.WAITING_FOR_APPROVAL)
        else:
            move_turn(turn, TurnStatus.WAITING_FOR_INPUT)
        let_go(turn)
        turn.save()
        changes.turn(turn)
        failpoint(Failpoint.PARK_BEFORE_COMMIT)
    failpoint(Failpoint.PARK_AFTER_COMMIT)
    return True


def release_answered(call: ToolCall, changes: Changes) -> bool:
    """Queue a parked call again once nothing it asked is open; whether that was so."""
    is_parked = call.status == ToolCallStatus.WAITING_FOR_INPUT and call.checkpoint is not None
    if not is_parked or pending_inputs(call.workspace_id, [call.pk]).exists():
        return False
    move_call(call, ToolCallStatus.QUEUED)
    call.save(update_fields=["status", "updated_at"])
    changes.tool_call(call)
    return True


def _tell_inputs(workspace_id: UUID, call_id: UUID, changes: Changes) -> None:
    for row in InputRequest.objects.for_workspace(workspace_id).filter(call_id=call_id):
        changes.input_request(row)
