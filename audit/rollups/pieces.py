"""Cutting a range into the pieces of time that a chart draws: which unit, and where each piece begins. Pure."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from typing import Final, Literal, get_args

Unit = Literal["minute", "hour", "day", "week", "month"]
UNITS: Final[tuple[str, ...]] = get_args(Unit)
MINUTES: Final = timedelta(hours=2)
"""What is no longer than this is drawn by minutes."""
MOST_DAYS_ELSEWHERE: Final = timedelta(days=7, hours=1)
"""Up to so many days begin where the person is; the hour is for a range whose ends are rounded."""
_LONGEST: Final[tuple[tuple[timedelta, Unit], ...]] = (
    (MINUTES, "minute"),
    (timedelta(days=3), "hour"),
    (timedelta(days=92), "day"),
    (timedelta(days=400), "week"),
)
_STEPS: Final = {"minute": timedelta(minutes=1), "hour": timedelta(hours=1)}
_DAYS: Final = {"day": 1, "week": 7, "month": 31}


def unit_of(length: timedelta) -> Unit:
    """Give the piece of time by which so long a range is drawn."""
    return next((unit for longest, unit in _LONGEST if length <= longest), "month")


def begin_of(moment: datetime, unit: Unit, zone: tzinfo) -> datetime:
    """Give when the piece begins that a moment lies in, in UTC. Weeks begin on Mondays."""
    if unit in _STEPS:
        moment = moment.astimezone(UTC).replace(second=0, microsecond=0)
        return moment if unit == "minute" else moment.replace(minute=0)
    return _midnight(_first_day(moment.astimezone(zone).date(), unit), zone)


def pieces_of(since: datetime, until: datetime, unit: Unit, zone: tzinfo) -> list[datetime]:
    """Give when each piece begins that a range has a part in, in UTC."""
    moment = begin_of(since, unit, zone)
    found = []
    if unit in _STEPS:
        while moment < until:
            found.append(moment)
            moment += _STEPS[unit]
        return found
    first = moment.astimezone(zone).date()
    while moment < until:
        found.append(moment)
        first = _first_day(first + timedelta(days=_DAYS[unit]), unit)
        moment = _midnight(first, zone)
    return found


def whole_hours_zone(since: datetime, until: datetime, unit: Unit, zone: tzinfo) -> tzinfo:
    """Give the zone in which a range is cut, which counters have to allow.

    It is UTC where a piece would begin within an hour, which is counted as a whole, and for many days: days that begin at
    another hour are summed from their hours, which takes three times as long for a month of a large log.
    """
    if unit in _STEPS:
        return zone
    if unit == "day" and until - since > MOST_DAYS_ELSEWHERE:
        return UTC
    starts = pieces_of(since, until, unit, zone)
    return zone if all(one.minute == 0 == one.second for one in starts) else UTC


def placing(unit: Unit, zone: tzinfo) -> Callable[[datetime], datetime]:
    """Give what says when a moment's piece begins, and remembers it: many numbers are of the same moment."""
    known: dict[datetime, datetime] = {}

    def piece(moment: datetime) -> datetime:
        found = known.get(moment)
        if found is None:
            found = known[moment] = begin_of(moment, unit, zone)
        return found

    return piece


def _first_day(day: date, unit: str) -> date:
    if unit == "month":
        return day.replace(day=1)
    return day - timedelta(days=day.weekday()) if unit == "week" else day


def _midnight(day: date, zone: tzinfo) -> datetime:
    """Give when a day begins; where clocks skip midnight, that is when they do."""
    return datetime.combine(day, time(), tzinfo=zone).astimezone(UTC)
