"""How moments and numbers are written for people."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest
from django.template import engines

from workspaces import formats

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
    assert drawn("{{ at|moment_in_utc }}", at=AT) == "26 Nov 2026, 14:05"
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


def test_shares_are_in_percent() -> None:
    """REL-850: with as many places as they are known by."""
    assert formats.percent(0.995) == "100%"
    assert formats.percent(0.99512, 2) == "99.51%"


def test_what_stands_under_a_chart_is_short() -> None:
    """REL-850: a chart's axis has room for what tells one piece of time from the next."""
    written = [formats.piece_of_time(AT, unit) for unit in ("minute", "hour", "day", "month")]
    assert written == ["14:05", "26 Nov 14:05", "26 Nov", "Nov 2026"]
