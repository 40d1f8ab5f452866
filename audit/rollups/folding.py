"""Entries into counters: the one rule for what is sealed, for the tail, and for a recount."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import NamedTuple
from uuid import UUID

from django.db.models import QuerySet

from audit.actions import Action
from audit.models import AuditEntry, Dimension, Grain, Measure
from audit.rollups.histogram import bucket_of

APPROVAL_ENDS = frozenset(
    {
        Action.APPROVAL_GRANTED.value,
        Action.APPROVAL_REFUSED.value,
        Action.APPROVAL_EXPIRED.value,
    }
)


class CountedEntry(NamedTuple):
    """What of an entry is counted."""

    created_at: datetime
    action: str
    outcome: str
    refused_by: str
    rule: str
    server_name: str
    tool_name: str
    actor_id: UUID | None
    actor_label: str
    bud_name: str
    source: str
    model: str
    duration_ms: int | None
    call_id: UUID | None


class CounterKey(NamedTuple):
    """Which counter."""

    dimension: str
    grain: str
    start: datetime
    value: str
    second: str
    action: str
    outcome: str


class Bucket(NamedTuple):
    """Which bucket of a histogram."""

    dimension: str
    measure: str
    grain: str
    start: datetime
    value: str
    second: str
    bucket: int


class Sums(NamedTuple):
    """What a counter holds."""

    number: int = 0
    timed: int = 0
    duration_ms: int = 0
    waited: int = 0
    wait_ms: int = 0

    def plus(self, other: Sums) -> Sums:
        """Give both together."""
        return Sums(*(a + b for a, b in zip(self, other, strict=True)))


@dataclass(slots=True)
class Tally:
    """Counters and histograms of some entries."""

    counts: dict[CounterKey, Sums] = field(default_factory=dict)
    buckets: dict[Bucket, int] = field(default_factory=dict)


def facts_of(rows: QuerySet[AuditEntry]) -> Iterator[CountedEntry]:
    """Read what is counted of some entries."""
    return (CountedEntry(*row) for row in rows.values_list(*CountedEntry._fields))


def waits_of(facts: Iterable[CountedEntry]) -> Mapping[UUID, datetime]:
    """Give when approval was asked for, of each call whose wait ended here."""
    read = list(facts)
    calls = {fact.call_id for fact in read if fact.action in APPROVAL_ENDS and fact.call_id}
    asked: dict[UUID, datetime] = {}
    if calls:
        rows = AuditEntry.objects.across_workspaces().filter(
            call_id__in=calls, action=Action.APPROVAL_REQUESTED.value
        )
        newest_first = rows.order_by("-created_at").values_list("call_id", "created_at")
        asked = {call_id: moment for call_id, moment in newest_first if call_id}
        for fact in read:  # those that are not written yet, of a log that is being invented
            if fact.action == Action.APPROVAL_REQUESTED and fact.call_id in calls:
                asked.setdefault(fact.call_id, fact.created_at)
    return asked


def fold(facts: Iterable[CountedEntry], asked: Mapping[UUID, datetime]) -> Tally:
    """Count. `asked` is what `waits_of` says of the same facts."""
    hours: dict[CounterKey, list[int]] = defaultdict(lambda: [0, 0, 0, 0, 0])
    buckets: dict[Bucket, int] = defaultdict(int)
    for fact in facts:
        start = fact.created_at.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
        wait = _wait(fact, asked)
        duration = fact.duration_ms
        is_call = duration is not None and fact.action == Action.TOOL_CALL_FINISHED
        for dimension, value, second in _places(fact):
            sums = hours[
                CounterKey(dimension, Grain.HOUR, start, value, second, fact.action, fact.outcome)
            ]
            sums[0] += 1
            if duration is not None:
                sums[1] += 1
                sums[2] += duration
            if wait is not None:
                sums[3] += 1
                sums[4] += wait
            if dimension in _WITH_HISTOGRAM:
                if is_call and duration is not None:
                    bucket = bucket_of(duration)
                    buckets[
                        Bucket(
                            dimension, Measure.DURATION, Grain.HOUR, start, value, second, bucket
                        )
                    ] += 1
                if wait is not None:
                    buckets[
                        Bucket(
                            dimension,
                            Measure.WAIT,
                            Grain.HOUR,
                            start,
                            value,
                            second,
                            bucket_of(wait),
                        )
                    ] += 1
    return _with_days_and_months(hours, buckets)


_WITH_HISTOGRAM = frozenset({Dimension.ALL, Dimension.SERVER, Dimension.TOOL})


def _places(fact: CountedEntry) -> Iterator[tuple[str, str, str]]:
    """Every (dimension, value, second) in which the entry counts."""
    yield Dimension.ALL, "", ""
    yield Dimension.SOURCE, fact.source, ""
    yield Dimension.ACTOR, str(fact.actor_id or fact.actor_label)[:256], fact.actor_label
    if fact.server_name:
        yield Dimension.SERVER, fact.server_name, ""
    if fact.tool_name:
        yield Dimension.TOOL, fact.tool_name, fact.server_name
    if fact.bud_name:
        yield Dimension.BUD, fact.bud_name, ""
    if fact.model:
        yield Dimension.MODEL, fact.model, ""
    if fact.refused_by:
        yield Dimension.LAYER, fact.refused_by, fact.rule


def _wait(fact: CountedEntry, asked: Mapping[UUID, datetime]) -> int | None:
    if fact.action not in APPROVAL_ENDS or fact.call_id is None or fact.call_id not in asked:
        return None
    return max(0, round((fact.created_at - asked[fact.call_id]).total_seconds() * 1000))


def _with_days_and_months(
    hours: Mapping[CounterKey, list[int]], buckets: Mapping[Bucket, int]
) -> Tally:
    """Add the counters of days and months, which are sums of hours."""
    tally = Tally({key: Sums(*sums) for key, sums in hours.items()}, dict(buckets))
    for key, sums in list(tally.counts.items()):
        for grain, start in _wholes(key.start):
            whole = key._replace(grain=grain, start=start)
            tally.counts[whole] = tally.counts.get(whole, Sums()).plus(sums)
    for place, number in buckets.items():
        for grain, start in _wholes(place.start):
            around = place._replace(grain=grain, start=start)
            tally.buckets[around] = tally.buckets.get(around, 0) + number
    return tally


def _wholes(hour: datetime) -> tuple[tuple[str, datetime], ...]:
    day = hour.replace(hour=0)
    return (Grain.DAY, day), (Grain.MONTH, day.replace(day=1))


def next_month(moment: datetime) -> datetime:
    """Give the beginning of the month after a month's beginning."""
    return (moment + timedelta(days=31)).replace(day=1)
