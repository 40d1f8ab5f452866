"""Counters say what a recount says, exactly, however they came to be."""

from __future__ import annotations

import math
import random
from collections import Counter
from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from hypothesis import given
from hypothesis import strategies as st

from audit import rollups
from audit.actions import Action, Outcome, RefusedBy
from audit.models import (
    AuditEntry,
    AuditHistogram,
    AuditRollup,
    AuditTombstone,
    Dimension,
    Grain,
    Measure,
    RollupCursor,
)
from audit.rollups import reading
from audit.rollups.counting import tally_of
from audit.rollups.folding import Sums, facts_of
from audit.rollups.histogram import BOUNDS, bucket_of
from audit.rollups.reading import (
    TimeRange,
    UncountedEntries,
    cells,
    first_hour,
    histograms,
    read_with_tail,
)
from tests.audit.sealed import seal_all
from tests.extent import IS_FULL
from tests.factories import Tenant, make_tenant
from tests.threads import Threads
from workspaces.actors import Source

NOON = datetime(2026, 3, 4, 12, tzinfo=UTC)


def make_entries(workspace_id: UUID, number: int, chance: random.Random, *, days: int = 9) -> None:
    """Write entries of every counted shape, spread over so many days."""
    calls: list[tuple[UUID, datetime]] = []
    rows = []
    for _ in range(number):
        moment = NOON + timedelta(seconds=chance.randrange(days * 86_400))
        action = chance.choice(
            [
                *(Action.TOOL_CALL_FINISHED, Action.TOOL_CALL_REFUSED, Action.CONFIG_CHANGED),
                *(Action.APPROVAL_REQUESTED, Action.APPROVAL_GRANTED, Action.AUTH_SIGNED_IN),
            ]
        )
        call: UUID | None = uuid4()
        if action is Action.APPROVAL_REQUESTED and call:
            calls.append((call, moment))
        if action is Action.APPROVAL_GRANTED:
            call, asked = chance.choice(calls) if calls else (None, moment)
            moment = asked + timedelta(milliseconds=chance.randrange(90_000))
        finished = action is Action.TOOL_CALL_FINISHED
        person = chance.choice([None, UUID(int=1), UUID(int=2)])
        rows.append(
            AuditEntry(
                workspace_id=workspace_id,
                created_at=moment,
                action=action.value,
                actor_kind="user",
                actor_id=person,
                actor_label=chance.choice(["ann@example.org", "bob@example.org"]),
                source=chance.choice(list(Source)).value,
                call_id=call,
                server_name=chance.choice(["", "notes", "maps"]),
                tool_name=chance.choice(["", "read", "write"]),
                bud_name=chance.choice(["", "clock"]),
                model=chance.choice(["", "m1"]),
                outcome=chance.choice(list(Outcome)).value if finished else "",
                refused_by=chance.choice(list(RefusedBy)).value
                if action is Action.TOOL_CALL_REFUSED
                else "",
                rule=chance.choice(["", "deny"]),
                duration_ms=int(chance.expovariate(1 / 300)) if finished else None,
            )
        )
    AuditEntry.objects.bulk_create(rows)


def counted(workspace_id: UUID, span: TimeRange) -> dict[str, dict[tuple[str, ...], Sums]]:
    """Every dimension's counters as the reports read them."""

    def of(dimension: Dimension) -> dict[tuple[str, ...], Sums]:
        found = read_with_tail(
            workspace_id, lambda tail: cells(workspace_id, dimension, span, tail)
        )
        return {cell[1:5]: cell.sums for cell in found}

    return {dimension.value: of(dimension) for dimension in Dimension}


def recounted(workspace_id: UUID, span: TimeRange) -> dict[str, dict[tuple[str, ...], Sums]]:
    """The same from the entries themselves."""
    rows = AuditEntry.objects.for_workspace(workspace_id).filter(
        created_at__gte=span.since, created_at__lt=span.until
    )
    found: dict[str, dict[tuple[str, ...], Sums]] = {d.value: {} for d in Dimension}
    for key, sums in tally_of(facts_of(rows)).counts.items():
        if key.grain == Grain.HOUR:
            place = (key.value, key.second, key.action, key.outcome)
            there = found[key.dimension]
            there[place] = there.get(place, Sums()).plus(sums)
    return found


