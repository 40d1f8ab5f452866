"""Declare that keys of the log are lost for good, so that it is signed again and what is known is no alarm.

Whoever can write to the database must not hide anything by it. So nothing of what is signed or sealed stops to count, and
a person is refused where what is there is not what a lost key leaves.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final
from uuid import UUID

from django.conf import settings
from django.db import transaction

from audit.actions import Action
from audit.bodies import is_body_whole
from audit.models import (
    PLATFORM_CHAIN,
    AuditBody,
    AuditCheckpoint,
    AuditEntry,
    AuditSeal,
    PendingSeal,
)
from audit.proof.marks import is_marked
from audit.proof.records import moment
from audit.proof.signing import signing_keys
from audit.proof.trellis_verify import fingerprint_of
from audit.sealing import checkpoints
from audit.sealing.declared_losses import DeclaredLosses, commitment_to
from audit.sealing.reading import heads, sealed_after
from audit.sealing.rotation import find_missing_key, newest_checkpoint
from audit.services import EntryDraft, record
from workspaces.actors import Actor, Source

PART: Final = 250
"""Entries of whose contents one declaration tells: some ten kilobytes, which every stream can send."""
MOST_UNSEALED: Final = 1_000
_BATCH: Final = 500


class DoubtfulKeyLoss(RuntimeError):
    """What is in the log is not what a lost key leaves."""


@dataclass(slots=True)
class ChainLoss:
    """What of one chain can be verified no longer."""

    chain_id: UUID
    until: int = 0
    """The last place whose entry was written under a lost key; 0: none."""
    newest: datetime | None = None
    contents: dict[int, str] = field(default_factory=dict)
    unsealed: dict[UUID, str] = field(default_factory=dict)

    @property
    def workspace_id(self) -> UUID | None:
        """Whose chain it is; None: the platform's."""
        return None if self.chain_id == PLATFORM_CHAIN else self.chain_id


@dataclass(frozen=True, slots=True)
class KeyLoss:
    """What was found to be lost."""

    chains: list[ChainLoss]
    signing_key: str | None
    """Fingerprint of the lost key that signed the newest checkpoint; None: that key is in the settings."""

    @property
    def entries(self) -> int:
        """How many sealed entries lie in the ranges whose key is lost."""
        return sum(chain.until for chain in self.chains)

    @property
    def unsealed(self) -> int:
        """How many entries waited for their seal when the key was lost, and have none."""
        return sum(len(chain.unsealed) for chain in self.chains)


def find_key_loss() -> KeyLoss:
    """Look through the log for what was written under a key that is not in the settings, and was not declared yet.

    Raises:
        DoubtfulKeyLoss: what is there is not what a lost key leaves; somebody has to look at it.
    """
    chains = [loss for chain_id in sorted(_chains()) if (loss := _look_through(chain_id))]
    newest = newest_checkpoint()
    missing = find_missing_key() is not None and newest is not None
    return KeyLoss(chains, _fingerprint_after(newest) if missing and newest else None)


def declare_key_loss(loss: KeyLoss, *, by: str, reason: str) -> None:
    """Enter it into each chain, and have the log signed again if nothing could be.

    Raises:
        AuditUnavailable: it could not be entered; nothing was declared.
        Conflict: another process has signed something meanwhile.
    """
    with transaction.atomic():
        for chain in loss.chains or [ChainLoss(PLATFORM_CHAIN)]:
            for number, contents in enumerate(_parts(chain.contents), start=1):
                _enter(chain, number, contents, loss, by=by, reason=reason)
    if loss.signing_key is not None:
        checkpoints.begin_with_new_key(loss.signing_key, by=by)


def _enter(
    chain: ChainLoss, number: int, contents: dict[str, str], loss: KeyLoss, *, by: str, reason: str
) -> None:
    """One declaration; the first of a chain names what has no seal."""
    is_first = number == 1
    record(
        EntryDraft(
            action=Action.LOG_KEY_LOST,
            actor=Actor.system(label=by, source=Source.COMMAND, workspace_id=chain.workspace_id),
            workspace_id=chain.workspace_id,
            details={
                "until": chain.until,
                "newest": moment(chain.newest) if chain.newest else None,
                "reason": reason,
                "part": number,
                "signing_key": loss.signing_key,
                "unsealed": (
                    {str(pk): kept for pk, kept in chain.unsealed.items()} if is_first else {}
                ),
                "contents": contents,
            },
        )
    )


def _parts(contents: dict[int, str]) -> Iterator[dict[str, str]]:
    """Give at least one part."""
    places = sorted(contents)
    for start in range(0, max(1, len(places)), PART):
        yield {str(place): contents[place] for place in places[start : start + PART]}


