"""Where a client's codes may go: exactly to an address that it named, on this computer to any port."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final
from urllib.parse import SplitResult, urlsplit

from pydantic import AnyUrl, ValidationError

from mcp_servers.models.client_sign_ins import LONGEST_REDIRECT

MOST_REDIRECTS: Final = 10
LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})
_SCHEME: Final = re.compile(r"[a-z][a-z0-9+.-]{1,60}\Z")
_HOST: Final = re.compile(r"[A-Za-z0-9._-]+|[0-9A-Fa-f.:]+")
"""A name or an address. Other characters have a meaning in the security policy of the page that leads there."""
_NOT_OF_PROGRAMS: Final = frozenset(
    {
        *("about", "blob", "chrome", "content", "data", "file", "filesystem", "ftp", "intent"),
        *("javascript", "mailto", "resource", "sms", "tel", "vbscript", "view-source", "ws", "wss"),
    }
)
"""Schemes with a meaning of their own in browsers."""


def is_acceptable(address: str) -> bool:
    """Whether a client may have codes sent there: https, this computer, or a scheme that a program has for itself.

    Source: RFC 8252, section 7; MCP specification, "Authorization": Communication Security.
    """
    if not 0 < len(address) <= LONGEST_REDIRECT or not address.isascii() or "\\" in address:
        return False
    if not address.isprintable() or " " in address or "#" in address:
        return False
    parts = _split(address)
    if parts is None or not _SCHEME.match(parts.scheme) or "@" in parts.netloc:
        return False
    if parts.scheme == "https":
        is_fit = _HOST.fullmatch(parts.hostname or "") is not None
    elif parts.scheme == "http":
        is_fit = parts.hostname in LOOPBACK
    else:
        is_fit = parts.scheme not in _NOT_OF_PROGRAMS
    return is_fit and _is_address_of_sdk(address)


def is_one_of(address: str, known: Iterable[str]) -> bool:
    """Whether a client named this very address. A program on this computer does not know its port beforehand.

    Source: RFC 8252, section 7.3; RFC 9700, section 4.1.3.
    """
    if not is_acceptable(address):
        return False
    asked = _without_port(address)
    return any(
        address == one or (asked is not None and asked == _without_port(one)) for one in known
    )


def is_on_this_computer(address: str) -> bool:
    """Whether a program on the person's own computer listens there."""
    parts = _split(address)
    return parts is not None and parts.hostname in LOOPBACK


def host_of(address: str) -> str:
    """The place as people know it: a host, or the scheme of a program."""
    parts = _split(address)
    if parts is None:
        return ""
    return (parts.hostname or "") if parts.scheme in ("http", "https") else f"{parts.scheme}:"


def source_of(address: str) -> str:
    """The place as a content security policy names it."""
    parts = _split(address)
    if parts is None:
        return "'none'"
    if parts.scheme not in ("http", "https") or ":" in (parts.hostname or ""):
        return f"{parts.scheme}:"  # a policy knows no addresses in brackets
    return f"{parts.scheme}://{parts.netloc}"


def _split(address: str) -> SplitResult | None:
    try:
        parts = urlsplit(address)
        _ = parts.port
    except ValueError:
        return None
    return parts


def _is_address_of_sdk(address: str) -> bool:
    """Whether the SDK reads it, which compares the client's addresses with the one that it is asked for."""
    try:
        AnyUrl(address)
    except ValidationError:
        return False
    return True


def _without_port(address: str) -> tuple[str, str, str] | None:
    parts = _split(address)
    if parts is None or parts.scheme != "http" or parts.hostname not in LOOPBACK:
        return None
    return parts.hostname, parts.path, parts.query
