"""What was sent of the log, or was to be: kept for a while, so that people see what went out and who looked through it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final
from uuid import UUID

from django.db.models import Q, Window
from django.db.models.functions import RowNumber
from django.urls import reverse

from audit.filters import EntryFilter
from audit.models import AuditPolicy, LegalHold, ReportSchedule, SentFile, SignOff
from audit.reviews.stored_filters import filter_of, log_query
from workspaces.database import database_now
from workspaces.roles import Permission, require

if TYPE_CHECKING:
    from workspaces.actors import Actor
    from workspaces.models import User
    from workspaces.scoping import WorkspaceQuerySet

KEEP_DAYS: Final = 400
"""More than a year, so that a file of each month is there to be compared. A log that is kept shorter shortens it."""
MOST_SIGNERS: Final = 20
"""Shown of one file."""


def sent_files(workspace_id: UUID, *, actor: Actor) -> WorkspaceQuerySet[SentFile]:
    """Give what a workspace has sent of its log.

    Raises:
        PermissionDenied: the actor may not export.
    """
    require(actor, Permission.EXPORT_AUDIT, workspace_id=workspace_id)
    rows: WorkspaceQuerySet[SentFile] = SentFile.objects.for_workspace(workspace_id)
    return rows


def find_sent_file(workspace_id: UUID, sent_id: UUID | str, *, actor: Actor) -> SentFile:
    """Give one, for those who see the log: its link is in a mail.

    Raises:
        PermissionDenied: the actor does not see the log.
        NotFound: there is none here.
    """
    require(actor, Permission.VIEW_AUDIT, workspace_id=workspace_id)
    found: SentFile = SentFile.objects.for_workspace(workspace_id).fetch(sent_id)
    return found


def filter_of_file(sent: SentFile, *, now: datetime) -> EntryFilter:
    """Give what a file is of."""
    return replace(filter_of(sent.query, now=now), since=sent.since, until=sent.until)


def path_of(sent: SentFile) -> str:
    """Give the page on which a file is looked through: the address that its mail has."""
    return reverse("audit:sent-file", args=[sent.workspace.slug, sent.pk])


def log_query_of(sent: SentFile) -> str:
    """Give the address of the log with what a file is of, after the question mark."""
    return log_query(sent.query, sent.since, sent.until, sent=str(sent.pk))


def sign_offs_of(
    workspace_id: UUID, sent: Iterable[SentFile], *, reader: User
) -> Mapping[UUID | None, list[SignOff]]:
    """Give who signed off each of some files: the first ones, and the reader wherever they stand among them."""
    ids = [row.pk for row in sent]
    found: dict[UUID | None, list[SignOff]] = {}
    rows = SignOff.objects.for_workspace(workspace_id).filter(sent_file_id__in=ids)
    place = Window(RowNumber(), partition_by="sent_file_id", order_by=("signed_at", "pk"))
    shown = rows.annotate(place=place).filter(
        Q(place__lte=MOST_SIGNERS) | Q(signed_by_id=reader.pk)
    )
    for row in shown.order_by("signed_at", "pk"):
        found.setdefault(row.sent_file_id, []).append(row)
    return found


def give_up_waiting(schedule: ReportSchedule, reason: str) -> None:
    """Do not try again to send what a schedule could not send."""
    rows = SentFile.objects.for_workspace(schedule.workspace_id)
    waiting = rows.filter(schedule=schedule, status=SentFile.Status.WAITING)
    waiting.update(status=SentFile.Status.FAILED, fault=reason[:500])


def trim_sent_files() -> int:
    """Forget what was sent long ago, and earlier where the log itself is kept shorter. Sign-offs stay.

    Nothing goes where a legal hold stands.
    """
    now = database_now()
    held = LegalHold.objects.across_workspaces().filter(released_at=None).values("workspace_id")
    rows = SentFile.objects.across_workspaces().exclude(workspace_id__in=held)
    rows = rows.exclude(
        status=SentFile.Status.WAITING, schedule__isnull=False, due_at__isnull=False
    )
    count: int = rows.filter(created_at__lt=now - timedelta(days=KEEP_DAYS)).delete()[0]
    shorter = AuditPolicy.objects.across_workspaces().filter(keep_days__lt=KEEP_DAYS)
    for policy in shorter.order_by("pk"):
        # Once the time that a file is of has left the log, nobody can look through it.
        left = now - timedelta(days=policy.keep_days or 0)
        removed = rows.filter(workspace_id=policy.workspace_id, until__lt=left)
        count += removed.delete()[0]
    return count