def _chains() -> set[UUID]:
    alarms = AuditEntry.objects.across_workspaces().filter(action=Action.LOG_INTRUSION.value)
    named = {
        pk or PLATFORM_CHAIN for pk in alarms.order_by().values_list("workspace_id", flat=True)
    }
    return {PLATFORM_CHAIN} | set(heads()) | named


def _look_through(chain_id: UUID) -> ChainLoss | None:
    declared = DeclaredLosses(chain_id)
    loss = ChainLoss(chain_id)
    place, first_ours = 0, 0
    while batch := sealed_after(chain_id, place, _BATCH):
        entries = [sealed.entry for sealed in batch if sealed.entry is not None]
        bodies = AuditBody.objects.across_workspaces().in_bulk([entry.pk for entry in entries])
        for sealed in batch:
            place, entry = sealed.seq, sealed.entry
            if entry is None or place <= declared.last:
                continue
            if is_marked(entry, is_demanded=True):
                first_ours = first_ours or place
                continue
            body = bodies.get(entry.pk)
            is_whole = bool(entry.body_commitment) and is_body_whole(entry, body)
            if not entry.mark and (is_whole or not entry.body_commitment):
                continue  # older than marks
            _refuse_if_odd(chain_id, place, entry, first_ours=first_ours, is_whole=is_whole)
            loss.until, loss.newest = place, entry.created_at
            if entry.body_commitment and (body or entry.arguments_preview or entry.result_preview):
                loss.contents[place] = commitment_to(entry, body, is_sealed=True)
    _refuse_if_key_was_here(loss)
    _add_unsealed(loss, declared)
    return loss if loss.until or loss.unsealed else None


def _refuse_if_odd(
    chain_id: UUID, place: int, entry: AuditEntry, *, first_ours: int, is_whole: bool
) -> None:
    where = f"Entry {entry.pk} (chain {chain_id}, seq {place})"
    if first_ours:
        raise DoubtfulKeyLoss(
            f"{where} has no valid mark, although entry {first_ours} before it has one. A lost key does not leave that."
            " Run: python3 manage.py verify_audit"
        )
    if is_whole:
        raise DoubtfulKeyLoss(
            f"{where} has no valid mark, although its arguments and results fit TRELLIS_AUDIT_KEY. So that key is not lost:"
            " its mark was altered. Run: python3 manage.py verify_audit"
        )


def _refuse_if_key_was_here(loss: ChainLoss) -> None:
    """Refuse if the key of now has signed the log before the newest entry that does not fit it was written."""
    if loss.newest is None or settings.TRELLIS.audit_signing_keys:
        return
    ours = signing_keys()[0]
    first = AuditCheckpoint.objects.filter(key_id=ours.id).order_by("number").first()
    if first is not None and first.made_at < loss.newest:
        raise DoubtfulKeyLoss(
            f"TRELLIS_AUDIT_KEY has signed the log since {first.made_at:%Y-%m-%d %H:%M} UTC, so that key is not lost, although"
            f" entries of chain {loss.chain_id} up to seq {loss.until} do not fit it. Run: python3 manage.py verify_audit"
        )


def _add_unsealed(loss: ChainLoss, declared: DeclaredLosses) -> None:
    """Entries that bear a mark of another key and were refused their seal."""
    rows = AuditEntry.objects.across_workspaces().filter(
        action=Action.LOG_INTRUSION.value, workspace_id=loss.workspace_id
    )
    named: set[UUID] = set()
    for details in rows.order_by("pk").values_list("details", flat=True):
        names = details.get("entries") if isinstance(details, dict) else None
        named |= {UUID(name) for name in names or [] if isinstance(name, str)}
    named -= declared.unsealed.keys()
    named -= set(AuditSeal.objects.filter(entry_id__in=named).values_list("entry_id", flat=True))
    named -= set(PendingSeal.objects.filter(entry_id__in=named).values_list("entry_id", flat=True))
    entries = AuditEntry.objects.across_workspaces().in_bulk(sorted(named))
    bodies = AuditBody.objects.across_workspaces().in_bulk(list(entries))
    for pk, entry in sorted(entries.items()):
        if entry.workspace_id != loss.workspace_id or not entry.mark:
            continue
        loss.unsealed[pk] = commitment_to(entry, bodies.get(pk), is_sealed=False)
    if len(loss.unsealed) > MOST_UNSEALED:
        raise DoubtfulKeyLoss(
            f"{len(loss.unsealed)} entries of chain {loss.chain_id} have no seal. A lost key leaves at most"
            f" {MOST_UNSEALED}. Run: python3 manage.py verify_audit"
        )


def _fingerprint_after(checkpoint: AuditCheckpoint) -> str:
    """The fingerprint of the key that would have to sign what follows."""
    statement = json.loads(checkpoint.statement)
    is_rotation = statement["kind"] == AuditCheckpoint.Kind.ROTATION
    public = statement["next_key" if is_rotation else "key"]["public"]
    return fingerprint_of(base64.b64decode(public))
