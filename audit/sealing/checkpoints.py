"""Signed statements of where every chain stood: gapless, each naming the one before it."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from django.db.models import F, Sum
from django.utils.translation import gettext as _

from audit.actions import Action
from audit.models import AuditCheckpoint, AuditEntry, AuditHead
from audit.proof.marks import (
    demanded_from,
    key_check,
    key_check_to_state,
    stated_date,
    stated_key_check,
)
from audit.proof.records import moment
from audit.proof.signing import SigningKey, signed, signing_keys
from audit.proof.trellis_verify import (
    CHECKPOINT_FORMAT,
    EXTERNAL_FORMAT,
    NO_HASH,
    canonical,
    head_digest,
    head_label,
)
from audit.sealing import checkpoint_mismatches, external_checkpoint
from audit.sealing.rotation import (
    find_missing_key,
    key_id_after,
    key_in_use,
    newest_checkpoint,
    record_key_change,
)
from audit.sealing.sealer import sealing_lock
from workspaces.database import commit_durably, database_now
from workspaces.errors import Conflict

BUSY_SECONDS: Final = 5.0
IDLE_SECONDS: Final = 60.0
MOST_UNSTATED: Final = 1_000
Kind = AuditCheckpoint.Kind


@dataclass(frozen=True, slots=True)
class _File:
    """What goes into the file outside, once the statement is committed."""

    statement: str
    signature: str
    number: int


def is_due() -> bool:
    """Whether it is time for a statement: often while something is sealed, now and then when nothing is."""
    return due_in() <= 0


def due_in() -> float:
    """In how many seconds it is time for a statement, if nothing more is sealed until then."""
    newest = newest_checkpoint()
    if newest is None:
        return 0.0
    age = (database_now() - newest.made_at).total_seconds()
    if age < 0:
        return 0.0
    changed = AuditHead.objects.exclude(seq=F("stated_seq"))
    unstated = changed.aggregate(sum=Sum(F("seq") - F("stated_seq")))["sum"] or 0
    if unstated >= MOST_UNSTATED:
        return 0.0
    return float((BUSY_SECONDS if unstated else IDLE_SECONDS) - age)


def make_checkpoint(
    kind: Kind = Kind.INTERVAL, *, only_if_due: bool = False
) -> AuditCheckpoint | None:
    """Sign where the chains stand, and put that in the file outside; None: another process is at it, or it is not due.

    Raises:
        SigningKeyMissing: the key in use is gone; nothing is signed with one that nobody introduced.
        DatabaseError: nothing was written.
        OSError: the file could not be written; or what lies in its place could not be kept, and nothing was signed.
    """
    with sealing_lock() as has_lock:
        if not has_lock or (only_if_due and not is_due()):
            return None
        commit_durably()
        mismatch = checkpoint_mismatches.find_mismatch()
        if mismatch is not None:
            checkpoint_mismatches.declare(mismatch)
    if mismatch is not None:
        checkpoint_mismatches.keep(
            mismatch
        )  # only now: what was entered must not be undone any more
    with sealing_lock() as has_lock:
        if not has_lock or (only_if_due and not is_due()):
            return None
        commit_durably()
        _rotate_if_needed()
        explained = _explain_restores()
        made = _write(kind)
        file = _file_of(made)
    for aside in explained:
        external_checkpoint.explain(aside)
    _put_outside(file)
    return made


def begin_with_new_key(lost: str | None, *, by: str) -> None:
    """Sign with the first key of the settings although none before introduced it: a person has declared that one lost.

    Whoever verifies has to trust the new key by another way than the log, else it counts for nothing.

    Args:
        lost: the fingerprint of the signing key that is lost; None: TRELLIS_AUDIT_KEY alone is, and the key in use signs.

    Raises:
        Conflict: it is not lost any more, another process holds the log's lock, or the file outside tells of another log.
        OSError: the file outside could not be written.
    """
    with sealing_lock() as has_lock:
        newest = newest_checkpoint()
        if not has_lock or newest is None or (find_missing_key() is None) is not (lost is None):
            raise Conflict(_("The log is being signed right now. Run this again."))
        if checkpoint_mismatches.find_mismatch() is not None:
            raise Conflict(_("The checkpoint file outside tells of another log. Run this again."))
        commit_durably()
        more: dict[str, Any] = {"audit_key": key_check()}
        if lost is None:
            of_lost = stated_key_check(newest)
            more["lost_audit_key"] = {"audit_key": of_lost, "declared_by": by}
            made = _write(Kind.INTERVAL, more=more)
        else:
            more["lost_key"] = {"fingerprint": lost, "declared_by": by}
            more["unsigned_since"] = moment(newest.made_at)
            if (date := stated_date()) is not None:
                more["marks_from"] = date
            made = _write(Kind.KEY_LOST, more=more, key=signing_keys()[0])
        file = _file_of(made)
    _put_outside(file)


def _put_outside(file: _File) -> None:
    """Unless another process put a newer one there, or one of another installation lies there."""
    present = external_checkpoint.read()
    if present is None or (
        present.number < file.number and not external_checkpoint.is_foreign(present)
    ):
        external_checkpoint.write(file.statement, file.signature)


def _write(
    kind: Kind,
    *,
    more: dict[str, Any] | None = None,
    next_key: SigningKey | None = None,
    key: SigningKey | None = None,
) -> AuditCheckpoint:
    newest = newest_checkpoint()
    key = key or key_in_use(newest)
    number = newest.number + 1 if newest else 1
    now = database_now()
    changed = {
        str(head.chain_id): (head.seq, head.hash)
        for head in AuditHead.objects.select_for_update()
        .exclude(seq=F("stated_seq"))
        .order_by("chain_id")
    }
    content: dict[str, Any] = {
        "format": CHECKPOINT_FORMAT,
        "number": number,
        "kind": str(kind),
        "made_at": moment(now),
        "previous": _hash_of(newest.statement) if newest else NO_HASH,
        "marks_from": demanded_from(now),
        "audit_key": key_check_to_state(),
        "heads": {head_label(name): head_digest(name, *head) for name, head in changed.items()},
        **(more or {}),
    }
    if content["audit_key"] is None:
        del content["audit_key"]
    if newest is not None and kind is not Kind.KEY_LOST and was_unsigned_since(newest):
        content["unsigned_since"] = moment(newest.made_at)
    if next_key is not None:
        content["next_key"] = next_key.named
    statement, signature = signed(content, key)
    AuditHead.objects.filter(chain_id__in=changed).update(stated_seq=F("seq"))
    return AuditCheckpoint.objects.create(
        number=number,
        kind=kind,
        made_at=now,
        statement=statement,
        heads=canonical({name: list(head) for name, head in changed.items()}).decode(),
        hash=_hash_of(statement),
        key_id=key.id,
        signature=signature,
        countersignature=next_key.sign(statement) if next_key else "",
    )


def was_unsigned_since(newest: AuditCheckpoint) -> bool:
    """Whether the log says that the signing key was missing since a statement was made."""
    unsigned = AuditEntry.objects.across_workspaces().filter(
        workspace_id=None, action=Action.LOG_UNSIGNED.value, created_at__gte=newest.made_at
    )
    return unsigned.exists()


def _hash_of(statement: str) -> str:
    return hashlib.sha256(statement.encode()).hexdigest()


def _rotate_if_needed() -> None:
    """If another key stands first in the settings, let the old one introduce it."""
    newest = newest_checkpoint()
    new = signing_keys()[0]
    if newest is None or key_id_after(newest) == new.id:
        return
    old = key_in_use(newest)
    _write(Kind.ROTATION, next_key=new)
    record_key_change(old, new)


def _file_of(made: AuditCheckpoint) -> _File:
    heads = {
        str(head.chain_id): [head.stated_seq, head.hash]
        for head in AuditHead.objects.filter(seq=F("stated_seq"))
    }
    content = {
        "format": EXTERNAL_FORMAT,
        "number": made.number,
        "checkpoint": made.hash,
        "made_at": moment(made.made_at),
        "heads": heads,
        "installation": external_checkpoint.installation(),
    }
    return _File(*signed(content, key_in_use(made)), number=made.number)


def _explain_restores() -> list[Path]:
    """Say in a statement what was lost by each restore that a person has confirmed; the files of those."""
    confirmed = checkpoint_mismatches.confirmed()
    if not confirmed:
        return []
    rows = AuditCheckpoint.objects.filter(kind=Kind.RESTORED).values_list("statement", flat=True)
    explained = {json.loads(statement)["restored"]["checkpoint"] for statement in rows}
    for one in confirmed:
        if one.lost.checkpoint in explained:
            continue
        restored = {
            "after": one.lost.after,
            "to": one.lost.number,
            "checkpoint": one.lost.checkpoint,
            "confirmed_by": one.by,
            "confirmed_at": one.at,
        }
        _write(Kind.RESTORED, more={"restored": restored})
    return [one.path for one in confirmed]
