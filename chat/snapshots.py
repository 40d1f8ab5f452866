"""A conversation as it stands: what a tab is given first, and whenever it has lost the thread."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db import connection, transaction
from django.db.models import Q, UUIDField, Window
from django.db.models.expressions import RawSQL
from django.db.models.functions import RowNumber

from chat.artifacts.rows import artifacts_of
from chat.events import Snapshot
from chat.models import Conversation, Message, QueuedMessage, ToolCall, Turn
from chat.models.turns import ACTIVE
from chat.streaming_text import Said, live_said
from chat.values import MessageStatus
from chat.wire import (
    artifact_json,
    attachments_of,
    conversation_json,
    input_request_json,
    message_json,
    queued_json,
    tool_call_json,
    turn_json,
)
from mcp_servers.models import InputRequest

MOST_MESSAGES = 400
"""A conversation with more of them is given in parts: the end of the shown path first, older parts when asked for."""
MOST_OF_PATH = 100
MOST_SIBLINGS = 100
"""Of one message, beside the one that is shown; the newest ones."""
MOST_INPUTS = 200


def read_snapshot(conversation: Conversation, ref: str | None = None) -> Snapshot:
    """The rows that a tab shows, with the number of the newest event they contain.

    Args:
        ref: of the command that asked for it.
    """
    workspace_id = conversation.workspace_id
    with transaction.atomic():
        # The lock orders this reading between two changes, so that number and rows agree.
        conversation = (
            Conversation.objects.for_workspace(workspace_id)
            .select_related("bud")
            .select_for_update(of=("self",))
            .fetch(conversation.pk)
        )
        rows = _messages_of(conversation).order_by("-order_key", "-id")[: MOST_MESSAGES + 1]
        messages = list(rows)[::-1]
        if len(messages) > MOST_MESSAGES:
            messages = _part_of(conversation, conversation.leaf_id or messages[-1].pk)
        part = _read_part(conversation, messages)
        queue = list(
            QueuedMessage.objects.for_workspace(workspace_id).filter(conversation=conversation)
        )
        artifacts = artifacts_of(conversation)
        asked = list(
            InputRequest.objects.for_workspace(workspace_id)
            .filter(conversation_id=conversation.pk)
            .order_by("-id")[:MOST_INPUTS]
        )[::-1]
    active = next((turn["status"] for turn in part.turns if turn["status"] in ACTIVE), None)
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
class Part:
    """Rows of some messages of a conversation, as the wire has them."""

    messages: list[dict[str, Any]]
    turns: list[dict[str, Any]]
    tool_calls: list[dict[str, Any]]


def read_older(message: Message) -> Part:
    """The part of the path that ends right above a message. Needs `conversation` loaded."""
    if message.parent_id is None:
        return Part([], [], [])
    messages = _part_of(message.conversation, message.parent_id)
    return _read_part(message.conversation, messages)


def _messages_of(conversation: Conversation) -> Any:
    return Message.objects.for_workspace(conversation.workspace_id).filter(
        conversation=conversation
    )


# Along the parents' keys: as many rows for a conversation of ten thousand messages as for one of a hundred.
_PATH = f"""
WITH RECURSIVE path(id, parent_id, place) AS (
    SELECT m.id, m.parent_id, 1 FROM chat_message m WHERE m.id = %s
  UNION ALL
    SELECT m.id, m.parent_id, path.place + 1
    FROM path JOIN chat_message m ON m.id = path.parent_id
    WHERE path.place < {MOST_OF_PATH}
)
SELECT id FROM path"""  # noqa: S608  a number of ours


def _part_of(conversation: Conversation, end: UUID) -> list[Message]:
    """The last messages of the path that ends here, whole; and those beside them as outlines."""
    rows = _messages_of(conversation).order_by("order_key", "pk")
    column: UUIDField[Any, Any] = UUIDField()
    ids = RawSQL(_PATH, (column.get_db_prep_value(end, connection),))  # noqa: S611  our own words
    whole = list(rows.filter(pk__in=ids))
    parents = {row.parent_id for row in whole}
    below = Q(parent_id__in=parents - {None})
    if None in parents:
        below |= Q(parent_id=None)
    newest = Window(RowNumber(), partition_by="parent_id", order_by=("-order_key", "-pk"))
    beside = rows.filter(below).exclude(pk__in=[row.pk for row in whole])
    return [*whole, *_outlines(beside.annotate(age=newest).filter(age__lte=MOST_SIBLINGS))]


def _outlines(rows: Any) -> list[Message]:
    """Messages without what they say: enough to know that there are other branches, and to go there."""
    found = list(rows.defer("text", "reasoning", "json_meta"))
    for row in found:
        row.text = row.reasoning = ""
        row.json_meta = {}
        row.is_outline = True
    return found


def _read_part(conversation: Conversation, messages: list[Message]) -> Part:
    workspace_id = conversation.workspace_id
    whole = [message for message in messages if not message.is_outline]
    turns = (
        Turn.objects.for_workspace(workspace_id)
        .filter(
            Q(pk__in={message.turn_id for message in whole})
            | Q(user_message__in=[message.pk for message in whole])
        )
        .order_by("pk")
    )
    calls = (
        ToolCall.objects.for_workspace(workspace_id)
        .filter(message__in=whole)
        .select_related("decided_by")
        .order_by("message__order_key", "position")
    )
    attached = attachments_of(workspace_id, whole)
    return Part(
        messages=[
            message_json(message, said=_said(message), attachments=attached.get(message.pk, ()))
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
        "messages": [message_json(message, said=_said(message)) for message in messages],
        "turns": [turn_json(turn)],
        "tool_calls": [tool_call_json(call) for call in calls],
        "input_requests": [input_request_json(request) for request in asked],
    }


def _said(message: Message) -> Said | None:
    """What is newer than the row's, where the message streams in this process."""
    if message.status != MessageStatus.STREAMING:
        return None
    live = live_said(message.pk)
    is_newer = live is not None and sum(map(len, live)) > len(message.text) + len(message.reasoning)
    return live if is_newer else None
