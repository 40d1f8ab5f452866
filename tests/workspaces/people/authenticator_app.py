"""An authenticator app: codes of six digits by RFC 6238, from a key that it was given."""

from __future__ import annotations

import base64
import hmac
import time
from typing import Final

_PERIOD_SECONDS: Final = 30


def code_of(key: str, *, ahead: int = 0) -> str:
    """Give the code of now, or of some periods ahead."""
    counter = int(time.time()) // _PERIOD_SECONDS + ahead
    raw = base64.b32decode(key.replace(" ", ""))
    digest = hmac.digest(raw, counter.to_bytes(8, "big"), "sha1")
    start = digest[-1] & 15
    number = int.from_bytes(digest[start : start + 4], "big") & 0x7FFFFFFF
    return f"{number % 1_000_000:06}"