@pytest.mark.django_db
@pytest.mark.parametrize("seed", range(6 if IS_FULL else 3))
def test_counters_and_tail_say_what_a_recount_says(tenant: Tenant, seed: int) -> None:
    """Ours: over random entries, places, cursors and ranges; the identity that the reports rest on."""
    chance = random.Random(seed)
    workspace_id = tenant.workspace.pk
    for _ in range(3):
        make_entries(workspace_id, 60, chance)
        seal_all(workspace_id, chance.randrange(20, 80))
        rollups.roll_up(workspace_id, chance.choice([1, 7, 40]))
    first = read_with_tail(workspace_id, lambda tail: first_hour(workspace_id, tail))
    assert first is not None
    assert first >= NOON
    for _ in range(6):
        since = NOON + timedelta(hours=chance.randrange(200))
        span = TimeRange.around(since, since + timedelta(hours=chance.choice([1, 30, 71, 73, 200])))
        assert counted(workspace_id, span) == recounted(workspace_id, span), span
    everything = TimeRange.around(NOON, NOON + timedelta(days=12))
    assert counted(workspace_id, everything) == recounted(workspace_id, everything)


@pytest.mark.django_db
@pytest.mark.parametrize("seed", range(6 if IS_FULL else 3))
def test_months_days_and_hours_make_up_any_range(tenant: Tenant, seed: int) -> None:
    """REL-666: over random ranges of up to half a year, with late entries and a tail."""
    chance = random.Random(seed)
    workspace_id = tenant.workspace.pk
    for _ in range(3):
        make_entries(workspace_id, 60, chance, days=170)
        seal_all(workspace_id, chance.randrange(20, 80))
        rollups.roll_up(workspace_id, chance.choice([7, 40]))
    for _ in range(6):
        since = NOON + timedelta(hours=chance.randrange(24 * 90))
        span = TimeRange.around(since, since + timedelta(hours=chance.randrange(24, 24 * 100)))
        assert counted(workspace_id, span) == recounted(workspace_id, span), span
    whole = TimeRange.around(datetime(2026, 4, 1, tzinfo=UTC), datetime(2026, 6, 1, tzinfo=UTC))
    expected = recounted(workspace_id, whole)
    assert expected["all"]
    assert counted(workspace_id, whole) == expected


@pytest.mark.django_db
def test_a_long_range_reads_months(tenant: Tenant) -> None:
    """REL-666: what lies in whole months is read from their counters alone."""
    workspace_id = tenant.workspace.pk
    make_entries(workspace_id, 120, random.Random(3), days=120)
    seal_all(workspace_id)
    rollups.catch_up(workspace_id, 120)
    span = TimeRange.around(NOON, NOON + timedelta(days=120))
    before = counted(workspace_id, span)
    smaller = AuditRollup.objects.for_workspace(workspace_id).exclude(grain=Grain.MONTH)
    april = {
        "start__gte": datetime(2026, 4, 1, tzinfo=UTC),
        "start__lt": datetime(2026, 5, 1, tzinfo=UTC),
    }
    assert smaller.filter(**april).delete()[0]
    assert counted(workspace_id, span) == before


@pytest.mark.django_db
def test_what_an_older_process_counted_is_in_its_month_too(tenant: Tenant) -> None:
    """REL-666: such a process knows no months. Until they are made anew, days are read."""
    workspace_id = tenant.workspace.pk
    make_entries(workspace_id, 90, random.Random(6), days=120)
    seal_all(workspace_id)
    rollups.roll_up(workspace_id, 40)
    months = AuditRollup.objects.for_workspace(workspace_id).filter(grain=Grain.MONTH)
    buckets = AuditHistogram.objects.for_workspace(workspace_id).filter(grain=Grain.MONTH)

    def numbers() -> tuple[list[str], list[str]]:
        return sorted(map(str, months.all())), sorted(map(str, buckets.all()))

    before = numbers()
    rollups.catch_up(workspace_id, 90)
    right = numbers()
    assert before != right
    months.filter(dimension="tool").delete()
    buckets.filter(dimension="all").delete()
    RollupCursor.objects.filter(chain_id=workspace_id).update(months_seq=40)
    span = TimeRange.around(NOON, NOON + timedelta(days=120))
    assert counted(workspace_id, span) == recounted(workspace_id, span)
    assert rollups.uncounted_chains() == [workspace_id]
    rollups.roll_up_all()
    assert rollups.uncounted_chains() == []
    assert numbers() == right
    assert counted(workspace_id, span) == recounted(workspace_id, span)


