"""Handle a checkpoint file that does not match the database: keep it, enter the loss, and wait for a person.

Nothing here relies on what somebody with rights to the database can change: neither whose the database is, nor that
a person has confirmed a restore.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings

from audit.actions import Action
from audit.models import AuditCheckpoint, AuditEntry
from audit.proof.records import moment
from audit.proof.signing import find_key
from audit.proof.trellis_verify import canonical
from audit.sealing import external_checkpoint
from audit.sealing.rotation import newest_checkpoint
from audit.services import EntryDraft, record
from workspaces import restore_detection
from workspaces.actors import Actor, Source
from workspaces.database import database_now

logger = logging.getLogger(__name__)

_PURPOSE: Final = b"trellis restore confirmation 1"
_OLDER: Final = "The database is older than its newest checkpoint outside of it."
_OTHER: Final = (
    "The checkpoint outside was signed here for another installation than the database says it is."
)


@dataclass(frozen=True, slots=True)
class CheckpointMismatch:
    """A file in the place of ours that the database does not bear out."""

    found: external_checkpoint.ExternalCheckpoint
    checkpoint: int
    """The newest that the database has."""
    is_foreign: bool
    is_signed_here: bool

    @property
    def is_loss(self) -> bool:
        """Whether it speaks of what was sealed here; else it is of an installation with other keys."""
        return self.is_signed_here or not self.is_foreign


@dataclass(frozen=True, slots=True)
class ConfirmedLoss:
    """A file kept aside, of which a person has said that the loss is known."""

    path: Path
    lost: external_checkpoint.ExternalCheckpoint
    by: str
    at: str


def find_mismatch() -> CheckpointMismatch | None:
    """Compare the file outside with the database."""
    found = external_checkpoint.read()
    if found is None:
        return None
    newest = newest_checkpoint()
    number = newest.number if newest else 0
    is_foreign = external_checkpoint.is_foreign(found)
    if not is_foreign and found.number <= number:
        same = AuditCheckpoint.objects.filter(number=found.number).first()
        if same is not None and same.hash == found.checkpoint:
            return None
    return CheckpointMismatch(found, number, is_foreign, find_key(found.key_id) is not None)


def declare(mismatch: CheckpointMismatch) -> None:
    """Enter the loss, once; in a transaction that is committed before the file is moved.

    Raises:
        AuditUnavailable: it could not be entered.
    """
    if not mismatch.is_loss:
        return
    found = mismatch.found
    restore_detection.note_restore()
    losses = AuditEntry.objects.across_workspaces().filter(
        action=Action.LOG_LOSS.value, workspace_id=None, details__known_hash=found.checkpoint
    )
    if losses.exists():
        return
    record(
        EntryDraft(
            action=Action.LOG_LOSS,
            actor=Actor.system(label="audit log", source=Source.TASK, workspace_id=None),
            workspace_id=None,
            details={
                "reason": _OTHER if mismatch.is_foreign else _OLDER,
                "checkpoint": mismatch.checkpoint,
                "known_checkpoint": found.number,
                "known_hash": found.checkpoint,
            },
        )
    )


def keep(mismatch: CheckpointMismatch) -> None:
    """Move the file out of the way; if that was done already, nothing happens.

    Raises:
        OSError: it is still in its place.
    """
    found = mismatch.found
    if not mismatch.is_loss:
        aside = external_checkpoint.keep_other(found)
        logger.warning("audit_checkpoint_file_of_another_kept", extra={"kept": aside.name})
        return
    aside = external_checkpoint.keep_aside(found, after=min(mismatch.checkpoint, found.number - 1))
    logger.error(
        "audit_log_restored_old_copy",
        extra={
            "checkpoint": mismatch.checkpoint,
            "known_checkpoint": found.number,
            "kept": aside.name,
        },
    )


def confirm_restores(by: str) -> int:
    """A person has looked at every file kept aside on this machine; how many there are.

    Raises:
        OSError: not all could be marked.
    """
    asides = external_checkpoint.kept_aside()
    at = moment(database_now())
    for aside in asides:
        lost = external_checkpoint.read(aside)
        if lost is None:
            raise OSError(f"{aside} cannot be read")
        confirmation = {"by": by[:200], "at": at}
        mac = _mac(lost, confirmation)
        external_checkpoint.mark(aside, lost, {**confirmation, "mac": mac})
    return len(asides)


def confirmed() -> list[ConfirmedLoss]:
    """Files kept aside whose confirmation was made with this installation's key."""
    found = []
    for aside in external_checkpoint.kept_aside():
        lost = external_checkpoint.read(aside)
        confirmation = lost.confirmation if lost is not None else None
        if lost is None or not confirmation:
            continue
        by, at = str(confirmation.get("by", "")), str(confirmation.get("at", ""))
        if hmac.compare_digest(
            str(confirmation.get("mac", "")).encode(), _mac(lost, {"by": by, "at": at}).encode()
        ):
            found.append(ConfirmedLoss(aside, lost, by, at))
        else:
            logger.error("audit_restore_confirmation_forged", extra={"kept": aside.name})
    return found


def _mac(lost: external_checkpoint.ExternalCheckpoint, confirmation: dict[str, Any]) -> str:
    statement = hashlib.sha256(lost.statement.encode()).hexdigest()
    text = canonical({**confirmation, "statement": statement, "after": lost.after})
    return hmac.new(_key(settings.TRELLIS.audit_key_bytes), text, hashlib.sha256).hexdigest()


@lru_cache(maxsize=8)
def _key(audit_key: bytes) -> bytes:
    # Of its own: commitments to what people send are made with the audit key itself.
    return HKDF(algorithm=SHA256(), length=32, salt=None, info=_PURPOSE).derive(audit_key)
