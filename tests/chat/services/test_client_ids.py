"""What a client id stands for: one command, and all that came with it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from channels.db import database_sync_to_async as sync_to_async

from chat.models import Bud, Conversation, Message, Turn
from chat.services.branches import edit_message, fork_conversation, regenerate
from chat.services.buds import create_bud
from chat.services.conversations import create_conversation
from chat.services.queue import edit_queued
from chat.services.turns import QueuedSend, SentTurn, send_or_queue
from chat.values import WhenBusy
from tests.chat.conftest import Chat
from tests.chat.sockets.pages import opened
from tests.patience import PATIENCE
from workspaces.errors import Conflict


def messages(chat: Chat) -> Any:
    return Message.objects.for_workspace(chat.tenant.workspace)


def answered(chat: Chat, text: str = "one") -> SentTurn:
    """A question with its answer."""
    chat.model.say("An answer")
    chat.watching.forget()
    sent = chat.send(text)
    chat.watching.turn("completed")
    return sent


def test_another_text_under_one_id_is_refused_and_stored_nowhere(chat: Chat) -> None:
    """REL-205, REL-01: not taken for the first one, so its sender knows; the same text still gives the first."""
    chat.model.say("An answer")
    first = chat.send("one", client_id="c")
    chat.watching.turn("completed")
    with pytest.raises(Conflict, match="used for another message"):
        chat.send("two", client_id="c")
    again = chat.send("one", client_id="c")
    assert (again.message.pk, again.is_new) == (first.message.pk, False)
    assert messages(chat).filter(role="user").count() == 1


def test_of_two_texts_at_once_one_is_stored_and_the_other_refused(chat: Chat) -> None:
    """REL-205: whoever is first."""
    chat.model.say("An answer")
    refused: list[str] = []
    stored: list[str] = []

    def send(text: str) -> None:
        try:
            stored.append(chat.send(text, client_id="c").message.text)
        except Conflict:
            refused.append(text)

    threads = [threading.Thread(target=send, args=(text,)) for text in ("one", "two")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    chat.watching.turn("completed")
    assert sorted(stored + refused) == ["one", "two"]
    assert len(stored) == 1


def test_a_message_that_waits_keeps_its_id_also_when_it_was_changed(chat: Chat) -> None:
    """REL-205: a resend of what was sent is no other message, whatever became of it; another text is."""
    hold = threading.Event()
    chat.model.say("some words", hold=hold)
    chat.send("first")
    chat.watching.until(lambda event: event["type"] == "text.delta")

    def send(text: str) -> SentTurn | QueuedSend:
        return send_or_queue(
            conversation=chat.conversation,
            client_id="c",
            text=text,
            actor=chat.actor,
            when_busy=WhenBusy.QUEUE,
        )

    queued = send("second")
    assert isinstance(queued, QueuedSend)
    edit_queued(queued=queued.message, text="second, but better", actor=chat.actor)
    again = send("second")
    assert isinstance(again, QueuedSend)
    assert again.message.pk == queued.message.pk
    with pytest.raises(Conflict):
        send("third")
    chat.model.say("and an answer")
    chat.watching.forget()
    hold.set()
    chat.watching.until(
        lambda event: event["type"] == "turn.changed" and event["turn"]["status"] == "running"
    )
    sent = send("second")
    assert isinstance(sent, SentTurn)
    assert sent.message.text == "second, but better"
    with pytest.raises(Conflict):
        send("second, but better")
    chat.watching.until(
        lambda event: (
            event["type"] == "turn.changed"
            and event["turn"]["id"] == str(sent.turn.pk)
            and event["turn"]["status"] == "completed"
        )
    )


Commands = tuple[Callable[[], Any], Callable[[], Any]]
"""A command, and another one under the same id."""


def edits(chat: Chat) -> Commands:
    message = answered(chat).message

    def edit(text: str) -> SentTurn:
        return edit_message(message=message, client_id="c", text=text, actor=chat.actor)

    return partial(edit, "two"), partial(edit, "three")


def edits_of_two_messages(chat: Chat) -> Commands:
    def edit(message: Message) -> SentTurn:
        return edit_message(message=message, client_id="c", text="three", actor=chat.actor)

    return partial(edit, answered(chat).message), partial(edit, answered(chat, "two").message)


def new_answers(chat: Chat) -> Commands:
    def again(turn: Turn) -> Turn:
        return regenerate(turn=chat.reload(turn), client_id="c", actor=chat.actor)

    return partial(again, answered(chat).turn), partial(again, answered(chat, "two").turn)


def forks(chat: Chat) -> Commands:
    def fork(turn: Turn) -> Conversation:
        answer = messages(chat).get(turn=turn, role="assistant")
        owner = chat.tenant.member
        return fork_conversation(message=answer, client_id="c", owner=owner, actor=chat.actor)

    return partial(fork, answered(chat).turn), partial(fork, answered(chat, "two").turn)


def conversations(chat: Chat) -> Commands:
    another = create_bud(
        workspace_id=chat.tenant.workspace.pk,
        actor=chat.tenant.actor(),
        values={"slug": "another", "name": "Another"},
        provider_id=chat.bud.provider_id,
    )

    def create(bud: Bud) -> Conversation:
        owner = chat.tenant.member
        return create_conversation(bud=bud, owner=owner, actor=chat.actor, client_id="c")

    return partial(create, chat.bud), partial(create, another)


@pytest.mark.parametrize(
    "commands", [edits, edits_of_two_messages, new_answers, forks, conversations]
)
def test_each_command_refuses_an_id_that_stands_for_something_else(
    chat: Chat, commands: Callable[[Chat], Commands]
) -> None:
    """REL-205: edits, new answers, forks and conversations as well; the same command gives what there is."""
    same, other = commands(chat)
    chat.model.say("An answer")
    given, again = same(), same()
    if isinstance(given, SentTurn):
        given, again = given.message, again.message
    assert given.pk == again.pk
    with pytest.raises(Conflict):
        other()
    runner_is_idle(chat)


def runner_is_idle(chat: Chat) -> None:
    """Wait for the end of whatever was begun."""
    open_turns = Turn.objects.for_workspace(chat.tenant.workspace).filter(finished_at=None)
    pause = threading.Event()
    for _ in range(400):
        if not open_turns.exists():
            return
        pause.wait(0.05)
    raise AssertionError("a turn did not end")


async def test_the_socket_and_rest_answer_conflict(chat: Chat) -> None:
    """REL-205: with the code that programs look at, and whichever way the first one came."""
    chat.model.say("An answer")
    given = {"conversation_id": str(chat.conversation.pk), "client_id": "c"}
    async with opened(chat.tenant) as socket:
        await socket.answer(type="send", text="one", **given)
        answer = await socket.answer(type="send", text="two", **given)
        assert (answer["type"], answer["code"]) == ("error", "conflict")
        assert "new client id" in answer["message"]
    headers = {"X-Workspace": chat.tenant.workspace.slug}
    client = await sync_to_async(chat.tenant.client)("member", headers=headers)
    path = f"/api/conversations/{chat.conversation.pk}/messages/"

    def post(text: str) -> Any:
        return client.post(path, {"client_id": "c", "text": text}, content_type="application/json")

    refused = await sync_to_async(post)("two")
    assert (refused.status_code, refused.json()["errors"][0]["code"]) == (409, "conflict")
    same = await sync_to_async(post)("one")
    assert same.status_code == 202
    await sync_to_async(chat.watching.turn)("completed")
    assert await messages(chat).filter(role="user").acount() == 1
