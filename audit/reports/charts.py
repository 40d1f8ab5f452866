"""Numbers of tool calls, counted from entries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo
from typing import TYPE_CHECKING, Any

from django.db.models import Case, CharField, Count, F, Min, Q, Value, When
from django.utils import timezone
from django.utils.translation import gettext as _

from audit.actions import FAILURES, Action
from audit.models import AuditEntry
from audit.reports.grouping import truncated
from audit.rollups.pieces import Unit, begin_of, pieces_of, unit_of
from workspaces.words.formats import piece_of_time

if TYPE_CHECKING:
    from workspaces.scoping import WorkspaceQuerySet

LONGEST_CHART = timedelta(days=3660)
MAX_BUCKETS = 400
_ENDED = (Action.TOOL_CALL_FINISHED.value, Action.TOOL_CALL_REFUSED.value)
_FAILED = Q(action=Action.TOOL_CALL_FINISHED.value) & Q(outcome__in=FAILURES)


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
class ChartSeries:
    """One line of a chart."""

    key: str
    label: str
    values: Sequence[int]

    def as_json(self) -> dict[str, Any]:
        """For the page's script."""
        return {"key": self.key, "label": self.label, "values": list(self.values)}


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeAxis:
    """When the pieces of time begin that a chart counts in."""

    starts: Sequence[datetime]
    unit: Unit
    zone: tzinfo

    @property
    def has_year(self) -> bool:
        """Whether a piece could be of another year than this one."""
        return len({one.astimezone(self.zone).year for one in (*self.starts, timezone.now())}) > 1

    @property
    def labels(self) -> list[str]:
        """Each piece as its reader chose to read dates, or as we write them."""
        has_year = self.has_year
        return [
            piece_of_time(one, self.unit, zone=self.zone, has_year=has_year) for one in self.starts
        ]

    def as_json(self) -> dict[str, Any]:
        """For the page's script, which writes dates like the reader's browser where they chose no form."""
        return {
            "labels": self.labels,
            "starts": list(self.starts),
            "unit": self.unit,
            "zone": str(self.zone),
            "has_year": self.has_year,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """Tool calls over time."""

    axis: TimeAxis
    drawn_by: str
    """The unit and the time zone in words."""
    series: Sequence[ChartSeries]

    def as_json(self) -> dict[str, Any]:
        """For the page's script."""
        return {
            **self.axis.as_json(),
            "drawn_by": self.drawn_by,
            "series": [one.as_json() for one in self.series],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryCounts:
    """What was read of entries at once."""

    entries: int
    first: datetime | None
    """When the first call ended."""
    totals: Totals


def totals_of(rows: WorkspaceQuerySet[AuditEntry], most: int) -> EntryCounts | None:
    """Count tool calls that ended, and approvals asked for; None if there are more than `most` entries."""
    timed = Q(action=Action.TOOL_CALL_FINISHED.value, duration_ms__isnull=False)
    counts = rows.order_by()[: most + 1].aggregate(
        entries=Count("id"),
        first=Min("created_at", filter=Q(action__in=_ENDED)),
        timed=Count("id", filter=timed),
        calls=Count("id", filter=Q(action__in=_ENDED)),
        failed=Count("id", filter=_FAILED),
        refused=Count("id", filter=Q(action=Action.TOOL_CALL_REFUSED.value)),
        waited=Count("id", filter=Q(action=Action.APPROVAL_REQUESTED.value)),
    )
    entries, first, number = (counts.pop(name) for name in ("entries", "first", "timed"))
    if entries > most:
        return None
    p95 = None
    if number:
        position = int(0.95 * (number - 1))
        durations = rows.filter(timed).order_by("duration_ms").values_list("duration_ms", flat=True)
        p95 = durations[position : position + 1].get()
    return EntryCounts(entries=entries, first=first, totals=Totals(**counts, p95_ms=p95))


def chart_of(
    rows: WorkspaceQuerySet[AuditEntry], *, since: datetime | None, until: datetime, zone: tzinfo
) -> Chart | None:
    """Count ended tool calls per piece of time, empty pieces included; None if there are none."""
    ended = rows.filter(action__in=_ENDED)
    # Nothing is older than this or newer than now, whatever somebody typed.
    until = min(until, timezone.now() + timedelta(minutes=1))
    since = max(since, until - LONGEST_CHART) if since is not None else None
    if since is None or since >= until:
        return None
    unit = unit_of(until - since)
    kind = Case(
        When(action=Action.TOOL_CALL_REFUSED.value, then=Value("refused")),
        When(outcome__in=FAILURES, then=Value("failed")),
        default=F("outcome"),
        output_field=CharField(),
    )
    counted = (
        ended.annotate(piece=truncated(unit, zone), kind=kind)
        .values("piece", "kind")
        .annotate(number=Count("id"))
        .order_by("piece")
    )
    numbers = {(begin_of(row["piece"], unit, zone), row["kind"]): row["number"] for row in counted}
    if not numbers:
        return None
    return chart_from(numbers, since, until, unit, zone)


def ends_in_words() -> dict[str, str]:
    """Say how calls ended: key → words, in the order of the charts."""
    return {
        "ok": _("Succeeded"),
        "failed": _("Failed"),
        "cancelled": _("Cancelled"),
        "refused": _("Refused"),
    }


def chart_from(
    numbers: Mapping[tuple[datetime, str], int],
    since: datetime,
    until: datetime,
    unit: Unit,
    zone: tzinfo,
) -> Chart:
    """Draw (piece of time, kind) → number, of the newest MAX_BUCKETS pieces."""
    pieces = pieces_of(since, until, unit, zone)[-MAX_BUCKETS:]
    return Chart(
        axis=TimeAxis(starts=pieces, unit=unit, zone=zone),
        drawn_by=unit_in_words(unit, zone),
        series=[
            ChartSeries(
                key=key, label=label, values=[numbers.get((piece, key), 0) for piece in pieces]
            )
            for key, label in ends_in_words().items()
        ],
    )


def unit_in_words(unit: Unit, zone: tzinfo) -> str:
    """Say what a chart is drawn by, and in which time zone."""
    words = {
        "minute": _("per minute, %(zone)s"),
        "hour": _("per hour, %(zone)s"),
        "day": _("per day, %(zone)s"),
        "week": _("per week from Monday, %(zone)s"),
        "month": _("per month, %(zone)s"),
    }
    return words[unit] % {"zone": zone}
