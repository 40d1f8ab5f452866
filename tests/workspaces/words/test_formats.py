"""How moments and numbers are written for people."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest
from django import forms
from django.template import engines

from mcp_servers.pages.forms.limits import limit_fields
from workspaces.models import Clock, DateFormat, NumberFormat
from workspaces.pages.numbers import ExactNumberField
from workspaces.words import formats

AT = datetime(2026, 11, 26, 14, 5, 9, 123_456, tzinfo=UTC)


def drawn(template: str, **values: Any) -> str:
    return engines["django"].from_string("{% load formats %}" + template).render(values)


def test_a_template_says_what_is_meant() -> None:
    """REL-850: the server writes what it knows, and says how exactly the browser is to write it."""
    element = '<time datetime="2026-11-26T14:05:09.123456+00:00" data-local="{}">{}</time>'
    for meaning, exactness, written in (
        ("local_day", "day", "26 Nov 2026"),
        ("local_moment", "minute", "26 Nov 2026, 14:05"),
        ("local_exact_moment", "second", "26 Nov 2026, 14:05:09"),
        ("local_instant", "instant", "14:05:09.123"),
    ):
        assert drawn(f"{{{{ at|{meaning} }}}}", at=AT) == element.format(exactness, written)
        assert drawn(f"{{{{ at|{meaning} }}}}", at=None) == ""
        assert drawn(f"{{{{ nothing.at|{meaning}|default:'–' }}}}") == "–"
    assert drawn("{{ at|day }}", at=date(2026, 11, 6)) == "6 Nov 2026"
    in_utc = drawn("{{ at|local_day_in_utc }}", at=AT)
    assert 'data-local="day" data-zone="UTC">26 Nov 2026</time>' in in_utc
    assert drawn("{{ at|typed_in_utc }}", at=AT) == "2026-11-26T14:05:09"


def test_moments_of_other_zones_are_the_same_moments() -> None:
    """REL-850: whatever zone a value came in."""
    there = AT.astimezone(timezone(timedelta(hours=11)))
    assert formats.moment(there) == formats.moment(AT) == "26 Nov 2026, 14:05"
    assert formats.day(there) == "26 Nov 2026"


@pytest.mark.parametrize(
    ("number", "places", "written"),
    [
        (1234, 0, "1,234"),
        (999, 0, "999"),
        (-1234567, 0, "-1,234,567"),
        (2.5, 0, "3"),
        (Decimal("1234.56789"), 4, "1,234.5679"),
        ("12", 2, "12.00"),
        ("–", 0, "–"),
        (None, 0, ""),
        (float("inf"), 0, "inf"),
    ],
)
def test_numbers_are_grouped(number: Any, places: int, written: str) -> None:
    """REL-850: what is no number stays as it is."""
    assert formats.decimal(number, places) == written
    assert drawn("{{ number|decimal:places }}", number=number, places=places) == written


@pytest.mark.parametrize(
    ("number_format", "typed", "read"),
    [
        ("", "1,048,576", "1048576"),
        ("", " 1 048 576 ", "1048576"),
        ("", "1\u202f048\u202f576", "1048576"),
        ("", "-1’234.5", "-1234.5"),
        ("", "1048576", "1048576"),
        ("", "1,5", "1,5"),
        ("", "1,04", "1,04"),
        ("", "1.500", "1.500"),
        ("1.234,5", "1.048.576", "1048576"),
        ("1.234,5", "1.234,5", "1234.5"),
        ("1.234,5", "0,5", "0.5"),
        ("1 234,5", "1 234,5", "1234.5"),
        ("", "ten", "ten"),
        ("", "", ""),
    ],
)
def test_numbers_are_read_as_they_are_written(number_format: str, typed: str, read: str) -> None:
    """REL-1342: with the groups that help texts show; what could mean something else stays as it is, to be refused."""
    with formats.written_for(formats.Formats(number_format=number_format)):
        assert formats.typed_number(typed) == read


def test_fields_take_numbers_with_groups() -> None:
    """REL-1342: a limit as its help shows it, in forms of the product and of the admin alike."""
    limits = forms.Form({"result_bytes": "1,048,576", "call_seconds": "1,200.5"})
    limits.fields = {
        name: field
        for name, field in limit_fields().items()
        if name in ("result_bytes", "call_seconds")
    }
    assert limits.is_valid(), limits.errors
    assert limits.cleaned_data == {"result_bytes": 1_048_576, "call_seconds": 1200.5}
    assert ' type="text"' in str(limits["result_bytes"])
    for wrong in ("1,04", "1,048,576,000,000", "many"):
        limits = forms.Form({"result_bytes": wrong})
        limits.fields = {"result_bytes": limit_fields()["result_bytes"]}
        assert not limits.is_valid(), wrong
    assert ExactNumberField(decimal_places=2, max_digits=8).clean("1,234.50") == Decimal("1234.50")


def test_prices_and_sizes_keep_their_decimals() -> None:
    """REL-850: a price without groups, and bytes in a unit that people read."""
    assert formats.plain(Decimal("1250.50")) == "1250.50"
    assert formats.plain(Decimal("1E+1")) == "10"
    prices = [Decimal("2.000000"), Decimal("2.500000"), Decimal("0.075000"), Decimal("2.5")]
    assert [formats.plain(one) for one in prices] == ["2.00", "2.50", "0.075", "2.5"]
    assert formats.plain(None) == ""
    assert formats.file_size(1_300_000) == "1.2\xa0MB"
    assert formats.file_size(10 * 1024 * 1024) == "10\xa0MB"


def test_shares_are_in_percent() -> None:
    """REL-850: with as many places as they are known by."""
    assert formats.percent(0.995) == "100%"
    assert formats.percent(0.99512, 2) == "99.51%"


def test_what_stands_under_a_chart_is_short() -> None:
    """REL-850: a chart's axis has room for what tells one piece of time from the next."""
    units = ("minute", "hour", "day", "week", "month")
    written = [formats.piece_of_time(AT, unit, zone=UTC) for unit in units]
    assert written == ["14:05", "26 Nov 14:05", "26 Nov", "26 Nov", "Nov 2026"]
    written = [formats.piece_of_time(AT, unit, zone=UTC, has_year=True) for unit in units]
    assert written == ["14:05", "26 Nov 2026 14:05", "26 Nov 2026", "26 Nov 2026", "Nov 2026"]


