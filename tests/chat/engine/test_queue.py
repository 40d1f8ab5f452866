"""Messages that wait for the running turn: sent in order, interrupting if they are to, never lost, never twice."""

from __future__ import annotations

import threading

import pytest

from chat.models import Message, Turn
from chat.services.branches import edit_message
from chat.services.conversations import erase_conversation
from chat.services.queue import edit_queued, remove_queued, send_queued_now
from chat.services.turns import (
    MOST_QUEUED,
    QueuedSend,
    SentTurn,
    active_turn,
    retry_turn,
    send_or_queue,
    stop_turn,
)
from chat.values import WhenBusy
from tests.chat.conftest import Chat
from tests.chat.engine.queueing import busy, queued, until_answered
from tests.patience import PATIENCE
from tests.threads import Threads
from workspaces.errors import Conflict, NotFound


def say(chat: Chat, text: str, when_busy: WhenBusy = WhenBusy.QUEUE) -> SentTurn | QueuedSend:
    return send_or_queue(
        conversation=chat.conversation,
        client_id=text.replace(" ", "-"),
        text=text,
        actor=chat.actor,
        when_busy=when_busy,
    )


def questions(chat: Chat) -> list[str]:
    rows = Message.objects.for_workspace(chat.tenant.workspace).filter(role="user")
    return [row.text for row in rows]


def test_messages_wait_in_order_and_are_sent_one_after_the_other(chat: Chat) -> None:
    """REL-12, REL-01: two tabs that send at once wait in line; the same message again is not another one."""
    hold = busy(chat)
    chat.model.say("to second")
    chat.model.say("to third")
    assert isinstance(say(chat, "second"), QueuedSend)
    assert isinstance(say(chat, "third"), QueuedSend)
    repeated = say(chat, "second")
    assert isinstance(repeated, QueuedSend)
    assert not repeated.is_new
    assert [one["text"] for one in chat.snapshot()["queue"]] == ["second", "third"]
    hold.set()
    until_answered(chat, "to third")
    assert questions(chat) == ["first", "second", "third"]
    assert queued(chat) == []
    late = say(chat, "second")
    assert isinstance(late, SentTurn)
    assert not late.is_new


def test_fifty_sends_at_once_are_one_message(chat: Chat) -> None:
    """REL-01: whatever the interleaving, one message and one turn, and the same ids for everybody."""
    chat.model.say("hello")
    with Threads(8) as pool:
        sent = list(pool.map(lambda _: say(chat, "same"), range(50)))
    ids = {(one.message.pk, one.turn.pk) for one in sent if isinstance(one, SentTurn)}
    assert len(ids) == 1
    assert sum(one.is_new for one in sent) == 1
    chat.watching.turn("completed")
    assert questions(chat) == ["same"]


def test_a_message_that_interrupts_stops_the_turn_and_is_answered_next(chat: Chat) -> None:
    """What was said so far is kept; what waited before goes after it."""
    busy(chat)
    chat.model.say("to now")
    chat.model.say("to later")
    say(chat, "later")
    say(chat, "now", WhenBusy.INTERRUPT)
    until_answered(chat, "to later")
    assert questions(chat) == ["first", "now", "later"]
    assert chat.model.closed.wait(PATIENCE)
    stopped = [m for m in chat.snapshot()["messages"] if m["status"] == "stopped"]
    assert [m["text"] for m in stopped] == ["slow"]


def test_a_parked_turn_is_interrupted_at_once(chat: Chat) -> None:
    """Nobody holds it, so nobody is waited for."""
    chat.model.call(("counting__plain", {"text": "boom"}))
    chat.send("first")
    chat.watching.turn("waiting_for_approval")
    chat.model.say("done")
    sent = say(chat, "rather this", WhenBusy.INTERRUPT)
    assert isinstance(sent, SentTurn)
    chat.watching.turn("completed")
    assert chat.calls()[0].status == "cancelled"
    assert chat.server.calls == []


def test_after_a_stop_the_queue_waits_for_the_person(chat: Chat) -> None:
    """REL-2461: a stop is no wish to hear the next answer. Sending it is one press; nothing else sends it."""
    busy(chat)
    held = say(chat, "second")
    assert isinstance(held, QueuedSend)
    running = Turn.objects.for_workspace(chat.tenant.workspace).get(status="running")
    stop_turn(turn=running, actor=chat.actor)
    chat.watching.turn("cancelled")
    assert queued(chat) == ["second"]
    first = Message.objects.for_workspace(chat.tenant.workspace).get(text="first")
    hold = threading.Event()
    chat.watching.forget()
    chat.model.say("to edited", hold=hold)
    edit_message(message=first, client_id="edited", text="edited", actor=chat.actor)
    say(chat, "third")
    chat.model.say("to third")
    hold.set()
    until_answered(chat, "to third")
    assert [(one["text"], one["held_after"]) for one in chat.snapshot()["queue"]] == [
        ("second", "cancelled")
    ]
    chat.watching.forget()
    chat.model.say("now then")
    turn = send_queued_now(queued=held.message, actor=chat.actor)
    assert turn is not None
    chat.watching.turn("completed")
    assert questions(chat) == ["first", "edited", "third", "second"]


