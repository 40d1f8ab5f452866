"""The filters of a report, a list or a file of the log, in words for people."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from django.utils.functional import Promise
from django.utils.translation import gettext, gettext_noop
from django.utils.translation import gettext_lazy as _

from audit.actions import Action, Outcome, layer_name, outcome_in_words
from audit.filters import ENDED, FAILED, LABELS, RANGES, REFUSED, SORTS, EntryFilter
from audit.reports.entries import person_named
from workspaces.actors import ActorKind, Source
from workspaces.words.formats import moment_in_utc

Words = Promise | str

OUTCOME_CHOICES: Final = [
    *((outcome.value, outcome_in_words(outcome)) for outcome in Outcome),
    (REFUSED, gettext_noop("Refused")),
    (FAILED, gettext_noop("Failed in any way")),
    (ENDED, gettext_noop("Ended in any way, or refused")),
]
_SOURCES: Final[dict[str, Words]] = {
    Source.CHAT: _("Chat"),
    Source.WEB: _("Web pages"),
    Source.API: _("API"),
    Source.ADMIN: _("Admin"),
    Source.GATEWAY: _("Gateway"),
    Source.TASK: _("Background job"),
    Source.COMMAND: _("Command line"),
}
_KINDS: Final[dict[str, Words]] = {
    ActorKind.USER: _("Person"),
    ActorKind.SYSTEM: _("Trellis itself"),
    ActorKind.ANONYMOUS: _("Not signed in"),
}


def source_in_words(source: str) -> Words:
    """Say through which door somebody came; an unknown one stands as it is."""
    return _SOURCES.get(source, source)


def choice_in_words(name: str, value: str) -> str:
    """Say what a value of a filter with fixed values means."""
    match name:
        case "refused_by":
            return gettext(layer_name(value))
        case "source":
            return str(source_in_words(value))
        case "kind":
            return str(_KINDS.get(value, value))
    return value


def names_in(wanted: EntryFilter, workspace_id: UUID) -> dict[str, str]:
    """Give the name of the person that a filter names by an id."""
    if wanted.user_id is None:
        return {}
    return {wanted.user: person_named(workspace_id, wanted.user_id) or wanted.user}


@dataclass(frozen=True, slots=True, kw_only=True)
class SetFilter:
    """A filter that is set, in words."""

    name: str
    label: str
    value: str
    at: datetime | None = None
    """Of a filter that is a moment: which, for pages that write it for their reader."""


def set_filters(wanted: EntryFilter, people: Mapping[str, str], *, usual: str) -> list[SetFilter]:
    """Give the filters that are set, in words.

    Args:
        people: name by id.
        usual: the time that is not told.
    """
    outcomes = {value: gettext(words) for value, words in OUTCOME_CHOICES}
    actions = {one.value: gettext(one.label) for one in Action}
    found = []
    for name, value in wanted.typed.items():
        if not value or name in {"order", "show"} or (name == "sort" and value == "time"):
            continue
        is_range = name == "range"
        if (is_range and value in {"custom", usual}) or (
            name in {"since", "until"} and wanted.range != "custom"
        ):
            continue
        words = {
            "range": gettext(RANGES[wanted.range][0]),
            "user": people.get(value, value),
            "outcome": outcomes.get(value, value),
            "action": actions.get(value, value),
            "sort": gettext(SORTS.get(value, (value,))[0]).lower(),
            "since": _moment_in_words(wanted.since) or value,
            "until": _moment_in_words(wanted.until) or value,
        }.get(name, choice_in_words(name, value))
        at = {"since": wanted.since, "until": wanted.until}.get(name)
        found.append(SetFilter(name=name, label=gettext(LABELS[name]), value=words, at=at))
    return found


def _moment_in_words(moment: datetime | None) -> str:
    """In UTC: it stands in files and mails that several people read."""
    return f"{moment_in_utc(moment)} UTC" if moment else ""
