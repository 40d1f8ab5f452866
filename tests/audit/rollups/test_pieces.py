"""By which pieces of time a chart is drawn, and where they begin."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from audit.rollups.pieces import begin_of, pieces_of, unit_of, whole_hours_zone

VIENNA = ZoneInfo("Europe/Vienna")
KOLKATA = ZoneInfo("Asia/Kolkata")


def at(text: str, zone: ZoneInfo | None = None) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=zone or UTC)


@pytest.mark.parametrize(
    ("length", "unit"),
    [
        (timedelta(hours=1), "minute"),
        (timedelta(hours=2), "minute"),
        (timedelta(hours=3), "hour"),
        (timedelta(days=3), "hour"),
        (timedelta(days=7), "day"),
        (timedelta(days=90), "day"),
        (timedelta(days=365), "week"),
        (timedelta(days=800), "month"),
    ],
)
def test_a_range_is_drawn_by_what_an_axis_has_room_for(length: timedelta, unit: str) -> None:
    """REL-1178: from an hour to years, there are at most 120 pieces."""
    assert unit_of(length) == unit
    since = at("2024-02-10T10:30")
    assert len(pieces_of(since, since + length, unit_of(length), UTC)) <= 121


def test_days_weeks_and_months_begin_at_midnight_where_the_person_is() -> None:
    """REL-1177: also where clocks change in between; weeks begin on Mondays."""
    days = pieces_of(at("2026-03-28T12:00"), at("2026-03-31T12:00"), "day", VIENNA)
    assert days == [at(f"2026-03-{day}T00:00", VIENNA) for day in (28, 29, 30, 31)]
    assert [one.hour for one in days] == [23, 23, 22, 22]
    weeks = pieces_of(at("2025-12-31T12:00"), at("2026-01-12T12:00"), "week", VIENNA)
    assert weeks == [
        at(f"{day}T00:00", VIENNA) for day in ("2025-12-29", "2026-01-05", "2026-01-12")
    ]
    assert begin_of(at("2026-01-31T23:30"), "month", VIENNA) == at("2026-02-01T00:00", VIENNA)


def test_an_hour_that_clocks_repeat_is_two_pieces() -> None:
    """REL-1177: nothing of one is counted in the other."""
    hours = pieces_of(at("2026-10-25T00:00"), at("2026-10-25T03:00"), "hour", VIENNA)
    assert len(hours) == len(set(hours)) == 3


def test_where_midnight_is_no_whole_hour_of_utc_days_begin_there() -> None:
    """REL-1177: counters know whole hours; the page says which time zone it is."""
    since, until = at("2026-11-01T00:00"), at("2026-11-08T00:00")
    assert whole_hours_zone(since, until, "day", VIENNA) is VIENNA
    assert whole_hours_zone(since, until, "day", KOLKATA) is UTC
    assert whole_hours_zone(since, until, "hour", KOLKATA) is KOLKATA


def test_a_month_of_days_is_cut_in_utc() -> None:
    """REL-1177: as counters have days. Weeks and months begin where the person is."""
    since, until = at("2026-11-01T00:00"), at("2026-11-30T00:00")
    assert whole_hours_zone(since, until, "day", VIENNA) is UTC
    assert whole_hours_zone(since, until, "week", VIENNA) is VIENNA
