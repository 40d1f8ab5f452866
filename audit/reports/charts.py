"""Numbers of tool calls, counted from entries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from django.db.models import Case, CharField, Count, Min, Q, Value, When
from django.db.models.functions import Trunc
from django.utils import timezone
from django.utils.translation import gettext as _

from audit.actions import Action
from audit.models import AuditEntry
from workspaces.formats import piece_of_time

if TYPE_CHECKING:
    from workspaces.scoping import WorkspaceQuerySet

LONGEST_CHART = timedelta(days=3660)
MAX_BUCKETS = 400
_ENDED = (Action.TOOL_CALL_FINISHED.value, Action.TOOL_CALL_REFUSED.value)
_FAILED = Q(action=Action.TOOL_CALL_FINISHED.value) & ~Q(outcome="ok")


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
    unit = unit_of(until - since)
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
    return chart_from(numbers, since, until, unit)


def ends_in_words() -> dict[str, str]:
    """Say how calls ended: key → words, in the order of the charts."""
    return {"ok": _("Succeeded"), "failed": _("Failed or cancelled"), "refused": _("Refused")}


def chart_from(
    numbers: Mapping[tuple[datetime, str], int], since: datetime, until: datetime, unit: str
) -> Chart:
    """Draw (piece of time, kind) → number."""
    pieces = _pieces(since, until, unit)
    return Chart(
        labels=[piece_of_time(piece, unit) for piece in pieces],
        unit=unit,
        series=[
            Series(key=key, label=label, values=[numbers.get((piece, key), 0) for piece in pieces])
            for key, label in ends_in_words().items()
        ],
    )


def unit_of(length: timedelta) -> str:
    """Give the piece of time by which so long a range is drawn."""
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
