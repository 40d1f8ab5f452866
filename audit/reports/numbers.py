"""Where a report's numbers come from: the counters, or, where a filter narrows it, the entries themselves."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any, Final, Protocol
from uuid import UUID

from django.db.models import Count, QuerySet, Sum

from audit.actions import Action
from audit.models import AuditEntry, Dimension, Grain, Measure
from audit.reports.grouping import BucketOfDuration, truncated
from audit.rollups.counting import tally_of
from audit.rollups.folding import APPROVAL_ENDS, Sums, Tally, facts_of
from audit.rollups.reading import (
    Cell,
    Place,
    TimeRange,
    UncountedEntries,
    cells,
    histograms,
    values_of,
)

MOST_WAITS = 20_000


class Statistics(Protocol):
    """Counters and histograms over a range."""

    @property
    def span(self) -> TimeRange:
        """The range."""
        ...

    def cells(
        self, dimension: Dimension, *, by_time: bool = False, of_actions: Collection[str] = ()
    ) -> list[Cell]:
        """Sum a dimension; `of_actions`: of these kinds alone, as one number for all of them."""
        ...

    def histograms(
        self,
        dimension: Dimension,
        measure: Measure,
        *,
        by_time: bool = False,
        values: Collection[str] | None = None,
    ) -> dict[Place, dict[int, int]]:
        """Sum a dimension's histograms."""
        ...

    def people(self) -> int:
        """Count the persons who appear."""
        ...


@dataclass(frozen=True, slots=True)
class Counters:
    """From the counters and the tail."""

    workspace_id: UUID
    span: TimeRange
    tail: UncountedEntries

    def cells(
        self, dimension: Dimension, *, by_time: bool = False, of_actions: Collection[str] = ()
    ) -> list[Cell]:
        """Sum a dimension."""
        return cells(
            self.workspace_id,
            dimension,
            self.span,
            self.tail,
            by_time=by_time,
            of_actions=of_actions,
        )

    def histograms(
        self,
        dimension: Dimension,
        measure: Measure,
        *,
        by_time: bool = False,
        values: Collection[str] | None = None,
    ) -> dict[Place, dict[int, int]]:
        """Sum a dimension's histograms."""
        return histograms(
            self.workspace_id,
            dimension,
            measure,
            self.span,
            self.tail,
            by_time=by_time,
            values=values,
        )

    def people(self) -> int:
        """Count the persons who appear; parts of the system have a label and no id."""
        values = values_of(self.workspace_id, Dimension.ACTOR, self.span, self.tail)
        return sum(_is_id(value) for value in values)


def _is_id(value: str) -> bool:
    try:
        return str(UUID(value)) == value
    except ValueError:
        return False


_COLUMNS: dict[Dimension, tuple[str, ...]] = {
    Dimension.ALL: (),
    Dimension.SERVER: ("server_name",),
    Dimension.TOOL: ("tool_name", "server_name"),
    Dimension.ACTOR: ("actor_id", "actor_label"),
    Dimension.BUD: ("bud_name",),
    Dimension.SOURCE: ("source",),
    Dimension.MODEL: ("model",),
    Dimension.LAYER: ("refused_by", "rule"),
}


_TOGETHER: Final = ("tool_name", "server_name", "refused_by", "rule")
"""Columns of several dimensions, which are counted at once: without an index, each count reads all that the filter finds."""


