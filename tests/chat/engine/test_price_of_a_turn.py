"""What a whole turn costs the database, from the page's command to its end: none of it may creep back."""

from __future__ import annotations

import pytest

from chat.engine import asking
from chat.models import Message
from chat.sockets.socket_access import SocketAccess
from tests.chat.conftest import Chat
from tests.chat.engine.statements import add_calls, add_messages
from tests.chat.engine.turn_price import at_most, say
from tests.patience import PATIENCE
from tests.price import counted


@pytest.fixture(autouse=True)
def no_saves_on_the_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine takes so long for a turn that its text is saved meanwhile, which is no price of the turn's."""
    monkeypatch.setattr(asking, "SAVE_PARTIAL_SECONDS", PATIENCE)


@pytest.fixture
def access(chat: Chat) -> SocketAccess:
    """The member's page."""
    return SocketAccess(
        chat.tenant.member, chat.tenant.workspace.slug, ip_address=None, session_key=None
    )


def test_a_text_turn(chat: Chat, access: SocketAccess) -> None:
    """REL-310: two commits: the message with its turn and its open answer, and the answer with the turn's end."""
    chat.model.say("first")
    say(chat, access)
    chat.model.say("one two three four five")
    with counted() as price:
        say(chat, access)
    at_most(price, statements=15, commits=2, crossings=3)
    assert price.clocks <= 2  # one moment for each transaction


def test_a_text_turn_after_many_calls(chat: Chat, access: SocketAccess) -> None:
    """REL-310: one statement more reads all earlier calls, however many there were."""
    answers = add_messages(chat.conversation, 60)
    add_calls(chat.conversation, answers)
    asked = {"id": "1", "type": "function", "function": {"name": "bump", "arguments": "{}"}}
    rows = Message.objects.for_workspace(chat.tenant.workspace).filter(pk__in=answers)
    rows.update(json_meta={"tool_calls": [asked]})
    chat.model.say("one two three four five")
    with counted() as price:
        say(chat, access)
    at_most(price, statements=15, commits=2, crossings=3)


def test_a_turn_with_a_call(chat: Chat, access: SocketAccess) -> None:
    """REL-310, REL-351: the answer and the call that it asks for are one commit; what was read for the first step is carried on."""
    chat.model.call(("counting__echo", {"text": "hi"}))
    chat.model.say("first")
    say(chat, access)
    chat.model.call(("counting__echo", {"text": "hi"}))
    chat.model.say("It said hi")
    with counted() as price:
        say(chat, access)
    # 33; what a process does now and then may come in between.
    at_most(price, statements=35, commits=4, crossings=6)
