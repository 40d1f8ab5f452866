"""Giving each entry its place: gapless in its chain, hashed with what stands before it, in the order of commit."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.db import connection, transaction
from django.db.models import CharField, QuerySet
from django.db.models.functions import Cast
from django.utils import timezone

from audit.actions import Action
from audit.models import AuditEntry, AuditHead, AuditSeal, PendingSeal
from audit.proof.marks import are_demanded, is_marked, refuse_other_key, states_other_key
from audit.proof.records import record_of
from audit.proof.trellis_verify import entry_hash
from audit.sealing.reading import chain_of, entries_by_id, heads_of
from audit.services import EntryDraft, record
from audit.storable import mapping_of
from workspaces.actors import Actor, Source

logger = logging.getLogger(__name__)

LOCK: Final = 0x7472656C6C5EA1
"""Number of the advisory lock under which seals and checkpoints are written; one process at a time holds it."""

_ALARMS: Final = 100
_BATCH: Final = 1_000
"""Entries that are sealed together. An alarm names all of them that are refused, so that they can be sealed later."""
_AT_ONCE: Final = 500
_ID: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")

_started = time.monotonic()
_sealed = 0


@dataclass(frozen=True, slots=True)
class SealedBatch:
    """What one run did."""

    sealed: int = 0
    skipped: int = 0
    """Rows that waited for an entry that is gone, or sealed already."""
    is_elsewhere: bool = False
    """Another process is at it."""


@contextmanager
def sealing_lock() -> Iterator[bool]:
    """A transaction under the lock; False: another process holds it. SQLite's transactions are the lock.

    Never within another one: what follows it in files outside relies on its commit.
    """
    with transaction.atomic(durable=True):
        if connection.vendor == "sqlite":
            yield True
            return
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_try_advisory_xact_lock(%s)", [LOCK])
            (has_lock,) = cursor.fetchone()
        yield has_lock


def seal_pending(most: int = _BATCH, *, is_key_lost: bool = False) -> SealedBatch:
    """Seal what waits, at most so many, in one transaction; what commits late is sealed late.

    Args:
        is_key_lost: a person declares that the log's key is lost, so what waits under it is refused.

    Raises:
        OtherLogKey: the log has another TRELLIS_AUDIT_KEY; nothing was sealed, and nothing refused.
        DatabaseError: nothing was sealed.
    """
    global _sealed
    if not PendingSeal.objects.exists():
        return SealedBatch()
    if not is_key_lost:
        refuse_other_key()
    with sealing_lock() as has_lock:
        if not has_lock:
            return SealedBatch(is_elsewhere=True)
        batch = _seal(most)
    _sealed += batch.sealed
    return batch


def seal_refused() -> None:
    """Before the log is verified, seal what was refused while TRELLIS_AUDIT_KEY was another one."""
    if not states_other_key() and seal_again():
        seal_pending()


def seal_again() -> int:
    """Have entries sealed that were refused while TRELLIS_AUDIT_KEY was another one, if it fits now; gives how many.

    One that lost its seal is none of these: nobody refused it.
    """
    count = sum(_put_back(ids) for ids in _refused(_alarms()))
    if count:
        logger.warning("audit_entries_sealed_again", extra={"count": count})
    return count


def count_refused(since: datetime | None) -> int:
    """How many entries were refused since then that have no seal by now, and wait for none; None: since ever."""
    alarms = _alarms() if since is None else _alarms().filter(created_at__gt=since)
    return sum(len(_without_seal(ids)) for ids in _refused(alarms))


def _alarms() -> QuerySet[AuditEntry]:
    return AuditEntry.objects.across_workspaces().filter(action=Action.LOG_INTRUSION.value)


def _refused(alarms: QuerySet[AuditEntry]) -> Iterator[list[UUID]]:
    """The ids of entries that alarms name, in order and piece by piece."""
    ids = {
        UUID(name)
        for details in alarms.order_by("-pk").values_list("details", flat=True)[:_ALARMS]
        for name in named_in(mapping_of(details))
    }
    in_order = sorted(ids)
    for start in range(0, len(ids), _AT_ONCE):
        yield in_order[start : start + _AT_ONCE]


def _without_seal(ids: list[UUID]) -> list[UUID]:
    done = set(AuditSeal.objects.filter(entry_id__in=ids).values_list("entry_id", flat=True))
    done |= set(PendingSeal.objects.filter(entry_id__in=ids).values_list("entry_id", flat=True))
    return [pk for pk in ids if pk not in done]


def _put_back(ids: list[UUID]) -> int:
    """Have those of these entries wait for a seal that have none and are ours; gives how many."""
    ours = [
        pk
        for pk, entry in sorted(entries_by_id(_without_seal(ids)).items())
        if is_marked(entry, is_demanded=True)
    ]
    PendingSeal.objects.bulk_create(PendingSeal(entry_id=pk) for pk in ours)
    return len(ours)


def named_in(alarm: Mapping[str, Any]) -> list[str]:
    """The ids in an alarm, which somebody may have written past Trellis."""
    names = alarm.get("entries")
    given = names if isinstance(names, list) else []
    return [name for name in given if isinstance(name, str) and _ID.fullmatch(name)]


def sealed_since_start() -> tuple[int, float]:
    """How many entries this process has sealed, and in how many seconds of its life."""
    return _sealed, time.monotonic() - _started


def _seal(most: int) -> SealedBatch:
    rows = _waiting(most)
    wanted = list(dict.fromkeys(entry_id for _, entry_id in rows if isinstance(entry_id, UUID)))
    entries = entries_by_id(wanted)
    done = set(AuditSeal.objects.filter(entry_id__in=wanted).values_list("entry_id", flat=True))
    waiting = [entries[pk] for pk in wanted if pk in entries and pk not in done]
    seals, foreign = _place(waiting)
    AuditSeal.objects.bulk_create(seals)
    newest = {
        seal.chain_id: seal for seal in sorted(seals, key=lambda seal: (seal.chain_id, seal.seq))
    }
    AuditHead.objects.bulk_create(
        [AuditHead(chain_id=pk, seq=seal.seq, hash=seal.hash) for pk, seal in newest.items()],
        update_conflicts=True,
        unique_fields=["chain_id"],
        update_fields=["seq", "hash"],
    )
    PendingSeal.objects.filter(id__in=[pk for pk, _ in rows]).delete()
    skipped = len(rows) - len(seals)
    if skipped:
        missing = [pk for pk in wanted if pk not in entries]
        names = [str(pk) for pk in missing]
        logger.warning("audit_entries_not_sealed", extra={"gone": names[:20], "rows": skipped})
        there = AuditEntry.unscoped.filter(pk__in=missing).values_list("pk", flat=True)
        unreadable = [str(pk) for pk in there]
        unreadable += [ascii(text[:64]) for _, text in rows if isinstance(text, str)]
        _report(foreign, unreadable)
    return SealedBatch(sealed=len(seals), skipped=skipped)


def _waiting(most: int) -> list[tuple[int, UUID | str]]:
    """The rows that wait, in order. As texts: what was written by hand need not be an id, and must not stop the rest."""
    rows = PendingSeal.objects.order_by("id").values_list("id", Cast("entry_id", CharField()))
    found: list[tuple[int, UUID | str]] = []
    for pk, text in rows[:most]:
        try:
            found.append((pk, UUID(text)))
        except ValueError:
            found.append((pk, text))
    return found


def _place(entries: list[AuditEntry]) -> tuple[list[AuditSeal], list[AuditEntry]]:
    """The seals of those that `record()` wrote, and the others, which get none."""
    is_demanded = are_demanded(timezone.now())
    foreign = []
    heads = heads_of({chain_of(entry.workspace_id) for entry in entries})
    seals = []
    for entry in entries:
        content = record_of(entry)
        if not is_marked(entry, content, is_demanded=is_demanded):
            foreign.append(entry)
            continue
        chain_id = chain_of(entry.workspace_id)
        seq, previous = heads[chain_id]
        seq += 1
        digest = entry_hash(str(chain_id), seq, previous, content)
        heads[chain_id] = (seq, digest)
        seals.append(AuditSeal(entry_id=entry.pk, chain_id=chain_id, seq=seq, hash=digest))
    return seals, foreign


def _report(foreign: list[AuditEntry], unreadable: list[str]) -> None:
    """Raise the alarm about entries that somebody wrote past `record()`: an entry each workspace, and a line of the log.

    Raises:
        AuditUnavailable: it could not be written; then nothing of the batch is sealed.
    """
    by_workspace: dict[UUID | None, list[str]] = {None: unreadable} if unreadable else {}
    for entry in foreign:
        by_workspace.setdefault(entry.workspace_id, []).append(str(entry.pk))
    for workspace_id, names in by_workspace.items():
        record(
            EntryDraft(
                action=Action.LOG_INTRUSION,
                actor=Actor.system(
                    label="audit log", source=Source.TASK, workspace_id=workspace_id
                ),
                workspace_id=workspace_id,
                details={"entries": names[:_BATCH], "count": len(names)},
            )
        )
        extra = {"entries": names[:20], "count": len(names), "workspace": str(workspace_id or "")}
        logger.critical("audit_foreign_entries_refused", extra=extra)
