"""Questions in a chat with branches, and what was said there."""

from __future__ import annotations

from chat.message_paths import path_to
from chat.models import Message, Turn
from tests.chat.conftest import Chat


def texts_of(chat: Chat) -> list[str]:
    """The shown path, as texts."""
    leaf_id = chat.reload_conversation().leaf_id
    return [row.text for row in path_to(chat.tenant.workspace.pk, leaf_id)]


def message_of(chat: Chat, text: str) -> Message:
    rows = Message.objects.for_workspace(chat.tenant.workspace)
    return rows.get(conversation=chat.conversation, text=text)


def ask(chat: Chat, question: str, answer: str) -> Turn:
    chat.model.say(answer)
    chat.watching.forget()
    return chat.ask(question)


def asked_of_the_model(chat: Chat) -> list[str]:
    """The texts of the last request."""
    return [message["content"] for message in chat.model.requests[-1]["messages"]]
