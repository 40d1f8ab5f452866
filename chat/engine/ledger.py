"""Every write of a running turn: each function is one transaction, under the lease.

What a turn does next is not remembered anywhere but read from the rows (`next_work`), so any
process can go on where another stopped.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import Case, Q, Value, When

from audit.actions import Outcome
from audit.errors import AuditUnavailable
from chat.engine.answers import AnsweredStep, ProposedCall
from chat.engine.beginning import next_order_key, open_answer, show_leaf
from chat.engine.context import LimitReached
from chat.engine.counting import COUNTED, believed_usage, count
from chat.engine.endings import close_turn, end_turn, record_end, settle_calls
from chat.engine.leases import Lease, LeaseClock, LeaseLost, acquire
from chat.engine.reading import (
    calls_of_step,
    fetch_message,
    fetch_turn,
    find_last_answer,
    find_turn,
    unread_attachments,
)
from chat.engine.recorded_ends import apply_outcome, texts_of
from chat.engine.refusals import record_refused
from chat.engine.rows import (
    end_call,
    fetch_call,
    held,
    leave_unknown,
    let_go,
    move_call,
    move_turn,
)
from chat.engine.states import UNSETTLED_CALLS, WAITING_CALLS
from chat.engine.titles import ask_for_title, wants_title
from chat.models import Message, ToolCall, Turn
from chat.providers.known_models import Prices
from chat.recording import Changes, changing
from chat.values import MessageStatus, ToolCallStatus, TurnStatus
from mcp_servers.client.values import ToolCallOutcome
from workspaces.database import database_now
from workspaces.failpoints import Failpoint, failpoint
from workspaces.redaction import redact_known

MOST_TRIES = 5
"""How often one step's request is sent again because a process died with it."""
_MOST_PARTIALS = 50
"""Texts that one statement saves."""
_NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9_-]")


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
class Ended:
    """The turn has ended."""


Work = ReadAttachments | AskModel | CallTools | WaitForPeople | Complete | Ended


def take(turn_id: UUID, workspace_id: UUID) -> tuple[Lease, Work] | None:
    """Take a turn that nobody works on, mark it as running, and settle the calls that a dead
    process left running; gives what to do first. None: there is nothing to take."""
    seen = find_turn(workspace_id, turn_id)
    if seen is None:
        return None
    with changing(seen.conversation_id, workspace_id) as changes:
        turn = fetch_turn(workspace_id, turn_id)
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
    if not last.json_meta.get("tool_calls"):
        return Complete()
    return _work_after(last, ToolCall.objects.for_workspace(turn.workspace_id).filter(message=last))


def _work_after(message: Message, calls: Iterable[ToolCall]) -> Work:
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


def start_step(
    lease: Lease,
    step: int,
    *,
    notices: Sequence[str] = (),
    prompt_tokens: int = 0,
    prices: Prices | None = None,
    untrusted_source: str = "",
) -> Message:
    """The message that the model's answer goes into; one that was cut off begins anew.

    Args:
        notices: what the person should know of what is sent; they take the place of earlier ones.
        prompt_tokens: about how many are sent, and so were by an attempt whose process died.
        untrusted_source: what the model reads from outside, as a clause; empty: nothing.
    """
    with held(lease) as (changes, turn):
        last = find_last_answer(lease.workspace_id, lease.turn_id)
        message = last if last is not None and last.step == step else None
        changed: set[str] = set()
        tries = 0
        if message is None:
            message = open_answer(
                turn,
                step,
                parent_id=last.pk if last is not None else turn.user_message_id,
                order_key=next_order_key(changes),
            )
        elif message.status == MessageStatus.STREAMING and not message.json_meta.get("is_counted"):
            # The process that asked has died without a word of what it cost.
            tries = int(message.json_meta.get("tries", 0)) + 1
            if tries >= MOST_TRIES:
                raise LimitReached("The model was asked several times, and each time in vain.")
            lost = believed_usage(prompt_tokens, message.text + message.reasoning)
            count(changes, turn, message, lost, prices or Prices())
            changed |= {*COUNTED, "cost"}
        message.text = message.reasoning = ""
        message.json_meta = {"tries": tries} if tries else {}
        message.status = MessageStatus.STREAMING.value
        message.save()
        is_new = changes.conversation.leaf_id != message.pk
        show_leaf(changes, message)
        changes.message(message)
        if is_new and last is message:
            # Begun on another path and gone on with: a page cannot tell by the message that the path is this one.
            changes.conversation_row(turn_status=turn.status)
        if changed := changed | _note_source(turn, untrusted_source):
            turn.save(update_fields=[*changed, "updated_at"])
        _tell_notices(changes, turn, notices)
    failpoint(Failpoint.STEP_BEGUN)
    return message


