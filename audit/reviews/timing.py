"""When a scheduled file is due, and of which time it is; hours and days are those of the schedule's time zone. Pure."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta, tzinfo
from typing import Final

from audit.models import ReportSchedule
from workspaces.words.formats import time_zone_of

USUAL_HOUR: Final = 6
"""Early in the morning, so that the file of the day before is there when people come."""
_Cadence, _Covers = ReportSchedule.Cadence, ReportSchedule.Covers
_LENGTHS: Final = {_Covers.DAY: 1, _Covers.WEEK: 7, _Covers.MONTH: 30}
_DAY: Final = timedelta(days=1)
_MINUTE: Final = timedelta(minutes=1)


def next_run(
    cadence: str, after: datetime, *, hour: int = USUAL_HOUR, time_zone: str = "UTC"
) -> datetime:
    """Give the next moment at which a file is due."""
    zone = time_zone_of(time_zone)
    day = after.astimezone(zone).date()
    while not _fits(cadence, day, zone) or _moment(day, hour, zone) <= after:
        day += _DAY
    return _moment(day, hour, zone)


def next_runs(
    cadence: str, after: datetime, *, hour: int, time_zone: str, number: int = 3
) -> list[datetime]:
    """Give the next moments at which files are due."""
    found: list[datetime] = []
    for _time in range(number):
        found.append(
            next_run(cadence, found[-1] if found else after, hour=hour, time_zone=time_zone)
        )
    return found


def period_before(
    cadence: str, moment: datetime, *, time_zone: str = "UTC", covers: str = ""
) -> tuple[datetime, datetime]:
    """Give the last whole day, week (from Monday) or month before a moment, or so many whole days before it."""
    zone = time_zone_of(time_zone)
    today = moment.astimezone(zone).date()
    if covers in _LENGTHS:
        since, until = _there(today - timedelta(days=_LENGTHS[_Covers(covers)]), zone), today
    elif cadence == _Cadence.DAILY:
        since, until = _there(today - _DAY, zone), today
    elif cadence == _Cadence.WEEKLY:
        until = today - timedelta(days=today.weekday())
        since = until - timedelta(days=7)
    else:
        until = today.replace(day=1)
        since = (until - _DAY).replace(day=1)
    return _moment(since, 0, zone), _moment(until, 0, zone)


def _fits(cadence: str, day: date, zone: tzinfo) -> bool:
    if cadence == _Cadence.WEEKLY:
        return day.weekday() == 0
    return day.day == 1 if cadence == _Cadence.MONTHLY else _there(day, zone) == day


def _there(day: date, zone: tzinfo) -> date:
    """The day, or the last one before it that clocks had. Samoa had no 30 December 2011."""
    noon = datetime.combine(day, time(12), zone).astimezone(UTC)
    return day if noon.astimezone(zone).date() == day else _there(day - _DAY, zone)


def _moment(day: date, hour: int, zone: tzinfo) -> datetime:
    """An hour that clocks leave out is the one after it, or the end of that day; of one that comes twice it is the first.

    A day that they leave out begins and ends with the next one.
    """
    if _there(day, zone) != day:
        return _moment(day + _DAY, 0, zone)
    moment = datetime.combine(day, time(hour), zone).astimezone(UTC)
    # On another day a file would cover other days. In Greenland, the last hour of a Saturday is left out.
    return moment if moment.astimezone(zone).date() == day else moment - _MINUTE
