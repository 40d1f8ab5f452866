"""Waiting times as people tell them: "in a moment", "in about 5 minutes", "tomorrow at 14:05 UTC". Pure."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from typing import Final

_MOMENT: Final = 1.5
_SECONDS: Final = 90
_MINUTES: Final = 90
_HOURS: Final = 72
_MONTHS: Final = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)


def wait_in_words(seconds: float, now: datetime | None = None) -> str:
    """When something can be tried again, to stand at the end of a sentence; never a moment too early.

    Args:
        now: what the wait counts from.
    """
    if seconds <= _MOMENT:
        return "in a moment"
    if seconds < _SECONDS:
        return f"in about {math.ceil(seconds)} seconds"
    if seconds < _MINUTES * 60:
        return f"in about {math.ceil(seconds / 60)} minutes"
    now = (now or datetime.now(UTC)).astimezone(UTC)
    then = now + timedelta(seconds=seconds)
    if then.second or then.microsecond:
        then = then.replace(second=0, microsecond=0) + timedelta(minutes=1)
    return f"{_day(then, now)}at {then:%H:%M} UTC"


def _day(then: datetime, now: datetime) -> str:
    days = (then.date() - now.date()).days
    if days == 0:
        return ""
    if days == 1:
        return "tomorrow "
    year = f" {then.year}" if then.year != now.year else ""
    return f"on {then.day} {_MONTHS[then.month - 1]}{year} "


def duration_in_words(seconds: float) -> str:
    """How long something takes: "30 seconds", "2 minutes", "1.5 hours", "3 days"."""
    if seconds < _SECONDS:
        return _counted(seconds, "second")
    if seconds < _MINUTES * 60:
        return _counted(seconds / 60, "minute")
    if seconds < _HOURS * 3600:
        return _counted(seconds / 3600, "hour")
    return _counted(seconds / 86_400, "day")


def _counted(number: float, unit: str) -> str:
    shown = f"{round(number, 1):g}"
    return f"{shown} {unit}" if shown == "1" else f"{shown} {unit}s"
