"""A whole turn as a page asks for it, and what it may cost the database."""

from __future__ import annotations

from uuid_utils.compat import uuid7

from chat.sockets.handlers import HANDLERS
from chat.sockets.socket_access import SocketAccess
from chat.wire import commands
from tests.chat.conftest import ENDED, Chat
from tests.price import Price


def say(chat: Chat, access: SocketAccess) -> None:
    """As a page does, until the end of the turn has been told."""
    command = commands.Send.model_validate(
        {
            "type": "send",
            "conversation_id": str(chat.conversation.pk),
            "client_id": str(uuid7()),
            "text": "go",
        }
    )
    answer = HANDLERS[commands.Send](access, command)
    chat.watching.until(
        lambda event: (
            event["type"] == "turn.changed"
            and event["turn"]["id"] == str(answer["turn_id"])
            and event["turn"]["status"] in ENDED
        )
    )


def at_most(price: Price, *, statements: int, commits: int, crossings: int) -> None:
    """Fail with what was asked if it was more."""
    assert len(price.statements) <= statements, price.in_words()
    assert price.commits <= commits, price.in_words()
    # The command's own crossing is the socket's.
    assert price.crossings <= crossings - 1, price.in_words()
