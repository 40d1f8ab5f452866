"""Giving each entry its place: gapless in its chain, hashed with what stands before it, in the order of commit."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from django.db import connection, transaction

from audit.models import AuditEntry, AuditHead, AuditSeal, PendingSeal
from audit.sealing.reading import chain_of, entries_by_id, heads_of
from audit.sealing.records import record_of
from audit.verification.trellis_verify import entry_hash

logger = logging.getLogger(__name__)

LOCK: Final = 0x7472656C6C5EA1
"""Number of the advisory lock under which seals and checkpoints are written; one process at a time holds it."""

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
    """A transaction under the lock; False: another process holds it. SQLite's transactions are the lock."""
    with transaction.atomic():
        if connection.vendor == "sqlite":
            yield True
            return
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_try_advisory_xact_lock(%s)", [LOCK])
            (has_lock,) = cursor.fetchone()
        yield has_lock


def seal_pending(most: int = 1_000) -> SealedBatch:
    """Seal what waits, at most so many, in one transaction; what commits late is sealed late.

    Raises:
        DatabaseError: nothing was sealed.
    """
    global _sealed
    if not PendingSeal.objects.exists():
        return SealedBatch()
    with sealing_lock() as has_lock:
        if not has_lock:
            return SealedBatch(is_elsewhere=True)
        batch = _seal(most)
    _sealed += batch.sealed
    return batch


def sealed_since_start() -> tuple[int, float]:
    """How many entries this process has sealed, and in how many seconds of its life."""
    return _sealed, time.monotonic() - _started


def _seal(most: int) -> SealedBatch:
    rows = list(PendingSeal.objects.order_by("id").values_list("id", "entry_id")[:most])
    wanted = list(dict.fromkeys(entry_id for _, entry_id in rows))
    entries = entries_by_id(wanted)
    done = set(AuditSeal.objects.filter(entry_id__in=wanted).values_list("entry_id", flat=True))
    waiting = [entries[pk] for pk in wanted if pk in entries and pk not in done]
    seals = _place(waiting)
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
        gone = [str(pk) for pk in wanted if pk not in entries]
        logger.warning("audit_entries_not_sealed", extra={"gone": gone[:20], "rows": skipped})
    return SealedBatch(sealed=len(seals), skipped=skipped)


def _place(entries: list[AuditEntry]) -> list[AuditSeal]:
    heads = heads_of({chain_of(entry.workspace_id) for entry in entries})
    seals = []
    for entry in entries:
        chain_id = chain_of(entry.workspace_id)
        seq, previous = heads[chain_id]
        seq += 1
        digest = entry_hash(str(chain_id), seq, previous, record_of(entry))
        heads[chain_id] = (seq, digest)
        seals.append(AuditSeal(entry_id=entry.pk, chain_id=chain_id, seq=seq, hash=digest))
    return seals