@dataclass(frozen=True)
class Entries:
    """Counted from entries that a filter has narrowed."""

    rows: QuerySet[AuditEntry]
    span: TimeRange
    _counted: dict[tuple[str, ...], Sequence[tuple[Any, ...]]] = field(default_factory=dict)

    def cells(
        self, dimension: Dimension, *, by_time: bool = False, of_actions: Collection[str] = ()
    ) -> list[Cell]:
        """Sum a dimension."""
        columns = _COLUMNS[dimension]
        read = _TOGETHER if set(columns) <= set(_TOGETHER) else columns
        places = [3 + read.index(column) for column in columns]
        found: dict[tuple[datetime | None, str, str, str, str], Sums] = {}
        piece = self.span.placing()
        for row in self._count(read):
            moment, action, outcome = row[:3]
            value, second = _named(dimension, tuple(row[place] for place in places))
            if (of_actions and action not in of_actions) or not (value or not columns):
                continue
            kind = ("", "") if of_actions else (action, outcome)
            place = (piece(moment) if by_time else None, value, second, *kind)
            found[place] = found.get(place, Sums()).plus(Sums(row[-3], row[-2], row[-1] or 0))
        if dimension is Dimension.ALL and not by_time and not of_actions:
            for key, sums in self._waits.counts.items():
                if key.dimension == Dimension.ALL and key.grain == Grain.HOUR:
                    place = (None, "", "", key.action, key.outcome)
                    waits = Sums(waited=sums.waited, wait_ms=sums.wait_ms)
                    found[place] = found.get(place, Sums()).plus(waits)
        return [Cell(*place, sums) for place, sums in found.items()]

    def histograms(
        self,
        dimension: Dimension,
        measure: Measure,
        *,
        by_time: bool = False,
        values: Collection[str] | None = None,
    ) -> dict[Place, dict[int, int]]:
        """Sum a dimension's histograms."""
        found: dict[Place, dict[int, int]] = {}
        piece = self.span.placing()
        if measure == Measure.WAIT:
            for place, number in self._waits.buckets.items():
                if (place.dimension, place.measure, place.grain) == (
                    dimension,
                    measure,
                    Grain.HOUR,
                ):
                    start = piece(place.start) if by_time else None
                    _put(found, (start, place.value, place.second), place.bucket, number)
            return found
        columns = _COLUMNS[dimension]
        rows, names = self._grouped(by_time=by_time)
        if values is not None and columns:
            rows = rows.filter(**{f"{columns[0]}__in": list(values)})
        rows = rows.filter(action=Action.TOOL_CALL_FINISHED.value, duration_ms__isnull=False)
        rows = rows.annotate(bucket=BucketOfDuration("duration_ms"))
        for row in rows.values_list(*names, *columns, "bucket").annotate(Count("pk")):
            start = piece(row[0]) if by_time else None
            value, second = _named(dimension, row[len(names) : len(names) + len(columns)])
            if value or dimension is Dimension.ALL:
                _put(found, (start, value, second), row[-2], row[-1])
        return found

    def people(self) -> int:
        """Count the persons who appear."""
        rows, _ = self._grouped(by_time=False)
        return rows.exclude(actor_id=None).values("actor_id").distinct().count()

    def _count(self, columns: tuple[str, ...]) -> Sequence[tuple[Any, ...]]:
        """Give (piece, action, outcome, columns, number, how many with a duration, their sum)."""
        if columns not in self._counted:
            rows, names = self._grouped(by_time=True)
            groups = rows.values_list(*names, "action", "outcome", *columns)
            numbers = (Count("pk"), Count("duration_ms"), Sum("duration_ms"))
            self._counted[columns] = list(groups.annotate(*numbers))
        return self._counted[columns]

    def _grouped(self, *, by_time: bool) -> tuple[QuerySet[AuditEntry, Any], tuple[str, ...]]:
        rows: QuerySet[AuditEntry, Any] = self.rows.order_by().filter(
            created_at__gte=self.span.since, created_at__lt=self.span.until
        )
        if not by_time:
            return rows, ()
        return rows.annotate(piece=truncated(self.span.unit, self.span.zone)), ("piece",)

    @cached_property
    def _waits(self) -> Tally:
        if not any(row[1] in APPROVAL_ENDS for row in self._count(_TOGETHER)):
            return Tally()
        rows = self.rows.filter(
            created_at__gte=self.span.since,
            created_at__lt=self.span.until,
            action__in=APPROVAL_ENDS,
        )
        return tally_of(facts_of(rows.order_by("-created_at")[:MOST_WAITS]))


def _named(dimension: Dimension, values: tuple[Any, ...]) -> tuple[str, str]:
    if dimension is Dimension.ACTOR:
        return str(values[0] or values[1]), values[1]
    return (*values, "", "")[:2]


def _put(found: dict[Place, dict[int, int]], place: Place, bucket: int, number: int) -> None:
    counts = found.setdefault(place, {})
    counts[bucket] = counts.get(bucket, 0) + number
