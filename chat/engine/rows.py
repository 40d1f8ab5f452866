"""The rows of a running turn, as the engine reads and moves them: under the lease, along the permitted moves."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from typing import Any
from uuid import UUID

from django.conf import settings
from django.utils.translation import gettext as _

from chat.engine.leases import Lease, LeaseLost
from chat.engine.states import ACTIVE_TURNS, check_call_move, check_turn_move
from chat.live.recording import Changes, changing_with
from chat.models import ToolCall, Turn
from chat.values import ToolCallStatus, TurnStatus
from mcp_servers.models import InputRequest, InputStatus
from workspaces.database import database_now
from workspaces.database.prepared import PreparedRows
from workspaces.errors import NotFound


@contextmanager
def held_turn(lease: Lease) -> Iterator[tuple[Changes, Turn]]:
    """The turn, its conversation locked, as long as the lease holds.

    Raises:
        LeaseLost: another process has it, it has been let go, or it has ended.
    """
    lock = partial(_HELD.first, lease.workspace_id, lease.turn_id)
    with changing_with(lease.conversation_id, lock, lambda row: row.conversation) as (
        changes,
        turn,
    ):
        _check_held(turn, lease)
        yield changes, turn


@contextmanager
def held_with_call(lease: Lease, call_id: UUID) -> Iterator[tuple[Changes, Turn, ToolCall]]:
    """The same with one of its calls, with what its picture on the wire needs.

    Raises:
        LeaseLost: as above.
        NotFound: the call is gone.
    """
    lock = partial(_HELD_CALL.first, lease.workspace_id, lease.turn_id, call_id)
    with changing_with(lease.conversation_id, lock, lambda row: row.turn.conversation) as (
        changes,
        call,
    ):
        _check_held(call.turn, lease)
        yield changes, call.turn, call


def _check_held(turn: Turn, lease: Lease) -> None:
    is_held = turn.lease_token == lease.token and turn.lease_until is not None
    if not is_held or TurnStatus(turn.status) not in ACTIVE_TURNS:
        raise LeaseLost


def _held(workspace_id: UUID, turn_id: UUID) -> Any:
    rows = Turn.objects.for_workspace(workspace_id).filter(pk=turn_id).order_by()
    # Everybody locks the conversation first. Rows that refer to these may be added meanwhile.
    rows = rows.select_for_update(of=("conversation", "self"), no_key=True)
    return rows.select_related("conversation__bud", "conversation__chosen_model__provider")


def _held_call(workspace_id: UUID, turn_id: UUID, call_id: UUID) -> Any:
    rows = ToolCall.objects.for_workspace(workspace_id).filter(pk=call_id, turn_id=turn_id)
    rows = rows.select_for_update(of=("turn__conversation", "turn", "self"), no_key=True)
    rows = rows.select_related("turn__conversation__chosen_model__provider")
    return rows.select_related("turn__conversation__bud", "decided_by").order_by()


_HELD = PreparedRows[Turn](_held, UUID, UUID)
_HELD_CALL = PreparedRows[ToolCall](_held_call, UUID, UUID, UUID)


def calls_of(turn: Turn, *statuses: ToolCallStatus) -> Any:
    """The turn's calls in these states; in all, where none is named."""
    rows = ToolCall.objects.for_workspace(turn.workspace_id).filter(turn=turn)
    return rows.filter(status__in=[status.value for status in statuses]) if statuses else rows


def fetch_call(workspace_id: UUID, call_id: UUID) -> ToolCall:
    """One call, with what its picture on the wire needs.

    Raises:
        NotFound: it is gone.
    """
    call = _CALL.first(workspace_id, call_id)
    if call is None:
        raise NotFound(_("Tool call not found."))
    return call


def _call(workspace_id: UUID, call_id: UUID) -> Any:
    rows = ToolCall.objects.for_workspace(workspace_id).filter(pk=call_id)
    return rows.select_related("decided_by").order_by()


_CALL = PreparedRows[ToolCall](_call, UUID, UUID)


def move_turn(turn: Turn, status: TurnStatus) -> None:
    check_turn_move(TurnStatus(turn.status), status)
    turn.status = status.value


def move_call(call: ToolCall, status: ToolCallStatus) -> None:
    check_call_move(ToolCallStatus(call.status), status)
    call.status = status.value


def go_on(turn: Turn, changes: Changes) -> None:
    """Have a turn that is held show that it runs, once none of its open calls waits for a person."""
    if turn.status != TurnStatus.WAITING_FOR_INPUT:
        return
    if not calls_of(turn, ToolCallStatus.WAITING_FOR_INPUT).filter(checkpoint=None).exists():
        move_turn(turn, TurnStatus.RUNNING)
        turn.save(update_fields=["status", "updated_at"])
        changes.turn(turn)


def let_go(turn: Turn) -> None:
    """Nobody holds the turn any more."""
    turn.lease_owner = ""
    turn.lease_until = None


def end_call(call: ToolCall, status: ToolCallStatus, message: str) -> None:
    """End a call without a result, inside the caller's transaction."""
    move_call(call, status)
    call.error = message
    call.model_text = f"Error: {message}"
    call.checkpoint = None
    call.finished_at = database_now()
    call.save()


def leave_unknown(call: ToolCall, message: str) -> None:
    """Nobody knows how a call ended: it waits for a person's word, inside the caller's transaction."""
    await_word(call)
    end_call(call, ToolCallStatus.OUTCOME_UNKNOWN, message)


def await_word(call: ToolCall) -> None:
    """Until when a person may say what becomes of a call whose outcome is unknown; the caller saves."""
    seconds = settings.TRELLIS.approval_ttl_seconds
    call.resolution_due_at = database_now() + timedelta(seconds=seconds)


def pending_inputs(workspace_id: UUID, call_ids: Iterable[UUID]) -> Any:
    """What servers still wait to be told during these calls."""
    rows = InputRequest.objects.for_workspace(workspace_id)
    return rows.filter(call_id__in=list(call_ids), status=InputStatus.PENDING.value)
