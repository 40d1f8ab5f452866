"""How many statements the database is asked on the way to an answer: none of it may creep back."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from chat.engine import asking, calls, runner, steps, turns
from chat.engine.answers import AnsweredStep
from chat.engine.context import read_context
from chat.engine.leases import Lease
from chat.models import Conversation, Message, ToolCall
from chat.snapshots import MOST_MESSAGES, read_snapshot
from tests.chat.conftest import Chat
from tests.chat.engine.statements import add_calls, add_messages, statements

Begun = list[tuple[Lease, Message]]


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> Begun:
    """Turns that are taken with their message, and worked on by nobody but the test."""
    taken: Begun = []
    monkeypatch.setattr(runner, "start", lambda lease, answer: taken.append((lease, answer)))
    return taken


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
        assert steps.finish_step(lease, answer, AnsweredStep(text="Yes.")) == turns.TurnEnded()


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
        assert steps.finish_step(lease, message, AnsweredStep(text="Yes.")) == turns.TurnEnded()


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
