"""A bud that is made its owner's alone answers nobody else from then on, in chats that began with it, too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from uuid_utils.compat import uuid7

from chat.models import Message, ProviderModel, Turn
from chat.services.approvals import decide
from chat.services.branches import edit_message, regenerate
from chat.services.buds import update_bud
from chat.services.comparing import compare_answer
from chat.values import Decision
from tests.chat.conftest import Chat
from tests.chat.services.branching import ask, message_of
from workspaces.errors import InvalidInput


def withdraw(chat: Chat) -> None:
    """The admin keeps the bud to themselves."""
    update_bud(bud=chat.bud, values={"visibility": "owner"}, actor=chat.tenant.actor("admin"))
    chat.conversation.refresh_from_db()


def send(chat: Chat, _turn: Turn) -> Any:
    return chat.send("more")


def edit(chat: Chat, _turn: Turn) -> Any:
    return edit_message(
        message=message_of(chat, "one"), client_id=str(uuid7()), text="One", actor=chat.actor
    )


def answer_again(chat: Chat, turn: Turn) -> Any:
    return regenerate(turn=turn, client_id=str(uuid7()), actor=chat.actor)


def compare(chat: Chat, turn: Turn) -> Any:
    provider = chat.bud.provider
    assert provider is not None
    ProviderModel.objects.create(workspace=chat.tenant.workspace, provider=provider, model="other")
    return compare_answer(
        turn=turn, client_id=str(uuid7()), model=(provider.pk, "other"), actor=chat.actor
    )


@pytest.mark.parametrize("ask_it", [send, edit, answer_again, compare])
def test_it_is_asked_nothing_more(chat: Chat, ask_it: Callable[[Chat, Turn], Any]) -> None:
    """SEC-796: whoever asks reads why, and what to do; the chat stays as it was."""
    turn = ask(chat, "one", "first")
    withdraw(chat)
    messages = Message.objects.for_workspace(chat.tenant.workspace).count()
    with pytest.raises(InvalidInput) as refused:
        ask_it(chat, turn)
    assert "only for its owner now. Choose another bud" in str(refused.value.fields["bud_id"][0])
    assert Message.objects.for_workspace(chat.tenant.workspace).count() == messages
    assert len(chat.model.requests) == 1


def test_it_calls_nothing_more(chat: Chat) -> None:
    """SEC-796: a call that waited for an approval does not run with it; the answer says why."""
    chat.model.call(("counting__destroy", {"what": "x"}))
    turn = chat.send("one").turn
    chat.watching.turn("waiting_for_approval")
    withdraw(chat)
    [call] = chat.calls()
    decide(call=call, decision=Decision.APPROVED, actor=chat.actor)
    chat.watching.turn("failed")
    ended = chat.reload(turn)
    assert (ended.status, ended.error_code) == ("failed", "forbidden")
    assert "only for its owner now" in ended.error_message
    assert chat.server.names() == []
    assert len(chat.model.requests) == 1


def test_its_owner_goes_on(chat: Chat) -> None:
    """SEC-796: it is still theirs, and so are their chats with it."""
    withdraw(chat)
    chat.conversation.bud.owner = chat.tenant.member
    chat.conversation.bud.save()
    assert ask(chat, "one", "first").status == "completed"
