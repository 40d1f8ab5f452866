"""Every event that a watcher of a conversation is told.

Row events are numbered per conversation without gaps, and carry the whole row: a snapshot and
the events after it give what a fresh snapshot gives. Deltas are not numbered: their offset (in
UTF-16 units, as browsers count) says where they belong, so a lost or doubled one shows itself.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any
from uuid import UUID


class RowKind(StrEnum):
    MESSAGE = "message"
    TURN = "turn"
    TOOL_CALL = "tool_call"
    CONVERSATION = "conversation"
    INPUT_REQUEST = "input_request"
    QUEUE = "queue"
    ARTIFACT = "artifact"


_TYPE_OF = {
    RowKind.MESSAGE: "message.saved",
    RowKind.TURN: "turn.changed",
    RowKind.TOOL_CALL: "tool_call.changed",
    RowKind.CONVERSATION: "conversation.changed",
    RowKind.INPUT_REQUEST: "input_request.changed",
    RowKind.QUEUE: "queue.changed",
    RowKind.ARTIFACT: "artifact.changed",
}


@dataclass(frozen=True, slots=True)
class RowEvent:
    conversation_id: UUID
    seq: int
    kind: RowKind
    row: Mapping[str, Any] | Sequence[Mapping[str, Any]]

    def as_json(self) -> dict[str, Any]:
        return {
            "type": _TYPE_OF[self.kind],
            "conversation_id": str(self.conversation_id),
            "seq": self.seq,
            self.kind.value: self.row,
        }


@dataclass(frozen=True, slots=True)
class TextDelta:
    conversation_id: UUID
    message_id: UUID
    offset: int
    """UTF-16 code units of the message's text before this piece."""
    text: str

    def as_json(self) -> dict[str, Any]:
        return _delta_json("text.delta", self)


@dataclass(frozen=True, slots=True)
class ReasoningDelta:
    """As TextDelta, of what the model thinks before it speaks."""

    conversation_id: UUID
    message_id: UUID
    offset: int
    text: str

    def as_json(self) -> dict[str, Any]:
        return _delta_json("reasoning.delta", self)


def _delta_json(kind: str, delta: TextDelta | ReasoningDelta) -> dict[str, Any]:
    return {
        "type": kind,
        "conversation_id": str(delta.conversation_id),
        "message_id": str(delta.message_id),
        "offset": delta.offset,
        "text": delta.text,
    }


@dataclass(frozen=True, slots=True)
class ToolCallProgress:
    conversation_id: UUID
    tool_call_id: UUID
    progress: float
    total: float | None
    message: str | None

    def as_json(self) -> dict[str, Any]:
        return {
            "type": "tool_call.progress",
            "conversation_id": str(self.conversation_id),
            "tool_call_id": str(self.tool_call_id),
            "progress": self.progress,
            "total": self.total,
            "message": self.message,
        }


ConversationEvent = RowEvent | TextDelta | ReasoningDelta | ToolCallProgress


def encode(event: Mapping[str, Any]) -> str:
    """The text that goes over the wire."""
    return json.dumps(event, ensure_ascii=False, separators=(",", ":"))


def utf16_length(text: str) -> int:
    """The length that JavaScript gives a string."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2
