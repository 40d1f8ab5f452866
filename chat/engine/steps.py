"""Every write of a step: its answer is opened, saved while it streams, and committed with the calls it asks for.

Each function is one transaction, under the turn's lease.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import replace
from functools import cache, partial
from typing import Any, Final, NamedTuple
from uuid import UUID

from django.db import transaction
from django.db.models import Case, Exists, OuterRef, Q, Value, When
from django.utils.translation import gettext_noop as _

from chat.engine.answers import AnsweredStep, ProposedCall
from chat.engine.beginning import next_order_key, open_answer, show_leaf
from chat.engine.context import LimitReached
from chat.engine.counting import CHARGED, COUNTED, charge_turn
from chat.engine.endings import close_turn
from chat.engine.leases import Lease
from chat.engine.reading import fetch_message, find_last_answer
from chat.engine.refusals import record_refused
from chat.engine.rows import held_turn, move_call
from chat.engine.summarising import ask_for_summary
from chat.engine.titles import ask_for_title, wants_title
from chat.engine.turn_cache import TurnContext, UnstoredAnswer
from chat.engine.turns import CallTools, TurnEnded, Work, work_after
from chat.live.recording import Changes
from chat.models import Message, ToolCall, Turn
from chat.providers.estimates import believed_usage
from chat.providers.spending import Bill
from chat.values import MessageStatus, ToolCallStatus, TurnStatus
from workspaces.database import database_now
from workspaces.database.prepared import PreparedUpdate, Update
from workspaces.database.prepared_writes import insert
from workspaces.process.failpoints import Failpoint, failpoint
from workspaces.redaction import redact_known

MOST_TRIES = 5
"""How often one step's request is sent again because a process died with it."""
_PARTIALS_AT_ONCE: Final = (1, 2, 4, 8, 16, 32, 64)
"""How many texts one statement saves."""
_PARTIAL_KINDS: Final = (UUID, UUID, UUID, int, str, str)
"""Message, workspace, turn, the lease's token, text and reasoning."""
_NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9_-]")


def start_step(
    lease: Lease,
    step: int,
    *,
    notices: Sequence[str] = (),
    prompt_tokens: int = 0,
    bill: Bill | None = None,
    untrusted_source: str = "",
) -> Message:
    """The message that the model's answer goes into; one that was cut off begins anew.

    Args:
        notices: what the person should know of what is sent; they take the place of earlier ones.
        prompt_tokens: about how many are sent, and so were by an attempt whose process died.
        bill: who pays for these.
        untrusted_source: what the model reads from outside, as a clause; empty: nothing.
    """
    with held_turn(lease) as (changes, turn):
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
                raise LimitReached(_("The model was asked several times and did not answer."))
            lost = believed_usage(prompt_tokens, message.text + message.reasoning)
            charge_turn(changes, turn, message, lost, bill)
            # What is held stays: it is for the request that follows.
            changed |= {*COUNTED, "cost"}
        message.text = message.reasoning = ""
        message.json_meta = {"tries": tries} if tries else {}
        message.status = MessageStatus.STREAMING.value
        message.save()
        before = changes.conversation.leaf_id
        show_leaf(changes, turn, message)
        changes.message(message)
        if before != changes.conversation.leaf_id and last is message:
            # Begun on another path and gone on with: a page cannot tell by the message that the path is this one.
            changes.conversation_with(turn)
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
        with held_turn(lease) as (changes, row):
            _tell_notices(changes, row, notices)
    failpoint(Failpoint.STEP_BEGUN)


def note_wait(lease: Lease, notices: Sequence[str]) -> None:
    """What the person should know while their request waits for its place, and afterwards."""
    with held_turn(lease) as (changes, row):
        _tell_notices(changes, row, notices)


def _tell_notices(changes: Changes, turn: Turn, notices: Sequence[str]) -> None:
    notice = " ".join(notices)
    if turn.notice != notice:
        turn.notice = notice
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
    for start in range(0, len(partials), _PARTIALS_AT_ONCE[-1]):
        some = partials[start : start + _PARTIALS_AT_ONCE[-1]]
        if _save_partials(some) == len(some):
            kept |= {one.message_id for one in some}
        else:  # of one at least the turn has another holder, or the answer has ended
            kept |= {one.message_id for one in some if _save_partials([one])}
    failpoint(Failpoint.PARTIAL_SAVED)
    return kept


def _save_partials(some: Sequence[Partial]) -> int:
    # The last one is named again until there are as many as one of few statements saves.
    size = next(size for size in _PARTIALS_AT_ONCE if size >= len(some))
    values: list[UUID | str | int] = []
    for one in [*some, *[some[-1]] * (size - len(some))]:
        lease = one.lease
        values += [one.message_id, lease.workspace_id, lease.turn_id, lease.token]
        values += [one.text, one.reasoning]
    return _partials_update(size).run(*values)


