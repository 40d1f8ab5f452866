"""A conversation as it stands: what a tab is given first, and whenever it has lost the thread."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Exists, OuterRef, Q
from django.utils.translation import gettext as _

from chat.artifacts.rows import artifacts_of
from chat.live.streaming_text import TextSoFar, live_text_so_far
from chat.message_paths import beside_path, path_from, path_to
from chat.models import Attachment, Conversation, Message, QueuedMessage, ToolCall, Turn
from chat.models.turns import most_urgent
from chat.values import MessageRole, MessageStatus
from chat.wire.events import Snapshot
from chat.wire.payloads import (
    OUTLINE,
    artifact_json,
    attachments_of,
    by_message,
    conversation_json,
    input_request_json,
    message_json,
    outline_json,
    queued_json,
    tool_call_json,
    turn_json,
)
from mcp_servers.models import InputRequest
from workspaces.database.prepared import PreparedRows
from workspaces.errors import NotFound

MOST_MESSAGES = 60
"""A conversation with more of them is given in parts: the end of the shown path first, older parts when asked for."""
MOST_AT_FIRST = 40
"""Messages of the path: some screens of them, since opening a conversation waits for them."""
MOST_OF_PATH = 100
"""In each older part, for a page that scrolls up."""
MOST_SIBLINGS = 100
"""Before and after the one that is shown, in the same place. Whoever goes to one of them reads those next to it."""
MOST_INPUTS = 200


def read_snapshot(conversation: Conversation, ref: str | None = None) -> Snapshot:
    """The rows that a tab shows, with the number of the newest event they contain.

    Args:
        ref: of the command that asked for it.
    """
    workspace_id = conversation.workspace_id
    with transaction.atomic():
        # The lock orders this reading between two changes, so that number and rows agree.
        found: Any = _LOCKED.first(workspace_id, conversation.pk)
        if found is None:
            raise NotFound(_("Conversation not found."))
        conversation = found
        part = _shown_end(conversation) if found.is_long else _all_of(conversation)
        queue = _QUEUE.all(workspace_id, conversation.pk)
        artifacts = artifacts_of(conversation)
        asked = _ASKED.all(workspace_id, conversation.pk)[::-1]
    active = most_urgent(turn["status"] for turn in part.turns)
    return Snapshot(
        conversation_id=conversation.pk,
        seq=conversation.event_seq,
        conversation=conversation_json(conversation, turn_status=active),
        messages=part.messages,
        turns=part.turns,
        tool_calls=part.tool_calls,
        queue=[queued_json(row) for row in queue],
        artifacts=[artifact_json(artifact, newest) for artifact, newest in artifacts],
        input_requests=[input_request_json(request) for request in asked],
        ref=ref,
    )


@dataclass(frozen=True, slots=True)
class SnapshotPart:
    """Rows of some messages of a conversation, as the wire has them."""

    messages: list[dict[str, Any]]
    turns: list[dict[str, Any]]
    tool_calls: list[dict[str, Any]]


def read_older(message: Message) -> SnapshotPart:
    """The part of the path that ends right above a message."""
    if message.parent_id is None:
        return SnapshotPart([], [], [])
    workspace_id = message.workspace_id
    return _read_part(workspace_id, *_part_of(workspace_id, message.parent_id, MOST_OF_PATH))


def read_newer(message: Message) -> SnapshotPart:
    """The part of the shown path that begins with a message; empty where that is on another branch."""
    workspace_id = message.workspace_id
    end = _end_of(message.conversation)
    whole = path_from(workspace_id, message.pk, end, MOST_OF_PATH)
    if not whole:
        return SnapshotPart([], [], [])
    return _read_part(workspace_id, whole, _beside(workspace_id, whole[-1].pk, len(whole)))


Read = tuple[list[Message], list[dict[str, Any]]]
"""Messages as they are, and those beside them as outlines."""


def _all_of(conversation: Conversation) -> SnapshotPart:
    workspace_id = conversation.workspace_id
    messages = _MESSAGES.all(workspace_id, conversation.pk)
    if not messages:
        return SnapshotPart([], [], [])
    return _part(
        messages,
        by_message(workspace_id, _ATTACHED.all(workspace_id, conversation.pk)),
        _TURNS.all(workspace_id, conversation.pk),
        _CALLS.all(workspace_id, conversation.pk),
    )


def _shown_end(conversation: Conversation) -> SnapshotPart:
    read = _part_of(conversation.workspace_id, _end_of(conversation), MOST_AT_FIRST)
    if conversation.comparison is not None:
        read = _with_compared(conversation, *read)
    return _read_part(conversation.workspace_id, *read)


def _end_of(conversation: Conversation) -> UUID:
    """The message that the shown path ends with."""
    if conversation.leaf_id is not None:
        return conversation.leaf_id
    rows = Message.objects.for_workspace(conversation.workspace_id)
    newest = rows.filter(conversation=conversation).order_by("-order_key", "-pk")
    end: UUID = newest.values_list("pk", flat=True)[:1].get()
    return end


def _with_compared(
    conversation: Conversation, whole: list[Message], outlines: list[dict[str, Any]]
) -> Read:
    """The same with the answers that stand beside the one of the path, whole."""
    known = [message.pk for message in whole]
    rows = Message.objects.for_workspace(conversation.workspace_id).exclude(pk__in=known)
    beside = list(
        rows.filter(
            turn__user_message__in=known,
            turn__comparison=conversation.comparison,
            role=MessageRole.ASSISTANT.value,
        )
    )
    ids = {str(message.pk) for message in beside}
    return [*whole, *beside], [one for one in outlines if one["id"] not in ids]


def _part_of(workspace_id: UUID, end: UUID, most: int) -> Read:
    """The last messages of the path that ends here, whole; and those beside them as outlines."""
    return list(path_to(workspace_id, end, most)), _beside(workspace_id, end, most)


def _beside(workspace_id: UUID, end: UUID, most: int) -> list[dict[str, Any]]:
    """The outlines of those beside the last messages of a path."""
    beside = beside_path(workspace_id, end, most=most, siblings=MOST_SIBLINGS)
    return [outline_json(row) for row in beside.values(*OUTLINE)]


def _read_part(
    workspace_id: UUID, whole: list[Message], outlines: list[dict[str, Any]]
) -> SnapshotPart:
    turns = (
        Turn.objects.for_workspace(workspace_id)
        .filter(
            Q(pk__in={message.turn_id for message in whole})
            | Q(user_message__in=[message.pk for message in whole])
        )
        .select_related("chosen_model")
        .order_by("pk")
    )
    calls = (
        ToolCall.objects.for_workspace(workspace_id)
        .filter(message__in=whole)
        .select_related("decided_by")
        .order_by("message__order_key", "position")
    )
    part = _part(whole, attachments_of(workspace_id, whole), turns, calls)
    return replace(part, messages=part.messages + outlines)


def _part(
    messages: list[Message],
    attached: Mapping[UUID, list[Attachment]],
    turns: Iterable[Turn],
    calls: Iterable[ToolCall],
) -> SnapshotPart:
    return SnapshotPart(
        messages=[
            message_json(
                message, own_text=_text_of(message), attachments=attached.get(message.pk, ())
            )
            for message in messages
        ],
        turns=[turn_json(turn) for turn in turns],
        tool_calls=[tool_call_json(call) for call in calls],
    )


def read_turn(turn: Turn) -> dict[str, Any] | None:
    """The same for one turn alone; None if its conversation is gone."""
    workspace_id = turn.workspace_id
    with transaction.atomic():
        rows = Conversation.objects.for_workspace(workspace_id)
        conversation = rows.select_for_update(of=("self",)).find(turn.conversation_id)
        if conversation is None:
            return None
        turn = Turn.objects.for_workspace(workspace_id).fetch(turn.pk)
        messages = list(Message.objects.for_workspace(workspace_id).filter(turn=turn))
        calls = list(
            ToolCall.objects.for_workspace(workspace_id)
            .filter(turn=turn)
            .select_related("decided_by")
        )
        asked = list(InputRequest.objects.for_workspace(workspace_id).filter(turn_id=turn.pk))
    return {
        "type": "snapshot",
        "conversation_id": str(conversation.pk),
        "seq": conversation.event_seq,
        "messages": [message_json(message, own_text=_text_of(message)) for message in messages],
        "turns": [turn_json(turn)],
        "tool_calls": [tool_call_json(call) for call in calls],
        "input_requests": [input_request_json(request) for request in asked],
    }


def _text_of(message: Message) -> TextSoFar | None:
    """What is newer than the row's, where the message streams in this process."""
    if message.status != MessageStatus.STREAMING:
        return None
    live = live_text_so_far(message.pk)
    is_newer = live is not None and sum(map(len, live)) > len(message.text) + len(message.reasoning)
    return live if is_newer else None


