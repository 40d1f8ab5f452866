"""Whether an address is that of a resource, or one of a template's. Pure."""

from __future__ import annotations

import posixpath
import re
import unicodedata
from functools import lru_cache
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

if TYPE_CHECKING:
    from mcp.shared.uri_template import UriTemplate


_DECODED: Final = 3
"""Times that a server and what is in front of it may decode an address."""


def may_be(uri: str, known: str, *, is_template: bool) -> bool:
    """Whether a server could take this address for the known one. In doubt yes.

    Letter case, %-encoding, and ways around on a path do not count.

    Source: RFC 3986, section 6.2.2; RFC 6570.
    """
    spellings = _spellings(uri)
    if not is_template:
        return not spellings.isdisjoint(_spellings(known))
    # A template has the form of the spellings: with both slashes, or with none.
    named = known.casefold()
    return any(
        _leads_to(template, one)
        for template in (named, named.replace("://", ":").replace(":/", ":"))
        for one in spellings
    )


def _leads_to(template: str, uri: str) -> bool:
    read = _parsed(template)
    if read is None:
        return uri.startswith(template.partition("{")[0])
    return read.match(uri) is not None


def without_query(uri: str) -> str:
    """What a server reads that does not look at what comes behind the path."""
    return re.split(r"[?#]", uri, maxsplit=1)[0]


def _spellings(uri: str) -> set[str]:
    return {uri.casefold(), unquote(uri).casefold(), _shortest(uri)}


def _shortest(uri: str) -> str:
    """What is left of an address for a server that decodes it, and looks for a file of that path."""
    for _time in range(_DECODED):
        uri = unquote(uri)
    plain = unicodedata.normalize("NFKC", uri).casefold().partition("\x00")[0]
    scheme, _, rest = plain.partition(":")
    path = posixpath.normpath(rest.replace("\\", "/").rstrip("/?# ")).lstrip("/")
    return f"{scheme}:{path}"


@lru_cache(maxsize=1024)
def _parsed(template: str) -> UriTemplate | None:
    """None: it is not to be understood."""
    from mcp.shared.uri_template import InvalidUriTemplate, UriTemplate

    try:
        return UriTemplate.parse(template)
    except InvalidUriTemplate:
        return None