def note_notices(lease: Lease, turn: Turn, notices: Sequence[str]) -> None:
    """What the person should know of what is sent, where the answer was opened before that was known.

    Args:
        turn: as it was just read.
    """
    if turn.notice != " ".join(notices):
        with held(lease) as (changes, row):
            _tell_notices(changes, row, notices)
    failpoint(Failpoint.STEP_BEGUN)


def _tell_notices(changes: Changes, turn: Turn, notices: Sequence[str]) -> None:
    told = " ".join(notices)
    if turn.notice != told:
        turn.notice = told
        turn.save(update_fields=["notice", "updated_at"])
        changes.turn(turn)


def _note_source(turn: Turn, untrusted_source: str) -> set[str]:
    """Words from outside stand before the model: from now on its calls are held against that. Gives what to save."""
    if untrusted_source in ("", turn.untrusted_source):
        return set()
    turn.has_read_untrusted, turn.untrusted_source = True, untrusted_source
    return {"has_read_untrusted", "untrusted_source"}


class Partial(NamedTuple):
    """What a streaming message holds so far."""

    lease: Lease
    message_id: UUID
    text: str
    reasoning: str


def save_partials(partials: Sequence[Partial]) -> set[UUID]:
    """Keep what has been said so far, for tabs that come later and for a crash; gives the messages that were kept.

    One statement, so that a holder that was paused in between writes nothing.
    """
    kept: set[UUID] = set()
    for start in range(0, len(partials), _MOST_PARTIALS):
        some = partials[start : start + _MOST_PARTIALS]
        if _save_partials(some) == len(some):
            kept |= {one.message_id for one in some}
        else:  # of one at least the turn has another holder, or the answer has ended
            kept |= {one.message_id for one in some if _save_partials([one])}
    failpoint(Failpoint.PARTIAL_SAVED)
    return kept


def save_partial(lease: Lease, message_id: UUID, text: str, reasoning: str = "") -> None:
    """Keep what has been said so far of one message.

    Raises:
        LeaseLost: the turn has another holder.
    """
    if not save_partials([Partial(lease, message_id, text, reasoning)]):
        turns = Turn.objects.for_workspace(lease.workspace_id)
        if not turns.filter(pk=lease.turn_id, lease_token=lease.token).exists():
            raise LeaseLost


def _save_partials(some: Sequence[Partial]) -> int:
    ours = Q()
    for one in some:
        ours |= Q(
            pk=one.message_id,
            workspace_id=one.lease.workspace_id,
            turn__pk=one.lease.turn_id,
            turn__lease_token=one.lease.token,
        )
    rows = Message.objects.across_workspaces().filter(ours, status=MessageStatus.STREAMING.value)
    return rows.order_by().update(
        text=Case(*(When(pk=one.message_id, then=Value(one.text)) for one in some)),
        reasoning=Case(*(When(pk=one.message_id, then=Value(one.reasoning)) for one in some)),
    )


def _masked(lease: Lease, answer: AnsweredStep) -> tuple[str, str]:
    """An answer's text and its reasoning as they are kept."""
    masked = partial(redact_known, workspace_id=lease.workspace_id)
    return masked(answer.text), masked(answer.reasoning)


def leave_step(lease: Lease, message_id: UUID, answer: AnsweredStep) -> None:
    """Keep what has been said and what it cost when an answer is cut off; whoever settles the turn decides the rest."""
    kept = _masked(lease, answer)
    with held(lease) as (changes, turn):
        message = fetch_message(lease.workspace_id, message_id)
        if message.status != MessageStatus.STREAMING:
            return
        message.text, message.reasoning = kept
        message.json_meta = {**message.json_meta, "is_counted": True}
        count(changes, turn, message, answer.usage, answer.prices)
        message.save(update_fields=["text", "reasoning", "json_meta", *COUNTED, "updated_at"])
        turn.save(update_fields=[*COUNTED, "cost", "updated_at"])
        changes.conversation_row(turn_status=turn.status)


