"""What is new in a provider's list of models, and what is gone. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import date, timedelta
from typing import Final

from chat.models.provider_lists import MOST_CHANGES, ListChanges
from chat.providers.listing import ModelListing

NEW_DAYS: Final = 30
"""For how long a model is called new."""


def first_changes(listing: ModelListing) -> ListChanges:
    """What is known from the first list: ends, and nothing new or gone."""
    return ListChanges(ends=_ends_of(listing))


def changes_after(
    before: ListChanges, names: Collection[str], listing: ModelListing, today: date
) -> ListChanges:
    """What is known after a list that is not the first one.

    Args:
        names: the models of the list before.
    """
    known, now = set(names), {one.name for one in listing.models}
    new = {name: day for name, day in before.new.items() if name in now}
    # What had gone and is back is no news.
    new |= {name: today for name in now - known if name not in before.gone}
    removed = {name: day for name, day in before.gone.items() if name not in now}
    if not listing.left_out:
        # Of a list that is cut off, what is missing may be in the rest.
        removed |= dict.fromkeys(known - now, today)
    since = today - timedelta(days=NEW_DAYS)
    return ListChanges(
        new=_newest({name: day for name, day in new.items() if day > since}),
        gone=_newest(removed),
        ends=_ends_of(listing),
    )


def _ends_of(listing: ModelListing) -> dict[str, date]:
    ends = {one.name: one.ends_on for one in listing.models if one.ends_on is not None}
    # The nearest ones matter most.
    return dict(sorted(ends.items(), key=lambda one: (one[1], one[0]))[:MOST_CHANGES])


def _newest(days: Mapping[str, date]) -> dict[str, date]:
    ordered = sorted(days.items(), key=lambda one: (-one[1].toordinal(), one[0]))
    return dict(ordered[:MOST_CHANGES])
