"""Every frame that the server sends over a page's socket, and the codes that it closes the socket with.

Row events are numbered per conversation without gaps, and carry the whole row: a snapshot and
the events after it give what a fresh snapshot gives. Deltas are not numbered: their offset (in
UTF-16 units, as browsers count) says where they belong, so a lost or doubled one shows itself.

`manage.py write_wire` writes the web app's types and docs/protocol.md from these classes; their docstrings are
what people who write a client read.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from enum import IntEnum
from typing import Annotated, Any, ClassVar
from uuid import UUID

from pydantic import ConfigDict, WithJsonSchema


def _row(name: str) -> Any:
    """Say that a value has the shape of this schema of the REST interface."""
    return WithJsonSchema({"x-component": name})


Row = Mapping[str, Any]
MessageRow = Annotated[Row, _row("MessageOutput")]
TurnRow = Annotated[Row, _row("TurnOutput")]
ToolCallRow = Annotated[Row, _row("ToolCallOutput")]
ConversationRow = Annotated[Row, _row("ConversationOutput")]
InputRequestRow = Annotated[Row, _row("InputRequestOutput")]
QueuedRow = Annotated[Row, _row("QueuedMessageOutput")]
ArtifactRow = Annotated[Row, _row("ArtifactOutput")]


class Event:
    """A frame. A field with a default is left out where it has no value."""

    __slots__ = ()
    __pydantic_config__: ClassVar = ConfigDict(use_attribute_docstrings=True)

    type: ClassVar[str]

    def as_json(self) -> dict[str, Any]:
        """The frame as it goes over the wire; `type` comes first."""
        values: dict[str, Any] = {"type": self.type}
        for field in fields(self):  # type: ignore[arg-type]  # every subclass is a dataclass
            value = getattr(self, field.name)
            if value is not None or field.default is MISSING:
                values[field.name] = str(value) if isinstance(value, UUID) else value
        return values


# A conversation


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot(Event):
    """A conversation as it stands. It replaces whatever you have of this conversation."""

    type: ClassVar = "snapshot"
    conversation_id: UUID
    seq: int
    """The number of the newest event that the snapshot contains."""
    conversation: ConversationRow
    messages: Sequence[MessageRow]
    """All of them, oldest first. Of a conversation with more than 60 the last 40 of the shown path, with those beside
    them as outlines; `GET /api/messages/<id>/older/` gives what was said before."""
    turns: Sequence[TurnRow]
    tool_calls: Sequence[ToolCallRow]
    queue: Sequence[QueuedRow]
    artifacts: Sequence[ArtifactRow]
    input_requests: Sequence[InputRequestRow]
    """The newest 200, oldest first."""
    ref: str | None
    """Your command's, if it answers one. Trellis also sends snapshots on its own, when events were lost."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Current(Event):
    """Answers `subscribe`: you have everything up to this number already, so no snapshot follows."""

    type: ClassVar = "current"
    ref: str | None
    conversation_id: UUID
    seq: int


@dataclass(frozen=True, slots=True)
class RowEvent(Event):
    """A row of the conversation was added or changed; the event carries the whole row."""

    conversation_id: UUID
    seq: int
    """The conversation's events are numbered one by one. If a number is missing, subscribe again."""


@dataclass(frozen=True, slots=True)
class MessageSaved(RowEvent):
    """A message was added or changed. While it streams, the deltas after it extend its texts."""

    type: ClassVar = "message.saved"
    message: MessageRow


@dataclass(frozen=True, slots=True)
class TurnChanged(RowEvent):
    """A turn (the work on one answer) began, changed its status, or ended."""

    type: ClassVar = "turn.changed"
    turn: TurnRow


@dataclass(frozen=True, slots=True)
class ToolCallChanged(RowEvent):
    """A tool call was proposed, waits for approval or input, runs, or ended."""

    type: ClassVar = "tool_call.changed"
    tool_call: ToolCallRow


@dataclass(frozen=True, slots=True)
class ConversationChanged(RowEvent):
    """The title, the shown branch, the status or the usage changed."""

    type: ClassVar = "conversation.changed"
    conversation: ConversationRow


@dataclass(frozen=True, slots=True)
class InputRequestChanged(RowEvent):
    """A server asks the person something during a call, or the question was settled."""

    type: ClassVar = "input_request.changed"
    input_request: InputRequestRow


@dataclass(frozen=True, slots=True)
class QueueChanged(RowEvent):
    """The messages that wait for the running turn changed. All of them are listed."""

    type: ClassVar = "queue.changed"
    queue: Sequence[QueuedRow]


@dataclass(frozen=True, slots=True)
class ArtifactChanged(RowEvent):
    """A file was added, changed, renamed, deleted or brought back."""

    type: ClassVar = "artifact.changed"
    artifact: ArtifactRow