@cache
def _partials_update(size: int) -> PreparedUpdate:
    """The statement for so many answers."""
    return PreparedUpdate(_update_of_partials, *_PARTIAL_KINDS * size)


def _update_of_partials(*values: Any) -> Update:
    ours = Q()
    texts, reasonings = [], []
    of_one = len(_PARTIAL_KINDS)
    for start in range(0, len(values), of_one):
        message, workspace, turn, token, text, reasoning = values[start : start + of_one]
        turns = Turn.objects.for_workspace(workspace)
        held = turns.filter(pk=OuterRef("turn_id"), lease_token=token).order_by()
        ours |= Q(Exists(held), pk=message, workspace_id=workspace, turn_id=turn)
        texts.append(When(pk=message, then=Value(text)))
        reasonings.append(When(pk=message, then=Value(reasoning)))
    # No join: Django would look for the rows in a subquery, and PostgreSQL does not look there again once it has waited
    # for the answer's own commit. What was said until then would replace the whole answer.
    rows = Message.objects.across_workspaces().filter(ours, status=MessageStatus.STREAMING.value)
    return Update(rows.order_by(), {"text": Case(*texts), "reasoning": Case(*reasonings)})


def _masked(lease: Lease, answer: AnsweredStep) -> tuple[str, str]:
    """An answer's text and its reasoning as they are kept."""
    masked = partial(redact_known, workspace_id=lease.workspace_id)
    return masked(answer.text), masked(answer.reasoning)


def leave_step(lease: Lease, message_id: UUID, answer: AnsweredStep) -> None:
    """Keep what has been said and what it cost when an answer is cut off; whoever settles the turn decides the rest."""
    kept = _masked(lease, answer)
    with held_turn(lease) as (changes, turn):
        message = fetch_message(lease.workspace_id, message_id)
        if message.status != MessageStatus.STREAMING:
            return
        message.text, message.reasoning = kept
        message.json_meta = {**message.json_meta, "is_counted": True}
        charge_turn(changes, turn, message, answer.usage, answer.bill)
        message.save(update_fields=["text", "reasoning", "json_meta", *COUNTED, "updated_at"])
        turn.model = answer.model
        turn.save(update_fields=["model", *CHARGED, "updated_at"])
        changes.conversation_with(turn)


def finish_step(
    lease: Lease, message: Message, answer: AnsweredStep, *, left: Sequence[ToolCall] = ()
) -> Work:
    """Commit an answer of the model with the calls it asks for, before any of them runs; without calls the turn ends with it.

    Args:
        message: as it was opened; nobody else has written it but for the beginning of its text.
        left: the calls that it asks for, where another commit was to store them; that may have succeeded unseen.
    """
    kept = _masked(lease, answer)
    has_no_name = False
    calls = left or [
        _call_of(proposal, lease, message, position)
        for position, proposal in enumerate(answer.proposals)
    ]
    with held_turn(lease) as (changes, turn):
        if left and fetch_message(turn.workspace_id, message.pk).status != MessageStatus.STREAMING:
            return CallTools(tuple(call.pk for call in left))
        _store_answer(changes, turn, message, answer, kept)
        work: Work = TurnEnded()
        if calls:
            _store_calls(changes, turn, calls)
            for call, proposal in zip(calls, answer.proposals, strict=True):
                if proposal.error:
                    record_refused(call, proposal, turn)
            work = work_after(message, calls)
        else:
            following = close_turn(turn, TurnStatus.COMPLETED, changes)
            has_no_name = wants_title(changes.conversation, following)
            failpoint(Failpoint.END_BEFORE_COMMIT)
            transaction.on_commit(partial(failpoint, Failpoint.END_AFTER_COMMIT))
        failpoint(Failpoint.STEP_BEFORE_COMMIT)
    failpoint(Failpoint.STEP_AFTER_COMMIT)
    _carry_answer(lease, message, calls)
    if not calls and answer.wants_summary:
        ask_for_summary(lease.workspace_id, lease.turn_id)
    if has_no_name:
        # Behind the events of the end, for which people wait.
        ask_for_title(lease.workspace_id, lease.conversation_id)
    return work


def _store_answer(
    changes: Changes, turn: Turn, message: Message, answer: AnsweredStep, kept: tuple[str, str]
) -> None:
    """What the model said; the caller saves the turn."""
    message.text, message.reasoning = kept
    message.status = MessageStatus.COMPLETE.value
    message.json_meta = _meta_of(answer, turn.workspace_id)
    charge_turn(changes, turn, message, answer.usage, answer.bill)
    message.save(update_fields=["text", "reasoning", "status", "json_meta", *COUNTED, "updated_at"])
    changes.message(message)
    turn.model = answer.model
    turn.work_ms += answer.work_ms
    turn.notice = " ".join(part for part in (turn.notice, answer.notice) if part)
    _note_source(turn, answer.untrusted_source)


