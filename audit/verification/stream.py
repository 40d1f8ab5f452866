"""The log as the verifier takes it: tombstones, then entries and checkpoints in the order of sealing. Constant memory."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final
from uuid import UUID

from django.db.models import Q

from audit.models import AuditCheckpoint, AuditHead, AuditSeal, AuditTombstone
from audit.proof.marks import first_demanding, is_marked
from audit.proof.records import moment, record_of
from audit.proof.trellis_verify import Record
from audit.sealing.declared_losses import DeclaredLosses
from audit.sealing.reading import SealedEntry, head_of, heads_of, sealed_after
from audit.verification.stored import EntryProblem, spelling_doubts

_CHECKPOINTS: Final = 500
_TOMBSTONES: Final = 1_000
_LEAST: Final = 20
_MOST: Final = 1_000
"""Entries of one chain that are read at once."""
_MOST_AHEAD: Final = 20_000
"""Entries that are read ahead, of all chains together."""

News = Callable[[], Iterator[Record]]
"""The tombstones that came in since the last look."""
Inspect = Callable[[str, list[SealedEntry], News], None]


@dataclass(slots=True)
class Cursor:
    """From where to go on: the place of each chain, and the number of a checkpoint."""

    heads: dict[str, tuple[int, str]] = field(default_factory=dict)
    checkpoint: int = 0


class LogStream:
    """The records of one workspace, or of all chains.

    Args:
        workspace_id: whose chain; None for all.
        cursor: where an earlier reading ended.
        inspect: is shown each batch of entries as it is read.
    """

    def __init__(
        self,
        workspace_id: UUID | None = None,
        *,
        cursor: Cursor | None = None,
        inspect: Inspect | None = None,
    ) -> None:
        self._workspace_id = workspace_id
        self._cursor = cursor or Cursor()
        self._inspect = inspect
        newest = AuditCheckpoint.objects.order_by("-number").first()
        self.newest = newest.number if newest else 0
        # Read behind the newest checkpoint: then no checkpoint speaks of more than is read.
        self.tops = self._read_tops()
        self._places = {name: head[0] for name, head in self._cursor.heads.items()}
        self._ahead: dict[str, deque[SealedEntry]] = {}
        self._batch = max(_LEAST, min(_MOST, _MOST_AHEAD // max(1, len(self.tops))))
        self._tombstones: set[UUID] = set()
        self._are_marked = False
        self._losses: dict[str, DeclaredLosses] = {}
        self.doubts: list[EntryProblem] = []
        """What is wrong with entries although their seals fit; complete when all has been read."""

    def _read_tops(self) -> dict[str, tuple[int, str]]:
        if self._workspace_id is not None:
            top = head_of(self._workspace_id)
            return {str(self._workspace_id): top} if top[0] else {}
        chains = set(AuditHead.objects.values_list("chain_id", flat=True))
        chains |= set(AuditSeal.objects.values_list("chain_id", flat=True).distinct())
        return {str(name): head for name, head in heads_of(chains).items()}

    def __iter__(self) -> Iterator[Record]:
        yield from self._new_tombstones()
        first_marked = first_demanding()
        for checkpoint in self._checkpoints():
            self._are_marked = first_marked is not None and checkpoint.number > first_marked
            heads = _heads_beside(checkpoint, self._workspace_id)
            for name, (seq, _hash) in heads.items():
                yield from self._entries(name, seq)
            yield {
                "record": "checkpoint",
                "statement": checkpoint.statement,
                "signature": checkpoint.signature,
                "countersignature": checkpoint.countersignature,
                "heads": heads,
                "columns": {
                    "number": checkpoint.number,
                    "kind": checkpoint.kind,
                    "made_at": moment(checkpoint.made_at),
                    "key_id": checkpoint.key_id,
                    "hash": checkpoint.hash,
                },
            }
        self._are_marked = first_marked is not None and self.newest >= first_marked
        for name, (seq, _hash) in self.tops.items():
            yield from self._entries(name, seq)

    def _checkpoints(self) -> Iterator[AuditCheckpoint]:
        last = self._cursor.checkpoint
        wanted = AuditCheckpoint.objects.filter(number__lte=self.newest).order_by("number")
        if self._workspace_id is not None:
            kinds = (
                AuditCheckpoint.Kind.ROTATION,
                AuditCheckpoint.Kind.RESTORED,
                AuditCheckpoint.Kind.KEY_LOST,
            )
            wanted = wanted.filter(
                Q(heads__contains=str(self._workspace_id))
                | Q(kind__in=kinds)
                | Q(number__in=[1, self.newest])
            )
        while batch := list(wanted.filter(number__gt=last)[:_CHECKPOINTS]):
            yield from batch
            last = batch[-1].number

    def _entries(self, name: str, until: int) -> Iterator[Record]:
        place = self._places.get(name, 0)
        while place < until:
            ahead = self._ahead.get(name)
            if not ahead:
                ahead = self._ahead[name] = self._read_ahead(name, place)
            if not ahead or ahead[0].seq != place + 1:
                # Perhaps it was removed while this was read.
                yield from self._new_tombstones()
            if not ahead or ahead[0].seq > until:
                place = until
                break
            sealed = ahead.popleft()
            place = sealed.seq
            content = None if sealed.entry is None else record_of(sealed.entry)
            if (
                sealed.entry is not None
                and not is_marked(sealed.entry, content, is_demanded=self._are_marked)
                and not (sealed.entry.mark and place <= self.losses_of(name).last)
            ):
                text = (
                    f"Entry {sealed.entry_id} was not written by Trellis, or under another"
                    " TRELLIS_AUDIT_KEY: it has no valid mark."
                )
                self.doubts.append(EntryProblem(text, name, place))
            yield {
                "record": "entry",
                "chain": name,
                "seq": sealed.seq,
                "hash": sealed.hash,
                "entry": content,
            }
        self._places[name] = max(place, self._places.get(name, 0))

    def losses_of(self, name: str) -> DeclaredLosses:
        """What was declared of a chain."""
        if name not in self._losses:
            self._losses[name] = DeclaredLosses(UUID(name))
        return self._losses[name]

    def _read_ahead(self, name: str, place: int) -> deque[SealedEntry]:
        found = sealed_after(UUID(name), place, self._batch)
        while found and not (batch := _still_sealed(found)):
            found = sealed_after(UUID(name), place, self._batch)
        if not found:
            return deque()
        if self._inspect is not None:
            self._inspect(name, batch, self._new_tombstones)
        there = {sealed.entry: sealed.seq for sealed in batch if sealed.entry is not None}
        self.doubts += spelling_doubts(name, there)
        return deque(batch)

    def _new_tombstones(self) -> Iterator[Record]:
        rows = AuditTombstone.objects.order_by("id")
        if self._workspace_id is not None:
            rows = rows.filter(chain_id=self._workspace_id)
        # Compared here: erasures leave more of them than a statement takes values.
        new = [pk for pk in rows.values_list("pk", flat=True) if pk not in self._tombstones]
        self._tombstones.update(new)
        pieces = (new[at : at + _TOMBSTONES] for at in range(0, len(new), _TOMBSTONES))
        for row in (row for piece in pieces for row in rows.filter(pk__in=piece)):
            yield {
                "record": "tombstone",
                "statement": row.statement,
                "signature": row.signature,
                "columns": {
                    "chain": str(row.chain_id),
                    "kind": row.kind,
                    "first": row.first_seq,
                    "last": row.last_seq,
                    "reason": row.reason,
                    "made_at": moment(row.made_at),
                    "key_id": row.key_id,
                },
            }


def _still_sealed(batch: list[SealedEntry]) -> list[SealedEntry]:
    """The batch without what retention removed between the reading of its seals and of its entries."""
    removed = [sealed.entry_id for sealed in batch if sealed.entry is None]
    if not removed:
        return batch
    seals = AuditSeal.objects.filter(entry_id__in=removed).values_list("entry_id", flat=True)
    left = set(seals)
    return [sealed for sealed in batch if sealed.entry is not None or sealed.entry_id in left]


def _heads_beside(checkpoint: AuditCheckpoint, workspace_id: UUID | None) -> dict[str, Any]:
    """Where the chains stood that a statement names by digest; of one workspace only its own."""
    try:
        found = json.loads(checkpoint.heads or "{}")
        heads = {str(UUID(name)): (int(seq), str(hash_)) for name, (seq, hash_) in found.items()}
    except (ValueError, TypeError, AttributeError):
        return {}
    if workspace_id is None:
        return heads
    return {name: head for name, head in heads.items() if name == str(workspace_id)}
