"""Which entries a rule looks at: its filter in the log's language, its words, and its place in the log."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final
from urllib.parse import urlencode

from django.urls import reverse
from django.utils.translation import gettext as _

from audit.actions import CALLS, REFUSALS, Action, Outcome, RefusedBy
from audit.filters import ENTRIES, FAILED, REFUSED, EntryFilter
from audit.models import Alert, AlertRule
from audit.reports.filter_words import names_in, set_filters
from audit.reviews import stored_filters
from audit.reviews.stored_filters import LONGEST, is_address, read_stored
from workspaces.words.typed_filters import quoted

_C = AlertRule.Condition
UNFILTERED: Final = frozenset({_C.TAMPERING.value, _C.SPENDING.value})
"""What is watched beside the entries of calls, as a whole."""
OWN: Final = (Action.ALERT_RAISED.value, Action.ALERT_ENDED.value)
"""What alerts write themselves. Counted, an alert's end would raise it again."""
APPROVAL_LASTS: Final = timedelta(days=1)
_COUNTED: Final[Mapping[str, tuple[str, ...]]] = {
    _C.CONNECTION: (Action.SERVER_ERROR.value, *CALLS),
    _C.TIMEOUT: CALLS,
    _C.ERROR_RATE: CALLS,
    _C.REFUSAL: REFUSALS,
    _C.QUOTA: REFUSALS,
    _C.APPROVAL: (Action.APPROVAL_REQUESTED.value,),
    _C.ENTRIES: tuple(action.value for action in Action if action.value not in OWN),
}
"""Kind of rule → the kinds of entries that it counts."""
_IN_THE_LOG: Final[Mapping[str, Mapping[str, str]]] = {
    _C.TIMEOUT: {"outcome": Outcome.TIMEOUT.value},
    _C.ERROR_RATE: {"outcome": FAILED},
    _C.REFUSAL: {"outcome": REFUSED},
    _C.QUOTA: {"refused_by": RefusedBy.QUOTA.value},
    _C.APPROVAL: {"action": Action.APPROVAL_REQUESTED.value},
}
"""Kind of rule → what narrows the log to what it counts. Connection failures are of two kinds that no filter joins."""


def filter_of(rule: AlertRule, *, now: datetime) -> EntryFilter:
    """Read a rule's filter, together with the server and the tool that it names."""
    return read_rule_filter(
        rule.query, condition=rule.condition, server=rule.server_name, tool=rule.tool_name, now=now
    )


def read_rule_filter(
    query: str, *, condition: str, server: str, tool: str, now: datetime
) -> EntryFilter:
    """Read the filter of a rule of some kind; what does not fit it is told in `errors`."""
    wanted = read_stored(
        query,
        now=now,
        no_time=_("Leave since: and until: out. A rule has its own time window."),
        no_order=_("Leave sort: out. A rule only counts."),
    )
    errors = list(wanted.errors)
    if len(query) > LONGEST:
        errors.append(_("These filters are too long."))
    if wanted.is_narrowed and condition in UNFILTERED:
        errors.append(_("A rule of this kind takes no filter."))
    elif condition in _COUNTED:
        errors += _mismatches(wanted, condition)
    for name, typed, named in (("server", wanted.server, server), ("tool", wanted.tool, tool)):
        if typed and named and typed != named:
            error = _("Leave %(filter)s: out. The rule is for “%(name)s” already.")
            errors.append(error % {"filter": name, "name": named})
    set_beside = {name: value for name, value in (("server", server), ("tool", tool)) if value}
    return replace(
        wanted,
        server=server or wanted.server,
        tool=tool or wanted.tool,
        typed={**wanted.typed, **set_beside},
        errors=tuple(errors),
    )


def _mismatches(wanted: EntryFilter, condition: str) -> list[str]:
    """What the kind of rule says itself, or can't look at."""
    found = []
    if wanted.words:
        found.append(
            _(
                "A rule can't search for words in arguments and results. Use filters such as tool: or server:."
            )
        )
    if wanted.action and wanted.action not in _COUNTED[condition]:
        found.append(_("A rule of this kind counts no entries of that action."))
    if condition == _C.ENTRIES:
        if not wanted.is_narrowed:
            found.append(_("Say which entries to count, for example outcome:failed."))
        return found
    if wanted.outcome:
        found.append(
            _(
                "Leave outcome: out. The kind of rule says it; to count by outcome, watch for entries that match a filter."
            )
        )
    if "refused_by" in wanted.equal and condition != _C.REFUSAL:
        found.append(_("Leave refused: out. Only rules for refused calls look at it."))
    return found


def as_typed(rule: AlertRule, *, now: datetime) -> str:
    """Give a rule's filter as one text, with the server and the tool that it names beside it."""
    query = rule.query
    if rule.condition in UNFILTERED:
        return query
    wanted = read_stored(query, now=now, no_time="", no_order="")
    for name, value, typed in (
        ("tool", rule.tool_name, wanted.tool),
        ("server", rule.server_name, wanted.server),
    ):
        if not value or value == typed:
            continue
        if is_address(query):
            query = f"{query}&{urlencode({name: value})}"
        else:
            query = f"{name}:{quoted(value)} {query}".strip()
    return stored_filters.as_typed(query, now=now)


def filter_in_words(rule: AlertRule, *, now: datetime) -> str:
    """Give what a rule looks at, as the log names its filters; nothing where it looks at everything."""
    if rule.condition in UNFILTERED:
        return ""
    wanted = filter_of(rule, now=now)
    people = names_in(wanted, rule.workspace_id)
    # Names may have line breaks; this is part of one line.
    shown = (f"{one.label}: {one.value}" for one in set_filters(wanted, people, usual="all"))
    return " · ".join(" ".join(text.split()) for text in shown)


def log_path(rule: AlertRule, *, since: datetime, until: datetime | None) -> str:
    """Give the page of the log with what a rule looks at; that of the alerts for what is no matter of entries.

    Args:
        since: when the rule's number was first as it is.
        until: when it was last looked at; None leaves the end open.
    """
    slug = rule.workspace.slug
    if rule.condition in UNFILTERED:
        return reverse("audit:alerts", args=[slug])
    first = since - timedelta(minutes=rule.window_minutes)
    if rule.condition == _C.APPROVAL:  # what waits was asked before the window
        first -= APPROVAL_LASTS
        until = until and until - timedelta(minutes=rule.window_minutes)
    wanted = filter_of(rule, now=since)
    values = {
        **_IN_THE_LOG.get(rule.condition, {}),
        **{name: value for name, value in wanted.typed.items() if value},
        "range": "custom",
        "since": first.isoformat(),
        "show": ENTRIES,
        **({"until": until.isoformat()} if until else {}),
    }
    return f"{reverse('audit:entries', args=[slug])}?{urlencode(values)}"


def log_path_of(alert: Alert, rule: AlertRule, *, is_told: bool = False) -> str:
    """Give the page of the log with what an alert is about.

    Args:
        is_told: up to when people were told, instead of up to now while it lasts.
    """
    until = alert.ended_at or (alert.told_at if is_told else None)
    return log_path(rule, since=alert.started_at, until=until)