CHOSEN = formats.Formats(
    time_zone="Asia/Tokyo", date_format="DD/MM/YYYY", clock="12", number_format="1.234,5"
)


def test_everything_is_written_as_the_person_chose() -> None:
    """REL-851: in their time zone, which may have another day already."""
    with formats.written_for(CHOSEN):
        assert formats.day(AT) == "26/11/2026"
        assert formats.day(AT + timedelta(hours=2)) == "27/11/2026"
        assert formats.day(date(2026, 11, 26)) == "26/11/2026"
        assert formats.moment(AT) == "26/11/2026, 11:05 PM"
        assert formats.exact_moment(AT) == "26/11/2026, 11:05:09 PM"
        assert formats.moment_and_zone(AT) == "26/11/2026, 11:05 PM (Asia/Tokyo)"
        assert formats.decimal(1234.5, 1) == "1.234,5"
        assert formats.percent(0.9951, 2) == "99,51%"
        assert formats.plain(Decimal("1250.50")) == "1250,50"
        assert formats.file_size(1_300_000) == "1,2\xa0MB"
    assert formats.moment_and_zone(AT) == "26 Nov 2026, 14:05 UTC"


@pytest.mark.parametrize(
    ("date_format", "clock", "number_format", "moment", "number"),
    [
        ("", "", "", "26 Nov 2026, 14:05", "1,234.5"),
        ("D MMM YYYY", "24", "1,234.5", "26 Nov 2026, 14:05", "1,234.5"),
        ("DD/MM/YYYY", "24", "1.234,5", "26/11/2026, 14:05", "1.234,5"),
        ("MM/DD/YYYY", "12", "1 234,5", "11/26/2026, 2:05 PM", "1\u00a0234,5"),
        ("YYYY-MM-DD", "12", "", "2026-11-26, 2:05 PM", "1,234.5"),
    ],
)
def test_each_choice_looks_like_its_example(
    date_format: str, clock: str, number_format: str, moment: str, number: str
) -> None:
    """REL-851: also where only some parts were chosen."""
    chosen = formats.Formats(date_format=date_format, clock=clock, number_format=number_format)
    with formats.written_for(chosen):
        assert formats.moment(AT) == moment
        assert formats.decimal(1234.5, 1) == number


def test_each_choice_of_the_settings_is_known() -> None:
    """REL-851: none of them falls back to the usual way."""
    for date_format in DateFormat.values:
        assert date_format in formats._DATES
    for clock in Clock.values:
        assert clock in formats._CLOCKS
    for number_format in NumberFormat.values:
        assert number_format in formats._NUMBERS


def test_what_says_that_it_is_in_utc_is_in_utc() -> None:
    """REL-855: in the person's formats, and in no other time zone."""
    with formats.written_for(CHOSEN):
        assert formats.moment_in_utc(AT) == "26/11/2026, 2:05 PM"
        assert formats.day_in_utc(AT + timedelta(hours=2)) == "26/11/2026"
        assert formats.piece_of_time(AT, "hour", zone=UTC) == "26/11 2:05 PM"
        assert formats.piece_of_time(AT, "hour", zone=formats.current_zone()) == "26/11 11:05 PM"
        assert formats.piece_of_time(AT + timedelta(hours=2), "day", zone=UTC) == "26/11"
        assert formats.piece_of_time(AT, "month", zone=UTC) == "11/2026"


def test_what_is_for_others_does_not_follow_whoever_acts() -> None:
    """REL-854: a mail is written for whoever gets it."""
    with formats.written_for(CHOSEN):
        with formats.written_for(None):
            assert formats.moment(AT) == "26 Nov 2026, 14:05"
        assert formats.moment(AT) == "26/11/2026, 11:05 PM"


def test_a_time_zone_that_is_gone_is_utc() -> None:
    """REL-851: names leave the database of time zones, and pages still open."""
    with formats.written_for(formats.Formats(time_zone="Middle/Earth")):
        assert formats.moment_and_zone(AT) == "26 Nov 2026, 14:05 UTC"
