"""Changing the key that signs: the change is a statement signed by the old key and by the new one."""

from __future__ import annotations

import json

from audit.actions import Action
from audit.models import AuditCheckpoint
from audit.proof.signing import SigningKey, SigningKeyMissing, find_key, signing_keys
from audit.services import EntryDraft, record
from workspaces.actors import Actor, Source


def newest_checkpoint() -> AuditCheckpoint | None:
    """The last statement that was made."""
    return AuditCheckpoint.objects.order_by("-number").first()


def key_id_after(checkpoint: AuditCheckpoint | None) -> str | None:
    """The id of the key that has to sign what follows a statement; None: any may begin."""
    if checkpoint is None:
        return None
    try:  # what was signed, not what stands beside it
        statement = json.loads(checkpoint.statement)
        is_rotation = statement["kind"] == AuditCheckpoint.Kind.ROTATION
        return str(statement["next_key" if is_rotation else "key"]["id"])
    except (ValueError, KeyError, TypeError):
        return (
            checkpoint.key_id
        )  # it was altered, as verification says; signing goes on all the same


def key_in_use(checkpoint: AuditCheckpoint | None = None) -> SigningKey:
    """The key that signs what follows the newest statement.

    Raises:
        SigningKeyMissing: it is not in the settings.
    """
    return _key_after(checkpoint or newest_checkpoint())


def _key_after(checkpoint: AuditCheckpoint | None) -> SigningKey:
    key_id = key_id_after(checkpoint)
    if key_id is None:
        return signing_keys()[0]
    key = find_key(key_id)
    if key is None:
        raise SigningKeyMissing(key_id)
    return key


def find_missing_key() -> str | None:
    """The id of the key in use, if it is not in the settings; then nothing can be signed."""
    return missing_key_after(newest_checkpoint())


def missing_key_after(newest: AuditCheckpoint | None) -> str | None:
    """The same, for whoever has read the newest statement."""
    try:
        _key_after(newest)
    except SigningKeyMissing as error:
        return error.key_id
    return None


def record_key_change(old: SigningKey, new: SigningKey) -> None:
    """Enter the change of key into the log."""
    record(
        EntryDraft(
            action=Action.LOG_KEY_CHANGED,
            actor=Actor.system(label="audit log", source=Source.TASK, workspace_id=None),
            workspace_id=None,
            details={"from": old.fingerprint, "to": new.fingerprint},
        )
    )
