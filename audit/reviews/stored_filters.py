"""Filters that stay with a schedule or an alert rule: as people type them, or as an address of the log has them."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Final

from audit.filters import NAMES, EntryFilter, read_filter

LONGEST: Final = 4_000
_NOT_STORED: Final = frozenset({"range", "since", "until", "sort", "order", "show"})
"""What an address of the log may have besides, such as one of a saved view."""


def is_address(query: str) -> bool:
    """Whether it is the part of an address after the question mark."""
    from django.http import QueryDict

    return any(name in {*NAMES, "q"} for name in QueryDict(query))


def values_of(query: str) -> dict[str, str]:
    """Give the parameters that the filters are in an address."""
    from django.http import QueryDict

    given: QueryDict = QueryDict(query)
    return {name: given.get(name, "") for name in given} if is_address(query) else {"q": query}


def read_stored(query: str, *, now: datetime, no_time: str, no_order: str) -> EntryFilter:
    """Read filters whose time and order are somebody else's to say.

    Args:
        no_time: what to tell of a time that was typed.
        no_order: what to tell of an order that was typed.
    """
    values = values_of(query)
    kept = {name: value for name, value in values.items() if name not in _NOT_STORED}
    wanted = read_filter(kept | {"range": "all"}, now=now)
    errors = list(wanted.errors)
    if wanted.since or wanted.until:
        errors.append(no_time)
    if wanted.sort != "time":
        errors.append(no_order)
    return replace(wanted, since=None, until=None, sort="time", errors=tuple(errors))