@dataclass(frozen=True, slots=True)
class TextDelta(Event):
    """A piece of a streaming message's text."""

    type: ClassVar = "text.delta"
    conversation_id: UUID
    message_id: UUID
    offset: int
    """Length of the text before this piece, in UTF-16 code units. Skip what you have; if there is a gap, subscribe again."""
    text: str


@dataclass(frozen=True, slots=True)
class ReasoningDelta(Event):
    """A piece of what the model thinks before it speaks. It works like `text.delta`, on the message's `reasoning`."""

    type: ClassVar = "reasoning.delta"
    conversation_id: UUID
    message_id: UUID
    offset: int
    """Length of the reasoning before this piece, in UTF-16 code units."""
    text: str


@dataclass(frozen=True, slots=True)
class ToolCallProgress(Event):
    """How far a running tool call is, as its server says."""

    type: ClassVar = "tool_call.progress"
    conversation_id: UUID
    tool_call_id: UUID
    progress: float
    total: float | None
    """What `progress` counts up to; null if the server does not say."""
    message: str | None


# Answers, and the connection itself


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted(Event):
    """Your command was carried out. What it changed comes as events."""

    type: ClassVar = "accepted"
    ref: str | None
    """The `ref` of your command."""
    message_id: UUID | None = None
    """Of `send` and `edit_message`: the new message."""
    turn_id: UUID | None = None
    """Of `send`, `edit_message` and `regenerate`: the turn that began."""
    queued_id: UUID | None = None
    """Of `send`: the message waits in the queue under this id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandFailed(Event):
    """Your command was not carried out."""

    type: ClassVar = "error"
    ref: str | None
    """The `ref` of your command; null if the message could not be read."""
    code: str
    """For programs; see Errors."""
    message: str
    """For people."""
    details: Mapping[str, Sequence[str]] | None = None
    """What is wrong with each field of the command, where that is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkspaceChanged(Event):
    """Something in the workspace changed. Fetch it again over REST if you show it."""

    type: ClassVar = "workspace.changed"
    kind: str
    """What changed, such as `conversation.changed`, `bud.changed`, `server.changed` or `request.changed`.
    `server.checked` is a health check that changed no status."""
    id: str
    """The id of the row."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Check(Event):
    """Trellis asks whether you still read. Answer at once with `ack` and the same number."""

    type: ClassVar = "check"
    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Pong(Event):
    """Answers `ping`."""

    type: ClassVar = "pong"
    ref: str | None


Delta = TextDelta | ReasoningDelta
ConversationEvent = RowEvent | Delta | ToolCallProgress
"""What the hub hands to whoever follows a conversation."""

EVENTS: tuple[type[Event], ...] = (
    Snapshot,
    Current,
    MessageSaved,
    TurnChanged,
    ToolCallChanged,
    ConversationChanged,
    InputRequestChanged,
    QueueChanged,
    ArtifactChanged,
    TextDelta,
    ReasoningDelta,
    ToolCallProgress,
    Accepted,
    CommandFailed,
    WorkspaceChanged,
    Check,
    Pong,
)


class CloseCode(IntEnum):
    """Why the server closes a socket; `meaning` says it to people who write a client."""

    meaning: str

    def __new__(cls, code: int, meaning: str) -> CloseCode:
        member = int.__new__(cls, code)
        member._value_ = code
        member.meaning = meaning
        return member

    PROTOCOL_ABUSE = (
        1008,
        "The client broke a limit of frames or commands. An `error` said which one. Do not reconnect.",
    )
    INTERNAL_ERROR = (1011, "Trellis made a mistake. Reconnect after a pause.")
    SERVICE_RESTART = (1012, "This process is shutting down. Reconnect; another one takes over.")
    TRY_AGAIN_LATER = (
        1013,
        "You did not answer a `check` for 45 seconds, or Trellis can't reach Redis. Reconnect after a pause.",
    )
    SIGN_IN_AGAIN = (4401, "There is no session, or it has ended. Sign in before you reconnect.")
    NOT_A_MEMBER = (
        4403,
        "You are not a member of this workspace, or no longer. Do not reconnect.",
    )
    ACCOUNT_OFF = (4410, "Your account is switched off. Do not reconnect.")
    WORKSPACE_SUSPENDED = (4423, "The whole workspace is suspended. Come back after a minute.")
    ACCESS_SUSPENDED = (
        4424,
        "Your access to the workspace is suspended. Come back after a minute.",
    )
    TWO_STEPS_NEEDED = (
        4425,
        "The workspace requires two-step verification, and your account has none. Come back once you have turned it on.",
    )
    TOO_MANY = (
        4429,
        "You have too many sockets open. Close some of them, or come back after a minute.",
    )


def encode(event: Mapping[str, Any]) -> str:
    """The text that goes over the wire."""
    return json.dumps(event, ensure_ascii=False, separators=(",", ":"))


def utf16_length(text: str) -> int:
    """The length that JavaScript gives a string."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2