def _store_calls(changes: Changes, turn: Turn, calls: Sequence[ToolCall]) -> None:
    for call in calls:
        call.owner_id = changes.conversation.owner_id  # the trigger need not look for them
    insert(calls)
    for call in calls:
        changes.tool_call(call)
    turn.save(
        update_fields=[
            *("model", "work_ms", "notice", "has_read_untrusted", "untrusted_source"),
            *(*CHARGED, "updated_at"),
        ]
    )
    changes.turn(turn)


def _carry_answer(lease: Lease, message: Message, calls: Sequence[ToolCall]) -> None:
    lease.carried.answer = message
    lease.carried.ended = {call.pk: call for call in calls if call.error}


def keep_for_call(
    lease: Lease, message: Message, answer: AnsweredStep, context: TurnContext
) -> CallTools | None:
    """Leave an answer that asks for one call of a server's tool to the commit that lets that call through.

    None: it asks for something else, and is to be committed by itself.
    """
    if len(answer.proposals) != 1:
        return None
    [proposal] = answer.proposals
    if proposal.error:
        return None
    call = _call_of(proposal, lease, message, 0)
    if call.tool_id is None or call.builtin:
        return None
    turn = copy(context.turn)
    turn.model = answer.model
    _note_source(turn, answer.untrusted_source)
    context = replace(context, turn=turn)
    lease.carried.unstored = UnstoredAnswer(message, answer, call, context)
    return CallTools((call.pk,))


@contextmanager
def answering_and_calling(lease: Lease, unstored: UnstoredAnswer) -> Iterator[None]:
    """Commit such an answer with its call as running, in one transaction with what else says so."""
    kept = _masked(lease, unstored.answer)
    # Copies: this may be rolled back.
    message, call = copy(unstored.message), copy(unstored.call)
    with held_turn(lease) as (changes, turn):
        _store_answer(changes, turn, message, unstored.answer, kept)
        move_call(call, ToolCallStatus.RUNNING)
        call.started_at = database_now()
        _store_calls(changes, turn, [call])
        yield
        failpoint(Failpoint.STEP_BEFORE_COMMIT)
    lease.carried.unstored = None
    _carry_answer(lease, message, [])
    failpoint(Failpoint.STEP_AFTER_COMMIT)
    failpoint(Failpoint.CALL_BEGUN)


def store_answer(lease: Lease) -> None:
    """Commit such an answer without its call, which has not been let through, or waits; nothing if it is stored."""
    unstored = lease.carried.unstored
    if unstored is None:
        return
    finish_step(lease, copy(unstored.message), unstored.answer, left=[copy(unstored.call)])
    lease.carried.unstored = None


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
    if answer.echoed_fields is not None:
        kept = answer.echoed_fields.as_json(answer.recipient)
        meta["given_back"] = redact_known(kept, workspace_id=workspace_id)
    if answer.usage.prompt:
        meta["measured"] = [answer.estimated_tokens, answer.usage.prompt]
    if answer.noted:
        meta["path"] = dict(answer.noted)
    if answer.is_cut:
        meta["is_cut"] = True
    if any(proposal.is_broken for proposal in answer.proposals):
        meta["has_broken_arguments"] = True
    return meta


def _allowed_name(name: str) -> str:
    """A name that may go back to the model: an invented one must not spoil every later request."""
    return _NOT_IN_A_NAME.sub("_", name)[:64] or "unknown"


def _call_of(proposal: ProposedCall, lease: Lease, message: Message, position: int) -> ToolCall:
    tool = proposal.tool
    arguments = dict(proposal.arguments or {})
    call = ToolCall(
        workspace_id=lease.workspace_id,
        turn_id=lease.turn_id,
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


def fail_step(lease: Lease, message_id: UUID, answer: AnsweredStep) -> None:
    """Keep the beginning of an answer that broke off, and what it cost."""
    kept = _masked(lease, answer)
    with held_turn(lease) as (changes, turn):
        message = fetch_message(lease.workspace_id, message_id)
        message.text, message.reasoning = kept
        message.status = MessageStatus.FAILED.value
        if answer.too_long:
            message.json_meta = {**message.json_meta, "too_long": answer.too_long}
        charge_turn(changes, turn, message, answer.usage, answer.bill)
        message.save(
            update_fields=["text", "reasoning", "status", "json_meta", *COUNTED, "updated_at"]
        )
        changes.message(message)
        turn.model = answer.model or turn.model
        turn.work_ms += answer.work_ms
        turn.save(update_fields=["model", "work_ms", *CHARGED, "updated_at"])
