"""Which answers a person has seen, on whichever device."""

from __future__ import annotations

from datetime import datetime

from chat.live.recording import changing
from chat.models import Conversation
from chat.services.conversations import active_status
from workspaces.actors import Actor
from workspaces.roles import Permission, require


def mark_seen(*, conversation: Conversation, actor: Actor, until: datetime | None = None) -> None:
    """Note that the conversation's owner has seen its newest answer. Their other devices hear of it.

    Where there is nothing unseen, nothing is locked and nothing written.

    Args:
        until: `unseen_answer_at` of what was seen. An answer that ended after that stays unseen. None: all.
    """
    require(actor, Permission.USE_CHAT, workspace_id=conversation.workspace_id)
    if not _is_unseen(conversation, until):
        return
    with changing(conversation.pk, conversation.workspace_id) as changes:
        row = changes.conversation
        if not _is_unseen(row, until):
            return
        row.unseen_answer_at = None
        changes.save_with_number("unseen_answer_at")
        changes.conversation_row(turn_status=active_status(row))


def _is_unseen(conversation: Conversation, until: datetime | None) -> bool:
    ended = conversation.unseen_answer_at
    return ended is not None and (until is None or ended <= until)
