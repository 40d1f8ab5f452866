"""Signatures of webhooks, so that a program knows who speaks and that nothing was changed. Pure.

Source: Standard Webhooks, "Webhook metadata" and "Signature scheme": HMAC-SHA256 over `id.timestamp.body`.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets

_PREFIX = "whsec_"


def new_secret() -> str:
    """A signing secret of 192 random bits, as it is shown once."""
    return _PREFIX + base64.b64encode(secrets.token_bytes(24)).decode()


def signed_headers(*, secret: str, event_id: str, timestamp: int, body: bytes) -> dict[str, str]:
    """The headers that go with a body.

    Args:
        secret: as `new_secret` gave it.
        timestamp: seconds since 1970, of this attempt.
    """
    key = base64.b64decode(secret.removeprefix(_PREFIX))
    signed = f"{event_id}.{timestamp}.".encode() + body
    digest = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    return {
        "webhook-id": event_id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": f"v1,{digest}",
    }
