"""What a client may be let do, in the protocol's words and in a person's."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from django.utils.translation import gettext_lazy as _

READ: Final = "mcp:read"
CALL: Final = "mcp:call"
SCOPES: Final = (READ, CALL)
ALL: Final = " ".join(SCOPES)
REACHES: Final[tuple[tuple[str, Any], ...]] = (
    (READ, _("Resources, prompts, and tools that just read")),
    (CALL, _("All tools, resources and prompts that you may use here")),
)
"""From the narrower to the wider one, as its person is asked."""
_WIDER: Final = _("All tools, resources and prompts that the member may use")


def in_words(scopes: Iterable[str]) -> str:
    """The widest of these scopes, as also others than the person read it."""
    held = set(scopes)
    return str(_WIDER if CALL in held else REACHES[0][1] if READ in held else "")


def offered(asked: Iterable[str] | None) -> list[tuple[str, Any]]:
    """What a person may choose from, if a client asks for these scopes; none asked for: all. Unknown ones are ignored.

    Source: RFC 6749, section 3.3.
    """
    wanted = set(SCOPES) if asked is None else set(asked) & set(SCOPES)
    widest = CALL if CALL in wanted else READ if wanted else None
    if widest is None:
        return []
    return list(REACHES[: [scope for scope, _words in REACHES].index(widest) + 1])
