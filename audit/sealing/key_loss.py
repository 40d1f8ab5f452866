"""Declare that keys of the log are lost for good, so that it is signed again and what is known is no alarm.

Whoever can write to the database must not hide anything by it. So what is signed or sealed goes on counting.
TRELLIS_AUDIT_KEY counts as lost only if the newest checkpoint was made under another one, as it says and is signed. If
the key that signed it is missing, too, a person confirms that one by another way than the database.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, TypeVar
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
from audit.proof.marks import is_marked, is_ours, key_check, stated_key_check
from audit.proof.records import moment
from audit.proof.signing import signing_keys
from audit.proof.trellis_verify import fingerprint_of, is_signed
from audit.sealing import checkpoints, external_checkpoint, sealer
from audit.sealing.checkpoint_mismatches import find_mismatch
from audit.sealing.declared_losses import DeclaredLosses, commitment_to
from audit.sealing.reading import heads, sealed_after
from audit.sealing.rotation import find_missing_key, newest_checkpoint
from audit.services import EntryDraft, record
from audit.storable import mapping_of
from workspaces.actors import Actor, Source

PART: Final = 250
"""Entries of whose contents one declaration tells: some ten kilobytes, which every stream can send."""
_BATCH: Final = 500
T = TypeVar("T")


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
    """Fingerprint of the lost key, which would have to sign what follows the newest checkpoint; None: it is there."""


def find_key_loss() -> KeyLoss | None:
    """Look through the log for what was written under a key that is lost, and was not declared yet.

    Gives None where the key that signs the log is there, and says of no other TRELLIS_AUDIT_KEY that it is the log's:
    then none is lost, whatever else is wrong.

    Raises:
        DoubtfulKeyLoss: what is there is not what a lost key leaves; somebody has to look at it.
    """
    newest = newest_checkpoint()
    if newest is None:
        return None
    stated, is_signing_key_lost = stated_key_check(newest), find_missing_key() is not None
    if not is_signing_key_lost and stated in {None, key_check()}:
        return None
    lost = _fingerprint_after(newest) if is_signing_key_lost else None
    is_doubtful = not is_ours(newest)
    if is_signing_key_lost:
        is_doubtful = lost is None or lost in {key.fingerprint for key in signing_keys()}
    if is_doubtful:
        raise DoubtfulKeyLoss(
            "The newest checkpoint was altered, so it does not say which key is lost. Run: python3 manage.py verify_audit"
        )
    if not is_signing_key_lost and external_checkpoint.kept_aside():
        raise DoubtfulKeyLoss(
            "A checkpoint file that was kept tells of a newer log than this one, which may say of another key that it is the"
            " log's. Run: python3 manage.py verify_audit"
        )
    if find_mismatch() is not None:
        raise DoubtfulKeyLoss(
            "The checkpoint file outside the database tells of another log. Start Trellis, so that it is kept, and run this"
            " again."
        )
    chains = [loss for chain_id in sorted(_chains()) if (loss := _look_through(chain_id))]
    if chains and stated == key_check():
        raise DoubtfulKeyLoss(
            "Entries do not fit TRELLIS_AUDIT_KEY, and the newest checkpoint says that it is the log's key. So they were"
            " altered. Run: python3 manage.py verify_audit"
        )
    if chains and stated is None and settings.TRELLIS.audit_signing_keys:
        raise DoubtfulKeyLoss(
            "The signing key is missing, and entries do not fit TRELLIS_AUDIT_KEY. With TRELLIS_AUDIT_SIGNING_KEYS, nothing"
            " tells whether that key is lost or entries were altered, so nothing can be declared. If both keys are lost for"
            " certain, run this without TRELLIS_AUDIT_SIGNING_KEYS."
        )
    return KeyLoss(chains, lost)


def declare_key_loss(loss: KeyLoss, *, by: str, reason: str) -> None:
    """Enter it into each chain, and have the log signed again.

    Raises:
        AuditUnavailable: it could not be entered; nothing was declared.
        Conflict: another process has signed something meanwhile.
    """
    with transaction.atomic():
        for chain in loss.chains or [ChainLoss(PLATFORM_CHAIN)]:
            for number, part in enumerate(_parts(chain), start=1):
                _enter(chain, number, part, loss, by=by, reason=reason)
    checkpoints.begin_with_new_key(loss.signing_key, by=by)


@dataclass(frozen=True, slots=True)
class _Part:
    """What one declaration tells of a chain."""

    contents: dict[str, str] = field(default_factory=dict)
    unsealed: dict[str, str] = field(default_factory=dict)


def _parts(chain: ChainLoss) -> Iterator[_Part]:
    """Give at least one part; those of what has no seal come first."""
    unsealed = [(str(pk), kept) for pk, kept in sorted(chain.unsealed.items())]
    contents = [(str(place), kept) for place, kept in sorted(chain.contents.items())]
    if not unsealed and not contents:
        yield _Part()
    for some in _split(unsealed, PART):
        yield _Part(unsealed=dict(some))
    for some in _split(contents, PART):
        yield _Part(contents=dict(some))


def _split(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    return (items[start : start + size] for start in range(0, len(items), size))


def _enter(
    chain: ChainLoss, number: int, part: _Part, loss: KeyLoss, *, by: str, reason: str
) -> None:
    """One declaration."""
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
                "without_seal": len(chain.unsealed),
                "unsealed": part.unsealed,
                "contents": part.contents,
            },
        )
    )


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
                first_ours = first_ours or (place if is_whole else 0)
                continue  # older than marks
            _refuse_if_odd(chain_id, place, entry, first_ours=first_ours, is_whole=is_whole)
            loss.until, loss.newest = place, entry.created_at
            if entry.body_commitment and (body or entry.arguments_preview or entry.result_preview):
                loss.contents[place] = commitment_to(entry, body, is_sealed=True)
    _add_unsealed(loss, declared)
    return loss if loss.until or loss.unsealed else None


def _refuse_if_odd(
    chain_id: UUID, place: int, entry: AuditEntry, *, first_ours: int, is_whole: bool
) -> None:
    where = f"Entry {entry.pk} (chain {chain_id}, seq {place})"
    if first_ours:
        raise DoubtfulKeyLoss(
            f"{where} has no valid mark, although the one at seq {first_ours} fits TRELLIS_AUDIT_KEY."
            " A lost key does not leave that. Run: python3 manage.py verify_audit"
        )
    if is_whole:
        raise DoubtfulKeyLoss(
            f"{where} has no valid mark, although its arguments and results fit TRELLIS_AUDIT_KEY. So that key is not lost:"
            " its mark was altered. Run: python3 manage.py verify_audit"
        )


def _add_unsealed(loss: ChainLoss, declared: DeclaredLosses) -> None:
    """Entries that bear a mark of another key and were refused their seal."""
    alarms = AuditEntry.objects.across_workspaces().filter(
        action=Action.LOG_INTRUSION.value, workspace_id=loss.workspace_id
    )
    named = {
        UUID(name)
        for details in alarms.order_by("pk").values_list("details", flat=True)
        for name in sealer.named_in(mapping_of(details))
    }
    for some in _split(sorted(named - declared.unsealed.keys()), _BATCH):
        ids = set(some)
        ids -= set(AuditSeal.objects.filter(entry_id__in=some).values_list("entry_id", flat=True))
        ids -= set(PendingSeal.objects.filter(entry_id__in=some).values_list("entry_id", flat=True))
        entries = AuditEntry.objects.across_workspaces().in_bulk(sorted(ids))
        bodies = AuditBody.objects.across_workspaces().in_bulk(list(entries))
        for pk, entry in entries.items():
            if entry.workspace_id == loss.workspace_id and entry.mark:
                loss.unsealed[pk] = commitment_to(entry, bodies.get(pk), is_sealed=False)


def _fingerprint_after(checkpoint: AuditCheckpoint) -> str | None:
    """The fingerprint of the key that would have to sign what follows; None: the statement is not as it was signed."""
    try:
        statement = json.loads(checkpoint.statement)
        is_rotation = statement["kind"] == AuditCheckpoint.Kind.ROTATION
        if not is_signed(checkpoint.statement, checkpoint.signature, statement["key"]["public"]):
            return None
        public = statement["next_key" if is_rotation else "key"]["public"]
        return fingerprint_of(base64.b64decode(public))
    except (ValueError, KeyError, TypeError):
        return None
