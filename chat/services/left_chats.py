"""What somebody who has left a workspace keeps there, which nobody can read: erased where an owner wants that."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final
from uuid import UUID

from audit.retention.erasing import ErasedThings, LeftBehind, register_left_behind
from chat.artifacts.rows import drop_contents
from chat.models import (
    Bud,
    BudCheck,
    BudVersion,
    ChatImport,
    CheckPlan,
    CheckRun,
    Conversation,
    Draft,
    Folder,
    KnowledgeFile,
    Pin,
)
from chat.models.buds import BudVisibility
from workspaces.actors import Actor
from workspaces.changes import record_changed
from workspaces.database import after_commit

_LONG_AGO: Final = datetime(1900, 1, 1, tzinfo=UTC)
"""Deleted then: sweeps erase it, however long deleted chats are kept."""
_BESIDE: Final = (Draft, Folder, Pin, ChatImport)
_IN_A_BUD: Final = (KnowledgeFile, BudCheck, CheckPlan, CheckRun, BudVersion)
_HOLDS_A_BUD: Final = (Conversation, ChatImport)
"""Those of others need it: without it, they could not be read."""
_TOLD: Final = (KnowledgeFile, BudCheck, CheckPlan)
"""Of these the log has entries: the last one says that they are gone, and not again what they were."""
_NOTHING: Final[dict[str, Any]] = {
    **dict.fromkeys(("description", "system_prompt", "model"), ""),
    "parameters": {},
    "starter_prompts": [],
    "mcp_config": {},
    "provider": None,
    "takes_all_tools": False,
    "has_knowledge": False,
    "is_archived": True,
}


def tell_left_chats() -> None:
    """Called once at start."""
    register_left_behind(LeftBehind(has_any=_has_any, erase=_erase))


def _has_any(workspace_id: UUID, person_id: UUID) -> bool:
    kinds = (Conversation, *_BESIDE)
    return _buds_of(workspace_id, person_id).exists() or any(
        kind.objects.for_workspace(workspace_id).filter(owner_id=person_id).exists()
        for kind in kinds
    )


def _buds_of(workspace_id: UUID, person_id: UUID) -> Any:
    """Those that nobody else sees or uses."""
    return Bud.objects.for_workspace(workspace_id).filter(
        owner_id=person_id, visibility=BudVisibility.OWNER.value, is_draft=False
    )


def _erase(workspace_id: UUID, person_id: UUID, actor: Actor) -> ErasedThings:
    """Deleted at once, and erased chat by chat in the background: there may be thousands."""
    chats: int = (
        Conversation.objects.for_workspace(workspace_id)
        .filter(owner_id=person_id)
        .update(deleted_at=_LONG_AGO)
    )
    for kind in _BESIDE:
        kind.objects.for_workspace(workspace_id).filter(owner_id=person_id).delete()
    buds = list(_buds_of(workspace_id, person_id).select_for_update(of=("self",)))
    for bud in buds:
        _empty(bud, actor)
    return ErasedThings(chats=chats, buds=len(buds))


def _empty(bud: Bud, actor: Actor) -> None:
    """Take out all that was written for a bud. It goes with its chats; where others once used it, its name stays in theirs."""
    files = KnowledgeFile.objects.for_workspace(bud.workspace_id).filter(bud=bud)
    paths = list(files.values_list("path", flat=True))
    after_commit(drop_contents, bud.workspace_id, paths)
    for kind in _IN_A_BUD:
        rows = kind.objects.for_workspace(bud.workspace_id).filter(bud=bud)
        for row in rows if kind in _TOLD else ():
            record_changed(row, actor=actor, before={}, after={"erased": True})
        rows.delete()
    for name, value in _NOTHING.items():
        setattr(bud, name, value)
    # A draft is erased with its chats, once nobody has touched it for a day.
    bud.is_draft = not any(
        kind.objects.for_workspace(bud.workspace_id)
        .filter(bud=bud)
        .exclude(owner_id=bud.owner_id)
        .exists()
        for kind in _HOLDS_A_BUD
    )
    bud.save()
    record_changed(bud, actor=actor, before={}, after={"erased": True})