def finish_step(lease: Lease, message: Message, answer: AnsweredStep) -> Work:
    """Commit an answer of the model with the calls it asks for, before any of them runs; without calls the turn ends with it.

    Args:
        message: as it was opened; nobody else has written it but for the beginning of its text.
    """
    kept = _masked(lease, answer)
    has_no_name = False
    with held(lease) as (changes, turn):
        message.text, message.reasoning = kept
        message.status = MessageStatus.COMPLETE.value
        message.json_meta = _meta_of(answer, lease.workspace_id)
        count(changes, turn, message, answer.usage, answer.prices)
        message.save(
            update_fields=["text", "reasoning", "status", "json_meta", *COUNTED, "updated_at"]
        )
        changes.message(message)
        turn.model = answer.model
        turn.work_ms += answer.work_ms
        turn.notice = " ".join(part for part in (turn.notice, answer.notice) if part)
        changed = _note_source(turn, answer.untrusted_source)
        work: Work = Ended()
        if answer.proposals:
            calls = [
                _call_of(proposal, turn, message, position)
                for position, proposal in enumerate(answer.proposals)
            ]
            ToolCall.objects.bulk_create(calls)
            for call, proposal in zip(calls, answer.proposals, strict=True):
                if proposal.error:
                    record_refused(call, proposal, turn)
                changes.tool_call(call)
            changed |= {"model", "work_ms", "notice", *COUNTED, "cost", "updated_at"}
            turn.save(update_fields=changed)
            changes.turn(turn)
            work = _work_after(message, calls)
        else:
            following = close_turn(turn, TurnStatus.COMPLETED, changes)
            has_no_name = wants_title(changes.conversation, following)
            failpoint(Failpoint.END_BEFORE_COMMIT)
            transaction.on_commit(partial(failpoint, Failpoint.END_AFTER_COMMIT))
        failpoint(Failpoint.STEP_BEFORE_COMMIT)
    failpoint(Failpoint.STEP_AFTER_COMMIT)
    if has_no_name:
        # Behind the events of the end, for which people wait.
        ask_for_title(lease.workspace_id, lease.conversation_id)
    return work


def _meta_of(answer: AnsweredStep, workspace_id: UUID) -> dict[str, Any]:
    """What the model asked for in its own words, and what helps to size the next request."""
    meta: dict[str, Any] = {
        "tool_calls": [
            {
                "id": proposal.provider_call_id,
                "type": "function",
                "function": {
                    "name": _allowed_name(proposal.function_name),
                    "arguments": proposal.arguments_text,
                },
            }
            for proposal in answer.proposals
        ],
        "context": {"used": answer.context_used, "limit": answer.context_limit},
    }
    if answer.blocks:
        meta["blocks"] = redact_known(answer.blocks, workspace_id=workspace_id)
    if answer.usage.prompt:
        meta["measured"] = [answer.estimated_tokens, answer.usage.prompt]
    if any(proposal.is_broken for proposal in answer.proposals):
        meta["has_broken_arguments"] = True
    return meta


def _allowed_name(name: str) -> str:
    """A name that may go back to the model: an invented one must not spoil every later request."""
    return _NOT_IN_A_NAME.sub("_", name)[:64] or "unknown"


def fail_step(lease: Lease, message_id: UUID, answer: AnsweredStep) -> None:
    """Keep the beginning of an answer that broke off, and what it cost."""
    kept = _masked(lease, answer)
    with held(lease) as (changes, turn):
        message = fetch_message(lease.workspace_id, message_id)
        message.text, message.reasoning = kept
        message.status = MessageStatus.FAILED.value
        if answer.too_long:
            message.json_meta = {**message.json_meta, "too_long": answer.too_long}
        count(changes, turn, message, answer.usage, answer.prices)
        message.save(
            update_fields=["text", "reasoning", "status", "json_meta", *COUNTED, "updated_at"]
        )
        changes.message(message)
        turn.model = answer.model or turn.model
        turn.work_ms += answer.work_ms
        turn.save(update_fields=["model", "work_ms", *COUNTED, "cost", "updated_at"])


