"""Places of a chain that nothing accounts for: retention must not sign away what somebody else took out."""

from __future__ import annotations

import base64
import json
import logging
from typing import TYPE_CHECKING

from audit.actions import Action
from audit.models import AuditCheckpoint, AuditEntry, AuditSeal, AuditTombstone
from audit.proof.signing import find_key
from audit.proof.trellis_verify import TOMBSTONE_FORMAT, fingerprint_of, is_signed
from audit.sealing.reading import chain_of
from audit.services import EntryDraft, record
from workspaces.actors import Actor, Source

if TYPE_CHECKING:
    from uuid import UUID

logger = logging.getLogger(__name__)


def gap_in(chain_id: UUID, first: int, last: int) -> tuple[int, int] | None:
    """The first and the last place, from the one before `first` on, whose entry is gone without a signed statement."""
    seals = AuditSeal.objects.filter(chain_id=chain_id, seq__range=(max(1, first - 1), last))
    places = dict(seals.values_list("entry_id", "seq"))
    entries = AuditEntry.objects.across_workspaces().filter(pk__in=seals.values("entry_id"))
    there = {places[pk] for pk in entries.values_list("pk", flat=True) if pk in places}
    missing = [seq for seq in range(max(1, first - 1), last + 1) if seq not in there]
    if not missing:
        return None
    stones = AuditTombstone.objects.filter(
        chain_id=chain_id,
        kind=AuditTombstone.Kind.ENTRIES,
        first_seq__lte=missing[-1],
        last_seq__gte=missing[0],
    )
    ranges = [(stone.first_seq, stone.last_seq) for stone in stones if _holds(stone)]
    gaps = [seq for seq in missing if not any(a <= seq <= b for a, b in ranges)]
    return (gaps[0], gaps[-1]) if gaps else None


def declare_gap(workspace_id: UUID, gap: tuple[int, int]) -> None:
    """Say that nothing is removed any more, and enter the loss once.

    Raises:
        AuditUnavailable: it could not be entered.
    """
    first, last = gap
    logger.critical(
        "audit_retention_found_a_hole",
        extra={"workspace_id": str(workspace_id), "first": first, "last": last},
    )
    losses = AuditEntry.objects.for_workspace(workspace_id).filter(action=Action.LOG_LOSS.value)
    if losses.filter(details__chain=str(chain_of(workspace_id)), details__first=first).exists():
        return
    record(
        EntryDraft(
            action=Action.LOG_LOSS,
            actor=Actor.system(label="retention", source=Source.TASK, workspace_id=workspace_id),
            workspace_id=workspace_id,
            details={
                "reason": "Entries are gone that nothing removed; retention stands still.",
                "chain": str(chain_of(workspace_id)),
                "first": first,
                "last": last,
            },
        )
    )


def _holds(stone: AuditTombstone) -> bool:
    """Whether a row says what was signed, with a key that the log knows."""
    try:
        statement = json.loads(stone.statement)
        key = statement["key"]
        place = (statement["chain"], statement["kind"], statement["first"], statement["last"])
        wanted = (str(stone.chain_id), stone.kind, stone.first_seq, stone.last_seq)
        key_id = fingerprint_of(base64.b64decode(key["public"], validate=True))[:16]
        is_right = statement["format"] == TOMBSTONE_FORMAT and place == wanted
    except (ValueError, KeyError, TypeError):
        return False
    if not is_right or not is_signed(stone.statement, stone.signature, key["public"]):
        return False
    return find_key(key_id) is not None or AuditCheckpoint.objects.filter(key_id=key_id).exists()
