"""The read side of the log: queries into typed values. Every one begins at the workspace's door."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.db.models import Case, CharField, Count, Max, Min, Q, Value, When
from django.db.models.functions import Trunc
from django.utils import timezone
from django.utils.formats import date_format

from audit.actions import Action
from audit.filters import REFUSED, EntryFilter
from audit.models import AuditEntry
from workspaces.roles import Permission, has_permission, require

if TYPE_CHECKING:
    from workspaces.actors import Actor
    from workspaces.scoping import WorkspaceQuerySet

PAGE_SIZE = 50
MAX_CHOICES = 200
LONGEST_CHART = timedelta(days=3660)
MAX_BUCKETS = 400
_ENDED = (Action.TOOL_CALL_FINISHED.value, Action.TOOL_CALL_REFUSED.value)
_FAILED = Q(action=Action.TOOL_CALL_FINISHED.value) & ~Q(outcome="ok")


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Some entries, newest first, and the ids after which the neighbouring pages begin."""

    entries: Sequence[AuditEntry]
    newer_than: UUID | None
    older_than: UUID | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """Tool calls that ended in the time, and how."""

    calls: int
    failed: int
    refused: int
    waited: int
    """Approvals that were asked for."""
    p95_ms: int | None
    """95 of 100 calls were answered within this time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """One line of a chart."""

    key: str
    label: str
    values: Sequence[int]

    def as_json(self) -> dict[str, Any]:
        """For the page's script."""
        return {"key": self.key, "label": self.label, "values": list(self.values)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """Tool calls over time."""

    labels: Sequence[str]
    unit: str
    series: Sequence[Series]

    def as_json(self) -> dict[str, Any]:
        """For the page's script."""
        return {
            "labels": list(self.labels),
            "unit": self.unit,
            "series": [one.as_json() for one in self.series],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """Values that occur, as (value, label), for the filters."""

    servers: Sequence[tuple[str, str]]
    tools: Sequence[tuple[str, str]]
    users: Sequence[tuple[str, str]]


def entries_of(workspace_id: UUID, *, actor: Actor) -> WorkspaceQuerySet[AuditEntry]:
    """Give the workspace's entries to those who may see the log.

    Raises:
        PermissionDenied: the actor is neither admin nor auditor here.
    """
    require(actor, Permission.VIEW_AUDIT, workspace_id=workspace_id)
    rows: WorkspaceQuerySet[AuditEntry] = AuditEntry.objects.for_workspace(workspace_id)
    return rows


def matching(
    rows: WorkspaceQuerySet[AuditEntry], wanted: EntryFilter
) -> WorkspaceQuerySet[AuditEntry]:
    """Narrow entries to a filter."""
    if wanted.since:
        rows = rows.filter(created_at__gte=wanted.since)
    if wanted.until:
        rows = rows.filter(created_at__lt=wanted.until)
    if wanted.action:
        rows = rows.filter(action=wanted.action)
    if wanted.outcome == REFUSED:
        rows = rows.exclude(refused_by="")
    elif wanted.outcome:
        rows = rows.filter(outcome=wanted.outcome)
    if wanted.server:
        rows = rows.filter(server_name=wanted.server)
    if wanted.tool:
        rows = rows.filter(tool_name=wanted.tool)
    if wanted.user_id:
        rows = rows.filter(actor_id=wanted.user_id)
    elif wanted.user:
        rows = rows.filter(actor_label=wanted.user, actor_id=None)
    return rows


def page_of(
    rows: WorkspaceQuerySet[AuditEntry],
    *,
    older_than: UUID | None = None,
    newer_than: UUID | None = None,
) -> Page:
    """Give one page, found by key: entries that arrive meanwhile shift nothing."""
    if newer_than is not None:
        found = list(rows.filter(id__gt=newer_than).order_by("id")[: PAGE_SIZE + 1])
        has_newer = len(found) > PAGE_SIZE
        entries = found[:PAGE_SIZE][::-1]
        has_older = True
    else:
        older = rows if older_than is None else rows.filter(id__lt=older_than)
        found = list(older.order_by("-id")[: PAGE_SIZE + 1])
        has_older = len(found) > PAGE_SIZE
        entries = found[:PAGE_SIZE]
        has_newer = older_than is not None
    return Page(
        entries=entries,
        newer_than=entries[0].pk if entries and has_newer else None,
        older_than=entries[-1].pk if entries and has_older else None,
    )


def totals_of(rows: WorkspaceQuerySet[AuditEntry]) -> Totals:
    """Count tool calls that ended, and approvals asked for."""
    counts = rows.aggregate(
        calls=Count("id", filter=Q(action__in=_ENDED)),
        failed=Count("id", filter=_FAILED),
        refused=Count("id", filter=Q(action=Action.TOOL_CALL_REFUSED.value)),
        waited=Count("id", filter=Q(action=Action.APPROVAL_REQUESTED.value)),
    )
    timed = rows.filter(action=Action.TOOL_CALL_FINISHED.value, duration_ms__isnull=False)
    number = timed.count()
    p95 = None
    if number:
        position = int(0.95 * (number - 1))
        durations = timed.order_by("duration_ms").values_list("duration_ms", flat=True)
        p95 = durations[position : position + 1].get()
    return Totals(**counts, p95_ms=p95)


def chart_of(
    rows: WorkspaceQuerySet[AuditEntry], *, since: datetime | None, until: datetime
) -> Chart | None:
    """Count ended tool calls per piece of time, empty pieces included; None if there are none."""
    ended = rows.filter(action__in=_ENDED)
    if since is None:
        since = ended.aggregate(first=Min("created_at"))["first"]
    # Nothing is older than this or newer than now, whatever somebody typed.
    until = min(until, timezone.now() + timedelta(minutes=1))
    since = max(since, until - LONGEST_CHART) if since is not None else None
    if since is None or since >= until:
        return None
    unit = _unit(until - since)
    kind = Case(
        When(action=Action.TOOL_CALL_REFUSED.value, then=Value("refused")),
        When(outcome="ok", then=Value("ok")),
        default=Value("failed"),
        output_field=CharField(),
    )
    counted = (
        ended.annotate(piece=Trunc("created_at", unit, tzinfo=UTC), kind=kind)
        .values("piece", "kind")
        .annotate(number=Count("id"))
        .order_by("piece")
    )
    numbers = {(row["piece"], row["kind"]): row["number"] for row in counted}
    if not numbers:
        return None
    pieces = _pieces(since, until, unit)
    labels = {"minute": "H:i", "hour": "j M H:i", "day": "j M", "month": "M Y"}
    kinds = {"ok": "Succeeded", "failed": "Failed or stopped", "refused": "Refused"}
    return Chart(
        labels=[date_format(piece, labels[unit]) for piece in pieces],
        unit=unit,
        series=[
            Series(key=key, label=label, values=[numbers.get((piece, key), 0) for piece in pieces])
            for key, label in kinds.items()
        ],
    )


def _unit(length: timedelta) -> str:
    if length <= timedelta(hours=2):
        return "minute"
    if length <= timedelta(days=3):
        return "hour"
    return "day" if length <= timedelta(days=180) else "month"


def _pieces(since: datetime, until: datetime, unit: str) -> list[datetime]:
    """Give the beginning of each piece of time, at most MAX_BUCKETS, the newest kept."""
    moment = since.astimezone(UTC).replace(second=0, microsecond=0)
    if unit != "minute":
        moment = moment.replace(minute=0)
    if unit in {"day", "month"}:
        moment = moment.replace(hour=0)
    if unit == "month":
        moment = moment.replace(day=1)
    pieces = []
    while moment < until:
        pieces.append(moment)
        if unit == "month":
            moment = (moment + timedelta(days=32)).replace(day=1)
        else:
            moment += timedelta(**{f"{unit}s": 1})
    return pieces[-MAX_BUCKETS:]


def choices_of(rows: WorkspaceQuerySet[AuditEntry]) -> Choices:
    """Give the servers, tools and people that occur, at most MAX_CHOICES of each."""

    def names(column: str) -> list[tuple[str, str]]:
        found = rows.exclude(**{column: ""}).order_by(column).values_list(column, flat=True)
        return [(name, name) for name in found.distinct()[:MAX_CHOICES]]

    # A person who changed the address keeps one place in the list, under the newest one.
    people = rows.values("actor_id").annotate(label=Max("actor_label")).order_by("label")
    users = [
        (str(person["actor_id"] or person["label"]), person["label"])
        for person in people[:MAX_CHOICES]
    ]
    return Choices(servers=names("server_name"), tools=names("tool_name"), users=users)


def related_to(entry: AuditEntry, rows: WorkspaceQuerySet[AuditEntry]) -> Sequence[AuditEntry]:
    """Give all entries of the entry's call, oldest first; nothing for what is no call."""
    if entry.call_id is None:
        return []
    return list(rows.filter(call_id=entry.call_id).order_by("id")[:100])


def may_see_bodies(entry: AuditEntry, *, actor: Actor) -> bool:
    """Whether the actor may read an entry's arguments and result: an auditor, or whose call it was."""
    if has_permission(actor, Permission.VIEW_AUDIT_BODIES, workspace_id=entry.workspace_id):
        return True
    return entry.actor_id is not None and entry.actor_id == actor.user_id
