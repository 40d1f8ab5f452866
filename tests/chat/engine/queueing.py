"""A chat whose turn runs, and messages that wait for its end."""

from __future__ import annotations

import threading

from chat.models import QueuedMessage
from tests.chat.conftest import Chat


def busy(chat: Chat) -> threading.Event:
    """A turn that answers as long as the event is not set."""
    hold = threading.Event()
    chat.model.say("slow answer", hold=hold)
    chat.send("first")
    chat.watching.until(lambda event: event["type"] == "text.delta")
    return hold


def queued(chat: Chat) -> list[str]:
    rows = QueuedMessage.objects.for_workspace(chat.tenant.workspace)
    return [row.text for row in rows]


def until_answered(chat: Chat, answer: str) -> None:
    chat.watching.until(
        lambda event: (
            event["type"] == "message.saved"
            and (event["message"]["text"], event["message"]["status"]) == (answer, "complete")
        )
    )
    chat.watching.until(lambda event: event["type"] == "turn.changed")
