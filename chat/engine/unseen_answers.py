"""Answers that their person has not seen yet."""

from __future__ import annotations

from typing import Final

from chat.live.recording import Changes
from chat.models import Turn
from chat.values import TurnStatus
from workspaces.actors import Source

_ANSWERS: Final = frozenset({TurnStatus.COMPLETED, TurnStatus.FAILED, TurnStatus.INTERRUPTED})
_ON_A_PAGE: Final = frozenset({Source.CHAT, Source.WEB})


def note_unseen(turn: Turn, changes: Changes) -> None:
    """Note that a turn has ended whose person is to see it; a page that shows it says so right away.

    What somebody stopped has no news for them. What a program asked, it reads itself. Nobody waits for the test chats
    of a bud's editor and for its checks.
    """
    conversation = changes.conversation
    bud = conversation.bud
    if TurnStatus(turn.status) not in _ANSWERS or Source(turn.source) not in _ON_A_PAGE:
        return
    if bud.is_draft or bud.is_sandboxed or turn.asked_by_id != conversation.owner_id:
        return
    conversation.unseen_answer_at = turn.finished_at
    changes.save_with_number("unseen_answer_at")
