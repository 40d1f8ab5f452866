"""Whether an address is that of a resource, or one of a template's. Pure."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING
from urllib.parse import unquote

if TYPE_CHECKING:
    from mcp.shared.uri_template import UriTemplate


def may_be(uri: str, known: str, *, is_template: bool) -> bool:
    """Whether a server could take this address for the known one. In doubt yes: letter case and %-encoding do not count.

    Source: RFC 3986, section 6.2.2; RFC 6570.
    """
    spellings = {uri.casefold(), unquote(uri).casefold()}
    if not is_template:
        return not spellings.isdisjoint({known.casefold(), unquote(known).casefold()})
    template = _parsed(known.casefold())
    if template is None:
        beginning = known.casefold().partition("{")[0]
        return any(one.startswith(beginning) for one in spellings)
    return any(template.match(one) is not None for one in spellings)


@lru_cache(maxsize=1024)
def _parsed(template: str) -> UriTemplate | None:
    """None: it is not to be understood."""
    from mcp.shared.uri_template import InvalidUriTemplate, UriTemplate

    try:
        return UriTemplate.parse(template)
    except InvalidUriTemplate:
        return None