@pytest.mark.django_db
def test_the_numbers_are_those_of_an_independent_count(tenant: Tenant) -> None:
    """Ours: counted here by hand, not by the code that fills the counters."""
    make_entries(tenant.workspace.pk, 150, random.Random(9))
    seal_all(tenant.workspace.pk, 100)
    rollups.roll_up(tenant.workspace.pk)
    span = TimeRange.around(NOON, NOON + timedelta(days=12))
    rows = list(AuditEntry.objects.for_workspace(tenant.workspace))
    expected = Counter((row.tool_name, row.server_name) for row in rows if row.tool_name)
    got: Counter[tuple[str, str]] = Counter()
    for (value, second, _, _), sums in counted(tenant.workspace.pk, span)["tool"].items():
        got[value, second] += sums.number
    assert got == expected
    durations = sorted(row.duration_ms for row in rows if row.duration_ms is not None)
    found = read_with_tail(
        tenant.workspace.pk,
        lambda tail: histograms(tenant.workspace.pk, Dimension.ALL, Measure.DURATION, span, tail),
    )[None, "", ""]
    assert sum(found.values()) == len(durations)
    for share in (0.5, 0.95, 0.99):
        true = durations[math.ceil(share * len(durations)) - 1]
        stated = rollups.percentile(found, share)
        assert stated is not None
        assert abs(stated - true) <= rollups.ERROR * true + 0.5


@pytest.mark.django_db
def test_waits_for_approval_are_counted_from_question_to_answer(tenant: Tenant) -> None:
    """Ours: also where the question was counted long before."""
    make_entries(tenant.workspace.pk, 200, random.Random(4))
    seal_all(tenant.workspace.pk)
    while rollups.roll_up(tenant.workspace.pk, 13):
        pass
    rows = AuditEntry.objects.for_workspace(tenant.workspace)
    asked = {row.call_id: row.created_at for row in rows.filter(action="approval.requested")}
    waits = [
        round((row.created_at - asked[row.call_id]).total_seconds() * 1000)
        for row in rows.filter(action="approval.granted")
        if row.call_id in asked
    ]
    span = TimeRange.around(NOON, NOON + timedelta(days=12))
    sums = counted(tenant.workspace.pk, span)["all"]["", "", "approval.granted", ""]
    assert waits
    assert (sums.waited, sums.wait_ms) == (len(waits), sum(waits))


@pytest.mark.django_db(transaction=True)
def test_two_workers_at_once_count_each_entry_once() -> None:
    """Ours: the cursor's lock; on SQLite there is one writer anyway."""
    tenant = make_tenant("a")
    make_entries(tenant.workspace.pk, 120, random.Random(2))
    seal_all(tenant.workspace.pk)
    with Threads(4) as pool:
        steps = [pool.submit(rollups.roll_up, tenant.workspace.pk, 10) for _ in range(24)]
        passed = sum(step.result() for step in steps)
    assert passed == rollups.rolled_up_to(tenant.workspace.pk)
    rollups.catch_up(tenant.workspace.pk, 120)
    assert rollups.uncounted_chains() == []
    span = TimeRange.around(NOON, NOON + timedelta(days=12))
    assert counted(tenant.workspace.pk, span) == recounted(tenant.workspace.pk, span)
    total = AuditRollup.objects.for_workspace(tenant.workspace).filter(dimension="all", grain="h")
    assert sum(row.count for row in total) == 120


