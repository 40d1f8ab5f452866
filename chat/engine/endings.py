"""How turns and calls end, and what becomes of calls whose process is gone."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from uuid import UUID

from django.db import transaction

from audit.actions import Outcome
from audit.services import was_requested
from chat.engine import check_tasks
from chat.engine.beginning import send_next
from chat.engine.call_outcomes import settle_from_log
from chat.engine.reading import (
    TurnFollowUps,
    compared_with,
    find_last_answer,
    turn_follow_ups,
    waits_for_files,
)
from chat.engine.refusals import record_withdrawn
from chat.engine.requests import actor_for_log, builtin_request, checkpoint_of, request_of
from chat.engine.rows import (
    calls_of,
    end_call,
    leave_unknown,
    let_go,
    move_call,
    move_turn,
    pending_inputs,
)
from chat.engine.states import OPEN_CALLS, check_turn_move
from chat.engine.unseen_answers import note_unseen
from chat.engine.waking import wake
from chat.live.recording import Changes
from chat.models import Attachment, Message, ToolCall, Turn
from chat.values import AttachmentStatus, MessageStatus, ToolCallStatus, TurnStatus
from chat.webhooks.events import tell_turn_finished
from mcp_servers.gate import abandon_builtin, abandon_call, is_unsent
from mcp_servers.models import InputRequest
from mcp_servers.registry import elicitation
from workspaces.actors import Actor, Source
from workspaces.database import database_now

UNKNOWN_OUTCOME = (
    "The connection to this call was lost while it ran, so whether it took effect is unknown. "
    "It was not repeated."
)

STOPPED_AFTER_SENDING = (
    "It was stopped after it had been sent, so whether it took effect is unknown. "
    "Do not repeat it unless the user asks for it."
)


def end_turn(
    turn: Turn,
    status: TurnStatus,
    changes: Changes,
    *,
    error_code: str = "",
    error_message: str = "",
    can_retry: bool = False,
    notice: str = "",
    partial: Mapping[UUID, str] | None = None,
) -> None:
    """End a turn with all that hangs on it, and begin the next one if a message waits; in the caller's transaction."""
    check_turn_move(TurnStatus(turn.status), status)
    streaming = Message.objects.for_workspace(turn.workspace_id).filter(
        turn=turn, status=MessageStatus.STREAMING.value
    )
    stopped = MessageStatus.STOPPED if status is TurnStatus.CANCELLED else MessageStatus.FAILED
    for message in streaming:
        message.text = (partial or {}).get(message.pk, message.text)
        message.status = stopped.value
        message.save(update_fields=["text", "status", "updated_at"])
        changes.message(message)
    has_holder = turn.lease_until is not None and turn.lease_until > database_now()
    for call in calls_of(turn, *OPEN_CALLS).select_related("decided_by"):
        _stop_call(call, turn, changes, has_holder=has_holder)
    if not waits_for_files(turn):
        _withdraw_readings(turn, changes)
    turn.error_code = error_code
    turn.error_message = error_message
    turn.can_retry = can_retry
    turn.notice = notice or turn.notice
    close_turn(turn, status, changes)


def close_turn(turn: Turn, status: TurnStatus, changes: Changes) -> TurnFollowUps:
    """The same for a turn of which nothing is open any more: every answer is whole, and every call has ended."""
    move_turn(turn, status)
    turn.finished_at = database_now()
    let_go(turn)
    turn.save()
    note_unseen(turn, changes)
    _leave_to_others(turn, changes)
    changes.turn(turn)
    following = turn_follow_ups(turn)
    if following.has_webhooks and not following.is_check:
        tell_turn_finished(turn)
    if following.is_check:
        transaction.on_commit(partial(check_tasks.go_on, turn.workspace_id))
    if following.has_queue:
        send_next(turn, changes)
    return following


def _leave_to_others(turn: Turn, changes: Changes) -> None:
    """What the end of a compared answer means for those beside it.

    The first that is complete is gone on from if the person writes on without choosing. One that waited for this one
    to read what is attached may begin.
    """
    beside = compared_with(turn)
    is_open = turn.comparison is not None and changes.conversation.comparison == turn.comparison
    is_first = all(one.status != TurnStatus.COMPLETED for one in beside)
    last = find_last_answer(turn.workspace_id, turn.pk) if is_open and is_first else None
    if last is not None and turn.status == TurnStatus.COMPLETED:
        changes.conversation.leaf_id = last.pk
        changes.save_with_number("leaf_id")
    for one in beside:
        if one.status == TurnStatus.QUEUED:
            wake(one)


