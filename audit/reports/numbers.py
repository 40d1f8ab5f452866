"""Where a report's numbers come from: the counters, or, where a filter narrows it, the entries themselves."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from typing import Any, Protocol
from uuid import UUID

from django.db.models import Count, QuerySet, Sum
from django.db.models.functions import Trunc

from audit.actions import Action
from audit.models import AuditEntry, Dimension, Grain, Measure
from audit.rollups.counting import tally_of
from audit.rollups.folding import APPROVAL_ENDS, Sums, facts_of
from audit.rollups.histogram import bucket_of
from audit.rollups.pieces import Unit
from audit.rollups.reading import Cell, Place, Span, Tail, cells, histograms, values_of

MOST_WAITS = 20_000


class Numbers(Protocol):
    """Counters and histograms over a range."""

    @property
    def span(self) -> Span:
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
    span: Span
    tail: Tail

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


@dataclass(frozen=True, slots=True)
class Entries:
    """Counted from entries that a filter has narrowed."""

    rows: QuerySet[AuditEntry]
    span: Span

    def cells(
        self, dimension: Dimension, *, by_time: bool = False, of_actions: Collection[str] = ()
    ) -> list[Cell]:
        """Sum a dimension."""
        columns = _COLUMNS[dimension]
        rows, names = self._grouped(by_time=by_time)
        if of_actions:
            rows = rows.filter(action__in=list(of_actions))
        kinds = () if of_actions else ("action", "outcome")
        found: dict[tuple[datetime | None, str, str, str, str], Sums] = {}
        piece = self.span.placing()
        counted = rows.values_list(*names, *columns, *kinds).annotate(
            Count("pk"), Count("duration_ms"), Sum("duration_ms")
        )
        for row in counted:
            start = piece(row[0]) if by_time else None
            value, second = _named(dimension, row[len(names) : len(names) + len(columns)])
            if value or dimension is Dimension.ALL:
                action, outcome = row[-5:-3] if kinds else ("", "")
                place = (start, value, second, action, outcome)
                sums = Sums(row[-3], row[-2], row[-1] or 0)
                found[place] = found.get(place, Sums()).plus(sums)
        if dimension is Dimension.ALL and not by_time and not of_actions:
            for key, sums in tally_of(facts_of(self._ends())).counts.items():
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
            for place, number in tally_of(facts_of(self._ends())).buckets.items():
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
        for row in rows.values_list(*names, *columns, "duration_ms").annotate(Count("pk")):
            start = piece(row[0]) if by_time else None
            value, second = _named(dimension, row[len(names) : len(names) + len(columns)])
            if value or dimension is Dimension.ALL:
                _put(found, (start, value, second), bucket_of(row[-2]), row[-1])
        return found

    def people(self) -> int:
        """Count the persons who appear."""
        rows, _ = self._grouped(by_time=False)
        return rows.exclude(actor_id=None).values("actor_id").distinct().count()

    def _grouped(self, *, by_time: bool) -> tuple[QuerySet[AuditEntry, Any], tuple[str, ...]]:
        rows: QuerySet[AuditEntry, Any] = self.rows.order_by().filter(
            created_at__gte=self.span.since, created_at__lt=self.span.until
        )
        if not by_time:
            return rows, ()
        return rows.annotate(piece=truncated(self.span.unit, self.span.zone)), ("piece",)

    def _ends(self) -> QuerySet[AuditEntry]:
        rows = self.rows.filter(
            created_at__gte=self.span.since,
            created_at__lt=self.span.until,
            action__in=APPROVAL_ENDS,
        )
        return rows.order_by("-created_at")[:MOST_WAITS]


def truncated(unit: Unit, zone: tzinfo) -> Trunc:
    """Give the beginning of an entry's piece of time. An hour that clocks repeat is two pieces, so they are taken in UTC."""
    return Trunc("created_at", unit, tzinfo=UTC if unit in {"minute", "hour"} else zone)


def _named(dimension: Dimension, values: tuple[Any, ...]) -> tuple[str, str]:
    if dimension is Dimension.ACTOR:
        return str(values[0] or values[1]), values[1]
    return (*values, "", "")[:2]


def _put(found: dict[Place, dict[int, int]], place: Place, bucket: int, number: int) -> None:
    counts = found.setdefault(place, {})
    counts[bucket] = counts.get(bucket, 0) + number
