"""Legal holds: while one stands, nothing of a workspace's log is removed or erased."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from audit.actions import Action
from audit.models import LegalHold
from audit.services import EntryDraft, record
from workspaces.changes import record_created, tracked_change
from workspaces.errors import Conflict, InvalidInput
from workspaces.models import Workspace
from workspaces.roles import Permission, require

if TYPE_CHECKING:
    from workspaces.actors import Actor


def active_hold(workspace_id: UUID) -> LegalHold | None:
    """The hold that stands, if one does."""
    return LegalHold.objects.for_workspace(workspace_id).filter(released_at=None).first()


def lock_removal(workspace_id: UUID) -> None:
    """In a transaction: from now on nobody places or releases a hold, and nobody else removes."""
    rows = Workspace.objects.select_for_update(no_key=True).filter(pk=workspace_id)
    rows.values_list("pk").first()


@transaction.atomic
def place_hold(*, workspace_id: UUID, reason: str, actor: Actor) -> LegalHold:
    """Forbid removal until the hold is released.

    Raises:
        PermissionDenied: the actor may not change the workspace's settings.
        InvalidInput: no reason is given.
        Conflict: a hold stands already.
    """
    require(actor, Permission.MANAGE_WORKSPACE, workspace_id=workspace_id)
    reason = reason.strip()
    if not reason:
        raise InvalidInput(fields={"reason": [_("Say why, for people who read it later.")]})
    lock_removal(workspace_id)
    if active_hold(workspace_id) is not None:
        raise Conflict(_("There is a legal hold already."))
    hold = LegalHold.objects.create(
        workspace_id=workspace_id, reason=reason[:500], placed_by=actor.label[:254]
    )
    record_created(hold, actor=actor)
    _record(Action.HOLD_PLACED, hold, actor)
    return hold


@transaction.atomic
def release_hold(*, workspace_id: UUID, hold_id: UUID, actor: Actor) -> LegalHold:
    """Allow removal again.

    Raises:
        PermissionDenied: the actor may not change the workspace's settings.
        NotFound: there is no such hold here.
        Conflict: it was released before.
    """
    require(actor, Permission.MANAGE_WORKSPACE, workspace_id=workspace_id)
    lock_removal(workspace_id)
    hold: LegalHold = LegalHold.objects.for_workspace(workspace_id).fetch(hold_id)
    if hold.released_at is not None:
        raise Conflict(_("This legal hold was released before."))
    with tracked_change(hold, actor=actor):
        hold.released_at, hold.released_by = timezone.now(), actor.label[:254]
        hold.save(update_fields=["released_at", "released_by"])
    _record(Action.HOLD_RELEASED, hold, actor)
    return hold


def _record(action: Action, hold: LegalHold, actor: Actor) -> None:
    record(
        EntryDraft(
            action=action,
            actor=actor,
            workspace_id=hold.workspace_id,
            details={"hold": str(hold.pk), "reason": hold.reason},
        )
    )
