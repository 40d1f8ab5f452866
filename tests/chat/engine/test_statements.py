"""How many statements the database is asked on the way to an answer: none of it may creep back."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from uuid import UUID

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from uuid_utils.compat import uuid7

from chat.engine import asking, calls, runner, steps, turns
from chat.engine.answers import AnsweredStep
from chat.engine.context import read_context
from chat.engine.leases import Lease
from chat.models import Conversation, Message, ToolCall, Turn
from chat.snapshots import MOST_MESSAGES, read_snapshot
from chat.values import MessageRole, MessageStatus, TurnStatus
from tests.chat.conftest import Chat


@contextmanager
def statements(most: int) -> Iterator[None]:
    """At most so many on tables; the beginning of a transaction and the clock do not count."""
    with CaptureQueriesContext(connection) as captured:
        yield
    asked = [one["sql"] for one in captured if '"' in one["sql"] and "SAVEPOINT" not in one["sql"]]
    assert len(asked) <= most, "\n".join(one[:200] for one in asked)


Begun = list[tuple[Lease, Message]]


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> Begun:
    """Turns that are taken with their message, and worked on by nobody but the test."""
    taken: Begun = []
    monkeypatch.setattr(runner, "start", lambda lease, answer: taken.append((lease, answer)))
    return taken


@pytest.fixture
def by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """Turns are taken by the test, and by nobody else."""
    monkeypatch.setattr(runner, "can_take", lambda: False)
    monkeypatch.setattr(runner, "wake", lambda *_: None)


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


@pytest.mark.parametrize("earlier", [0, 60])
def test_a_turn_costs_few_statements(chat: Chat, begun: Begun, earlier: int) -> None:
    """Storing the message with its turn, making the request, and the end; a long conversation asks no more of them."""
    if earlier:
        add_messages(chat.conversation, earlier)
    with statements(6):
        chat.send()
    [(lease, answer)] = begun
    with statements(3):
        task, message = asking._begin_step(lease, 0, answer)
    assert message is answer
    assert len(task.fitted.turns) == earlier // 2 + 1
    with statements(5):
        assert steps.finish_step(lease, answer, AnsweredStep(text="Yes.")) == turns.Ended()


@pytest.mark.parametrize("earlier", [0, 60])
def test_a_turn_that_another_process_takes_costs_few_statements(
    chat: Chat, by_hand: None, earlier: int
) -> None:
    """The same where the process that stores the message does not work on it."""
    if earlier:
        add_messages(chat.conversation, earlier)
    with statements(8):
        sent = chat.send()
    with statements(6):
        taken = turns.take(sent.turn.pk, sent.turn.workspace_id)
    assert taken is not None
    lease, work = taken
    assert work == turns.AskModel(0)
    with statements(12):
        task, message = asking._begin_step(lease, 0)
    assert len(task.fitted.turns) == earlier // 2 + 1
    with statements(5):
        assert steps.finish_step(lease, message, AnsweredStep(text="Yes.")) == turns.Ended()


def test_a_call_costs_few_statements(chat: Chat, by_hand: None) -> None:
    """Beside what the gate itself asks."""
    sent = chat.send()
    taken = turns.take(sent.turn.pk, sent.turn.workspace_id)
    assert taken is not None
    lease: Lease = taken[0]
    _, message = asking._begin_step(lease, 0)
    call = ToolCall.objects.create(
        workspace_id=lease.workspace_id,
        turn_id=lease.turn_id,
        message=message,
        position=0,
        provider_call_id="1",
        function_name="bump",
    )
    with statements(3):
        calls.start_call(lease, call.pk)
    with statements(1):
        read_context(lease)
    with statements(4):
        calls.refuse_call(lease, call.pk, message="No.")


def test_a_snapshot_costs_the_same_for_every_length(chat: Chat) -> None:
    """However many messages and calls it holds: the rows are read by kind, and not one by one."""
    asked = []
    for count in (2, MOST_MESSAGES):
        add = Conversation.objects.create(
            workspace_id=chat.conversation.workspace_id,
            owner=chat.conversation.owner,
            bud=chat.bud,
        )
        add_calls(add, add_messages(add, count))
        with CaptureQueriesContext(connection) as captured:
            snapshot = read_snapshot(add)
        assert len(snapshot.messages) == count == 2 * len(snapshot.tool_calls)
        asked.append(len(captured))
    assert asked[0] == asked[1] <= 12


def test_a_list_of_conversations_costs_the_same_for_every_length(chat: Chat) -> None:
    """REL-569: no line of it reads what the list left out, such as the bud's prompt."""
    client = chat.tenant.client("member", headers={"X-Workspace": chat.tenant.workspace.slug})
    client.get("/api/conversations/")
    asked = []
    for count in (1, 20):
        Conversation.objects.bulk_create(
            Conversation(
                workspace_id=chat.conversation.workspace_id,
                owner=chat.conversation.owner,
                bud=chat.bud,
            )
            for _ in range(count)
        )
        with CaptureQueriesContext(connection) as captured:
            listed = client.get("/api/conversations/").json()["results"]
        assert len(listed) > count
        asked.append(len(captured))
    assert asked[0] == asked[1]
