"""Whether what is stored of conversations can have happened: promises of the turn engine, checked after the fact. Pure.

Run when everything has come to rest, after whatever was killed, paused or cut off. `read_history()` in
`tests.chaos.history_reader` gives the rows; whoever drove the conversations adds what was accepted, and what servers did.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from chat.values import MessageRole, MessageStatus, ToolCallStatus, TurnStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageFacts:
    id: UUID
    conversation_id: UUID
    turn_id: UUID | None
    parent_id: UUID | None
    role: str
    status: str
    step: int
    order_key: int
    client_id: str | None
    calls_asked: int
    """How many calls the model asked for in it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnFacts:
    id: UUID
    conversation_id: UUID
    user_message_id: UUID
    status: str
    is_leased: bool
    """Somebody's lease is in the row, run out or not."""
    is_lease_live: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class CallFacts:
    id: UUID
    turn_id: UUID
    message_id: UUID
    position: int
    status: str
    tool: str
    arguments: Mapping[str, Any]
    is_harmless: bool
    """A trusted server calls it read-only or idempotent, so it may be made again."""
    approval_id: UUID | None
    was_cached: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalFacts:
    id: UUID
    call_id: UUID
    is_used: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """All rows that are looked at."""

    messages: Sequence[MessageFacts]
    turns: Sequence[TurnFacts]
    calls: Sequence[CallFacts]
    approvals: Sequence[ApprovalFacts]
    entries: Sequence[tuple[UUID, str]]
    """(call id, action) of the log, for every call."""
    queued_client_ids: frozenset[tuple[UUID, str]] = frozenset()
    """(conversation, client id) of messages that wait in a queue."""


@dataclass(frozen=True, slots=True)
class Effect:
    """Something that a server did, by its own count."""

    tool: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Violation:
    """A promise that was broken, and by which row."""

    rule: str
    subject: str
    text: str

    def __str__(self) -> str:
        return f"{self.rule}  {self.subject}  {self.text}"


FINAL_TURNS = frozenset(
    {TurnStatus.COMPLETED, TurnStatus.FAILED, TurnStatus.CANCELLED, TurnStatus.INTERRUPTED}
)
WAITING_TURNS = frozenset({TurnStatus.WAITING_FOR_APPROVAL, TurnStatus.WAITING_FOR_INPUT})
OPEN_CALLS = frozenset(
    {
        ToolCallStatus.QUEUED,
        ToolCallStatus.RUNNING,
        ToolCallStatus.WAITING_FOR_APPROVAL,
        ToolCallStatus.WAITING_FOR_INPUT,
        ToolCallStatus.OUTCOME_UNKNOWN,
    }
)
REQUESTED, FINISHED = "tool_call.requested", "tool_call.finished"
REFUSED = "tool_call.refused"


def find_violations(
    history: History,
    *,
    accepted: Iterable[tuple[UUID, str]] = (),
    effects: Sequence[Effect] | None = None,
) -> list[Violation]:
    """Every broken promise, with the id of its row.

    Args:
        accepted: (conversation, client id) of each message that somebody was told is stored.
        effects: what the servers of all these calls did; None: nobody counted.
    """
    found = [
        *_messages(history, accepted),
        *_turns(history),
        *_steps(history),
        *_calls(history),
        *_log(history),
        *_approvals(history),
    ]
    if effects is not None:
        found += _effects(history, effects)
    return found


def _messages(history: History, accepted: Iterable[tuple[UUID, str]]) -> Iterator[Violation]:
    stored = Counter(
        (message.conversation_id, message.client_id)
        for message in history.messages
        if message.client_id is not None
    )
    for key in set(accepted):
        if not stored[key] and key not in history.queued_client_ids:
            yield Violation("message.lost", str(key[0]), f"{key[1]} was accepted and is gone")
    for key, number in stored.items():
        if number > 1:
            yield Violation("message.twice", str(key[0]), f"{key[1]} is stored {number} times")
    places: Counter[tuple[UUID, int]] = Counter(
        (message.conversation_id, message.order_key) for message in history.messages
    )
    by_id = {message.id: message for message in history.messages}
    answered = {turn.user_message_id for turn in history.turns}
    for message in history.messages:
        if message.status == MessageStatus.STREAMING:
            yield Violation("message.streaming", str(message.id), "nobody speaks any more")
        if message.role == MessageRole.USER and message.id not in answered:
            yield Violation("message.unanswered", str(message.id), "it has no turn")
        if places[message.conversation_id, message.order_key] > 1:
            yield Violation("message.place", str(message.id), f"place {message.order_key} is taken")
        parent = by_id.get(message.parent_id) if message.parent_id is not None else None
        if parent is not None and parent.order_key >= message.order_key:
            yield Violation("message.order", str(message.id), "it stands before what it answers")


