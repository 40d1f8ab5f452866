"""Calendar months of a workspace, for its spending limits."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Final

from workspaces.database import database_now
from workspaces.words.formats import time_zone_of

_MONTHS: Final = 12


@dataclass(frozen=True, slots=True)
class Month:
    """One month, as a time zone has it."""

    year: int
    number: int
    zone: str
    """Empty: UTC."""

    @classmethod
    def of(cls, moment: datetime, zone: str) -> Month:
        """The month that a moment lies in."""
        local = moment.astimezone(time_zone_of(zone))
        return cls(local.year, local.month, zone)

    @property
    def key(self) -> int:
        """As sums are stored under, such as 202611."""
        return self.year * 100 + self.number

    @property
    def begins_on(self) -> date:
        """Its first day."""
        return date(self.year, self.number, 1)

    @property
    def begins_anew_on(self) -> date:
        """The first day of the next one."""
        return date(self.year + self.number // _MONTHS, self.number % _MONTHS + 1, 1)

    @property
    def begins_anew_at(self) -> datetime:
        """The moment in which the next one begins."""
        day = self.begins_anew_on
        there = datetime(day.year, day.month, day.day, tzinfo=time_zone_of(self.zone))
        return there.astimezone(UTC)

    @property
    def zone_name(self) -> str:
        """What to say of the time zone."""
        return self.zone or "UTC"


def current_month(zone: str) -> Month:
    """The one of now, by the database's clock."""
    return Month.of(database_now(), zone)
