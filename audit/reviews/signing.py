"""That a person has reviewed a part of the log, with the numbers it had then: in the sealed log, and in a list."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

from django.db import transaction
from django.utils.translation import gettext as _

from audit.actions import Action
from audit.filters import EntryFilter
from audit.models import SignOff
from audit.reports.entries import entries_of
from audit.reports.overview import overview_of
from audit.services import EntryDraft, record
from workspaces.errors import InvalidInput
from workspaces.roles import Permission, require

if TYPE_CHECKING:
    from workspaces.actors import Actor

LONGEST_NOTE = 1000


def sign_off(
    *, workspace_id: UUID, actor: Actor, since: datetime, until: datetime, note: str, now: datetime
) -> SignOff:
    """Record that the actor has reviewed the log of that time.

    Raises:
        PermissionDenied: the actor does not see the log.
        InvalidInput: the time is none, or not over yet.
        AuditUnavailable: it could not be recorded.
    """
    require(actor, Permission.VIEW_AUDIT, workspace_id=workspace_id)
    if since >= until:
        raise InvalidInput(fields={"until": [_("“From” must be before “To”.")]})
    if until > now:
        told = _("You can only review the past. Choose an end that is not in the future.")
        raise InvalidInput(fields={"until": [told]})
    note = note.strip()
    if len(note) > LONGEST_NOTE:
        raise InvalidInput(fields={"note": [_("A note has at most 1000 characters.")]})
    rows = entries_of(workspace_id, actor=actor)
    wanted = EntryFilter(range="custom", since=since, until=until)
    overview = overview_of(workspace_id, rows, wanted, now=now, actor=actor)
    totals = {"entries": overview.entries, **(asdict(overview.totals) if overview.totals else {})}
    with transaction.atomic():
        entry = record(
            EntryDraft(
                action=Action.REPORT_SIGNED_OFF,
                actor=actor,
                workspace_id=workspace_id,
                details={
                    "since": since.isoformat(),
                    "until": until.isoformat(),
                    "note": note,
                    "totals": totals,
                },
            )
        )
        return SignOff.objects.create(
            workspace_id=workspace_id,
            since=since,
            until=until,
            note=note,
            totals=totals,
            signed_by_id=actor.user_id,
            signed_by=actor.label[:254],
            entry_id=entry.pk,
        )
