"""Keyed commitments: they prove a body later, and a short one cannot be guessed from them."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from typing import TYPE_CHECKING, Final

from django.conf import settings

from workspaces.secrets import SecretUnreadable

if TYPE_CHECKING:
    from audit.models import AuditBody, AuditEntry

KEY_BYTES: Final = 32
"""Length of the key that each body has of its own."""


def commit_to(raw: bytes) -> str:
    """HMAC-SHA256 of the whole body, before anything is masked or cut; hexadecimal."""
    return hmac.new(settings.TRELLIS.audit_key_bytes, raw, hashlib.sha256).hexdigest()


def commit_to_body(entry: AuditEntry, body: AuditBody | None) -> str:
    """HMAC-SHA256 over what can be erased: the entry's previews, and its body as it is stored (encrypted)."""
    parts = [
        str(entry.pk),
        entry.arguments_preview,
        entry.result_preview,
        _digest(body.arguments if body else None),
        _digest(body.result if body else None),
    ]
    return commit_to(json.dumps(parts, ensure_ascii=False).encode("utf-8", "surrogatepass"))


def is_body_whole(entry: AuditEntry, body: AuditBody | None) -> bool:
    """Whether previews and stored body are those that the entry was sealed with."""
    if not entry.body_commitment:
        return body is None
    return hmac.compare_digest(entry.body_commitment, commit_to_body(entry, body))


def is_key_whole(body: AuditBody) -> bool:
    """Whether a stored body can still be opened: its own key is there and opens."""
    if body.key is None:
        return False
    try:
        key = body.key.reveal("check a body of the log", is_credential=False)
        return len(base64.b64decode(key, validate=True)) == KEY_BYTES
    except (SecretUnreadable, ValueError):
        return False


def _digest(stored: bytes | memoryview | None) -> str:
    return hashlib.sha256(stored).hexdigest() if stored is not None else ""
