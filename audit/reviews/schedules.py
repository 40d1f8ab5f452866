"""Files of the log that are made again and again: what is chosen for them, and who may have them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from typing import Any, Final
from uuid import UUID

from django.db import transaction
from django.utils.translation import gettext as _

from audit.exports.report_files import SCHEDULED
from audit.models import ReportSchedule
from audit.reviews import timing
from audit.reviews.sent_files import give_up_waiting
from audit.reviews.stored_filters import LONGEST, filter_of
from audit.reviews.timing import USUAL_HOUR
from workspaces.actors import Actor, Source
from workspaces.changes import record_created, record_deleted, tracked_change
from workspaces.errors import Conflict, InvalidInput, PermissionDenied
from workspaces.holding import hold, take_room
from workspaces.middleware import actor_for
from workspaces.models import Membership, User
from workspaces.roles import Permission, has_permission, require
from workspaces.scoping import WorkspaceQuerySet
from workspaces.words.formats import time_zones

MOST = 50
MOST_OFFERED: Final = 200
"""People among whom a form lets choose."""
_FIELDS: Final = (
    *("name", "query", "format", "cadence", "hour", "time_zone", "covers", "delivery"),
    "recipients",
)
"""Of a schedule, which a person chooses."""
_TIMES: Final = ("cadence", "hour", "time_zone")


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleDraft:
    """What a person chose."""

    name: str
    query: str
    format: str
    cadence: str
    delivery: str
    recipients: Sequence[str]
    hour: int = USUAL_HOUR
    time_zone: str = "UTC"
    covers: str = ""

    def next_run(self, after: datetime) -> datetime:
        """Give the next moment at which a file is due."""
        return timing.next_run(self.cadence, after, hour=self.hour, time_zone=self.time_zone)

    def next_runs(self, after: datetime) -> list[datetime]:
        """Give the next three moments at which files are due."""
        return timing.next_runs(self.cadence, after, hour=self.hour, time_zone=self.time_zone)

    def period_before(self, moment: datetime) -> tuple[datetime, datetime]:
        """Give the time that a file of this moment is of."""
        return timing.period_before(
            self.cadence, moment, time_zone=self.time_zone, covers=self.covers
        )

    @property
    def digest(self) -> str:
        """A short text that another choice would change."""
        return sha256(repr(self).encode()).hexdigest()[:16]


def draft_of(schedule: ReportSchedule) -> ScheduleDraft:
    """What a schedule is set to."""
    values = {name: getattr(schedule, name) for name in _FIELDS}
    return ScheduleDraft(**{**values, "recipients": list(schedule.recipients)})


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
    with transaction.atomic():
        take_room(
            ReportSchedule.objects.for_workspace(workspace_id),
            most=MOST,
            refusal=InvalidInput(_("There are %(most)s schedules already.") % {"most": MOST}),
            workspace_id=workspace_id,
        )
        schedule: ReportSchedule = ReportSchedule.objects.create(
            workspace_id=workspace_id,
            made_by_id=actor.user_id,
            **_stored(draft),
            next_run_at=draft.next_run(now),
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
            if any(getattr(row, name) != getattr(draft, name) for name in _TIMES):
                row.next_run_at = draft.next_run(now)
            for name, value in _stored(draft).items():
                setattr(row, name, value)
            row.save(update_fields=[*_FIELDS, "next_run_at", "updated_at"])
    schedule.refresh_from_db()


def _stored(draft: ScheduleDraft) -> dict[str, Any]:
    values = {name: getattr(draft, name) for name in _FIELDS}
    return {
        **values,
        "name": draft.name.strip(),
        "recipients": sorted(set(draft.recipients)),
    }


def faults_of(draft: ScheduleDraft, *, workspace_id: UUID, now: datetime) -> dict[str, list[str]]:
    """What is wrong with what was chosen, at which field."""
    faults: dict[str, list[str]] = {}
    if not 0 < len(draft.name.strip()) <= 80:
        faults["name"] = [_("Give the schedule a name of at most 80 characters.")]
    for field, value, known in (
        ("format", draft.format, SCHEDULED),
        ("cadence", draft.cadence, ReportSchedule.Cadence.values),
        ("hour", draft.hour, range(24)),
        ("covers", draft.covers, ReportSchedule.Covers.values),
        ("delivery", draft.delivery, ReportSchedule.Delivery.values),
    ):
        if value not in known:
            faults[field] = [_("There is no such choice.")]
    if draft.time_zone not in time_zones():
        message = _("There is no time zone of this name. Use one such as Europe/Zurich.")
        faults["time_zone"] = [message]
    if len(draft.query) > LONGEST:
        faults["query"] = [_("These filters are too long.")]
    elif wrong := filter_of(draft.query, now=now).errors:
        faults["query"] = list(wrong)
    if draft.delivery == ReportSchedule.Delivery.MAIL and not draft.recipients:
        faults["recipients"] = [_("Choose at least one recipient.")]
    elif not _may_all_get(draft.recipients, workspace_id):
        faults["recipients"] = [_("Recipients must be members who may export the log.")]
    return faults


def pause_schedule(
    *, schedule: ReportSchedule, actor: Actor, is_paused: bool, now: datetime
) -> None:
    """Stop, or go on with the next one; one that is so already stays as it is, with what it could not send yet.

    Raises:
        PermissionDenied: the actor may not export.
    """
    require(actor, Permission.EXPORT_AUDIT, workspace_id=schedule.workspace_id)
    with transaction.atomic():
        hold(schedule)
        if schedule.is_active is not is_paused:
            return
        with tracked_change(schedule, actor=actor):
            schedule.is_active = not is_paused
            # Nor does it go on with what it could not send before it stopped in another way.
            give_up_waiting(schedule, _("The schedule was paused."))
            if not is_paused:
                schedule.next_run_at = draft_of(schedule).next_run(now)
            schedule.save(update_fields=["is_active", "next_run_at", "updated_at"])


def delete_schedule(*, schedule: ReportSchedule, actor: Actor) -> None:
    """Forget it. What it has sent stays on record.

    Raises:
        PermissionDenied: the actor may not export.
    """
    require(actor, Permission.EXPORT_AUDIT, workspace_id=schedule.workspace_id)
    with transaction.atomic():
        hold(schedule)
        give_up_waiting(schedule, _("The schedule was deleted."))
        record_deleted(schedule, actor=actor)
        schedule.delete()


def possible_recipients(workspace_id: UUID, *, most: int | None = None) -> list[User]:
    """Give the members who may export, today, by their address."""
    rows = _readers(workspace_id).select_related("user").order_by("user__email")
    return [row.user for row in rows[:most]]


def offered_recipients(workspace_id: UUID, chosen: Sequence[str]) -> tuple[list[User], bool]:
    """Give the people of a form by their names, with those that are chosen already, and whether there are more."""
    found = possible_recipients(workspace_id, most=MOST_OFFERED + 1)
    is_cut = len(found) > MOST_OFFERED
    offered = found[:MOST_OFFERED]
    if is_cut:
        there = {user.pk for user in offered}
        offered += [user for user in people_of(workspace_id, chosen) if user.pk not in there]
    return sorted(offered, key=lambda user: user.display_name.casefold()), is_cut


def people_of(workspace_id: UUID, recipients: Sequence[str]) -> list[User]:
    """Give those of some people who may export, today."""
    rows = _readers(workspace_id).filter(user_id__in=_ids(recipients)).select_related("user")
    return [row.user for row in rows.order_by("user__email")]


def _readers(workspace_id: UUID) -> WorkspaceQuerySet[Membership]:
    """Whoever gets the file reads arguments and results, so it takes the auditor right."""
    rows: WorkspaceQuerySet[Membership] = Membership.objects.for_workspace(workspace_id)
    return rows.filter(user__is_active=True, is_auditor=True)


def _may_all_get(recipients: Sequence[str], workspace_id: UUID) -> bool:
    wanted = _ids(recipients)
    if len(wanted) != len(set(recipients)):
        return False
    return _readers(workspace_id).filter(user_id__in=wanted).count() == len(wanted)


def _ids(texts: Sequence[str]) -> set[UUID]:
    found = set()
    for text in texts:
        try:
            found.add(UUID(text))
        except ValueError:
            continue
    return found


def may_export(user: User, workspace: Any) -> Actor | None:
    """Give the actor that a person is when the file is made; None: the right is gone."""
    actor = actor_for(user, workspace, source=Source.TASK)
    allowed = has_permission(actor, Permission.EXPORT_AUDIT, workspace_id=workspace.pk)
    return actor if user.is_active and workspace.is_active and allowed else None
