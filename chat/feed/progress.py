"""What a follower of a turn has been told, and what comes next: both from the rows alone. Pure.

A turn tells its steps one after the other: the text of the model's answer, then for each call what was asked, what
people were asked about it, and its result. So a position is a step, a place in its text, and what each of its calls
has told; it is the `id` of every event, and whoever comes back with the last one misses nothing and hears nothing
twice.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from django.utils.translation import gettext as _

from chat.feed.feed_state import FeedState, Row
from chat.values import ToolCallStatus, TurnStatus
from workspaces.errors import InvalidInput

_FINAL_TURNS: Final = {
    TurnStatus.COMPLETED.value,
    TurnStatus.FAILED.value,
    TurnStatus.CANCELLED.value,
    TurnStatus.INTERRUPTED.value,
}
_OPEN_CALLS: Final = {
    ToolCallStatus.QUEUED.value,
    ToolCallStatus.RUNNING.value,
    ToolCallStatus.WAITING_FOR_APPROVAL.value,
    ToolCallStatus.WAITING_FOR_INPUT.value,
    ToolCallStatus.OUTCOME_UNKNOWN.value,
}
_CALL, _APPROVAL, _UNKNOWN, _RESULT = 1, 2, 4, 8
_POSITION: Final = re.compile(
    r"^(\d{1,5})\.(\d{1,9})\.([0-9a-f]{8})\.((?:[0-9a-f]\d{0,3}(?:,|(?=[?!]?$)))*)([?!]?)$"
)
MOST_CALLS: Final = 256


@dataclass(frozen=True, slots=True)
class ProgressCounts:
    """What one call has told so far."""

    parts: int = 0
    inputs: int = 0


@dataclass(frozen=True, slots=True)
class Position:
    """How far a follower has come."""

    step: int = 0
    length: int = 0
    """Characters of the step's text."""
    fingerprint: int = 0
    """CRC-32 of those characters: an answer that began anew is told anew."""
    calls: tuple[ProgressCounts, ...] = ()
    end: str = ""
    """"?" once the turn's error has been told, "!" once all has."""

    @property
    def is_done(self) -> bool:
        return self.end == "!"

    def before_end(self) -> Position:
        """The same place of a turn that goes on: its next end, and its error, are news."""
        return replace(self, end="") if self.is_done else self

    def __str__(self) -> str:
        calls = ",".join(f"{one.parts:x}{one.inputs or ''}" for one in self.calls)
        return f"{self.step}.{self.length}.{self.fingerprint:08x}.{calls}{self.end}"

    @classmethod
    def parse(cls, text: str) -> Position:
        """The position of an event id.

        Raises:
            InvalidInput: it is none of ours.
        """
        found = _POSITION.match(text) if len(text) <= 2_000 else None
        if found is None:
            raise InvalidInput(fields={"Last-Event-ID": [_("This is not the id of an event.")]})
        step, length, fingerprint, calls, end = found.groups()
        counts = [
            ProgressCounts(int(one[0], 16), int(one[1:] or 0)) for one in calls.split(",") if one
        ]
        if len(counts) > MOST_CALLS:
            raise InvalidInput(fields={"Last-Event-ID": [_("This is not the id of an event.")]})
        return cls(int(step), int(length), int(fingerprint, 16), tuple(counts), end)


@dataclass(frozen=True, slots=True)
class FeedEvent:
    """One event, and where its hearer stands afterwards."""

    name: str
    data: Row
    position: Position


def tell(state: FeedState, turn_id: str, position: Position) -> Iterator[FeedEvent]:
    """Everything of this turn that the state holds beyond the position, in order."""
    turn = state.turns.get(turn_id)
    if turn is None:
        return
    steps = {
        row["step"]: row
        for row in state.messages.values()
        if row["turn_id"] == turn_id and row["role"] == "assistant"
    }
    while True:
        message = steps.get(position.step)
        if message is not None:
            for event in _tell_step(state, message, position):
                position = event.position
                yield event
        if position.step + 1 not in steps:
            break
        position = Position(step=position.step + 1)
    if turn["status"] in _FINAL_TURNS and not position.is_done:
        if turn["error"] is not None and not position.end:
            position = replace(position, end="?")
            yield FeedEvent("error", {"turn_id": turn_id, **turn["error"]}, position)
        yield FeedEvent("done", {"turn": turn}, replace(position, end="!"))


def _tell_step(state: FeedState, message: Row, position: Position) -> Iterator[FeedEvent]:
    text: str = message["text"]
    sent_text = text[: position.length]
    is_replaced = (
        len(sent_text) < position.length or zlib.crc32(sent_text.encode()) != position.fingerprint
    )
    if is_replaced and position.length:
        position = replace(position, length=0, fingerprint=0)
    if len(text) > position.length or (is_replaced and not text):
        piece = text[position.length :]
        position = replace(
            position, length=len(text), fingerprint=zlib.crc32(text.encode()) if text else 0
        )
        data = {"message_id": message["id"], "text": piece, "replaces": is_replaced}
        yield FeedEvent("content", data, position)
    calls = sorted(
        (row for row in state.tool_calls.values() if row["message_id"] == message["id"]),
        key=lambda row: row["position"],
    )
    for place, call in enumerate(calls[:MOST_CALLS]):
        for event in _tell_call(state, call, place, position):
            position = event.position
            yield event


def _tell_call(state: FeedState, call: Row, place: int, position: Position) -> Iterator[FeedEvent]:
    def mark(progress: ProgressCounts) -> Position:
        calls = [*position.calls, *([ProgressCounts()] * (place + 1 - len(position.calls)))]
        calls[place] = progress
        return replace(position, calls=tuple(calls))

    progress = position.calls[place] if place < len(position.calls) else ProgressCounts()
    if not progress.parts & _CALL:
        progress = replace(progress, parts=progress.parts | _CALL)
        yield FeedEvent("tool_call", {"tool_call": call}, position := mark(progress))
    is_asking = call["status"] == ToolCallStatus.WAITING_FOR_APPROVAL
    if is_asking and not progress.parts & _APPROVAL:
        progress = replace(progress, parts=progress.parts | _APPROVAL)
        yield FeedEvent("approval", {"tool_call": call}, position := mark(progress))
    asked = [row for row in state.input_requests.values() if row["call_id"] == call["id"]]
    for row in sorted(asked, key=lambda row: str(row["id"]))[progress.inputs :]:
        progress = replace(progress, inputs=progress.inputs + 1)
        yield FeedEvent("input", {"input_request": row}, position := mark(progress))
    is_unknown = call["status"] == ToolCallStatus.OUTCOME_UNKNOWN
    if is_unknown and not progress.parts & _UNKNOWN:
        progress = replace(progress, parts=progress.parts | _UNKNOWN)
        yield FeedEvent("outcome_unknown", {"tool_call": call}, position := mark(progress))
    if call["status"] not in _OPEN_CALLS and not progress.parts & _RESULT:
        progress = replace(progress, parts=progress.parts | _RESULT)
        yield FeedEvent("tool_result", {"tool_call": call}, position := mark(progress))
