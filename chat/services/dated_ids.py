"""Ids that tell a moment: those of messages begin with it, so the newest are found by their ids."""

from __future__ import annotations

import secrets
from datetime import datetime
from typing import Final
from uuid import UUID

_PLACES: Final = 1 << 12
_VERSION: Final = 7 << 76
_VARIANT: Final = 2 << 62


def first_id_at(seconds: float) -> UUID:
    """The least id of that millisecond, counted from 1970. Source: RFC 9562, section 5.7."""
    return UUID(int=max(0, int(seconds * 1000)) << 80)


def id_said_at(moment: datetime, place: int) -> UUID:
    """A new id of a message that was said at that moment, and not now.

    Args:
        place: of messages that were said in one millisecond, the later one has the greater place.
    """
    first = first_id_at(moment.timestamp()).int
    return UUID(int=first | _VERSION | place % _PLACES << 64 | _VARIANT | secrets.randbits(62))
