"""A running turn: who takes it, what its rows say comes next, and how it is given back or ended.

Each write is one transaction, under the lease. What a turn does next is not remembered anywhere but read from the
rows (`next_work`), so any process can go on where another stopped.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from uuid import UUID

from chat.engine.endings import end_turn, settle_calls
from chat.engine.leases import Lease, LeaseClock, LeaseLost, acquire
from chat.engine.reading import (
    compared_with,
    fetch_turn,
    find_last_answer,
    find_turn,
    unread_attachments,
    waits_for_files,
)
from chat.engine.rows import held_turn, let_go, move_turn
from chat.engine.states import WAITING_CALLS
from chat.engine.waking import wake
from chat.live.recording import changing
from chat.models import Message, ToolCall, Turn
from chat.values import MessageStatus, ToolCallStatus, TurnStatus
from workspaces.process.failpoints import Failpoint, failpoint


@dataclass(frozen=True, slots=True)
class ReadAttachments:
    """The next thing to do is to read what the person attached."""

    attachment_ids: tuple[UUID, ...]


@dataclass(frozen=True, slots=True)
class AskModel:
    """The next thing to do is to ask the model, for this step."""

    step: int
    opened: Message | None = field(default=None, compare=False, repr=False)
    """The message that the answer goes into, if it has been opened with the write before."""


@dataclass(frozen=True, slots=True)
class CallTools:
    """The next thing to do is to run these calls."""

    call_ids: tuple[UUID, ...]


@dataclass(frozen=True, slots=True)
class WaitForPeople:
    """Nothing can be done until somebody decides or answers."""


@dataclass(frozen=True, slots=True)
class Complete:
    """The model has said all it wants to say."""


@dataclass(frozen=True, slots=True)
class TurnEnded:
    """The turn has ended."""


Work = ReadAttachments | AskModel | CallTools | WaitForPeople | Complete | TurnEnded


def take(turn_id: UUID, workspace_id: UUID) -> tuple[Lease, Work] | None:
    """Take a turn that nobody works on, mark it as running, and settle the calls that a dead
    process left running; gives what to do first. None: there is nothing to take."""
    seen = find_turn(workspace_id, turn_id)
    if seen is None:
        return None
    with changing(seen.conversation_id, workspace_id) as changes:
        turn = fetch_turn(workspace_id, turn_id)
        if turn.stop_requested_at is None and waits_for_files(turn):
            return None
        was_released = turn.lease_until is None
        clock = LeaseClock()
        if not acquire(turn):
            return None
        lease = Lease(turn_id, turn.conversation_id, workspace_id, turn.lease_token, clock)
        if turn.stop_requested_at is not None:
            end_turn(turn, TurnStatus.CANCELLED, changes, can_retry=True)
            return None
        changes.turn(turn)
        failpoint(Failpoint.TAKE_BEFORE_COMMIT)
        if turn.attempt == 1:
            return lease, _first_work(turn)
        settle_calls(turn, changes, is_parted=was_released)
        failpoint(Failpoint.TAKE_AGAIN_BEFORE_COMMIT)
        return lease, _work_of(turn)


def wake_compared(turn: Turn) -> None:
    """What is attached has been read: the answers beside this one's may begin."""
    for one in compared_with(turn):
        wake(one)


def next_work(lease: Lease) -> Work:
    """What the rows say should happen now."""
    turn = find_turn(lease.workspace_id, lease.turn_id)
    if turn is None or turn.lease_token != lease.token:
        raise LeaseLost
    return _work_of(turn)


def _work_of(turn: Turn) -> Work:
    last = find_last_answer(turn.workspace_id, turn.pk)
    if last is None:
        return _first_work(turn)
    if last.status != MessageStatus.COMPLETE:
        return AskModel(last.step)
    if last.json_meta.get("goes_on"):
        return AskModel(last.step + 1)
    if not last.json_meta.get("tool_calls"):
        return Complete()
    return work_after(last, ToolCall.objects.for_workspace(turn.workspace_id).filter(message=last))


def work_after(message: Message, calls: Iterable[ToolCall]) -> Work:
    """What follows an answer that asks for calls."""
    calls = list(calls)
    queued = tuple(call.pk for call in calls if call.status == ToolCallStatus.QUEUED)
    if queued:
        return CallTools(queued)
    is_waiting = any(ToolCallStatus(call.status) in WAITING_CALLS for call in calls)
    return WaitForPeople() if is_waiting else AskModel(message.step + 1)


def _first_work(turn: Turn) -> Work:
    unread = unread_attachments(turn.workspace_id, turn.user_message_id)
    return ReadAttachments(unread) if unread else AskModel(0)


def release(lease: Lease) -> None:
    """Give a turn back for another process to take; it is shutting down."""
    with held_turn(lease) as (changes, turn):
        settle_calls(turn, changes, is_parted=True)
        if turn.status in (TurnStatus.RUNNING, TurnStatus.WAITING_FOR_INPUT):
            move_turn(turn, TurnStatus.QUEUED)
        let_go(turn)
        turn.save()
        changes.turn(turn)
        failpoint(Failpoint.RELEASE_BEFORE_COMMIT)
    failpoint(Failpoint.RELEASE_AFTER_COMMIT)


def finish(
    lease: Lease,
    status: TurnStatus,
    *,
    error_code: str = "",
    error_message: str = "",
    can_retry: bool = False,
    notice: str = "",
    partial: Mapping[UUID, str] | None = None,
) -> None:
    """Bring a turn to its end. `partial` holds the text of messages that still streamed."""
    with held_turn(lease) as (changes, turn):
        end_turn(
            turn,
            status,
            changes,
            error_code=error_code,
            error_message=error_message,
            can_retry=can_retry,
            notice=notice,
            partial=partial or {},
        )
        failpoint(Failpoint.END_BEFORE_COMMIT)
    failpoint(Failpoint.END_AFTER_COMMIT)