def _turns(history: History) -> Iterator[Violation]:
    active: Counter[UUID] = Counter()
    complete = {
        message.turn_id
        for message in history.messages
        if message.role == MessageRole.ASSISTANT
        and message.status == MessageStatus.COMPLETE
        and not message.calls_asked
    }
    for turn in history.turns:
        is_final = turn.status in FINAL_TURNS
        active[turn.conversation_id] += not is_final
        if not is_final and turn.status not in WAITING_TURNS:
            yield Violation("turn.stuck", str(turn.id), f"it is still {turn.status}")
        if turn.status == TurnStatus.RUNNING and not turn.is_lease_live:
            yield Violation("turn.unheld", str(turn.id), "it is running, and nobody runs it")
        if is_final and turn.is_leased:
            yield Violation("turn.lease", str(turn.id), f"it is {turn.status} and held")
        if turn.status == TurnStatus.WAITING_FOR_APPROVAL and turn.is_leased:
            yield Violation("turn.lease", str(turn.id), "it waits for approval and is held")
        if (
            turn.status == TurnStatus.WAITING_FOR_INPUT
            and turn.is_leased
            and not turn.is_lease_live
        ):
            yield Violation("turn.lease", str(turn.id), "its holder is gone")
        if turn.status == TurnStatus.COMPLETED and turn.id not in complete:
            yield Violation("turn.unanswered", str(turn.id), "it is completed without an answer")
    for conversation_id, number in active.items():
        if number > 1:
            yield Violation("turn.several", str(conversation_id), f"{number} turns are active")


def _steps(history: History) -> Iterator[Violation]:
    """Steps of a turn and calls of a step have numbers without gap."""
    steps: defaultdict[UUID, list[int]] = defaultdict(list)
    positions: defaultdict[UUID, list[int]] = defaultdict(list)
    for message in history.messages:
        if message.role == MessageRole.ASSISTANT and message.turn_id is not None:
            steps[message.turn_id].append(message.step)
    for call in history.calls:
        positions[call.message_id].append(call.position)
    for turn_id, numbers in steps.items():
        if sorted(numbers) != list(range(len(numbers))):
            yield Violation("steps.gap", str(turn_id), f"its steps are {sorted(numbers)}")
    for message in history.messages:
        numbers = sorted(positions[message.id])
        if message.calls_asked and numbers[: message.calls_asked] != list(
            range(message.calls_asked)
        ):
            text = f"{message.calls_asked} calls were asked for, stored are {numbers}"
            yield Violation("calls.gap", str(message.id), text)


def _calls(history: History) -> Iterator[Violation]:
    status_of = {turn.id: turn.status for turn in history.turns}
    for call in history.calls:
        status = status_of.get(call.turn_id)
        if status in FINAL_TURNS and call.status in OPEN_CALLS:
            text = f"it is {call.status} in a turn that is {status}"
            yield Violation("call.open", str(call.id), text)
        if status in WAITING_TURNS and call.status == ToolCallStatus.QUEUED:
            yield Violation("call.forgotten", str(call.id), "it is ready, and its turn waits")


def _log(history: History) -> Iterator[Violation]:
    """Each *requested* has its *finished*, or its call is open; none has more.

    One that is *refused* as well was committed by a database which broke off before it could say so. Nothing was sent.
    """
    counts: defaultdict[UUID, Counter[str]] = defaultdict(Counter)
    for call_id, action in history.entries:
        counts[call_id][action] += 1
    calls = {call.id: call for call in history.calls}
    for call_id, count in counts.items():
        call = calls.get(call_id)
        requested, finished = count[REQUESTED], count[FINISHED]
        is_open = call is not None and call.status in OPEN_CALLS
        if requested and not finished and not count[REFUSED] and not is_open:
            yield Violation("log.open", str(call_id), "requested, never finished, and not open")
        if finished > requested:
            text = f"finished {finished} times, requested {requested} times"
            yield Violation("log.finished", str(call_id), text)
        if requested > 1 and call is not None and not call.is_harmless:
            yield Violation("log.requested", str(call_id), f"requested {requested} times")
    for call in calls.values():
        if call.status == ToolCallStatus.SUCCEEDED and not counts[call.id][FINISHED]:
            yield Violation(
                "log.missing", str(call.id), "it succeeded, and the log has no end of it"
            )


def _approvals(history: History) -> Iterator[Violation]:
    requested = {call_id for call_id, action in history.entries if action == REQUESTED}
    per_call = Counter(approval.call_id for approval in history.approvals)
    for approval in history.approvals:
        if per_call[approval.call_id] > 1:
            yield Violation("approval.several", str(approval.id), "its call has another one")
        if approval.is_used and approval.call_id not in requested:
            yield Violation("approval.wasted", str(approval.id), "used, and nothing was requested")
        if not approval.is_used and approval.call_id in requested:
            yield Violation("approval.unused", str(approval.id), "requested without using it")


def _effects(history: History, effects: Sequence[Effect]) -> Iterator[Violation]:
    requested = {call_id for call_id, action in history.entries if action == REQUESTED}
    done = Counter(_key(effect.tool, effect.arguments) for effect in effects)
    calls: defaultdict[str, list[CallFacts]] = defaultdict(list)
    for call in history.calls:
        calls[_key(call.tool, call.arguments)].append(call)
    for key, number in done.items():
        mine = [call for call in calls[key] if call.id in requested]
        if not mine:
            yield Violation("effect.unrequested", key, "a server did what the log does not know")
        elif number > len(mine) and not all(call.is_harmless for call in mine):
            text = f"done {number} times for {len(mine)} calls"
            yield Violation("effect.doubled", str(mine[0].id), text)
    for key, mine in calls.items():
        listed = [
            one for one in mine if one.status == ToolCallStatus.SUCCEEDED and not one.was_cached
        ]
        if len(listed) > done[key]:
            text = f"said to have succeeded, and done {done[key]} times"
            yield Violation("effect.missing", str(listed[0].id), text)


def _key(tool: str, arguments: Mapping[str, Any]) -> str:
    return f"{tool} {json.dumps(arguments, sort_keys=True)}"
