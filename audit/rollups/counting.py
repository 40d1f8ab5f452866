"""Counters follow the seals: each sealed entry counts exactly once, however many workers there are."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, timedelta
from time import monotonic
from typing import Any, Final
from uuid import UUID

from django.db import connection, models, transaction
from django.db.models import F, OuterRef, Q, Subquery, Sum
from django.db.models.functions import Coalesce
from django.utils.translation import gettext as _

from audit.models import (
    AuditEntry,
    AuditHead,
    AuditHistogram,
    AuditRollup,
    AuditSeal,
    AuditTombstone,
    Grain,
    RollupCursor,
)
from audit.rollups.folding import CountedEntry, Tally, facts_of, fold, next_month, waits_of
from workspaces.errors import Conflict

MOST = 2_000
"""Entries in one transaction."""
RUN = timedelta(seconds=8)
"""How long one run of the task works."""
_ROWS, _MOST_ROWS = 500, 10_000
_OF_COUNTER: Final = ("dimension", "grain", "start", "value", "second", "action", "outcome")
_OF_BUCKET: Final = ("dimension", "measure", "grain", "start", "value", "second", "bucket")
_SUMS: Final = ("count", "timed", "duration_ms", "waited", "wait_ms")
_SUM: Final = ("count",)


def roll_up(chain_id: UUID, most: int = MOST, *, waits: bool = False) -> int:
    """Count the next sealed entries of a chain; gives how many places of the chain were passed.

    Counters and cursor change in one transaction under the cursor's lock. Where another holds it, nothing is done,
    or it is waited for (`waits`).
    """
    RollupCursor.objects.get_or_create(chain_id=chain_id)
    with transaction.atomic():
        cursors = RollupCursor.objects.select_for_update(skip_locked=not waits)
        cursor = cursors.filter(chain_id=chain_id).first()
        if cursor is None:
            return 0
        places = list(
            AuditSeal.objects.filter(chain_id=chain_id, seq__gt=cursor.seq)
            .order_by("seq")
            .values_list("seq", "entry_id")[:most]
        )
        if cursor.months_seq != cursor.seq:
            _make_months(chain_id)
            cursor.months_seq = cursor.seq
            cursor.save(update_fields=["months_seq"])
        if not places:
            return 0
        rows = AuditEntry.objects.across_workspaces().filter(pk__in=[entry for _, entry in places])
        add(chain_id, tally_of(facts_of(rows)))
        cursor.seq = cursor.months_seq = places[-1][0]
        cursor.save(update_fields=["seq", "months_seq", "moved_at"])
        return len(places)


def catch_up(chain_id: UUID, seq: int) -> None:
    """Count everything up to a place: before entries are removed there, or their counts would be lost."""
    while rolled_up_to(chain_id) < seq and roll_up(chain_id, waits=True):
        pass


def count_sealed(chain_id: UUID) -> None:
    """Count what is sealed, for a limited time: before numbers go where nobody loads them again."""
    until = monotonic() + RUN.total_seconds()
    while monotonic() < until and roll_up(chain_id, waits=True):
        pass


def rolled_up_to(chain_id: UUID) -> int:
    """Give the place in the chain up to which is counted."""
    row = RollupCursor.objects.filter(chain_id=chain_id).first()
    return row.seq if row else 0


def roll_up_all() -> int:
    """Count what is behind in all chains, in turn, for a limited time; gives how many entries."""
    until = monotonic() + RUN.total_seconds()
    total = 0
    waiting = uncounted_chains()
    while waiting and monotonic() < until:
        left = []
        for chain_id in waiting:
            number = roll_up(chain_id)
            total += number
            if number == MOST:
                left.append(chain_id)
            if monotonic() >= until:
                break
        waiting = left
    return total


def uncounted_chains() -> list[UUID]:
    """Give the chains that have sealed entries which are not counted, or not in their months."""
    cursor = RollupCursor.objects.filter(chain_id=OuterRef("chain_id"))
    number = models.BigIntegerField()
    rows = AuditHead.objects.annotate(
        done=Coalesce(Subquery(cursor.values("seq")), 0, output_field=number),
        months=Coalesce(Subquery(cursor.values("months_seq")), 0, output_field=number),
    )
    waiting = rows.filter(Q(seq__gt=F("done")) | ~Q(done=F("months")))
    return list(waiting.values_list("chain_id", flat=True))


def forget(chain_id: UUID) -> None:
    """Drop a chain's counters, to be counted anew from its entries.

    Raises:
        Conflict: entries were removed since; only the counters know of them.
    """
    if AuditTombstone.objects.filter(chain_id=chain_id, kind="entries").exists():
        raise Conflict(
            _(
                "Old entries were removed from this log. Only its counters still include them, so they can't be counted again."
            )
        )
    RollupCursor.objects.get_or_create(chain_id=chain_id)
    with transaction.atomic():
        cursor = RollupCursor.objects.select_for_update().get(chain_id=chain_id)
        AuditRollup.objects.for_workspace(chain_id).delete()
        AuditHistogram.objects.for_workspace(chain_id).delete()
        cursor.seq = cursor.months_seq = 0
        cursor.save(update_fields=["seq", "months_seq", "moved_at"])


def _make_months(chain_id: UUID) -> None:
    """Sum months from days: after an upgrade, and where a process from before it has counted meanwhile."""
    for model, key, sums in ((AuditRollup, _OF_COUNTER, _SUMS), (AuditHistogram, _OF_BUCKET, _SUM)):
        rows = model.objects.for_workspace(chain_id)
        rows.filter(grain=Grain.MONTH).delete()
        days = rows.filter(grain=Grain.DAY)
        for month in days.datetimes("start", "month", tzinfo=UTC):
            some = days.filter(start__gte=month, start__lt=next_month(month)).order_by()
            names = [name for name in key if name not in {"grain", "start"}]
            found = some.values(*names).annotate(**{f"sum_{name}": Sum(name) for name in sums})
            months = {"grain": Grain.MONTH.value, "start": month}
            _upsert(
                model,
                key,
                sums,
                [
                    (
                        chain_id,
                        *((row | months)[name] for name in key),
                        *(row[f"sum_{name}"] for name in sums),
                    )
                    for row in found
                ],
            )


def tally_of(facts: Iterable[CountedEntry]) -> Tally:
    """Count entries, with their waits."""
    read = list(facts)
    return fold(read, waits_of(read))


def add(chain_id: UUID, tally: Tally) -> None:
    """Add to the counters of a chain."""
    _upsert(
        AuditRollup,
        _OF_COUNTER,
        _SUMS,
        [(chain_id, *key, *sums) for key, sums in sorted(tally.counts.items())],
    )
    _upsert(
        AuditHistogram,
        _OF_BUCKET,
        _SUM,
        [(chain_id, *key, number) for key, number in sorted(tally.buckets.items())],
    )


def _upsert(
    model: type[models.Model],
    key: Sequence[str],
    sums: Sequence[str],
    rows: Sequence[tuple[Any, ...]],
) -> None:
    """Insert counters, or add to those that are there; the ORM can only replace."""
    names = ("workspace_id", *key, *sums)
    fields: list[Any] = [model._meta.get_field(name) for name in names]
    quoted = ", ".join(f'"{name}"' for name in names)
    target = ", ".join(f'"{name}"' for name in ("workspace_id", *key))
    table = model._meta.db_table
    added = ", ".join(f'"{name}" = {table}."{name}" + excluded."{name}"' for name in sums)
    begin = f"INSERT INTO {table} ({quoted})"
    end = f"ON CONFLICT ({target}) DO UPDATE SET {added}"
    is_postgresql = connection.vendor == "postgresql"
    some_rows = _MOST_ROWS if is_postgresql else _ROWS
    with connection.cursor() as cursor:
        for first in range(0, len(rows), some_rows):
            some = rows[first : first + some_rows]
            if (
                is_postgresql
            ):  # one array for each column: nothing to be parsed but thirteen parameters
                arrays = ", ".join(f"%s::{field.db_type(connection)}[]" for field in fields)
                columns = [list(column) for column in zip(*some, strict=True)]
                cursor.execute(f"{begin} SELECT * FROM unnest({arrays}) {end}", columns)  # noqa: S608 - names of our own
                continue
            values = ", ".join([f"({', '.join(['%s'] * len(names))})"] * len(some))
            columns = [
                list(column)
                if isinstance(field, models.CharField | models.IntegerField)  # as they are
                else [field.get_db_prep_value(value, connection) for value in column]
                for field, column in zip(fields, zip(*some, strict=True), strict=True)
            ]
            parameters = [value for row in zip(*columns, strict=True) for value in row]
            cursor.execute(f"{begin} VALUES {values} {end}", parameters)
