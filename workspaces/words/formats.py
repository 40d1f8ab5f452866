"""How a moment and a number are written for whoever reads them: as they chose, else the usual way.

A request is written for whoever is signed in, a mail for whoever gets it. Files for programs do not ask here: they have
ISO 8601 in UTC. In the browser `src/formats.ts` does the same, and knows the browser's own ways too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime, tzinfo
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation
from functools import cache
from typing import Any, Final, NamedTuple, Protocol
from zoneinfo import ZoneInfo, available_timezones

from django.template.defaultfilters import filesizeformat
from django.utils import dateformat


class FormatPreferences(Protocol):
    """What a person chose. An empty part says that they did not."""

    @property
    def time_zone(self) -> str: ...
    @property
    def date_format(self) -> str: ...
    @property
    def clock(self) -> str: ...
    @property
    def number_format(self) -> str: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Formats:
    """A choice without its person."""

    time_zone: str = ""
    date_format: str = ""
    clock: str = ""
    number_format: str = ""

    @classmethod
    def of(cls, person: FormatPreferences | None) -> Formats:
        """Take what a person chose; of nobody, nothing."""
        if person is None:
            return cls()
        return cls(
            time_zone=person.time_zone,
            date_format=person.date_format,
            clock=person.clock,
            number_format=person.number_format,
        )

    @property
    def chosen(self) -> dict[str, str]:
        """The parts that were chosen, by name."""
        return {name: value for name, value in asdict(self).items() if value}


class _Dates(NamedTuple):
    """A day, a day whose year is known, and a month, as Django's `date` takes them."""

    day: str
    short_day: str
    month: str


class _Clock(NamedTuple):
    minute: str
    second: str


class _Numbers(NamedTuple):
    group: str
    decimal: str


_DATES: Final = {
    "D MMM YYYY": _Dates("j M Y", "j M", "M Y"),
    "DD/MM/YYYY": _Dates("d/m/Y", "d/m", "m/Y"),
    "MM/DD/YYYY": _Dates("m/d/Y", "m/d", "m/Y"),
    "YYYY-MM-DD": _Dates("Y-m-d", "m-d", "Y-m"),
}
_CLOCKS: Final = {"24": _Clock("H:i", "H:i:s"), "12": _Clock("g:i A", "g:i:s A")}
# A line does not break inside a number.
_NUMBERS: Final = {
    "1,234.5": _Numbers(",", "."),
    "1.234,5": _Numbers(".", ","),
    "1 234,5": _Numbers("\u00a0", ","),
}
_USUAL_DATES, _USUAL_CLOCK, _USUAL_NUMBERS = "D MMM YYYY", "24", "1,234.5"
_SPACES: Final = (" ", "\u00a0", "\u202f", "'", "’")
"""What people put between groups, whatever their own way."""
_POINT_ZERO: Final = re.compile(r"[.,]0(?=\s)")
_CENT: Final = Decimal("0.01")
_NOBODYS: Final = frozenset({"Factory", "localtime", "posixrules"})
"""Names in the database of time zones that stand for no place."""

_current: ContextVar[Formats] = ContextVar("formats", default=Formats())  # noqa: B039  it is frozen


@contextmanager
def written_for(person: FormatPreferences | None) -> Iterator[None]:
    """Write everything inside for this person; for nobody, the usual way."""
    token = _current.set(Formats.of(person))
    try:
        yield
    finally:
        _current.reset(token)


def current() -> Formats:
    """What whoever reads has chosen."""
    return _current.get()


@cache
def time_zones() -> dict[str, None]:
    """The names of all time zones, as browsers tell them too; sorted, and quick to look up."""
    return dict.fromkeys(sorted(available_timezones() - _NOBODYS))


def time_zone_of(name: str) -> tzinfo:
    """The time zone of this name; UTC, if there is none."""
    return ZoneInfo(name) if name in time_zones() else UTC


def time_zone_name() -> str:
    """What to say of the time zone in which `moment` writes."""
    name = _current.get().time_zone
    return name if name in time_zones() else "UTC"


def day(at: date | None) -> str:
    """Write "26 Nov 2026"."""
    return _written(at, _dates().day)


def clock(at: datetime | None) -> str:
    """Write "14:05"."""
    return _written(at, _clock().minute)


def clock_of_hour(hour: int) -> str:
    """Write "06:00" for an hour of any day."""
    return _written(datetime(2000, 1, 1, hour, tzinfo=UTC), _clock().minute, UTC)


def exact_clock(at: datetime | None) -> str:
    """Write "14:05:09"."""
    return _written(at, _clock().second)


def moment(at: datetime | None) -> str:
    """Write "26 Nov 2026, 14:05"."""
    return _written(at, moment_shape())


def exact_moment(at: datetime | None) -> str:
    """Write "26 Nov 2026, 14:05:09"."""
    return _written(at, f"{_dates().day}, {_clock().second}")


