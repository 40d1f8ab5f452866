"""The numbers above the list of entries: from counters where they can say it, counted from entries where not."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta, tzinfo
from typing import TYPE_CHECKING, Final
from uuid import UUID

from django.db.models import Count, Max, Q, Sum
from django.db.models.functions import Trunc

from audit.actions import FAILURES, REFUSALS, Action, end_of
from audit.filters import ENDED, FAILED, REFUSED, EntryFilter
from audit.models import AuditEntry, AuditRollup, Dimension, Measure
from audit.reports.charts import Chart, Totals, chart_from, chart_of, totals_of
from audit.reports.searching import FREQUENT, few_of, is_frequent, matching, may_search
from audit.rollups.histogram import bucket_of, percentile
from audit.rollups.pieces import MINUTES, unit_of, whole_hours_zone
from audit.rollups.reading import (
    TimeRange,
    UncountedEntries,
    cells,
    first_hour,
    histograms,
    read_with_tail,
)

if TYPE_CHECKING:
    from workspaces.actors import Actor
    from workspaces.scoping import WorkspaceQuerySet

MOST_COUNTED = 100_000
"""A filter that no counter knows is counted up to here."""
_REFUSED = Action.TOOL_CALL_REFUSED.value
_FINISHED = Action.TOOL_CALL_FINISHED.value


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """What the filtered entries come to."""

    entries: int
    is_more: bool = False
    """There are more than could be counted; then there is nothing else."""
    totals: Totals | None = None
    chart: Chart | None = None
    missing: int = 0
    """Entries that no counter holds yet, and that are not in these numbers: the filter may not fit them."""


@dataclass(frozen=True, slots=True)
class _Row:
    start: datetime
    action: str
    outcome: str
    number: int


def overview_of(
    workspace_id: UUID,
    rows: WorkspaceQuerySet[AuditEntry],
    wanted: EntryFilter,
    *,
    now: datetime,
    actor: Actor,
    zone: tzinfo = UTC,
) -> Overview:
    """Count what a filter finds, and draw it in a time zone."""
    until = min(wanted.until or now, now)
    if _is_too_much(workspace_id, wanted, until, actor):
        return Overview(entries=FREQUENT, is_more=True)
    place = _counted_as(wanted)
    if place is None or (wanted.since and until - wanted.since <= MINUTES):
        return _from_entries(rows, wanted, actor, now=now, zone=zone)
    dimension, value = place

    def read(tail: UncountedEntries) -> Overview:
        since = wanted.since or first_hour(workspace_id, tail) or until
        inner = _whole_hours(since, until, zone)
        if inner is None:
            return _from_entries(rows, wanted, actor, now=now, zone=zone)
        edges = [
            replace(wanted, since=since, until=inner.since),
            replace(wanted, since=inner.until, until=wanted.until),
        ]
        found = [
            _Row(
                cell.start,
                cell.action,
                cell.outcome,
                cell.sums.timed if wanted.leaves_out_empty else cell.sums.number,
            )
            for cell in cells(workspace_id, dimension, inner, tail, by_time=True, value=value)
            if cell.start and _fits(cell.action, cell.outcome, wanted)
        ]
        buckets: dict[int, int] = {}
        if not wanted.outcome and wanted.action in {"", _FINISHED}:
            for where, counts in histograms(
                workspace_id,
                dimension,
                Measure.DURATION,
                inner,
                tail,
                values=[value] if value else None,
            ).items():
                if not value or where[1] == value:
                    _add(buckets, counts)
        for edge in edges:
            entries = matching(rows, edge, actor=actor)
            found += _counted(entries, inner)
            _add(buckets, _durations(entries))
        overview = _put_together(found, buckets, since, until, inner, has_p95=not wanted.outcome)
        return replace(overview, missing=tail.missing)

    return read_with_tail(workspace_id, read)


def _is_too_much(workspace_id: UUID, wanted: EntryFilter, until: datetime, actor: Actor) -> bool:
    """Whether counting would read the log whole: frequent words over a long time."""
    if not wanted.words or not may_search(actor):
        return False
    is_long = wanted.since is None or until - wanted.since > timedelta(days=1)
    return is_long and is_frequent(workspace_id, wanted.words)


def _counted_as(wanted: EntryFilter) -> tuple[Dimension, str] | None:
    """Give the counters that know the filter; None: none do."""
    if wanted.words or wanted.begins or wanted.least or wanted.most:
        return None
    if wanted.leaves_out_empty and wanted.sort_column != "duration_ms":
        return None
    named: list[tuple[Dimension, str]] = []
    if wanted.server:
        named.append((Dimension.SERVER, wanted.server))
    if wanted.tool:
        named.append((Dimension.TOOL, wanted.tool))
    if wanted.user:
        named.append((Dimension.ACTOR, str(wanted.user_id or wanted.user)))
    known = {
        "bud_name": Dimension.BUD,
        "model": Dimension.MODEL,
        "source": Dimension.SOURCE,
        "refused_by": Dimension.LAYER,
    }
    for column, given in wanted.equal.items():
        if column not in known:
            return None
        named.append((known[column], str(given)))
    if len(named) > 1:
        return None
    return named[0] if named else (Dimension.ALL, "")


def _fits(action: str, outcome: str, wanted: EntryFilter) -> bool:
    if wanted.action and action != wanted.action:
        return False
    if wanted.outcome == REFUSED:
        return action in REFUSALS
    if wanted.outcome == FAILED:
        return _has_failed(action, outcome)
    if wanted.outcome == ENDED:
        return action in {_FINISHED, _REFUSED}
    return not wanted.outcome or outcome == wanted.outcome


def _has_failed(action: str, outcome: str) -> bool:
    return action == _FINISHED and outcome in FAILURES


def _whole_hours(since: datetime, until: datetime, zone: tzinfo) -> TimeRange | None:
    first = since.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
    if first < since:
        first += timedelta(hours=1)
    last = until.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
    if first >= last:
        return None
    unit = unit_of(until - since)
    zone = whole_hours_zone(since, until, unit, zone)
    return TimeRange(since=first, until=last, unit=unit, zone=zone)


def _counted(rows: WorkspaceQuerySet[AuditEntry], span: TimeRange) -> list[_Row]:
    found = (
        rows.order_by()
        .annotate(piece=Trunc("created_at", "hour", tzinfo=UTC))
        .values_list("piece", "action", "outcome")
        .annotate(number=Count("pk"))
    )
    place = span.placing()
    return [_Row(place(piece), action, outcome, number) for piece, action, outcome, number in found]


def _durations(rows: WorkspaceQuerySet[AuditEntry]) -> dict[int, int]:
    found = rows.filter(action=_FINISHED, duration_ms__isnull=False).order_by()
    counts: dict[int, int] = {}
    for duration, number in found.values_list("duration_ms").annotate(number=Count("pk")):
        _add(counts, {bucket_of(duration): number})
    return counts


def _add(counts: dict[int, int], more: dict[int, int]) -> None:
    for bucket, number in more.items():
        counts[bucket] = counts.get(bucket, 0) + number


def _put_together(
    found: Iterable[_Row],
    buckets: dict[int, int],
    since: datetime,
    until: datetime,
    span: TimeRange,
    *,
    has_p95: bool,
) -> Overview:
    rows = list(found)

    def number(*actions: str) -> int:
        return sum(row.number for row in rows if row.action in actions)

    totals = Totals(
        calls=number(_FINISHED, _REFUSED),
        failed=sum(row.number for row in rows if _has_failed(row.action, row.outcome)),
        refused=number(_REFUSED),
        waited=number(Action.APPROVAL_REQUESTED.value),
        p95_ms=percentile(buckets, 0.95) if has_p95 else None,
    )
    counts: dict[tuple[datetime, str], int] = {}
    for row in rows:
        if row.action in {_FINISHED, _REFUSED}:
            kind = "refused" if row.action == _REFUSED else end_of(row.outcome)
            counts[row.start, kind] = counts.get((row.start, kind), 0) + row.number
    return Overview(
        entries=sum(row.number for row in rows),
        totals=totals,
        chart=chart_from(counts, since, until, span.unit, span.zone) if counts else None,
    )


def _from_entries(
    rows: WorkspaceQuerySet[AuditEntry],
    wanted: EntryFilter,
    actor: Actor,
    *,
    now: datetime,
    zone: tzinfo,
) -> Overview:
    found = matching(rows, wanted, actor=actor)
    few = few_of(found)
    if few is not None:
        found = rows.filter(pk__in=few)
    counted = totals_of(found, MOST_COUNTED)
    if counted is None:
        return Overview(entries=MOST_COUNTED, is_more=True)
    since = wanted.since or counted.first
    return Overview(
        entries=counted.entries,
        totals=counted.totals,
        chart=chart_of(found, since=since, until=wanted.until or now, zone=zone),
    )


PLATFORM_DAYS: Final = 7
"""Of which the platform's owner sees numbers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlatformRow:
    """One workspace's numbers, for the platform's page."""

    entries: int
    calls: int
    failed: int
    refused: int
    last: datetime


def platform_entries() -> WorkspaceQuerySet[AuditEntry]:
    """Entries of no workspace, for the platform's owner."""
    return AuditEntry.objects.across_workspaces().filter(workspace_id=None)


def platform_rows(span: TimeRange) -> dict[UUID, PlatformRow]:
    """Count every workspace's sealed entries of a range, by chain."""
    ended = Q(action__in=[_FINISHED, _REFUSED])
    found = (
        AuditRollup.objects.across_workspaces()
        .filter(span.condition(), dimension=Dimension.ALL)
        .order_by()
        .values_list("workspace_id")
        .annotate(
            entries=Sum("count"),
            calls=Sum("count", filter=ended, default=0),
            failed=Sum("count", filter=Q(action=_FINISHED, outcome__in=FAILURES), default=0),
            refused=Sum("count", filter=Q(action=_REFUSED), default=0),
            last=Max("start"),
        )
    )
    return {
        chain: PlatformRow(entries=entries, calls=calls, failed=failed, refused=refused, last=last)
        for chain, entries, calls, failed, refused, last in found
    }
