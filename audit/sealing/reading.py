"""Reading the log in the order of sealing: by chain and sequence number, each entry exactly once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from uuid import UUID

from django.db import DataError

from audit.models import PLATFORM_CHAIN, AuditEntry, AuditHead, AuditSeal
from audit.proof.trellis_verify import NO_HASH

if TYPE_CHECKING:
    from collections.abc import Iterable


UNREADABLE: Final = (ValueError, TypeError, OverflowError, DataError)
"""What reading a row raises that holds something else than Trellis writes."""


@dataclass(frozen=True, slots=True)
class SealedEntry:
    """An entry in its place."""

    seq: int
    hash: str
    entry_id: UUID
    entry: AuditEntry | None
    """None: it is gone, or cannot be read, although its seal is still there."""


def chain_of(workspace_id: UUID | None) -> UUID:
    """The chain of a workspace's entries, or of those that belong to none."""
    return workspace_id or PLATFORM_CHAIN


def sealed_after(chain_id: UUID, seq: int, most: int = 1_000) -> list[SealedEntry]:
    """The entries of a chain behind a place, in order; numbers are missing only where retention removed them."""
    seals = list(AuditSeal.objects.filter(chain_id=chain_id, seq__gt=seq).order_by("seq")[:most])
    found = entries_by_id(seal.entry_id for seal in seals)
    return [
        SealedEntry(seal.seq, seal.hash, seal.entry_id, found.get(seal.entry_id)) for seal in seals
    ]


def entries_by_id(ids: Iterable[UUID]) -> dict[UUID, AuditEntry]:
    """Entries of any workspace: for sealing and for what reads in the order of sealing.

    One that holds what cannot be read is left out, and keeps no other from being read.
    """
    wanted = list(ids)
    try:
        return AuditEntry.objects.across_workspaces().in_bulk(wanted)
    except UNREADABLE:
        if len(wanted) == 1:
            return {}
        half = len(wanted) // 2
        return entries_by_id(wanted[:half]) | entries_by_id(wanted[half:])


def heads() -> dict[UUID, tuple[int, str]]:
    """Where each chain stands."""
    return {head.chain_id: (head.seq, head.hash) for head in AuditHead.objects.all()}


def head_of(chain_id: UUID) -> tuple[int, str]:
    """Where a chain stands: the greater of what its newest seal and the kept head say."""
    return heads_of([chain_id])[chain_id]


def heads_of(chain_ids: Iterable[UUID]) -> dict[UUID, tuple[int, str]]:
    """The same for several. Retention may have removed the newest seal; then the kept head knows."""
    wanted = list(chain_ids)
    found = dict.fromkeys(wanted, (0, NO_HASH))
    for head in AuditHead.objects.filter(chain_id__in=wanted):
        found[head.chain_id] = (head.seq, head.hash)
    for chain_id in wanted:
        newest = AuditSeal.objects.filter(chain_id=chain_id).order_by("-seq").first()
        if newest is not None and newest.seq > found[chain_id][0]:
            found[chain_id] = (newest.seq, newest.hash)
    return found
