"""The verifiable export: JSON lines that prove themselves to anybody, with `trellis_verify.py` and nothing else."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from uuid import UUID

from django.utils import timezone

from audit.actions import Action
from audit.models import AuditCheckpoint
from audit.proof.records import moment
from audit.proof.signing import signed
from audit.proof.trellis_verify import EXPORT_FORMAT, MOST_FINDINGS, Record, canonical
from audit.sealing.rotation import key_in_use
from audit.services import EntryDraft, record
from audit.verification.stored import hidden_entries, unsealed_entries
from audit.verification.stream import LogStream
from workspaces.actors import Actor

_PIECE_BYTES = 256 * 1024
_COUNTED = {"entry": "entries", "tombstone": "tombstones", "checkpoint": "checkpoints"}


def record_proof_export(*, actor: Actor, workspace_id: UUID | None) -> None:
    """Write down who takes the proof away, before anything of it is given.

    Raises:
        AuditUnavailable: it could not be written; then nothing is given.
    """
    record(
        EntryDraft(
            action=Action.EXPORT_CREATED,
            actor=actor,
            workspace_id=workspace_id,
            details={"format": "proof", "filters": {}},
        )
    )


def proof_records(workspace_id: UUID | None) -> Iterator[Record]:
    """Header, log, signed last line.

    Raises:
        SigningKeyMissing: nothing may be signed just now.
    """
    key = key_in_use()
    scope = str(workspace_id) if workspace_id else "platform"
    stream = LogStream(workspace_id)
    made_at = moment(timezone.now())
    yield {"record": "header", "format": EXPORT_FORMAT, "scope": scope, "made_at": made_at}
    counts: Counter[str] = Counter(dict.fromkeys(_COUNTED.values(), 0))
    for item in stream:
        counts[_COUNTED[item["record"]]] += 1
        yield item
    newest = AuditCheckpoint.objects.filter(number=stream.newest).first()
    found = [*stream.doubts, *unsealed_entries(workspace_id), *hidden_entries(workspace_id)]
    content = {
        "format": EXPORT_FORMAT,
        "scope": scope,
        "made_at": made_at,
        "heads": {name: list(head) for name, head in stream.tops.items()},
        "checkpoint": [newest.number, newest.hash] if newest else None,
        **counts,
        "found": [
            {"text": one.text, "chain": one.chain, "seq": one.seq} for one in found[:MOST_FINDINGS]
        ],
        "found_in_all": len(found),
    }
    statement, signature = signed(content, key)
    yield {"record": "end", "statement": statement, "signature": signature}


def proof_pieces(workspace_id: UUID | None) -> Iterator[bytes]:
    """The same as bytes, in pieces of some size."""
    piece = bytearray()
    for item in proof_records(workspace_id):
        piece += canonical(item) + b"\n"
        if len(piece) >= _PIECE_BYTES:
            yield bytes(piece)
            piece.clear()
    yield bytes(piece)
