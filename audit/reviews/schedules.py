"""Files of the log that are made again and again: who may have them, when the next is due, of what time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any
from uuid import UUID

from django.db import transaction
from django.utils.translation import gettext as _

from audit.exports.report_files import SCHEDULED
from audit.filters import EntryFilter
from audit.models import ReportSchedule
from audit.reviews.stored_filters import LONGEST, read_stored
from workspaces.actors import Actor, Source
from workspaces.changes import record_created, record_deleted, tracked_change
from workspaces.errors import Conflict, InvalidInput, PermissionDenied
from workspaces.middleware import actor_for
from workspaces.models import Membership, User
from workspaces.roles import Permission, has_permission, require

HOUR = 6
"""A file of a day is made at this hour (UTC) of the next one."""
MOST = 50
_Cadence = ReportSchedule.Cadence


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleDraft:
    """What a person chose."""

    name: str
    query: str
    format: str
    cadence: str
    delivery: str
    recipients: Sequence[str]

    @property
    def digest(self) -> str:
        """A short text that another choice would change."""
        return sha256(repr(self).encode()).hexdigest()[:16]


def draft_of(schedule: ReportSchedule) -> ScheduleDraft:
    """What a schedule is set to."""
    return ScheduleDraft(
        name=schedule.name,
        query=schedule.query,
        format=schedule.format,
        cadence=schedule.cadence,
        delivery=schedule.delivery,
        recipients=list(schedule.recipients),
    )


def create_schedule(
    *, workspace_id: UUID, actor: Actor, draft: ScheduleDraft, now: datetime
) -> ReportSchedule:
    """Have a file made from now on.

    Raises:
        PermissionDenied: the actor may not export.
        InvalidInput: with what is wrong.
    """
    require(actor, Permission.EXPORT_AUDIT, workspace_id=workspace_id)
    if actor.user_id is None:
        raise PermissionDenied
    faults = faults_of(draft, workspace_id=workspace_id, now=now)
    if faults:
        raise InvalidInput(fields=faults)
    if ReportSchedule.objects.for_workspace(workspace_id).count() >= MOST:
        raise InvalidInput(_("There are %(most)s schedules already.") % {"most": MOST})
    with transaction.atomic():
        schedule: ReportSchedule = ReportSchedule.objects.create(
            workspace_id=workspace_id,
            made_by_id=actor.user_id,
            name=draft.name.strip(),
            query=draft.query,
            format=draft.format,
            cadence=draft.cadence,
            delivery=draft.delivery,
            recipients=sorted(set(draft.recipients)),
            next_run_at=next_run(draft.cadence, now),
        )
        record_created(schedule, actor=actor)
    return schedule


def update_schedule(
    *,
    schedule: ReportSchedule,
    actor: Actor,
    draft: ScheduleDraft,
    now: datetime,
    seen: str | None = None,
) -> None:
    """Make the next files in another way. Those that were sent stay.

    Args:
        seen: the digest of what the schedule was set to when the person began to change it.

    Raises:
        PermissionDenied: the actor may not export.
        InvalidInput: with what is wrong.
        Conflict: it is set to something else by now.
    """
    require(actor, Permission.EXPORT_AUDIT, workspace_id=schedule.workspace_id)
    faults = faults_of(draft, workspace_id=schedule.workspace_id, now=now)
    if faults:
        raise InvalidInput(fields=faults)
    with transaction.atomic():
        rows = ReportSchedule.objects.for_workspace(schedule.workspace_id).select_for_update()
        row: ReportSchedule = rows.fetch(schedule.pk)
        if seen not in (None, draft_of(row).digest):
            raise Conflict(
                _(
                    "Somebody else changed this schedule while you had the form open. Save again to use your values."
                )
            )
        with tracked_change(row, actor=actor):
            if row.cadence != draft.cadence:
                row.next_run_at = next_run(draft.cadence, now)
            row.name, row.query = draft.name.strip(), draft.query
            row.format, row.cadence, row.delivery = draft.format, draft.cadence, draft.delivery
            row.recipients = sorted(set(draft.recipients))
            row.save(
                update_fields=[
                    *("name", "query", "format", "cadence", "delivery", "recipients"),
                    *("next_run_at", "updated_at"),
                ]
            )
    schedule.refresh_from_db()


def faults_of(draft: ScheduleDraft, *, workspace_id: UUID, now: datetime) -> dict[str, list[str]]:
    """What is wrong with what was chosen, at which field."""
    faults: dict[str, list[str]] = {}
    if not 0 < len(draft.name.strip()) <= 80:
        faults["name"] = [_("Give the schedule a name of at most 80 characters.")]
    for field, value, known in (
        ("format", draft.format, SCHEDULED),
        ("cadence", draft.cadence, _Cadence.values),
        ("delivery", draft.delivery, ReportSchedule.Delivery.values),
    ):
        if value not in known:
            faults[field] = [_("There is no such choice.")]
    if len(draft.query) > LONGEST:
        faults["query"] = [_("These filters are too long.")]
    elif wrong := filter_of(draft.query, now=now).errors:
        faults["query"] = list(wrong)
    if draft.delivery == ReportSchedule.Delivery.MAIL and not draft.recipients:
        faults["recipients"] = [_("Choose at least one recipient.")]
    elif not set(draft.recipients) <= {str(user.pk) for user in possible_recipients(workspace_id)}:
        faults["recipients"] = [_("Recipients must be members who may export the log.")]
    return faults


def pause_schedule(
    *, schedule: ReportSchedule, actor: Actor, is_paused: bool, now: datetime
) -> None:
    """Stop, or go on with the next one.

    Raises:
        PermissionDenied: the actor may not export.
    """
    require(actor, Permission.EXPORT_AUDIT, workspace_id=schedule.workspace_id)
    with tracked_change(schedule, actor=actor):
        schedule.is_active = not is_paused
        if not is_paused:
            schedule.next_run_at = next_run(schedule.cadence, now)
        schedule.save(update_fields=["is_active", "next_run_at", "updated_at"])


def delete_schedule(*, schedule: ReportSchedule, actor: Actor) -> None:
    """Forget it.

    Raises:
        PermissionDenied: the actor may not export.
    """
    require(actor, Permission.EXPORT_AUDIT, workspace_id=schedule.workspace_id)
    with transaction.atomic():
        record_deleted(schedule, actor=actor)
        schedule.delete()


def possible_recipients(workspace_id: UUID) -> list[User]:
    """Give the members who may export, today."""
    rows = (
        Membership.objects.for_workspace(workspace_id)
        .filter(user__is_active=True, is_auditor=True)
        .select_related("user")
        .order_by("user__email")
    )
    return [row.user for row in rows]


def may_export(user: User, workspace: Any) -> Actor | None:
    """Give the actor that a person is when the file is made; None: the right is gone."""
    actor = actor_for(user, workspace, source=Source.TASK)
    allowed = has_permission(actor, Permission.EXPORT_AUDIT, workspace_id=workspace.pk)
    return actor if user.is_active and workspace.is_active and allowed else None


def filter_of(query: str, *, now: datetime) -> EntryFilter:
    """Read a schedule's filters. Their time is the schedule's."""
    return read_stored(
        query,
        now=now,
        no_time=_("Leave since: and until: out. A schedule has its own time."),
        no_order=_("Leave sort: out. A file is in the order of time."),
    )


def next_run(cadence: str, after: datetime) -> datetime:
    """Give the next moment at which a file is due."""
    day = after.astimezone(UTC).replace(hour=HOUR, minute=0, second=0, microsecond=0)
    if day <= after:
        day += timedelta(days=1)
    while (cadence == _Cadence.WEEKLY and day.weekday() != 0) or (
        cadence == _Cadence.MONTHLY and day.day != 1
    ):
        day += timedelta(days=1)
    return day


def period_before(cadence: str, moment: datetime) -> tuple[datetime, datetime]:
    """Give the last whole day, week (from Monday) or month before a moment, in UTC."""
    midnight = moment.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    if cadence == _Cadence.DAILY:
        return midnight - timedelta(days=1), midnight
    if cadence == _Cadence.WEEKLY:
        until = midnight - timedelta(days=midnight.weekday())
        return until - timedelta(days=7), until
    until = midnight.replace(day=1)
    return (until - timedelta(days=1)).replace(day=1), until
