"""Retention: whole sealed ranges go from the old end of a chain, each behind a signed tombstone."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from django.db import connection, transaction
from django.db.models import Max, Min, Q, QuerySet

from audit import rollups
from audit.actions import Action
from audit.models import AuditBody, AuditEntry, AuditPolicy, AuditSeal, AuditTombstone
from audit.retention.gaps import declare_gap, gap_in
from audit.retention.holds import active_hold, lock_removal
from audit.retention.policies import PolicyChange, policy_row
from audit.sealing.reading import chain_of, head_of
from audit.sealing.tombstones import make_tombstone
from audit.services import EntryDraft, record
from workspaces.actors import Actor, Source

REASON: Final = "retention"
MOST_AT_ONCE: Final = 5_000
"""Entries of one transaction."""
MOST_ALONE: Final = 500
"""The same on SQLite: all who write wait for it, and each entry leaves two dozen indexes."""
_STEP: Final = 1_000
_RUN_SECONDS: Final = 60.0
"""Of one run; then no further range is begun."""
MOST_COUNTED: Final = 100_000
PERIODS: Final = ("keep_days", "keep_entries", "keep_bodies_days")
"""The settings by which something goes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RemovalCounts:
    """How much went, or would go."""

    entries: int = 0
    bodies: int = 0
    """Places whose bodies and previews went while their entries stay."""
    is_held: bool = False
    is_at_least: bool = False
    """Counting ended at a bound: it may be more."""

    def __add__(self, other: RemovalCounts) -> RemovalCounts:
        return RemovalCounts(
            entries=self.entries + other.entries,
            bodies=self.bodies + other.bodies,
            is_held=self.is_held or other.is_held,
        )


def apply_retention(workspace_id: UUID, *, now: datetime) -> RemovalCounts:
    """Remove what the workspace does not want to keep; goes on from there at the next run."""
    removed = RemovalCounts()
    deadline = time.monotonic() + _RUN_SECONDS
    while time.monotonic() < deadline:
        with transaction.atomic():
            step = _remove_some(workspace_id, now)
        removed += step
        if step.is_held or not (step.entries or step.bodies):
            break
    return removed


def what_would_go(
    workspace_id: UUID,
    *,
    now: datetime,
    policy: AuditPolicy | None = None,
    most: int = MOST_COUNTED,
) -> RemovalCounts:
    """Count what the next runs would remove, up to a bound.

    Args:
        policy: instead of the stored one.
    """
    policy = policy or policy_row(workspace_id)
    chain_id = chain_of(workspace_id)
    first, last = _range_of_entries(policy, now, most)
    entries = max(0, last - first + 1)
    first_body, last_body = _range_of_bodies(policy, now, most)
    bodies = AuditBody.objects.for_workspace(workspace_id)
    left = _ids(chain_id, max(first_body, last + 1), last_body)
    return RemovalCounts(
        entries=entries,
        bodies=bodies.filter(entry_id__in=left).count(),
        is_held=active_hold(workspace_id) is not None,
        is_at_least=max(entries, last_body - first_body + 1) >= most,
    )


def what_more_would_go(
    workspace_id: UUID, change: PolicyChange, *, now: datetime, most: int = MOST_COUNTED
) -> RemovalCounts | None:
    """Count what would go by other settings; None where it is no more than by those that hold."""
    holds = policy_row(workspace_id)
    wanted = AuditPolicy(
        workspace_id=workspace_id, **{name: getattr(change, name) for name in PERIODS}
    )
    if not any(_is_less(getattr(wanted, name), getattr(holds, name)) for name in PERIODS):
        return None
    before = what_would_go(workspace_id, now=now, most=most)
    after = what_would_go(workspace_id, now=now, policy=wanted, most=most)
    # A removed entry takes its body along. Of very many nobody knows how many more they are.
    is_more = after.entries > before.entries or (
        after.entries + after.bodies > before.entries + before.bodies
    )
    return after if is_more or after.is_at_least else None


def _is_less(kept: int | None, than: int | None) -> bool:
    """Of two of the PERIODS; None: for ever."""
    return kept is not None and (than is None or kept < than)


def _remove_some(workspace_id: UUID, now: datetime) -> RemovalCounts:
    lock_removal(workspace_id)
    if active_hold(workspace_id) is not None:
        return RemovalCounts(is_held=True)
    most = min(MOST_AT_ONCE, MOST_ALONE) if connection.vendor == "sqlite" else MOST_AT_ONCE
    policy = policy_row(workspace_id)
    first, last = _range_of_entries(policy, now, most)
    if first <= last:
        return _remove_entries(workspace_id, first, last)
    first, last = _range_of_bodies(policy, now, most)
    if first <= last:
        remove_bodies(workspace_id, first, last, reason=REASON)
        _record(workspace_id, "bodies", first, last)
        return RemovalCounts(bodies=last - first + 1)
    return RemovalCounts()


