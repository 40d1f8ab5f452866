"""A conversation as it stands: what a tab is given first, and whenever it has lost the thread."""

from __future__ import annotations

from typing import Any

from django.db import transaction
from django.db.models import Q

from chat.artifacts.rows import artifacts_of
from chat.events import Snapshot
from chat.live import Said, live_said
from chat.models import Conversation, Message, QueuedMessage, ToolCall, Turn
from chat.models.turns import ACTIVE
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
"""The newest ones; the API pages through older ones."""
MOST_INPUTS = 200


def read_snapshot(conversation: Conversation, ref: str | None = None) -> Snapshot:
    """All rows that a tab shows, with the number of the newest event they contain.

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
        newest = (
            Message.objects.for_workspace(workspace_id)
            .filter(conversation=conversation)
            .order_by("-order_key", "-id")[:MOST_MESSAGES]
        )
        messages = list(newest)[::-1]
        turns = list(
            Turn.objects.for_workspace(workspace_id)
            .filter(
                Q(pk__in={message.turn_id for message in messages})
                | Q(user_message__in=[message.pk for message in messages])
            )
            .order_by("pk")
        )
        calls = list(
            ToolCall.objects.for_workspace(workspace_id)
            .filter(message__in=messages)
            .select_related("decided_by")
            .order_by("message__order_key", "position")
        )
        attached = attachments_of(workspace_id, messages)
        queue = list(
            QueuedMessage.objects.for_workspace(workspace_id).filter(conversation=conversation)
        )
        artifacts = artifacts_of(conversation)
        asked = list(
            InputRequest.objects.for_workspace(workspace_id)
            .filter(conversation_id=conversation.pk)
            .order_by("-id")[:MOST_INPUTS]
        )[::-1]
    active = next((turn.status for turn in turns if turn.status in ACTIVE), None)
    return Snapshot(
        conversation_id=conversation.pk,
        seq=conversation.event_seq,
        conversation=conversation_json(conversation, turn_status=active),
        messages=[
            message_json(message, said=_said(message), attachments=attached.get(message.pk, ()))
            for message in messages
        ],
        turns=[turn_json(turn) for turn in turns],
        tool_calls=[tool_call_json(call) for call in calls],
        queue=[queued_json(row) for row in queue],
        artifacts=[artifact_json(artifact, newest) for artifact, newest in artifacts],
        input_requests=[input_request_json(request) for request in asked],
        ref=ref,
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