@pytest.mark.django_db
def test_a_failure_between_counters_and_cursor_leaves_neither(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ours: one transaction."""
    make_entries(tenant.workspace.pk, 20, random.Random(2))
    seal_all(tenant.workspace.pk)

    def fail(*_args: object, **_kwargs: object) -> None:
        raise RuntimeError("the worker dies here")

    with monkeypatch.context() as broken:
        broken.setattr(RollupCursor, "save", fail)
        with pytest.raises(RuntimeError):
            rollups.roll_up(tenant.workspace.pk)
    assert not AuditRollup.objects.for_workspace(tenant.workspace).exists()
    assert rollups.roll_up(tenant.workspace.pk) == 20


@pytest.mark.django_db
def test_a_cursor_that_moves_while_it_is_read_is_noticed(tenant: Tenant) -> None:
    """Ours: no entry is counted twice or missed on the page meanwhile."""
    make_entries(tenant.workspace.pk, 30, random.Random(2))
    seal_all(tenant.workspace.pk)
    span = TimeRange.around(NOON, NOON + timedelta(days=12))
    seen = []

    def read(tail: object) -> int:
        seen.append(tail)
        if len(seen) == 1:
            rollups.roll_up(tenant.workspace.pk)
        found = cells(tenant.workspace.pk, Dimension.ALL, span, tail)  # type: ignore[arg-type]
        return sum(cell.sums.number for cell in found)

    assert read_with_tail(tenant.workspace.pk, read) == 30
    assert len(seen) == 2


@pytest.mark.django_db
def test_a_long_tail_is_read_in_part_and_told(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REL-1931: a reader counts so many entries of a tail, and knows how many it left out; the rest comes with the counters."""
    monkeypatch.setattr(reading, "MOST_LIVE", 10)
    workspace_id = tenant.workspace.pk
    make_entries(workspace_id, 70, random.Random(2))
    seal_all(workspace_id, 45)
    span = TimeRange.around(NOON, NOON + timedelta(days=12))

    def read(tail: UncountedEntries) -> tuple[int, int]:
        found = cells(workspace_id, Dimension.ALL, span, tail)
        return sum(cell.sums.number for cell in found), tail.missing

    assert read_with_tail(workspace_id, read) == (20, 50)
    rollups.count_sealed(workspace_id)
    assert read_with_tail(workspace_id, read) == (45 + 20, 5)
    seal_all(workspace_id)
    assert read_with_tail(workspace_id, read) == (45 + 10, 15)
    rollups.count_sealed(workspace_id)
    assert read_with_tail(workspace_id, read) == (70, 0)


@pytest.mark.django_db
def test_counting_anew_gives_the_same_and_knows_when_it_must_not(tenant: Tenant) -> None:
    """Ours: where entries were removed, only the counters know of them."""
    make_entries(tenant.workspace.pk, 60, random.Random(5))
    seal_all(tenant.workspace.pk)
    rollups.catch_up(tenant.workspace.pk, 60)
    span = TimeRange.around(NOON, NOON + timedelta(days=12))
    before = counted(tenant.workspace.pk, span)
    AuditRollup.objects.for_workspace(tenant.workspace).filter(dimension="tool").delete()
    call_command("count_audit", "--workspace", tenant.workspace.slug, "--again")
    assert counted(tenant.workspace.pk, span) == before
    AuditTombstone.objects.create(
        chain_id=tenant.workspace.pk, kind="entries", first_seq=1, last_seq=20, reason="age"
    )
    with connection.cursor() as cursor:  # what retention does behind its tombstone
        cursor.execute(
            "DELETE FROM audit_auditentry WHERE id IN "
            "(SELECT entry_id FROM audit_auditseal WHERE seq <= 20)"
        )
    assert AuditEntry.objects.for_workspace(tenant.workspace).count() == 40
    assert counted(tenant.workspace.pk, span) == before
    with pytest.raises(CommandError):
        call_command("count_audit", "--workspace", tenant.workspace.slug, "--again")
    assert counted(tenant.workspace.pk, span) == before


@given(st.integers(min_value=0, max_value=2**31 - 1))
def test_what_stands_for_a_bucket_is_near_all_that_is_in_it(milliseconds: int) -> None:
    """Ours: the bound that the page states."""
    bucket = bucket_of(milliseconds)
    assert BOUNDS[bucket] <= milliseconds
    stated = rollups.percentile({bucket: 1}, 0.5)
    assert stated is not None
    assert abs(stated - milliseconds) <= rollups.ERROR * milliseconds + 0.5


def test_a_percentile_of_nothing_is_none() -> None:
    """Ours."""
    assert rollups.percentile({}, 0.5) is None