def _locked(workspace_id: UUID, pk: UUID) -> Any:
    in_it = Message.objects.across_workspaces().filter(conversation=OuterRef("pk")).order_by()
    return (
        Conversation.objects.for_workspace(workspace_id)
        .filter(pk=pk)
        .select_related("bud")
        .annotate(is_long=Exists(in_it[MOST_MESSAGES : MOST_MESSAGES + 1]))
        .select_for_update(of=("self",))
        .order_by()
    )


def _messages(workspace_id: UUID, conversation_id: UUID) -> Any:
    return Message.objects.for_workspace(workspace_id).filter(conversation_id=conversation_id)


def _attached(workspace_id: UUID, conversation_id: UUID) -> Any:
    rows = Attachment.objects.for_workspace(workspace_id)
    return rows.for_wire().filter(
        message__conversation_id=conversation_id, message__role=MessageRole.USER.value
    )


def _turns(workspace_id: UUID, conversation_id: UUID) -> Any:
    rows = Turn.objects.for_workspace(workspace_id).filter(conversation_id=conversation_id)
    return rows.select_related("chosen_model").order_by("pk")


def _calls(workspace_id: UUID, conversation_id: UUID) -> Any:
    rows = ToolCall.objects.for_workspace(workspace_id)
    in_it = rows.filter(message__conversation_id=conversation_id)
    return in_it.select_related("decided_by").order_by("message__order_key", "position")


def _queue(workspace_id: UUID, conversation_id: UUID) -> Any:
    return QueuedMessage.objects.for_workspace(workspace_id).filter(conversation_id=conversation_id)


def _asked(workspace_id: UUID, conversation_id: UUID) -> Any:
    rows = InputRequest.objects.for_workspace(workspace_id)
    return rows.filter(conversation_id=conversation_id).order_by("-id")[:MOST_INPUTS]


_LOCKED = PreparedRows[Conversation](_locked, UUID, UUID)
_MESSAGES = PreparedRows[Message](_messages, UUID, UUID)
_ATTACHED = PreparedRows[Attachment](_attached, UUID, UUID)
_TURNS = PreparedRows[Turn](_turns, UUID, UUID)
_CALLS = PreparedRows[ToolCall](_calls, UUID, UUID)
_QUEUE = PreparedRows[QueuedMessage](_queue, UUID, UUID)
_ASKED = PreparedRows[InputRequest](_asked, UUID, UUID)
