"""That the log was taken away is itself an entry."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

from audit.actions import Action
from audit.services import EntryDraft, record
from workspaces.roles import Permission, require

if TYPE_CHECKING:
    from audit.filters import EntryFilter
    from workspaces.actors import Actor


def record_export(
    *,
    actor: Actor,
    workspace_id: UUID,
    format_name: str,
    wanted: EntryFilter,
    **more: object,
) -> None:
    """Write down who takes the log away, before anything of it is given.

    Raises:
        PermissionDenied: the actor may not export.
        AuditUnavailable: it could not be written; then nothing is given.
    """
    require(actor, Permission.EXPORT_AUDIT, workspace_id=workspace_id)
    filters = {name: value for name, value in wanted.typed.items() if value}
    record(
        EntryDraft(
            action=Action.EXPORT_CREATED,
            actor=actor,
            workspace_id=workspace_id,
            details={"format": format_name, "filters": filters, **more},
        )
    )
