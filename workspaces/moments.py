"""Moments that people and programs send as text."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

_EARLIEST: Final = datetime.min.replace(tzinfo=UTC) + timedelta(days=1)
_LATEST: Final = datetime.max.replace(tzinfo=UTC) - timedelta(days=1)


def read_moment(text: str) -> datetime | None:
    """Read an ISO 8601 moment as UTC, which a moment without an offset is taken for; None if it is none.

    Databases refuse offsets that Python takes, so the offset never reaches them; and a day before and after is left, for
    what is computed from it.
    """
    try:
        moment = datetime.fromisoformat(text)
        moment = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    return moment if _EARLIEST <= moment <= _LATEST else None
