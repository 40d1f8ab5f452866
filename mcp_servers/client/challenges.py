"""What servers say where they refuse credentials: the WWW-Authenticate header. Pure."""

from __future__ import annotations

import re
from typing import Final

_PART: Final = re.compile(
    r"""
    [\s,]*
    (?: (?P<name>[\w!#$%&'*+.^`|~-]+) \s*=\s*
            (?: "(?P<quoted>(?:[^"\\]|\\.)*)" | (?P<plain>[^\s,"]+) ) (?=[\s,]|$)
      | (?P<scheme>[\w!#$%&'*+.^`|~-]+) (?:\s+[\w.~+/-]+=*(?=\s*(?:,|$)))? (?=[\s,]|$) )
    """,
    re.VERBOSE | re.ASCII,
)
"""A parameter, or a scheme with the token68 that may follow it: RFC 9110, section 11.6.1."""


def bearer_parameters(header: str) -> dict[str, str]:
    """Parameters of the first Bearer challenge, whatever others say before it or in quotes.

    Reading ends at what is no challenge. Source: RFC 9110, sections 5.6.4 and 11.6.1.
    """
    found: dict[str, str] | None = None
    place = 0
    while part := _PART.match(header, place):
        place = part.end()
        if part["scheme"]:
            if found is not None:
                break
            found = {} if part["scheme"].lower() == "bearer" else None
        elif found is not None:
            text = part["plain"] or re.sub(r"\\(.)", r"\1", part["quoted"] or "")
            found.setdefault(part["name"].lower(), text)
    return found or {}
