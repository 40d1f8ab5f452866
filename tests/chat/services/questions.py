"""Questions that servers ask a person, and answers."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from chat.services.inputs import answer_input
from mcp_servers.client.inputs import InputAction
from mcp_servers.models import InputRequest
from tests.chat.conftest import Chat

ADA = {"name": "Ada", "guests": 3, "seat": "garden"}
BOOK = ("asking__book_table", {"when": "noon"})


def wait_for_question(chat: Chat, call: tuple[str, dict[str, Any]] = BOOK) -> InputRequest:
    """Send a message whose answer calls a tool that asks; the question, once the turn shows that it waits."""
    chat.model.call(call)
    chat.model.say("done")
    chat.send()
    chat.watching.turn("waiting_for_input")
    shown = chat.watching.question()
    return InputRequest.objects.for_workspace(chat.tenant.workspace).fetch(UUID(shown["id"]))


def answer(chat: Chat, row: InputRequest, action: str = "accept", content: Any = None) -> None:
    answer_input(request=row, action=InputAction(action), content=content, actor=chat.actor)
