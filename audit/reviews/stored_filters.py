"""Filters that stay with a schedule or an alert rule: as people type them, or as an address of the log has them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Final
from urllib.parse import parse_qsl, urlencode

from django.utils.translation import gettext as _

from audit.filters import ENTRIES, NAMES, EntryFilter, as_text, read_filter

LONGEST: Final = 4_000
_NOT_STORED: Final = frozenset({"range", "since", "until", "sort", "order", "show"})
"""What an address of the log may have besides, such as one of a saved view."""


def is_address(query: str) -> bool:
    """Whether it is the part of an address after the question mark."""
    return any(name in {*NAMES, "q"} for name in _parameters(query))


def values_of(query: str) -> dict[str, str]:
    """Give the parameters that the filters are in an address."""
    return _parameters(query) if is_address(query) else {"q": query}


def read_stored(query: str, *, now: datetime, no_time: str, no_order: str) -> EntryFilter:
    """Read filters whose time and order are somebody else's to say.

    Args:
        no_time: what to tell of a time that was typed.
        no_order: what to tell of an order that was typed.
    """
    kept = _kept(values_of(query))
    wanted = read_filter(kept | {"range": "all"}, now=now)
    errors = list(wanted.errors)
    if wanted.since or wanted.until:
        errors.append(no_time)
    if wanted.sort != "time":
        errors.append(no_order)
    return replace(wanted, since=None, until=None, sort="time", errors=tuple(errors))


def filter_of(query: str, *, now: datetime) -> EntryFilter:
    """Read a schedule's filters. Their time is the schedule's."""
    return read_stored(
        query,
        now=now,
        no_time=_("Leave since: and until: out. A schedule has its own time."),
        no_order=_("Leave sort: out. A file is in the order of time."),
    )


def meaning_of(query: str, *, now: datetime) -> tuple[object, ...]:
    """Give what two texts have in common that are the same filters."""
    wanted = filter_of(query, now=now)
    typed = {name: value for name, value in wanted.typed.items() if value and name != "range"}
    return (sorted(typed.items()), wanted.errors)


def as_typed(query: str, *, now: datetime) -> str:
    """Give filters as people type them. What cannot be typed stays an address."""
    if not is_address(query):
        return query
    text = as_text(filter_of(query, now=now).typed)
    return text if meaning_of(text, now=now) == meaning_of(query, now=now) else query


def log_query(query: str, since: datetime, until: datetime, **more: str) -> str:
    """Give the address of the log, after the question mark, with every entry that fits filters in a time."""
    kept = _kept(values_of(query))
    span = {"since": since.isoformat(), "until": until.isoformat()}
    return urlencode({**kept, "range": "custom", "show": ENTRIES, **span, **more})


def kept_query(query: str) -> str:
    """Give of an address of the log, after the question mark, what a schedule keeps."""
    return urlencode({name: value for name, value in _kept(values_of(query)).items() if value})


def _parameters(query: str) -> dict[str, str]:
    """Read an address. However many parameters it has: what is stored is short, and no request of whoever reads it."""
    return dict(parse_qsl(query, keep_blank_values=True))


def _kept(values: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in values.items() if name not in _NOT_STORED}