def _range_of_entries(policy: AuditPolicy, now: datetime, most: int) -> tuple[int, int]:
    """What is too old or too much, as first and last number; the first is greater if there is nothing."""
    chain_id = chain_of(policy.workspace_id)
    first = _first_of(chain_id)
    last = 0
    if first and policy.keep_entries is not None:
        last = max(last, head_of(chain_id)[0] - policy.keep_entries)
    if first and policy.keep_days is not None:
        cutoff = now - timedelta(days=policy.keep_days)
        last = max(last, _last_before(chain_id, first, cutoff, most))
    return first or 1, min(last, (first or 1) + most - 1)


def _range_of_bodies(policy: AuditPolicy, now: datetime, most: int) -> tuple[int, int]:
    chain_id = chain_of(policy.workspace_id)
    first = _first_of(chain_id)
    if not first or policy.keep_bodies_days is None:
        return 1, 0
    stones = AuditTombstone.objects.filter(
        chain_id=chain_id, kind=AuditTombstone.Kind.BODIES, reason=REASON
    )
    done = stones.aggregate(last=Max("last_seq"))["last"] or 0
    first = max(first, done + 1)
    cutoff = now - timedelta(days=policy.keep_bodies_days)
    return first, min(_last_before(chain_id, first, cutoff, most), first + most - 1)


def _first_of(chain_id: UUID) -> int | None:
    first: int | None = AuditSeal.objects.filter(chain_id=chain_id).aggregate(n=Min("seq"))["n"]
    return first


def _last_before(chain_id: UUID, first: int, cutoff: datetime, most: int) -> int:
    """The last number, from `first` on, up to which everything is older than a moment; first - 1 if nothing is."""
    last = first - 1
    while last - first + 1 < most:
        seals = AuditSeal.objects.filter(chain_id=chain_id, seq__gt=last).order_by("seq")[:_STEP]
        places = list(seals.values_list("seq", "entry_id"))
        ids = [entry_id for _, entry_id in places]
        rows = AuditEntry.objects.across_workspaces().filter(pk__in=ids)
        made = dict(rows.values_list("pk", "created_at"))
        for seq, entry_id in places:
            if entry_id in made and made[entry_id] >= cutoff:
                return last
            last = seq
        if len(places) < _STEP:
            break
    return last


def _remove_entries(workspace_id: UUID, first: int, last: int) -> RemovalCounts:
    chain_id = chain_of(workspace_id)
    seals = AuditSeal.objects.filter(chain_id=chain_id, seq__range=(first, last))
    if gap := gap_in(chain_id, first, last):
        declare_gap(workspace_id, gap)
        return RemovalCounts()
    number = seals.count()
    rollups.catch_up(workspace_id, last)  # what is removed stays counted
    make_tombstone(
        chain_id=chain_id,
        kind=AuditTombstone.Kind.ENTRIES,
        first_seq=first,
        last_seq=last,
        reason=REASON,
    )
    ids = _ids(chain_id, first, last)
    _delete(AuditBody.unscoped.filter(entry_id__in=ids))
    _delete(AuditEntry.unscoped.filter(pk__in=ids))
    _delete(seals)
    _record(workspace_id, "entries", first, last)
    return RemovalCounts(entries=number)


def remove_bodies(workspace_id: UUID, first: int, last: int, *, reason: str) -> None:
    """In a transaction: take bodies and previews away from a sealed range, behind a tombstone."""
    chain_id = chain_of(workspace_id)
    make_tombstone(
        chain_id=chain_id,
        kind=AuditTombstone.Kind.BODIES,
        first_seq=first,
        last_seq=last,
        reason=reason,
    )
    ids = _ids(chain_id, first, last)
    _delete(AuditBody.unscoped.filter(entry_id__in=ids))
    shown = ~Q(arguments_preview="") | ~Q(result_preview="")
    entries = AuditEntry.objects.across_workspaces().filter(shown, pk__in=ids)
    entries.update(arguments_preview="", result_preview="")


def _ids(chain_id: UUID, first: int, last: int) -> QuerySet[AuditSeal, UUID]:
    seals = AuditSeal.objects.filter(chain_id=chain_id, seq__range=(first, last))
    return seals.values_list("entry_id", flat=True)


def _delete(rows: QuerySet[AuditBody] | QuerySet[AuditEntry] | QuerySet[AuditSeal]) -> None:
    """One statement: nothing refers to these rows, and Django would read them first."""
    rows._raw_delete(connection.alias)


def _record(workspace_id: UUID, kind: str, first: int, last: int) -> None:
    record(
        EntryDraft(
            action=Action.RETENTION_APPLIED,
            actor=Actor.system(label=REASON, source=Source.TASK, workspace_id=workspace_id),
            workspace_id=workspace_id,
            details={"kind": kind, "first": first, "last": last},
        )
    )
