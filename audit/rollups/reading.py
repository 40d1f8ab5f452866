"""Counters as the reports read them: what is rolled up, and the tail that is not yet, as one exact number."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import NamedTuple, TypeVar
from uuid import UUID

from django.db import transaction
from django.db.models import Q, Sum

from audit.models import (
    AuditEntry,
    AuditHistogram,
    AuditRollup,
    AuditSeal,
    Dimension,
    Grain,
    PendingSeal,
    RollupCursor,
)
from audit.rollups.counting import tally_of
from audit.rollups.folding import Bucket, Key, Sums, Tally, facts_of

T = TypeVar("T")
_HOUR, _DAY = timedelta(hours=1), timedelta(days=1)
LONG = timedelta(days=3)
"""What is longer than this is drawn by days and read from their counters."""
_ATTEMPTS = 3
_SUMS = ("count", "timed", "duration_ms", "waited", "wait_ms")


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A range of whole hours in UTC; `until` is exclusive."""

    since: datetime
    until: datetime

    @classmethod
    def around(cls, since: datetime, until: datetime) -> Span:
        """Give the whole hours that hold both moments."""
        first = _floor(since)
        last = _floor(until)
        return cls(since=first, until=last if last == until and last > first else last + _HOUR)

    @property
    def is_long(self) -> bool:
        return self.until - self.since > LONG

    @property
    def unit(self) -> str:
        return "day" if self.is_long else "hour"

    def before(self) -> Span:
        """Give the range of the same length just before."""
        return Span(since=self.since - (self.until - self.since), until=self.since)

    def piece(self, moment: datetime) -> datetime:
        """Give the beginning of the piece of time that a moment is drawn in."""
        moment = _floor(moment)
        return moment.replace(hour=0) if self.is_long else moment

    def pieces(self) -> list[datetime]:
        """Give the beginning of every piece."""
        step = _DAY if self.is_long else _HOUR
        found, moment = [], self.piece(self.since)
        while moment < self.until:
            found.append(moment)
            moment += step
        return found

    def holds(self, moment: datetime) -> bool:
        return self.since <= moment < self.until

    def condition(self) -> Q:
        """Give which counters make up the range: whole days where there are, hours at the edges."""
        if not self.is_long:
            return Q(grain=Grain.HOUR, start__gte=self.since, start__lt=self.until)
        first = self.since if self.since.hour == 0 else self.since.replace(hour=0) + _DAY
        last = self.until.replace(hour=0)
        return (
            Q(grain=Grain.DAY, start__gte=first, start__lt=last)
            | Q(grain=Grain.HOUR, start__gte=self.since, start__lt=first)
            | Q(grain=Grain.HOUR, start__gte=last, start__lt=self.until)
        )


class Cell(NamedTuple):
    """Counters of one value, kind of entry and outcome; `start` is None where time plays no part."""

    start: datetime | None
    value: str
    second: str
    action: str
    outcome: str
    sums: Sums


@dataclass(slots=True)
class Tail:
    """Entries that no counter holds yet: sealed a moment ago, or not sealed yet."""

    tally: Tally = field(default_factory=Tally)

    def counts(self, dimension: str, span: Span) -> Iterator[tuple[Key, Sums]]:
        for key, sums in self.tally.counts.items():
            if key.dimension == dimension and key.grain == Grain.HOUR and span.holds(key.start):
                yield key, sums

    def buckets(self, dimension: str, measure: str, span: Span) -> Iterator[tuple[Bucket, int]]:
        for place, number in self.tally.buckets.items():
            if (
                (place.dimension, place.measure) == (dimension, measure)
                and place.grain == Grain.HOUR
                and span.holds(place.start)
            ):
                yield place, number


def exactly(workspace_id: UUID, read: Callable[[Tail], T]) -> T:
    """Call `read` with the tail that belongs to the counters it reads.

    A worker may move the cursor meanwhile: then it is read again, at last under the cursor's lock.
    """
    for _ in range(_ATTEMPTS):
        before = _place(workspace_id)
        found = read(tail_of(workspace_id, before))
        if _place(workspace_id) == before:
            return found
    with transaction.atomic():
        RollupCursor.objects.select_for_update().filter(chain_id=workspace_id).first()
        return read(tail_of(workspace_id, _place(workspace_id)))


