"""How a moment and a number are written for whoever reads them. Files for programs do not ask here: they have ISO 8601 in UTC."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation
from typing import Any, Final

from django.utils import dateformat

_DAY: Final = "j M Y"
_SHORT_DAY: Final = "j M"
_MONTH: Final = "M Y"
_CLOCK: Final = "H:i"
_EXACT_CLOCK: Final = "H:i:s"


def day(at: date | None) -> str:
    """Write "26 Nov 2026"."""
    return _written(at, _DAY)


def clock(at: datetime | None) -> str:
    """Write "14:05"."""
    return _written(at, _CLOCK)


def exact_clock(at: datetime | None) -> str:
    """Write "14:05:09"."""
    return _written(at, _EXACT_CLOCK)


def moment(at: datetime | None) -> str:
    """Write "26 Nov 2026, 14:05"."""
    return _written(at, f"{_DAY}, {_CLOCK}")


def exact_moment(at: datetime | None) -> str:
    """Write "26 Nov 2026, 14:05:09"."""
    return _written(at, f"{_DAY}, {_EXACT_CLOCK}")


def day_in_utc(at: datetime | None) -> str:
    """Write a day beside words that say that it is in UTC."""
    return _written(at, _DAY)


def moment_in_utc(at: datetime | None) -> str:
    """Write a moment beside words that say that it is in UTC."""
    return _written(at, f"{_DAY}, {_CLOCK}")


def piece_of_time(start: datetime, unit: str) -> str:
    """Write a minute, an hour, a day or a month of UTC, short enough to stand under a chart."""
    shapes = {
        "minute": _CLOCK,
        "hour": f"{_SHORT_DAY} {_CLOCK}",
        "day": _SHORT_DAY,
        "month": _MONTH,
    }
    return _written(start, shapes[unit])


def whole(number: Any) -> str:
    """Write "1,234"; what is no number stays as it is."""
    return decimal(number, 0)


def decimal(number: Any, places: int) -> str:
    """Write "1,234.50"; what is no number stays as it is."""
    try:
        exact = Decimal(str(number))
        rounded = exact.quantize(Decimal(1).scaleb(-places), rounding=ROUND_HALF_UP)
    except InvalidOperation:
        return "" if number is None else str(number)
    return f"{rounded:,f}"


def percent(share: float, places: int = 0) -> str:
    """Write "99.5%" for 0.995."""
    return f"{decimal(share * 100, places)}%"


def _written(at: date | None, shape: str) -> str:
    if not at:
        return ""
    here = at.astimezone(UTC) if isinstance(at, datetime) else at
    return dateformat.format(here, shape)
