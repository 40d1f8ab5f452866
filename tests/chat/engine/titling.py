"""Titles that a model gives to a conversation."""

from __future__ import annotations

from chat.tasks import title_conversation
from tests.chat.conftest import Chat


def titled(chat: Chat) -> bool:
    """As the task does it."""
    return title_conversation(str(chat.tenant.workspace.pk), str(chat.conversation.pk))