def test_what_a_stop_held_back_is_sent_after_the_answer_is_retried(chat: Chat) -> None:
    """REL-2522: a retry takes the stop back, and the page says that the message waits for the answer again."""
    busy(chat)
    say(chat, "second")
    turns = Turn.objects.for_workspace(chat.tenant.workspace)
    stop_turn(turn=turns.get(status="running"), actor=chat.actor)
    chat.watching.turn("cancelled")
    assert [one["held_after"] for one in chat.snapshot()["queue"]] == ["cancelled"]
    hold = threading.Event()
    chat.model.say("to first", hold=hold)
    chat.model.say("to second")
    retry_turn(turn=turns.get(), actor=chat.actor)
    assert [one["held_after"] for one in chat.snapshot()["queue"]] == [None]
    hold.set()
    until_answered(chat, "to second")
    assert queued(chat) == []


def test_a_retry_releases_nothing_that_another_stop_held_back(chat: Chat) -> None:
    """REL-2597: it waits for its writer, although the later answer ended in the same way."""
    turns = Turn.objects.for_workspace(chat.tenant.workspace)
    busy(chat)
    say(chat, "held first")
    stop_turn(turn=turns.get(status="running"), actor=chat.actor)
    chat.watching.turn("cancelled")
    first = Message.objects.for_workspace(chat.tenant.workspace).get(text="first")
    chat.watching.forget()
    chat.model.say("to edited", hold=threading.Event())
    edit_message(message=first, client_id="edited", text="edited", actor=chat.actor)
    chat.watching.until(lambda event: event["type"] == "text.delta")
    say(chat, "held later")
    chat.watching.forget()
    stop_turn(turn=turns.get(status="running"), actor=chat.actor)
    chat.watching.turn("cancelled")
    chat.model.say("to edited, again")
    chat.model.say("to the later one")
    retry_turn(turn=turns.latest("pk"), actor=chat.actor)
    until_answered(chat, "to the later one")
    assert queued(chat) == ["held first"]


def test_what_waits_can_be_changed_and_taken_back(chat: Chat) -> None:
    """Until it is sent; then it is not there any more."""
    hold = busy(chat)
    chat.model.say("to changed")
    first, second = say(chat, "a"), say(chat, "b")
    assert isinstance(first, QueuedSend)
    assert isinstance(second, QueuedSend)
    edit_queued(queued=first.message, text="changed", actor=chat.actor)
    remove_queued(queued=second.message, actor=chat.actor)
    hold.set()
    until_answered(chat, "to changed")
    assert questions(chat) == ["first", "changed"]
    with pytest.raises(NotFound):
        edit_queued(queued=first.message, text="too late", actor=chat.actor)
    with pytest.raises(NotFound):
        remove_queued(queued=second.message, actor=chat.actor)


def test_the_queue_is_bounded_and_goes_with_its_conversation(chat: Chat) -> None:
    """REL-12: the one too many is told so; nothing of a deleted conversation is sent."""
    busy(chat)
    for number in range(MOST_QUEUED):
        say(chat, f"m{number}")
    with pytest.raises(Conflict):
        say(chat, "one more")
    erase_conversation(conversation=chat.conversation, actor=chat.actor)
    assert questions(chat) == []
    assert queued(chat) == []
    assert chat.model.closed.wait(PATIENCE)
    assert len(chat.model.requests) == 1


def test_an_id_that_waits_in_the_queue_is_no_other_message(chat: Chat) -> None:
    """REL-01: an edit under that id is refused, so that sending the one that waits can never fail."""
    hold = busy(chat)
    waiting = say(chat, "second")
    assert isinstance(waiting, QueuedSend)
    running = active_turn(chat.conversation)
    assert running is not None
    stop_turn(turn=running, actor=chat.actor)
    chat.watching.turn("cancelled")
    hold.set()
    first = Message.objects.for_workspace(chat.tenant.workspace).get(text="first")
    with pytest.raises(Conflict):
        edit_message(message=first, client_id="second", text="other", actor=chat.actor)
    chat.model.say("to second")
    chat.watching.forget()
    send_queued_now(queued=waiting.message, actor=chat.actor)
    chat.watching.turn("completed")
