"""Buds whose model calls tools in one way or another, and what it answered."""

from __future__ import annotations

from typing import Any

from chat.models import Bud, Message
from tests.chat.conftest import Chat

FENCED = '```json\n{"command": "counting__echo", "arguments": {"text": "hi"}}\n```\n'


def set_bud(chat: Chat, **fields: Any) -> None:
    Bud.objects.for_workspace(chat.tenant.workspace).filter(pk=chat.bud.pk).update(**fields)


def answers(chat: Chat) -> list[Message]:
    rows = Message.objects.for_workspace(chat.tenant.workspace)
    return list(rows.filter(conversation=chat.conversation, role="assistant"))
