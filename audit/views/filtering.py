"""The filters of a page of the log, as its form shows them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final
from uuid import UUID

from django.utils.translation import gettext

from audit import reports
from audit.actions import Action, Outcome
from audit.filters import (
    CHOICES,
    DEFAULT_RANGE,
    GROUPS,
    KEYS,
    LABELS,
    NUMBERS,
    RANGES,
    SORTS,
    SUCCEEDED,
    EntryFilter,
)
from audit.reports.filter_words import OUTCOME_CHOICES, choice_in_words, set_filters

MOST_IN_LIST: Final = 200
"""Of values in a list of the panel; the search field takes and completes the others."""
_ORDER = ("sort", "order")


def filter_context(
    wanted: EntryFilter,
    workspace_id: UUID,
    page_url: str,
    *,
    usual: str = DEFAULT_RANGE,
    has_order: bool = True,
) -> dict[str, Any]:
    """Give what `_filters.html` shows.

    Args:
        usual: the time that the page is of if none is chosen.
        has_order: whether people choose an order.
    """
    choices = _with_chosen(wanted, reports.choices_of(workspace_id, wanted.since), workspace_id)
    boxes = _boxes(wanted, choices)
    return {
        "query": wanted.as_query(),
        "filters": {**wanted.typed, "range": wanted.range},
        "since": wanted.since,
        "until": wanted.until,
        "filter_text": wanted.text,
        "filter_text_errors": wanted.text_errors,
        "filter_errors": [one for one in wanted.errors if one not in wanted.text_errors],
        "range_choices": [(value, gettext(label)) for value, (label, _) in RANGES.items()],
        "page_url": page_url,
        "chips": _chips(wanted, choices, page_url, usual),
        "groups": [
            (gettext(label), [boxes[name] for name in names])
            for label, names in GROUPS
            if has_order or names != _ORDER
        ],
        "known": _known(choices),
        "most_completed": reports.MAX_CHOICES if choices.is_cut else None,
    }


def _with_chosen(
    wanted: EntryFilter, choices: reports.FilterChoices, workspace_id: UUID
) -> reports.FilterChoices:
    """Add the chosen person by their name, if they did nothing in this time or are beyond those that are listed."""
    if wanted.user_id is None or any(value == wanted.user for value, _ in choices.users):
        return choices
    name = reports.person_named(workspace_id, wanted.user_id) or wanted.user
    return replace(choices, users=[*choices.users, (wanted.user, name)])


def _boxes(wanted: EntryFilter, choices: reports.FilterChoices) -> dict[str, dict[str, Any]]:
    """Give the panel's fields by name: a choice, a pair of numbers, or a text."""
    typed = wanted.typed
    selects: dict[str, tuple[str, Sequence[tuple[str, str]]]] = {
        "action": (gettext("Everything"), [(one.value, gettext(one.label)) for one in Action]),
        "outcome": (gettext("Any"), [(one, gettext(words)) for one, words in OUTCOME_CHOICES]),
        "server": (gettext("Any"), choices.servers),
        "tool": (gettext("Any"), choices.tools),
        "user": (gettext("Anybody"), choices.users),
        **{
            name: (gettext("Any"), [(value, choice_in_words(name, value)) for value in known])
            for name, (_, _, known) in CHOICES.items()
        },
        "sort": ("", [(value, gettext(label)) for value, (label, _) in SORTS.items()]),
        "order": (
            gettext("Newest or largest"),
            [("asc", gettext("Oldest or smallest"))],
        ),
    }
    boxes: dict[str, dict[str, Any]] = {}
    for name in (name for _, names in GROUPS for name in names):
        value = wanted.sort if name == "sort" else typed.get(name, "")
        box: dict[str, Any] = {"name": name, "label": gettext(LABELS[name]), "value": value}
        if name in selects:
            box["empty"], known = selects[name]
            # What is not among those that occur stays chosen; it would else be lost with the next filter.
            box["most"] = MOST_IN_LIST if len(known) > MOST_IN_LIST else None
            known = known[:MOST_IN_LIST]
            is_known = not value or any(value == one for one, _ in known)
            box["choices"] = (
                known if is_known else [*known, (value, dict(choices.users).get(value, value))]
            )
        elif name in NUMBERS:
            box["least"], box["most"] = typed[f"{name}_min"], typed[f"{name}_max"]
        boxes[name] = box
    return boxes


def _chips(
    wanted: EntryFilter, choices: reports.FilterChoices, page_url: str, usual: str
) -> list[dict[str, Any]]:
    """Give each filter that is set, in words, with the address without it."""
    return [
        {
            "label": one.label,
            "value": one.value,
            "at": one.at,
            "url": f"{page_url}?{wanted.as_query(**{one.name: ''})}",
        }
        for one in set_filters(wanted, dict(choices.users), usual=usual)
    ]


def known_filters(workspace_id: UUID, *, without: frozenset[str]) -> dict[str, Any]:
    """Give what a field for filters offers, with the values that the log holds, except for some names."""
    known = _known(reports.choices_of(workspace_id, None))
    return {**known, "keys": [one for one in known["keys"] if one[0] not in without]}


def _known(choices: reports.FilterChoices) -> dict[str, Any]:
    """Give what the search field offers: names with a word of help, and the values that occur."""
    return {
        "keys": [[name, gettext(key.help)] for name, key in KEYS.items()],
        "values": {
            "tool": [value for value, _ in choices.tools],
            "server": [value for value, _ in choices.servers],
            "person": [label for _, label in choices.users],
            "bud": list(choices.buds),
            "model": list(choices.models),
            "outcome": [
                SUCCEEDED if value == Outcome.OK else value for value, _ in OUTCOME_CHOICES
            ],
            "action": [one.value for one in Action],
            "since": ["1h", "24h", "7d", "30d"],
            "sort": list(SORTS),
            "source": list(CHOICES["source"][2]),
            "refused": list(CHOICES["refused_by"][2]),
            "kind": list(CHOICES["kind"][2]),
        },
    }
