"""Signed statements of what is removed; the database lets go only of what one covers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.utils import timezone

from audit.models import AuditSeal, AuditTombstone
from audit.proof.records import moment
from audit.proof.signing import signed
from audit.proof.trellis_verify import NO_HASH, TOMBSTONE_FORMAT
from audit.sealing.rotation import key_in_use

if TYPE_CHECKING:
    from uuid import UUID


def make_tombstone(
    *,
    chain_id: UUID,
    kind: AuditTombstone.Kind,
    first_seq: int,
    last_seq: int,
    reason: str,
) -> AuditTombstone:
    """Write the statement, in the transaction that removes the range.

    Raises:
        ValueError: the range is not sealed.
        SigningKeyMissing: nothing may be signed just now, so nothing is removed.
    """
    hashes = dict(
        AuditSeal.objects.filter(chain_id=chain_id, seq__in=[first_seq - 1, last_seq]).values_list(
            "seq", "hash"
        )
    )
    before = (
        NO_HASH
        if first_seq == 1
        else hashes.get(first_seq - 1) or _removed_hash(chain_id, first_seq - 1)
    )
    if first_seq > last_seq or last_seq not in hashes or before is None:
        raise ValueError("only what is sealed can be removed")
    made_at = timezone.now()
    key = key_in_use()
    statement, signature = signed(
        {
            "format": TOMBSTONE_FORMAT,
            "kind": str(kind),
            "chain": str(chain_id),
            "first": first_seq,
            "last": last_seq,
            "before": before,
            "hash": hashes[last_seq],
            "reason": reason[:200],
            "made_at": moment(made_at),
        },
        key,
    )
    return AuditTombstone.objects.create(
        chain_id=chain_id,
        kind=kind,
        first_seq=first_seq,
        last_seq=last_seq,
        reason=reason[:200],
        made_at=made_at,
        statement=statement,
        key_id=key.id,
        signature=signature,
    )


def _removed_hash(chain_id: UUID, seq: int) -> str | None:
    """The hash at the end of a range that was removed before."""
    import json

    earlier = AuditTombstone.objects.filter(
        chain_id=chain_id, kind=AuditTombstone.Kind.ENTRIES, last_seq=seq
    ).first()
    return json.loads(earlier.statement)["hash"] if earlier is not None else None
