"""Which addresses of the provider a browser may be sent to."""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

MAX_WINDOW_URL: Final = 8192


def is_web_address(url: str) -> bool:
    """Whether a browser may be sent there: plain http or https, and nothing that hides where it goes."""
    try:
        parts = urlsplit(url)
        host = parts.hostname
    except ValueError:
        return False
    is_clean = url.isascii() and url.isprintable() and not set(url) & set(" \\\"'<>`{}|^")
    return (
        is_clean
        and len(url) <= MAX_WINDOW_URL
        and parts.scheme in ("http", "https")
        and bool(host)
        and "@" not in parts.netloc
    )
