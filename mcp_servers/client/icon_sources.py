"""Which icons a server names for itself: read without trust, and the best ones first. Pure.

Source: MCP specification 2025-11-25, "Icons".
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from mcp.types import Icon

MOST_SOURCES: Final = 3
LONGEST_DATA: Final = 350_000
"""Characters of an icon that is given in full."""
_LONGEST_URL: Final = 2048
_SIZE: Final = re.compile(r"(\d{1,5})x\d{1,5}")
_WANTED_SIDE: Final = 64


def icon_sources(icons: Iterable[Icon] | None) -> tuple[str, ...]:
    """The addresses and data of a server's icons that may be pictures, those of a fitting size first."""
    found = [icon for icon in list(icons or ())[:20] if _may_be_picture(icon)]
    return tuple(icon.src for icon in sorted(found, key=_unfitness)[:MOST_SOURCES])


def _may_be_picture(icon: Icon) -> bool:
    is_drawing = "svg" in (icon.mime_type or "").lower() or icon.src.lower().endswith(".svg")
    is_data = icon.src.startswith("data:")
    return not is_drawing and len(icon.src) <= (LONGEST_DATA if is_data else _LONGEST_URL)


def _unfitness(icon: Icon) -> int:
    """How far its side is from what is shown; smaller ones come after larger ones."""
    sides = [int(match[1]) for size in icon.sizes or () if (match := _SIZE.fullmatch(size))]
    distances = [side - _WANTED_SIDE if side >= _WANTED_SIDE else 10_000 - side for side in sides]
    return min(distances, default=1_000)