@contextmanager
def starting_call(lease: Lease, call_id: UUID) -> Iterator[ToolCall]:
    """Mark a call as running, in one transaction with what else says so."""
    with held(lease) as (changes, _):
        call = fetch_call(lease.workspace_id, call_id)
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
    with held(lease) as (changes, turn):
        call = fetch_call(lease.workspace_id, call_id)
        apply_outcome(call, outcome, texts)
        call.save()
        changes.tool_call(call)
        turn.work_ms += work_ms
        turn.save(update_fields=["work_ms", "updated_at"])
        yield _open_next(changes, turn, call)
        failpoint(Failpoint.CALL_BEFORE_COMMIT)
    failpoint(Failpoint.CALL_AFTER_COMMIT)


def finish_call(
    lease: Lease, call_id: UUID, outcome: ToolCallOutcome, *, work_ms: int
) -> Work | None:
    """Commit how a call ended; gives what follows if it was its step's last."""
    with ending_call(lease, call_id, outcome, work_ms=work_ms) as work:
        return work


def _open_next(changes: Changes, turn: Turn, ended: ToolCall) -> AskModel | None:
    """Open the next step's answer with the end of a step's last call; None while others are under way, or if there is none."""
    if turn.stop_requested_at is not None or ToolCallStatus(ended.status) in WAITING_CALLS:
        return None
    found = calls_of_step(turn, ended.message_id)
    _, asked_in, last_order_key = found[0]
    step = asked_in + 1
    is_busy = any(ToolCallStatus(status) in UNSETTLED_CALLS for status, *_ in found)
    if is_busy or step >= settings.TRELLIS.turn_max_steps:
        return None
    message = open_answer(turn, step, parent_id=ended.message_id, order_key=last_order_key + 1)
    message.save(force_insert=True)
    show_leaf(changes, message)
    changes.message(message, has_attachments=False)
    return AskModel(step, message)


def refuse_call(lease: Lease, call_id: UUID, *, message: str, is_fault: bool = False) -> None:
    """Commit that a call was not let through (or, `is_fault`, that it could not be made).

    One that had been sent, and was to go on, has its end in the log too.
    """
    with held(lease) as (changes, turn):
        call = fetch_call(lease.workspace_id, call_id)
        record_end(call, turn, reason=message)
        end_call(call, ToolCallStatus.FAILED if is_fault else ToolCallStatus.REFUSED, message)
        changes.tool_call(call)


def lose_call(lease: Lease, call_id: UUID, *, message: str) -> None:
    """Commit that a call was made whose end the log did not take: its outcome counts as unknown."""
    with held(lease) as (changes, turn):
        call = fetch_call(lease.workspace_id, call_id)
        # The gate has tried for a while, and said so in the process's log.
        with contextlib.suppress(AuditUnavailable), transaction.atomic():
            record_end(call, turn, outcome=Outcome.OUTCOME_UNKNOWN, reason=message)
        leave_unknown(call, message)
        changes.tool_call(call)


def release(lease: Lease) -> None:
    """Give a turn back for another process to take; it is shutting down."""
    with held(lease) as (changes, turn):
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
    with held(lease) as (changes, turn):
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


def _call_of(proposal: ProposedCall, turn: Turn, message: Message, position: int) -> ToolCall:
    tool = proposal.tool
    arguments = dict(proposal.arguments or {})
    call = ToolCall(
        workspace_id=turn.workspace_id,
        turn=turn,
        message=message,
        position=position,
        provider_call_id=proposal.provider_call_id,
        function_name=proposal.function_name,
        arguments=arguments,
        proposed_arguments=arguments,
    )
    if tool is not None:
        call.builtin = tool.builtin
        tool = proposal.target or tool
        call.server_id = tool.server_id
        call.server_name = tool.server_name
        call.tool_id = tool.tool_id
        call.tool_name = tool.tool_name
        call.tool_title = tool.title
        call.definition_hash = tool.definition_hash
        call.annotations = tool.annotations
        call.input_schema = tool.input_schema
    if proposal.error:
        call.status = ToolCallStatus.FAILED.value
        call.error = proposal.error
        call.model_text = f"Error: {proposal.error}"
        call.finished_at = database_now()
    return call
