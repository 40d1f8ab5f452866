"""That a person has reviewed a part of the log, with the numbers it had then: in the sealed log, and in a list.

What is reviewed is a time, or what a sent file is of: its time, with its filters.
"""

from __future__ import annotations

from dataclasses import asdict, replace
from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

from django.db import IntegrityError, transaction
from django.utils.translation import gettext as _

from audit import rollups
from audit.actions import Action
from audit.filters import EntryFilter
from audit.models import SentFile, SignOff
from audit.reports.entries import entries_of
from audit.reports.overview import overview_of
from audit.reviews.sent_files import filter_of_file
from audit.services import EntryDraft, record
from workspaces.errors import Conflict, InvalidInput
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
        message = _("You can only review the past. Choose an end that is not in the future.")
        raise InvalidInput(fields={"until": [message]})
    note = _read_note(note)
    wanted = EntryFilter(range="custom", since=since, until=until)
    totals = _totals(workspace_id, wanted, actor=actor, now=now)
    draft = SignOff(workspace_id=workspace_id, since=since, until=until, note=note, totals=totals)
    return _keep(draft, actor=actor, file_name="")


def sign_off_file(*, sent: SentFile, actor: Actor, note: str, now: datetime) -> SignOff:
    """Record that the actor has looked through what a sent file is of. Each person does so once.

    Raises:
        PermissionDenied: the actor does not see the log.
        InvalidInput: the note is too long.
        Conflict: the actor has signed it off already, or it was not sent.
        AuditUnavailable: it could not be recorded.
    """
    require(actor, Permission.VIEW_AUDIT, workspace_id=sent.workspace_id)
    if sent.status != SentFile.Status.SENT:
        raise Conflict(_("This file was not sent yet, so there is nothing to sign off."))
    message = _("You have signed this off already.")
    mine = SignOff.objects.for_workspace(sent.workspace_id).filter(sent_file_id=sent.pk)
    if mine.filter(signed_by_id=actor.user_id).exists():
        raise Conflict(message)
    note = _read_note(note)
    wanted = replace(filter_of_file(sent, now=now), range="custom")
    totals = _totals(sent.workspace_id, wanted, actor=actor, now=now)
    draft = SignOff(
        workspace_id=sent.workspace_id,
        since=sent.since,
        until=sent.until,
        query=sent.query,
        sent_file_id=sent.pk,
        note=note,
        totals=totals,
    )
    try:
        return _keep(draft, actor=actor, file_name=sent.name)
    except IntegrityError as error:
        raise Conflict(message) from error


def _totals(
    workspace_id: UUID, wanted: EntryFilter, *, actor: Actor, now: datetime
) -> dict[str, int | None]:
    rows = entries_of(workspace_id, actor=actor)
    rollups.count_sealed(workspace_id)
    overview = overview_of(workspace_id, rows, wanted, now=now, actor=actor)
    if overview.missing:
        raise Conflict(_("The newest entries are not counted yet. Try again in a minute."))
    return {"entries": overview.entries, **(asdict(overview.totals) if overview.totals else {})}


def _read_note(note: str) -> str:
    note = note.replace("\x00", "").strip()
    if len(note) > LONGEST_NOTE:
        raise InvalidInput(fields={"note": [_("A note has at most 1000 characters.")]})
    return note


def _keep(draft: SignOff, *, actor: Actor, file_name: str) -> SignOff:
    """Write it into the log and into the list."""
    of_file = {
        "query": draft.query,
        "sent_file": str(draft.sent_file_id),
        "sent_file_name": file_name,
    }
    with transaction.atomic():
        entry = record(
            EntryDraft(
                action=Action.REPORT_SIGNED_OFF,
                actor=actor,
                workspace_id=draft.workspace_id,
                details={
                    "since": draft.since.isoformat(),
                    "until": draft.until.isoformat(),
                    "note": draft.note,
                    "totals": draft.totals,
                    **(of_file if draft.sent_file_id else {}),
                },
            )
        )
        draft.signed_by_id, draft.signed_by = actor.user_id, actor.label[:254]
        draft.entry_id = entry.pk
        draft.save(force_insert=True)
    return draft