def day_in_utc(at: datetime | None) -> str:
    """Write a day beside words that say that it is in UTC."""
    return _written(at, _dates().day, UTC)


def day_in(at: datetime | None, zone: tzinfo) -> str:
    """Write a day beside words that say in which time zone it is."""
    return _written(at, _dates().day, zone)


def moment_in_utc(at: datetime | None) -> str:
    """Write a moment beside words that say that it is in UTC."""
    return moment_in(at, UTC)


def moment_in(at: datetime | None, zone: tzinfo) -> str:
    """Write a moment beside words that say in which time zone it is."""
    return _written(at, moment_shape(), zone)


def current_zone() -> tzinfo:
    """The time zone in which `moment` writes."""
    return time_zone_of(time_zone_name())


def moment_and_zone(at: datetime | None) -> str:
    """Write "26 Nov 2026, 15:05 (Europe/Zurich)", where nothing else says which time zone it is."""
    if not at:
        return ""
    name = time_zone_name()
    return f"{moment(at)} UTC" if name == "UTC" else f"{moment(at)} ({name})"


def piece_of_time(start: datetime, unit: str, *, zone: tzinfo, has_year: bool = False) -> str:
    """Write a minute, an hour, a day, a week or a month, short enough to stand under a chart.

    Args:
        zone: what words beside it say.
        has_year: what else stands there is of other years. Minutes go without, and months never do.
    """
    dates, minute = _dates(), _clock().minute
    if unit == "minute":
        return _written(start, minute, zone)
    if unit == "month":
        return _written(start, dates.month, zone)
    day = dates.day if has_year else dates.short_day
    return _written(start, f"{day} {minute}" if unit == "hour" else day, zone)


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
    return _signed(f"{rounded:,f}")


def money(cost: Any) -> str:
    """Write a cost with its cents, or with all its decimals where it is less than a cent; nothing for None."""
    if cost is None:
        return ""
    return decimal(cost, 6 if 0 < abs(Decimal(str(cost))) < _CENT else 2)


def plain(number: Any) -> str:
    """Write a number with all its decimals and without groups, as "1234.5"; nothing for None.

    Zeros behind the second are none of them: a column of the database gives each number as many.
    """
    written = _written_out(number) if isinstance(number, Decimal) else str(number)
    return "" if number is None else _signed(written)


def _written_out(number: Decimal) -> str:
    units, point, cents = f"{number:f}".partition(".")
    return f"{units}{point}{cents[:2]}{cents[2:].rstrip('0')}"


def typed_number(text: str) -> str:
    """Give a number that a person typed as a program reads it: "1,048,576" is "1048576".

    Groups are taken in the person's way of writing, and of spaces and apostrophes, where each but the first has three
    digits. What is no such number stays as it is.
    """
    chosen = _NUMBERS.get(_current.get().number_format, _NUMBERS[_USUAL_NUMBERS])
    for group in (chosen.group, *_SPACES):
        sign, point = re.escape(group), re.escape(chosen.decimal)
        found = re.fullmatch(rf"([+-]?\d{{1,3}}(?:{sign}\d{{3}})+)(?:{point}(\d+))?", text.strip())
        if found:
            return found[1].replace(group, "") + (f".{found[2]}" if found[2] else "")
    if chosen.decimal != "." and re.fullmatch(
        rf"[+-]?\d*{re.escape(chosen.decimal)}\d+", text.strip()
    ):
        return text.strip().replace(chosen.decimal, ".")
    return text


def file_size(count: int) -> str:
    """Write "1.2 MB" or "10 MB" for so many bytes."""
    return _signed(_POINT_ZERO.sub("", filesizeformat(count)))


def percent(share: float, places: int = 0) -> str:
    """Write "99.5%" for 0.995."""
    return f"{decimal(share * 100, places)}%"


def day_shape() -> str:
    """How a day is written, for what takes a format of Django's."""
    return _dates().day


def clock_shape() -> str:
    """How a time of day is written, for what takes a format of Django's."""
    return _clock().minute


def moment_shape() -> str:
    """How a moment is written, for what takes a format of Django's."""
    return f"{_dates().day}, {_clock().minute}"


def _signed(usual: str) -> str:
    chosen = _NUMBERS.get(_current.get().number_format, _NUMBERS[_USUAL_NUMBERS])
    return usual.translate({ord(","): chosen.group, ord("."): chosen.decimal})


def _dates() -> _Dates:
    return _DATES.get(_current.get().date_format, _DATES[_USUAL_DATES])


def _clock() -> _Clock:
    return _CLOCKS.get(_current.get().clock, _CLOCKS[_USUAL_CLOCK])


def _written(at: date | None, shape: str, zone: tzinfo | None = None) -> str:
    if not at:
        return ""
    if isinstance(at, datetime):
        at = at.astimezone(zone or time_zone_of(_current.get().time_zone))
    return dateformat.format(at, shape)