def tail_of(workspace_id: UUID, seq: int) -> Tail:
    """Count the entries behind a place of the chain, and those that wait for theirs."""
    sealed = AuditSeal.objects.filter(chain_id=workspace_id, seq__gt=seq).order_by()
    waiting = (
        PendingSeal.objects.order_by().values("entry_id").union(sealed.values("entry_id"), all=True)
    )
    rows = AuditEntry.objects.for_workspace(workspace_id).filter(pk__in=waiting).order_by()
    return Tail(tally_of(facts_of(rows)))


def cells(
    workspace_id: UUID,
    dimension: Dimension,
    span: Span,
    tail: Tail,
    *,
    by_time: bool = False,
    value: str = "",
) -> list[Cell]:
    """Sum a dimension's counters over a range, by piece of time if wanted; of one value, or of all."""
    group = ("value", "second", "action", "outcome")
    names = ("start", *group) if by_time else group
    rows = (
        AuditRollup.objects.for_workspace(workspace_id)
        .filter(span.condition(), dimension=dimension, **({"value": value} if value else {}))
        .order_by()
        .values_list(*names)
        .annotate(*(Sum(name) for name in _SUMS))
    )
    found: dict[tuple[datetime | None, str, str, str, str], Sums] = {}
    for row in rows:
        start = span.piece(row[0]) if by_time else None
        place = (start, *(row[1:5] if by_time else row[:4]))
        found[place] = found.get(place, Sums()).plus(Sums(*row[-5:]))
    for key, sums in tail.counts(dimension, span):
        if value and key.value != value:
            continue
        start = span.piece(key.start) if by_time else None
        place = (start, key.value, key.second, key.action, key.outcome)
        found[place] = found.get(place, Sums()).plus(sums)
    return [Cell(*place, sums) for place, sums in found.items()]


Place = tuple[datetime | None, str, str]


def histograms(
    workspace_id: UUID,
    dimension: Dimension,
    measure: str,
    span: Span,
    tail: Tail,
    *,
    by_time: bool = False,
    values: Collection[str] | None = None,
) -> dict[Place, dict[int, int]]:
    """Sum histograms over a range, of some values or of all: (piece of time, value, second) → bucket → how many."""
    names: Sequence[str] = ("value", "second", "bucket")
    if by_time:
        names = ("start", *names)
    rows = (
        AuditHistogram.objects.for_workspace(workspace_id)
        .filter(
            span.condition(),
            dimension=dimension,
            measure=measure,
            **({} if values is None else {"value__in": list(values)}),
        )
        .order_by()
        .values_list(*names)
        .annotate(Sum("count"))
    )
    found: dict[Place, dict[int, int]] = {}

    def put(place: Place, bucket: int, number: int) -> None:
        counts = found.setdefault(place, {})
        counts[bucket] = counts.get(bucket, 0) + number

    for row in rows:
        start = span.piece(row[0]) if by_time else None
        value, second, bucket, number = row[-4:]
        put((start, value, second), bucket, number)
    for place, number in tail.buckets(dimension, measure, span):
        if values is not None and place.value not in values:
            continue
        start = span.piece(place.start) if by_time else None
        put((start, place.value, place.second), place.bucket, number)
    return found


def first_hour(workspace_id: UUID, tail: Tail) -> datetime | None:
    """Give when counting begins; None if there is nothing."""
    row = (
        AuditRollup.objects.for_workspace(workspace_id)
        .filter(dimension=Dimension.ALL, grain=Grain.HOUR)
        .order_by("start")
        .values_list("start", flat=True)
        .first()
    )
    moments = [key.start for key in tail.tally.counts if key.grain == Grain.HOUR]
    return min([*moments, *([row] if row else [])], default=None)


def _place(workspace_id: UUID) -> int:
    row = RollupCursor.objects.filter(chain_id=workspace_id).values_list("seq", flat=True).first()
    return row or 0


def _floor(moment: datetime) -> datetime:
    return moment.astimezone(UTC).replace(minute=0, second=0, microsecond=0)


def values_of(workspace_id: UUID, dimension: Dimension, span: Span, tail: Tail) -> set[str]:
    """Give the values of a dimension that occur in a range."""
    rows = AuditRollup.objects.for_workspace(workspace_id).filter(
        span.condition(), dimension=dimension
    )
    found = set(rows.order_by().values_list("value", flat=True).distinct())
    return found | {key.value for key, _ in tail.counts(dimension, span)}