def _stop_call(call: ToolCall, turn: Turn, changes: Changes, *, has_holder: bool) -> None:
    """End a call with its turn. What was sent may have taken effect, and the model is not to repeat it unasked."""
    withdraw_inputs(call, changes)
    _withdraw_question(call, turn)
    was_under_way = call.status in (ToolCallStatus.RUNNING, ToolCallStatus.WAITING_FOR_INPUT)
    if was_under_way and settle_from_log(call):
        changes.tool_call(call)
        return
    is_lost = call.status == ToolCallStatus.RUNNING and call.checkpoint is None and not has_holder
    may_have_acted = (
        was_under_way
        and not _is_harmless(call)
        and not is_unsent(checkpoint_of(call))
        and was_requested(call.workspace_id, call.pk)
    )
    if is_lost and may_have_acted:
        record_end(call, turn, outcome=Outcome.OUTCOME_UNKNOWN, reason=UNKNOWN_OUTCOME)
    else:
        record_end(call, turn)
    words = STOPPED_AFTER_SENDING if may_have_acted else "Stopped before it ended."
    end_call(call, ToolCallStatus.CANCELLED, words)
    changes.tool_call(call)


def record_end(
    call: ToolCall,
    turn: Turn,
    *,
    outcome: Outcome = Outcome.CANCELLED,
    reason: str = "It was stopped before it ended.",
) -> None:
    """Record the end of a call that nobody runs any more, and call off what its server was told to do.

    Does nothing for a call that was never sent, or whose end the gate has recorded itself.

    Raises:
        AuditUnavailable: it could not be recorded.
    """
    if call.tool_id is None and not call.builtin:
        return
    bud = turn.answering_bud
    actor = actor_for_log(turn)
    if call.tool_id is None:
        abandon_builtin(builtin_request(call, turn, bud, actor), outcome=outcome, reason=reason)
        return
    abandon_call(request_of(call, turn, bud, actor), outcome=outcome, reason=reason)


def _withdraw_question(call: ToolCall, turn: Turn) -> None:
    """A call that was put to people and is not made has an end in the log, too."""
    is_open = call.status in (ToolCallStatus.WAITING_FOR_APPROVAL, ToolCallStatus.QUEUED)
    if call.approval_expires_at is None or not is_open or was_requested(call.workspace_id, call.pk):
        return
    record_withdrawn(call, turn)


def withdraw_inputs(call: ToolCall, changes: Changes) -> None:
    """Nobody need answer what the server asked during this call."""
    if call.status not in (ToolCallStatus.WAITING_FOR_INPUT, ToolCallStatus.RUNNING):
        return
    _withdraw(call.pk, call.workspace_id, changes)


def _withdraw_readings(turn: Turn, changes: Changes) -> None:
    """The same for what was asked while an attachment was read."""
    attached = Attachment.objects.for_workspace(turn.workspace_id).filter(
        message_id=turn.user_message_id, status=AttachmentStatus.QUEUED.value
    )
    for attachment_id in attached.values_list("pk", flat=True):
        _withdraw(attachment_id, turn.workspace_id, changes)


def _withdraw(call_id: UUID, workspace_id: UUID, changes: Changes) -> None:
    actor = Actor.system(label="turns", source=Source.TASK, workspace_id=workspace_id)
    elicitation.withdraw_inputs(call_id=call_id, workspace_id=workspace_id, actor=actor)
    # All of them: those that the gate took back itself have not been told yet.
    for row in InputRequest.objects.for_workspace(workspace_id).filter(call_id=call_id):
        changes.input_request(row)


def settle_calls(turn: Turn, changes: Changes, *, is_parted: bool) -> None:
    """What becomes of the calls that a process has left behind.

    Args:
        is_parted: the process let go in good order, so whatever still waits with a checkpoint was parked.
    """
    left = (ToolCallStatus.RUNNING, ToolCallStatus.WAITING_FOR_INPUT)
    for call in calls_of(turn, *left).select_related("decided_by"):
        if not (is_parted and _is_parked(call)):
            _settle(call, turn, changes)


def _is_parked(call: ToolCall) -> bool:
    has_stopped = call.status == ToolCallStatus.WAITING_FOR_INPUT and call.checkpoint is not None
    return has_stopped and pending_inputs(call.workspace_id, [call.pk]).exists()


def _is_harmless(call: ToolCall) -> bool:
    """By the word of a server that is trusted: making it twice does what making it once does."""
    hints = call.annotations
    return bool(hints.get("is_trusted") and (hints.get("read_only") or hints.get("idempotent")))


def _settle(call: ToolCall, turn: Turn, changes: Changes) -> None:
    """Take the end from the log; else go on from where the server was left; else repeat only what is harmless to repeat,
    or was never sent.
    """
    # An approval is used up by the first attempt, and never covers a second one.
    can_repeat = (_is_harmless(call) and call.approval_id is None) or not was_requested(
        call.workspace_id, call.pk
    )
    if settle_from_log(call, only_whole=can_repeat):
        withdraw_inputs(call, changes)
    elif call.checkpoint is not None or can_repeat:
        if call.checkpoint is None:
            withdraw_inputs(call, changes)
        move_call(call, ToolCallStatus.QUEUED)
        call.save(update_fields=["status", "updated_at"])
    else:
        withdraw_inputs(call, changes)
        record_end(call, turn, outcome=Outcome.OUTCOME_UNKNOWN, reason=UNKNOWN_OUTCOME)
        leave_unknown(call, UNKNOWN_OUTCOME)
    changes.tool_call(call)
