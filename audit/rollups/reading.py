"""Counters as the reports read them: what is rolled up, and the tail that is not yet, as one number; a long tail is told."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any, Final, NamedTuple, TypeVar
from uuid import UUID

from django.db import transaction
from django.db.models import Aggregate, Max, Q, QuerySet, Sum

from audit.models import (
    AuditEntry,
    AuditHead,
    AuditHistogram,
    AuditRollup,
    AuditSeal,
    Dimension,
    Grain,
    PendingSeal,
    RollupCursor,
)
from audit.rollups.counting import tally_of
from audit.rollups.folding import Bucket, CounterKey, Sums, Tally, facts_of, next_month
from audit.rollups.pieces import (
    Unit,
    begin_of,
    pieces_of,
    placing,
    unit_of,
    whole_hours_zone,
)

T = TypeVar("T")
_MINUTE, _HOUR, _DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
LONG = timedelta(days=3)
"""What is longer than this is read from the counters of days."""
MOST_LIVE = 2_000
"""Entries of a tail that a reader counts, of the sealed ones and of the others: a fifth of a second at most."""
_ATTEMPTS = 3
_SUMS = ("count", "timed", "duration_ms", "waited", "wait_ms")


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeRange:
    """A range of whole hours in UTC; `until` is exclusive. Drawn by minutes, it is one of whole minutes."""

    since: datetime
    until: datetime
    unit: Unit = "hour"
    """By what it is drawn."""
    zone: tzinfo = UTC
    """Where its days, weeks and months begin at midnight."""

    @classmethod
    def around(cls, since: datetime, until: datetime) -> TimeRange:
        """Give the whole hours that hold both moments."""
        first = _floor(since)
        last = _floor(until)
        return cls(since=first, until=last if last == until and last > first else last + _HOUR)

    @classmethod
    def drawn(cls, since: datetime, until: datetime, zone: tzinfo) -> TimeRange:
        """Give the whole hours or minutes that hold both moments, to be drawn by what fits their distance."""
        unit = unit_of(until - since)
        if unit == "minute":
            first, last = (begin_of(one, unit, zone) for one in (since, until))
            if last < until or last == first:
                last += _MINUTE
            return cls(since=first, until=last, unit=unit, zone=zone)
        hours = cls.around(since, until)
        zone = whole_hours_zone(hours.since, hours.until, unit, zone)
        return replace(hours, unit=unit, zone=zone)

    @property
    def is_long(self) -> bool:
        return self.until - self.since > LONG

    def before(self) -> TimeRange:
        """Give the range of the same length just before."""
        return replace(self, since=self.since - (self.until - self.since), until=self.since)

    def placing(self) -> Callable[[datetime], datetime]:
        """Give what says in which piece of time a moment is drawn."""
        return placing(self.unit, self.zone)

    def pieces(self) -> list[datetime]:
        """Give the beginning of every piece."""
        return pieces_of(self.since, self.until, self.unit, self.zone)

    def holds(self, moment: datetime) -> bool:
        return self.since <= moment < self.until

    def conditions(self, *, has_months: bool = False, by_time: bool = False) -> list[Q]:
        """Give which counters make up the range: whole months and days where there are, hours at the edges.

        Args:
            by_time: such as lie in one piece each.
        """
        if by_time:
            cuts = [one for one in self.pieces() if self.since < one < self.until]
            if self.unit == "hour" or any(one.hour for one in cuts):
                return self._around(cuts)
            has_months = has_months and self.unit == "month"
        wholes = [_MONTHS, _DAYS] if has_months else [_DAYS]
        pieces = _covered(self.since, self.until, wholes if self.is_long else [])
        return [
            # By name, because PostgreSQL takes a range of few months for most of the table.
            Q(grain=grain, start__in=_months(since, until))
            if grain is Grain.MONTH
            else Q(grain=grain, start__gte=since, start__lt=until)
            for grain, since, until in pieces or [(Grain.HOUR, self.since, self.until)]
        ]

    def _around(self, cuts: Sequence[datetime]) -> list[Q]:
        """Give the days that no piece begins in, and single hours for all others."""
        first, last = _DAYS.begin(self.since), _DAYS.begin(self.until)
        if first < self.since:
            first += _DAY
        if self.unit in {"hour", "day"} or first >= last:
            return [Q(grain=Grain.HOUR, start__gte=self.since, start__lt=self.until)]
        cut = sorted({_DAYS.begin(one) for one in cuts if first <= one < last})
        ranges = [
            (self.since, first),
            *((day, day + _DAY) for day in cut),
            (last, self.until),
        ]
        return [
            Q(grain=Grain.DAY, start__gte=first, start__lt=last) & ~Q(start__in=cut),
            Q(grain=Grain.HOUR, start__in=[hour for one in ranges for hour in _hours(*one)]),
        ]

    def condition(self) -> Q:
        """The same as one condition, without months."""
        return functools.reduce(operator.or_, self.conditions())


@dataclass(frozen=True, slots=True)
class _Whole:
    """A piece of time that has counters of its own."""

    grain: Grain
    begin: Callable[[datetime], datetime]
    """The beginning of the piece that holds a moment."""
    next: Callable[[datetime], datetime]
    """The beginning of the piece after one."""


_DAYS = _Whole(Grain.DAY, lambda hour: hour.replace(hour=0), lambda day: day + _DAY)
_MONTHS = _Whole(Grain.MONTH, lambda hour: hour.replace(day=1, hour=0), next_month)


def _hours(since: datetime, until: datetime) -> list[datetime]:
    return [since + count * _HOUR for count in range(int((until - since) / _HOUR))]


def _months(since: datetime, until: datetime) -> list[datetime]:
    found = []
    while since < until:
        found.append(since)
        since = next_month(since)
    return found


def _covered(
    since: datetime, until: datetime, wholes: Sequence[_Whole]
) -> list[tuple[Grain, datetime, datetime]]:
    """Cover a range with the greatest pieces that lie in it, and its edges with smaller ones."""
    if since >= until:
        return []
    if not wholes:
        return [(Grain.HOUR, since, until)]
    whole, *smaller = wholes
    first = whole.begin(since)
    if first < since:
        first = whole.next(first)
    last = whole.begin(until)
    if first >= last:
        return _covered(since, until, smaller)
    middle = [(whole.grain, first, last)]
    return _covered(since, first, smaller) + middle + _covered(last, until, smaller)


class Cell(NamedTuple):
    """Counters of one value, kind of entry and outcome; `start` is None where time plays no part."""

    start: datetime | None
    value: str
    second: str
    action: str
    outcome: str
    sums: Sums


@dataclass(slots=True)
class UncountedEntries:
    """Entries that no counter holds yet: sealed a moment ago, or not sealed yet."""

    tally: Tally = field(default_factory=Tally)
    has_months: bool = False
    """Whether the counters of months are as far as the others."""
    missing: int = 0
    """More entries than a reader counts wait for their counters: whoever shows numbers has to say so."""

    def counts(self, dimension: str, span: TimeRange) -> Iterator[tuple[CounterKey, Sums]]:
        for key, sums in self.tally.counts.items():
            if key.dimension == dimension and key.grain == Grain.HOUR and span.holds(key.start):
                yield key, sums

    def buckets(
        self, dimension: str, measure: str, span: TimeRange
    ) -> Iterator[tuple[Bucket, int]]:
        for place, number in self.tally.buckets.items():
            if (
                (place.dimension, place.measure) == (dimension, measure)
                and place.grain == Grain.HOUR
                and span.holds(place.start)
            ):
                yield place, number


_tails: Final[ContextVar[dict[tuple[UUID, tuple[int, int]], UncountedEntries] | None]] = ContextVar(
    "tails", default=None
)


@contextmanager
def one_tail() -> Iterator[None]:
    """Read the tail once for all that is read inside, as long as the counters stand still."""
    token = _tails.set({})
    try:
        yield
    finally:
        _tails.reset(token)


def read_with_tail(workspace_id: UUID, read: Callable[[UncountedEntries], T]) -> T:
    """Call `read` with the tail that belongs to the counters it reads.

    A worker may move the cursor meanwhile: then it is read again, at last under the cursor's lock.
    """
    for _ in range(_ATTEMPTS):
        before = _place(workspace_id)
        found = read(_kept_tail_of(workspace_id, before))
        if _place(workspace_id) == before:
            return found
    with transaction.atomic():
        RollupCursor.objects.select_for_update().filter(chain_id=workspace_id).first()
        return read(tail_of(workspace_id, _place(workspace_id)))


def _kept_tail_of(workspace_id: UUID, place: tuple[int, int]) -> UncountedEntries:
    kept = _tails.get()
    if kept is None:
        return tail_of(workspace_id, place)
    if (workspace_id, place) not in kept:
        kept[workspace_id, place] = tail_of(workspace_id, place)
    return kept[workspace_id, place]


def tail_of(workspace_id: UUID, place: tuple[int, int]) -> UncountedEntries:
    """Count the entries behind a place of the chain, and those that wait for theirs."""
    seq, months_seq = place
    last = seq + MOST_LIVE
    sealed = AuditSeal.objects.filter(chain_id=workspace_id, seq__gt=seq, seq__lte=last).order_by()
    waiting = (
        PendingSeal.objects.order_by().values("entry_id").union(sealed.values("entry_id"), all=True)
    )
    rows = AuditEntry.objects.for_workspace(workspace_id).filter(pk__in=waiting).order_by()
    facts = list(facts_of(rows[: 2 * MOST_LIVE]))
    missing = 0
    if len(facts) >= MOST_LIVE:
        head = AuditHead.objects.filter(chain_id=workspace_id).values_list("seq", flat=True).first()
        missing = max(0, (head or 0) - last)
    if len(facts) == 2 * MOST_LIVE:
        missing += max(0, rows.count() - len(facts))
    return UncountedEntries(tally_of(facts), has_months=months_seq == seq, missing=missing)


def cells(
    workspace_id: UUID,
    dimension: Dimension,
    span: TimeRange,
    tail: UncountedEntries,
    *,
    by_time: bool = False,
    value: str = "",
    of_actions: Collection[str] = (),
) -> list[Cell]:
    """Sum a dimension's counters over a range.

    Args:
        by_time: by piece of time.
        value: of this one alone.
        of_actions: of these kinds of entries alone, as one number for all of them and their outcomes.
    """
    start = ("start",) if by_time else ()
    group = ("value", "second", *(() if of_actions else ("action", "outcome")))
    wanted: dict[str, Any] = {"value": value} if value else {}
    if of_actions:
        wanted["action__in"] = list(of_actions)
    counters = AuditRollup.objects.for_workspace(workspace_id).filter(dimension=dimension, **wanted)
    sums_of = [Sum(name) for name in _SUMS]
    rows = in_pieces(counters, span, tail, (*start, *group), *sums_of, by_time=by_time)
    found: dict[tuple[datetime | None, str, str, str, str], Sums] = {}

    piece = span.placing()

    def put(moment: datetime | None, kind: tuple[str, ...], sums: Sums) -> None:
        named, second, action, outcome = (*kind, "", "")[:4]
        place = (piece(moment) if moment else None, named, second, action, outcome)
        found[place] = found.get(place, Sums()).plus(sums)

    for row in rows:
        put(row[0] if by_time else None, row[len(start) : -len(_SUMS)], Sums(*row[-len(_SUMS) :]))
    for key, sums in tail.counts(dimension, span):
        if (value and key.value != value) or (of_actions and key.action not in of_actions):
            continue
        kind = (key.value, key.second, *(() if of_actions else (key.action, key.outcome)))
        put(key.start if by_time else None, kind, sums)
    return [Cell(*place, sums) for place, sums in found.items()]


def in_pieces(
    rows: QuerySet[Any],
    span: TimeRange,
    tail: UncountedEntries,
    names: Sequence[str],
    *sums: Aggregate,
    by_time: bool = False,
) -> Iterator[tuple[Any, ...]]:
    """Sum counters of a range, each kind of piece for itself: several rows may have the same names.

    With all kinds in one condition, PostgreSQL reads the whole table instead of its index.
    """
    parts = [
        rows.filter(condition).order_by().values_list(*names).annotate(*sums)
        for condition in span.conditions(has_months=tail.has_months, by_time=by_time)
    ]
    return iter(parts[0].union(*parts[1:], all=True))


Place = tuple[datetime | None, str, str]


def histograms(
    workspace_id: UUID,
    dimension: Dimension,
    measure: str,
    span: TimeRange,
    tail: UncountedEntries,
    *,
    by_time: bool = False,
    values: Collection[str] | None = None,
) -> dict[Place, dict[int, int]]:
    """Sum histograms over a range, of some values or of all: (piece of time, value, second) → bucket → how many."""
    names = (*(("start",) if by_time else ()), "value", "second", "bucket")
    wanted = {} if values is None else {"value__in": list(values)}
    counters = AuditHistogram.objects.for_workspace(workspace_id).filter(
        dimension=dimension, measure=measure, **wanted
    )
    rows = in_pieces(counters, span, tail, names, Sum("count"), by_time=by_time)
    found: dict[Place, dict[int, int]] = {}
    piece = span.placing()

    def put(place: Place, bucket: int, number: int) -> None:
        counts = found.setdefault(place, {})
        counts[bucket] = counts.get(bucket, 0) + number

    for row in rows:
        start = piece(row[0]) if by_time else None
        value, second, bucket, number = row[-4:]
        put((start, value, second), bucket, number)
    for place, number in tail.buckets(dimension, measure, span):
        if values is not None and place.value not in values:
            continue
        start = piece(place.start) if by_time else None
        put((start, place.value, place.second), place.bucket, number)
    return found


def first_hour(workspace_id: UUID, tail: UncountedEntries) -> datetime | None:
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


def _place(workspace_id: UUID) -> tuple[int, int]:
    """Give up to where is counted, and up to where in months."""
    rows = RollupCursor.objects.filter(chain_id=workspace_id)
    return rows.values_list("seq", "months_seq").first() or (0, 0)


def _floor(moment: datetime) -> datetime:
    return moment.astimezone(UTC).replace(minute=0, second=0, microsecond=0)


def values_of(
    workspace_id: UUID, dimension: Dimension, span: TimeRange, tail: UncountedEntries
) -> dict[str, str]:
    """Give the values of a dimension that occur in a range, each with its second name."""
    rows = AuditRollup.objects.for_workspace(workspace_id).filter(dimension=dimension)
    found: dict[str, str] = {}
    for value, second in in_pieces(rows, span, tail, ("value",), Max("second")):
        found[value] = max(second, found.get(value, ""))
    return found | {key.value: key.second for key, _ in tail.counts(dimension, span)}
