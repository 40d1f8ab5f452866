"""What somebody who has left a workspace keeps there, which nobody can read: erased where an owner wants that."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final
from uuid import UUID

from audit.retention.erasing import LeftBehind, register_left_behind
from chat.models import Conversation, Draft, Folder, Pin

_LONG_AGO: Final = datetime(1900, 1, 1, tzinfo=UTC)
"""Deleted then: sweeps erase it, however long deleted chats are kept."""
_BESIDE: Final = (Draft, Folder, Pin)


def tell_left_chats() -> None:
    """Called once at start."""
    register_left_behind(LeftBehind(has_any=_has_any, erase=_erase))


def _has_any(workspace_id: UUID, person_id: UUID) -> bool:
    kinds = (Conversation, *_BESIDE)
    return any(
        kind.objects.for_workspace(workspace_id).filter(owner_id=person_id).exists()
        for kind in kinds
    )


def _erase(workspace_id: UUID, person_id: UUID) -> int:
    """Deleted at once, and erased chat by chat in the background: there may be thousands."""
    chats: int = (
        Conversation.objects.for_workspace(workspace_id)
        .filter(owner_id=person_id)
        .update(deleted_at=_LONG_AGO)
    )
    for kind in _BESIDE:
        kind.objects.for_workspace(workspace_id).filter(owner_id=person_id).delete()
    return chats
