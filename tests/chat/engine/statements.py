"""Long conversations, and the statements that a turn sends to the database."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from uuid import UUID

from django.db import connection
from django.test.utils import CaptureQueriesContext
from uuid_utils.compat import uuid7

from chat.models import Conversation, Message, ToolCall, Turn
from chat.values import MessageRole, MessageStatus, TurnStatus


@contextmanager
def statements(most: int) -> Iterator[None]:
    """At most so many on tables; the beginning of a transaction and the clock do not count."""
    with CaptureQueriesContext(connection) as captured:
        yield
    asked = [one["sql"] for one in captured if '"' in one["sql"] and "SAVEPOINT" not in one["sql"]]
    assert len(asked) <= most, "\n".join(one[:200] for one in asked)


def add_messages(conversation: Conversation, count: int) -> list[UUID]:
    """A long conversation, as rows; gives the answers' ids."""
    ids = [uuid7() for _ in range(count)]
    rows = [
        Message(
            id=ids[number],
            workspace_id=conversation.workspace_id,
            conversation=conversation,
            parent_id=ids[number - 1] if number else None,
            role=(MessageRole.ASSISTANT if number % 2 else MessageRole.USER).value,
            status=MessageStatus.COMPLETE.value,
            text="word " * 20,
            order_key=number + 1,
        )
        for number in range(count)
    ]
    Message.objects.bulk_create(rows)
    Conversation.objects.for_workspace(conversation.workspace_id).filter(pk=conversation.pk).update(
        leaf_id=ids[-1]
    )
    return ids[1::2]


def add_calls(conversation: Conversation, answers: list[UUID]) -> None:
    """A call of each of these answers, all of one turn."""
    workspace_id = conversation.workspace_id
    question = Message.objects.for_workspace(workspace_id).filter(conversation=conversation)[0]
    turn = Turn.objects.create(
        workspace_id=workspace_id,
        conversation=conversation,
        user_message=question,
        asked_by=conversation.owner,
        source="web",
        status=TurnStatus.COMPLETED.value,
    )
    calls = [
        ToolCall(
            workspace_id=workspace_id,
            turn=turn,
            message_id=answer,
            position=0,
            provider_call_id="1",
            function_name="bump",
            approval_rule="ask",
            decided_by=conversation.owner,
        )
        for answer in answers
    ]
    ToolCall.objects.bulk_create(calls)
