"""A report on a time: typed values for the page, each number with the period before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta, tzinfo
from typing import TYPE_CHECKING, Final
from uuid import UUID

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from audit.actions import FAILURES, Action, end_of
from audit.filters import EntryFilter
from audit.models import AuditEntry, Dimension, Measure
from audit.reports.charts import ends_in_words
from audit.reports.numbers import Counters, Entries, Statistics
from audit.reports.searching import few_of
from audit.rollups.histogram import percentile
from audit.rollups.pieces import begin_of
from audit.rollups.reading import (
    Cell,
    Place,
    TimeRange,
    UncountedEntries,
    first_hour,
    read_with_tail,
)

if TYPE_CHECKING:
    from workspaces.scoping import WorkspaceQuerySet

FINISHED, REFUSED = Action.TOOL_CALL_FINISHED.value, Action.TOOL_CALL_REFUSED.value
SHARES: Final = (("p50", 0.5), ("p95", 0.95), ("p99", 0.99))
MOST_SERIES = 7
MOST_TOOLS = 20
"""Tools whose percentiles are told."""
OTHERS = gettext_noop("All others")
BY: Final[Mapping[str, tuple[str, Dimension]]] = {
    "outcome": (gettext_noop("Outcome"), Dimension.ALL),
    "server": (gettext_noop("Server"), Dimension.SERVER),
    "tool": (gettext_noop("Tool"), Dimension.TOOL),
    "user": (gettext_noop("Person"), Dimension.ACTOR),
    "bud": (gettext_noop("Bud"), Dimension.BUD),
    "source": (gettext_noop("Source"), Dimension.SOURCE),
    "model": (gettext_noop("Model"), Dimension.MODEL),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A number, and what it was in the period before."""

    now: int | None
    before: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportSeries:
    """One series over the pieces of the range."""

    label: str
    values: Sequence[int | None]
    kind: str = ""
    """ok, failed, cancelled or refused, where the series is of an outcome."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency:
    """How long the calls of a tool took."""

    tool: str
    server: str
    calls: int
    failed: int
    shares: Sequence[int | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusals:
    """What one layer refused by one rule."""

    layer: str
    rule: str
    number: int
    before: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditReport:
    """Everything that is counted."""

    span: TimeRange
    pieces: Sequence[datetime]
    figures: Mapping[str, Figure]
    over_time: Sequence[ReportSeries]
    latency: Sequence[ReportSeries]
    tools: Sequence[Latency]
    refusals: Sequence[Refusals]
    used: frozenset[tuple[str, str]]
    """(server, tool) that were called."""
    missing: int = 0
    """Entries that no counter holds yet, and that are not in these numbers: their time may be another."""


def report_of(
    workspace_id: UUID,
    rows: WorkspaceQuerySet[AuditEntry],
    wanted: EntryFilter,
    *,
    by: str,
    now: datetime,
    zone: tzinfo = UTC,
) -> AuditReport:
    """Count a report. No counter knows what a filter finds, or single minutes: then it is counted from entries.

    Args:
        rows: the entries that the filter leaves, whatever their time.
        zone: where days, weeks and months begin at midnight.
    """

    def read(tail: UncountedEntries) -> AuditReport:
        span = _span(workspace_id, wanted, tail, now, zone)
        is_of_entries = wanted.is_narrowed or span.unit == "minute"
        if is_of_entries:
            since = span.before().since
            few = few_of(rows.filter(created_at__gte=since, created_at__lt=span.until))
            entries = AuditEntry.objects.for_workspace(workspace_id)
            found = rows if few is None else entries.filter(pk__in=few)
            current: Statistics = Entries(found, span)
            before: Statistics = Entries(found, span.before())
        else:
            current = Counters(workspace_id, span, tail)
            before = Counters(workspace_id, span.before(), tail)
        report = _report(current, before, by)
        return report if is_of_entries else replace(report, missing=tail.missing)

    return read_with_tail(workspace_id, read)


def _span(
    workspace_id: UUID, wanted: EntryFilter, tail: UncountedEntries, now: datetime, zone: tzinfo
) -> TimeRange:
    until = min(wanted.until or now, now)
    since = wanted.since or first_hour(workspace_id, tail) or until - timedelta(days=1)
    span = TimeRange.drawn(min(since, until), until, zone)
    if span.unit == "minute" and _has_lost_entries(workspace_id, span.before().since, tail):
        return TimeRange.around(span.since, span.until)
    return span


def _has_lost_entries(workspace_id: UUID, since: datetime, tail: UncountedEntries) -> bool:
    """Whether counters know of entries from then on that are no longer kept. Only they know, and only by hours."""
    kept = AuditEntry.objects.for_workspace(workspace_id).order_by("created_at", "id")
    oldest = kept.values_list("created_at", flat=True).first()
    counted = first_hour(workspace_id, tail)
    if counted is None or (oldest is not None and oldest <= since):
        return False
    return oldest is None or counted < begin_of(oldest, "hour", UTC)


def _report(current: Statistics, before: Statistics, by: str) -> AuditReport:
    span = current.span
    now_cells, old_cells = current.cells(Dimension.ALL), before.cells(Dimension.ALL)
    buckets = current.histograms(Dimension.ALL, Measure.DURATION, by_time=True)
    old_buckets = before.histograms(Dimension.ALL, Measure.DURATION)
    waits = current.histograms(Dimension.ALL, Measure.WAIT)
    old_waits = before.histograms(Dimension.ALL, Measure.WAIT)
    pieces = span.pieces()
    tool_cells = current.cells(Dimension.TOOL)
    figures = {
        name: Figure(now=_count(now_cells, *what), before=_count(old_cells, *what))
        for name, what in _COUNTED.items()
    }
    for name, share in SHARES:
        figures[name] = Figure(
            now=percentile(_joined(buckets), share), before=percentile(_joined(old_buckets), share)
        )
        figures[f"wait_{name}"] = Figure(
            now=percentile(_joined(waits), share), before=percentile(_joined(old_waits), share)
        )
    figures["people"] = Figure(now=current.people(), before=before.people())
    return AuditReport(
        span=span,
        pieces=pieces,
        figures=figures,
        over_time=_over_time(current, by, pieces),
        latency=[
            ReportSeries(
                label=name,
                values=[percentile(buckets.get((piece, "", ""), {}), share) for piece in pieces],
            )
            for name, share in SHARES
        ],
        tools=_latencies(current, tool_cells),
        refusals=_refusals(current, before),
        used=frozenset((cell.second, cell.value) for cell in tool_cells if cell.action == FINISHED),
    )


_COUNTED: Final[Mapping[str, tuple[tuple[str, ...], str]]] = {
    "calls": ((FINISHED, REFUSED), ""),
    "ok": ((FINISHED,), "ok"),
    "failed": ((FINISHED,), "failed"),
    "refused": ((REFUSED,), ""),
    "asked": ((Action.APPROVAL_REQUESTED.value,), ""),
    "granted": ((Action.APPROVAL_GRANTED.value,), ""),
    "denied": ((Action.APPROVAL_REFUSED.value,), ""),
    "expired": ((Action.APPROVAL_EXPIRED.value,), ""),
    "server_errors": ((Action.SERVER_ERROR.value,), ""),
    "sign_ins": ((Action.AUTH_SIGNED_IN.value,), ""),
    "failed_sign_ins": ((Action.AUTH_FAILED.value,), ""),
    "changes": ((Action.CONFIG_CHANGED.value,), ""),
    "exports": ((Action.EXPORT_CREATED.value,), ""),
    "bodies": ((Action.BODY_OPENED.value,), ""),
    "losses": ((Action.LOG_LOSS.value,), ""),
}


def _count(found: Sequence[Cell], actions: tuple[str, ...], outcome: str) -> int:
    return sum(
        cell.sums.number
        for cell in found
        if cell.action in actions and (not outcome or end_of(cell.outcome) == outcome)
    )


def _joined(found: Mapping[Place, Mapping[int, int]]) -> dict[int, int]:
    total: dict[int, int] = {}
    for counts in found.values():
        for bucket, number in counts.items():
            total[bucket] = total.get(bucket, 0) + number
    return total


def _over_time(numbers: Statistics, by: str, pieces: Sequence[datetime]) -> list[ReportSeries]:
    """Ended calls, stacked by what they were, or by the greatest of a dimension."""
    if by == "outcome":
        found = [
            cell
            for cell in numbers.cells(Dimension.ALL, by_time=True)
            if cell.action in {FINISHED, REFUSED}
        ]
        sums: dict[tuple[str, datetime | None], int] = {}
        for cell in found:
            kind = "refused" if cell.action == REFUSED else end_of(cell.outcome)
            sums[kind, cell.start] = sums.get((kind, cell.start), 0) + cell.sums.number
        return [
            ReportSeries(
                label=label, kind=kind, values=[sums.get((kind, piece), 0) for piece in pieces]
            )
            for kind, label in ends_in_words().items()
        ]
    labels: dict[str, str] = {}
    totals: dict[str, int] = {}
    found = numbers.cells(BY[by][1], by_time=True, of_actions=(FINISHED, REFUSED))
    for cell in found:
        labels[cell.value] = cell.second if by == "user" else cell.value
        totals[cell.value] = totals.get(cell.value, 0) + cell.sums.number
    top = sorted(totals, key=lambda value: (-totals[value], value))[:MOST_SERIES]
    numbers_of: dict[tuple[str, datetime | None], int] = {}
    for cell in found:
        name = cell.value if cell.value in top else ""
        numbers_of[name, cell.start] = numbers_of.get((name, cell.start), 0) + cell.sums.number
    lines = [
        ReportSeries(
            label=labels[value] or value,
            values=[numbers_of.get((value, piece), 0) for piece in pieces],
        )
        for value in top
    ]
    if len(totals) > len(top):
        values = [numbers_of.get(("", piece), 0) for piece in pieces]
        lines.append(ReportSeries(label=_(OTHERS), values=values))
    return lines


def _latencies(numbers: Statistics, found: Sequence[Cell]) -> list[Latency]:
    calls: dict[tuple[str, str], list[int]] = {}
    for cell in found:
        if cell.action in {FINISHED, REFUSED}:
            sums = calls.setdefault((cell.value, cell.second), [0, 0])
            sums[0] += cell.sums.number
            sums[1] += cell.sums.number if cell.outcome in FAILURES else 0
    top = sorted(calls, key=lambda place: (-calls[place][0], place[1], place[0]))
    shown = {tool for tool, _ in top[:MOST_TOOLS]}
    buckets = numbers.histograms(Dimension.TOOL, Measure.DURATION, values=shown)
    return [
        Latency(
            tool=tool,
            server=server,
            calls=number,
            failed=failed,
            shares=[
                percentile(buckets.get((None, tool, server), {}), share) for _, share in SHARES
            ],
        )
        for tool, server in top
        for number, failed in [calls[tool, server]]
    ]


def _refusals(current: Statistics, before: Statistics) -> list[Refusals]:
    old: dict[tuple[str, str], int] = {}
    for cell in before.cells(Dimension.LAYER):
        old[cell.value, cell.second] = old.get((cell.value, cell.second), 0) + cell.sums.number
    new: dict[tuple[str, str], int] = {}
    for cell in current.cells(Dimension.LAYER):
        new[cell.value, cell.second] = new.get((cell.value, cell.second), 0) + cell.sums.number
    rows = [
        Refusals(layer=layer, rule=rule, number=number, before=old.get((layer, rule), 0))
        for (layer, rule), number in new.items()
    ]
    return sorted(rows, key=lambda row: (-row.number, row.layer, row.rule))
