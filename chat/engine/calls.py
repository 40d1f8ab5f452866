"""Every write of a tool call that runs: each function is one transaction, under the turn's lease."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextlib import contextmanager
from uuid import UUID

from django.conf import settings
from django.db import transaction

from audit.actions import Outcome
from audit.errors import AuditUnavailable
from chat.engine.beginning import open_answer, show_leaf
from chat.engine.call_outcomes import apply_outcome, texts_of
from chat.engine.endings import record_end
from chat.engine.leases import Lease
from chat.engine.reading import calls_of_step
from chat.engine.rows import end_call, go_on, held_with_call, leave_unknown, move_call
from chat.engine.states import UNSETTLED_CALLS, WAITING_CALLS
from chat.engine.turns import AskModel, Work
from chat.live.recording import Changes
from chat.models import Message, ToolCall, Turn
from chat.values import ToolCallStatus
from mcp_servers.client.values import ToolCallOutcome
from workspaces.database import database_now
from workspaces.process.failpoints import Failpoint, failpoint


@contextmanager
def starting_call(lease: Lease, call_id: UUID) -> Iterator[ToolCall]:
    """Mark a call as running, in one transaction with what else says so."""
    with held_with_call(lease, call_id) as (changes, _, call):
        move_call(call, ToolCallStatus.RUNNING)
        if call.checkpoint is None or call.started_at is None:
            call.started_at = database_now()
        call.save(update_fields=["status", "started_at", "updated_at"])
        changes.tool_call(call)
        yield call
    failpoint(Failpoint.CALL_BEGUN)


def start_call(lease: Lease, call_id: UUID) -> ToolCall:
    """Mark a call as running."""
    with starting_call(lease, call_id) as call:
        return call


@contextmanager
def ending_call(
    lease: Lease, call_id: UUID, outcome: ToolCallOutcome, *, work_ms: int
) -> Iterator[Work | None]:
    """Store how a call ended, before the model hears of it, in one transaction with what else says so.

    Gives what follows if this was the last call of its step to end; then the next answer is opened too.
    """
    texts = texts_of(outcome)
    answer = lease.carried.answer
    with held_with_call(lease, call_id) as (changes, turn, call):
        apply_outcome(call, outcome, texts)
        call.save()
        changes.tool_call(call)
        turn.work_ms += work_ms
        turn.save(update_fields=["work_ms", "updated_at"])
        go_on(turn, changes)
        yield _open_next(changes, turn, call, answer)
        failpoint(Failpoint.CALL_BEFORE_COMMIT)
    lease.carried.ended[call_id] = call
    failpoint(Failpoint.CALL_AFTER_COMMIT)


def finish_call(
    lease: Lease, call_id: UUID, outcome: ToolCallOutcome, *, work_ms: int
) -> Work | None:
    """Commit how a call ended; gives what follows if it was its step's last."""
    with ending_call(lease, call_id, outcome, work_ms=work_ms) as work:
        return work


def _open_next(
    changes: Changes, turn: Turn, ended: ToolCall, answer: Message | None
) -> AskModel | None:
    """Open the next step's answer with the end of a step's last call; None while others are under way, or if there is none.

    Args:
        answer: what asked for the call, if this process has just stored it.
    """
    if turn.stop_requested_at is not None or ToolCallStatus(ended.status) in WAITING_CALLS:
        return None
    # Beside a compared answer others add messages.
    is_alone = turn.comparison is None
    if is_alone and answer is not None and _asks_for_this_alone(answer, ended):
        is_busy, step, last_order_key = False, answer.step + 1, answer.order_key
    else:
        found = calls_of_step(turn, ended.message_id)
        _, asked_in, last_order_key = found[0]
        step = asked_in + 1
        is_busy = any(ToolCallStatus(status) in UNSETTLED_CALLS for status, *_ in found)
    if is_busy or step >= settings.TRELLIS.turn_max_steps:
        return None
    message = open_answer(turn, step, parent_id=ended.message_id, order_key=last_order_key + 1)
    message.save(force_insert=True)
    show_leaf(changes, turn, message)
    changes.message(message, has_attachments=False)
    return AskModel(step, message)


def _asks_for_this_alone(answer: Message, call: ToolCall) -> bool:
    return answer.pk == call.message_id and len(answer.json_meta["tool_calls"]) == 1


def refuse_call(lease: Lease, call_id: UUID, *, message: str, is_fault: bool = False) -> None:
    """Commit that a call was not let through (or, `is_fault`, that it could not be made).

    One that had been sent, and was to go on, has its end in the log too.
    """
    with held_with_call(lease, call_id) as (changes, turn, call):
        record_end(call, turn, reason=message)
        end_call(call, ToolCallStatus.FAILED if is_fault else ToolCallStatus.REFUSED, message)
        changes.tool_call(call)
        go_on(turn, changes)


def lose_call(lease: Lease, call_id: UUID, *, message: str) -> None:
    """Commit that a call was made whose end the log did not take: its outcome counts as unknown."""
    with held_with_call(lease, call_id) as (changes, turn, call):
        # The gate has tried for a while, and said so in the process's log.
        with contextlib.suppress(AuditUnavailable), transaction.atomic():
            record_end(call, turn, outcome=Outcome.OUTCOME_UNKNOWN, reason=message)
        leave_unknown(call, message)
        changes.tool_call(call)
        go_on(turn, changes)
