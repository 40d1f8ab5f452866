"""The list of entries with its numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode
from uuid import UUID

from allauth.account.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext
from django.views.decorators.http import require_GET

from audit import reports
from audit.actions import Action, Outcome
from audit.filters import (
    CHOICES,
    DEFAULT_RANGE,
    ENDED,
    ENTRIES,
    FAILED,
    GROUPS,
    KEYS,
    LABELS,
    NUMBERS,
    RANGES,
    REFUSED,
    SORTS,
    EntryFilter,
    read_filter,
)
from audit.models import SavedView
from audit.views.header import header_of, saved_views
from audit.views.parts import workspace_of
from audit.views.rows import shown_rows

if TYPE_CHECKING:
    from workspaces.middleware import WorkspaceRequest

_OUTCOME_LABELS = {
    Outcome.OK: "Succeeded",
    Outcome.TOOL_ERROR: "The tool said it failed",
    Outcome.TRANSPORT_ERROR: "No connection",
    Outcome.TIMEOUT: "Timeout",
    Outcome.CANCELLED: "Cancelled",
    Outcome.OUTCOME_UNKNOWN: "Outcome unknown",
}
_OUTCOME_CHOICES = [
    *((outcome.value, label) for outcome, label in _OUTCOME_LABELS.items()),
    (REFUSED, "Refused"),
    (FAILED, "Failed in any way"),
    (ENDED, "Ended in any way, or refused"),
]


@require_GET
@login_required
def entries(request: WorkspaceRequest, workspace_slug: str) -> HttpResponse:
    """The log of a workspace, filtered, with its numbers; an htmx request gets the entries alone."""
    workspace = workspace_of(request)
    rows = reports.entries_of(workspace.pk, actor=request.actor)
    now = timezone.now()
    wanted = read_filter(request.GET.dict(), now=now)
    can_search = reports.may_search(request.actor)
    narrow = reports.first_of_calls if wanted.shows_calls else reports.matching
    page = reports.page_of(
        narrow(rows, wanted, actor=request.actor),
        sort=wanted.sort_column,
        is_ascending=wanted.is_ascending,
        before=request.GET.get("before"),
        after=request.GET.get("after"),
    )
    audit_url = reverse("audit:entries", args=[workspace_slug])
    context: dict[str, Any] = {
        "section": "audit",
        "tab": "log",
        "audit_url": audit_url,
        "filters_active": wanted.is_narrowed or bool(wanted.text),
        "columns": _columns(audit_url, wanted),
        "is_by_time": wanted.sort == "time" and not wanted.is_ascending,
        "entries": page.entries,
        "rows": shown_rows(
            page.entries, rows, as_calls=wanted.shows_calls, now=now, log_url=audit_url
        ),
        "newer_url": _page_url(audit_url, wanted, "before", page.before),
        "older_url": _page_url(audit_url, wanted, "after", page.after),
    }
    if getattr(request, "htmx", False):
        return render(request, "audit/_entries.html", context)
    overview = reports.overview_of(workspace.pk, rows, wanted, now=now, actor=request.actor)
    context |= header_of(request, wanted.as_query())
    context |= _filter_context(wanted, workspace.pk, audit_url)
    context |= {
        "can_search": can_search,
        "words_unread": bool(wanted.words) and not can_search,
        "overview": overview,
        "chart": overview.chart.as_json() if overview.chart else None,
        "totals": overview.totals,
        "shows_calls": wanted.shows_calls,
        "show_links": [
            (gettext("Calls"), f"{audit_url}?{wanted.as_query(show='')}", wanted.shows_calls),
            (
                gettext("Every entry"),
                f"{audit_url}?{wanted.as_query(show=ENTRIES)}",
                not wanted.shows_calls,
            ),
        ],
        "sorted_by": "" if wanted.sort == "time" else SORTS[wanted.sort][0].lower(),
        "leaves_out_empty": wanted.leaves_out_empty,
        "views": saved_views(request, SavedView.Page.LOG),
        "view_page": "log",
    }
    return render(request, "audit/entry_list.html", context)


def _columns(audit_url: str, wanted: EntryFilter) -> list[dict[str, str]]:
    """Headings of the table, each with the address that sorts by it, or turns the order round."""
    shown = [("When", "time"), ("What", "action"), ("Server", "server"), ("Who", "")]
    shown += [("Outcome", "outcome"), ("Took", "duration")]
    found = []
    for label, sort in shown:
        is_sorted = sort == wanted.sort
        order = "asc" if is_sorted and not wanted.is_ascending else ""
        state = ("ascending" if wanted.is_ascending else "descending") if is_sorted else ""
        query = wanted.as_query(sort=sort if sort != "time" else "", order=order)
        url = f"{audit_url}?{query}" if sort else ""
        found.append({"label": label, "url": url, "state": state})
    return found


def _page_url(audit_url: str, wanted: EntryFilter, name: str, key: str | None) -> str | None:
    if key is None:
        return None
    query = "&".join(filter(None, [wanted.as_query(), urlencode({name: key})]))
    return f"{audit_url}?{query}"


def _filter_context(wanted: EntryFilter, workspace_id: UUID, audit_url: str) -> dict[str, Any]:
    choices = reports.choices_of(workspace_id, wanted.since)
    boxes = _boxes(wanted, choices)
    return {
        "query": wanted.as_query(),
        "filters": {**wanted.typed, "range": wanted.range},
        "since": wanted.since,
        "until": wanted.until,
        "filter_text": wanted.text,
        "filter_text_errors": wanted.text_errors,
        "filter_errors": [one for one in wanted.errors if one not in wanted.text_errors],
        "range_choices": [(value, label) for value, (label, _) in RANGES.items()],
        "chips": _chips(wanted, choices, audit_url),
        "groups": [(label, [boxes[name] for name in names]) for label, names in GROUPS],
        "known": _known(choices),
    }


def _boxes(wanted: EntryFilter, choices: reports.Choices) -> dict[str, dict[str, Any]]:
    """Give the panel's fields by name: a choice, a pair of numbers, or a text."""
    typed = wanted.typed
    selects: dict[str, tuple[str, Sequence[tuple[str, str]]]] = {
        "action": (gettext("Everything"), [(one.value, gettext(one.label)) for one in Action]),
        "outcome": (gettext("Any"), _OUTCOME_CHOICES),
        "server": (gettext("Any"), choices.servers),
        "tool": (gettext("Any"), choices.tools),
        "user": (gettext("Anybody"), choices.users),
        **{
            name: (gettext("Any"), [(value, value) for value in known])
            for name, (_, _, known) in CHOICES.items()
        },
        "sort": ("", [(value, label) for value, (label, _) in SORTS.items()]),
        "order": (
            gettext("Newest or greatest first"),
            [("asc", gettext("Oldest or smallest first"))],
        ),
    }
    boxes: dict[str, dict[str, Any]] = {}
    for name in (name for _, names in GROUPS for name in names):
        value = wanted.sort if name == "sort" else typed.get(name, "")
        box: dict[str, Any] = {"name": name, "label": gettext(LABELS[name]), "value": value}
        if name in selects:
            box["empty"], known = selects[name]
            # What is not among those that occur stays chosen; it would else be lost with the next filter.
            is_known = not value or any(value == one for one, _ in known)
            box["choices"] = known if is_known else [*known, (value, value)]
        elif name in NUMBERS:
            box["least"], box["most"] = typed[f"{name}_min"], typed[f"{name}_max"]
        boxes[name] = box
    return boxes


def _chips(wanted: EntryFilter, choices: reports.Choices, audit_url: str) -> list[dict[str, str]]:
    """Give each filter that is set, in words, with the address without it."""
    people = dict(choices.users)
    outcomes = dict(_OUTCOME_CHOICES)
    actions = {one.value: gettext(one.label) for one in Action}
    chips = []
    for name, value in wanted.typed.items():
        if not value or name in {"order", "show"} or (name == "sort" and value == "time"):
            continue
        is_range = name == "range"
        if (is_range and value in {"custom", DEFAULT_RANGE}) or (
            name in {"since", "until"} and wanted.range != "custom"
        ):
            continue
        words = {
            "range": RANGES[wanted.range][0],
            "user": people.get(value, value),
            "outcome": outcomes.get(value, value),
            "action": actions.get(value, value),
            "sort": SORTS.get(value, (value,))[0].lower(),
        }.get(name, value)
        chips.append(
            {
                "label": gettext(LABELS[name]),
                "value": words,
                "url": f"{audit_url}?{wanted.as_query(**{name: ''})}",
            }
        )
    return chips


def _known(choices: reports.Choices) -> dict[str, Any]:
    """Give what the search field offers: names with a word of help, and the values that occur."""
    return {
        "keys": [[name, gettext(key.help)] for name, key in KEYS.items()],
        "values": {
            "tool": [value for value, _ in choices.tools],
            "server": [value for value, _ in choices.servers],
            "person": [label for _, label in choices.users],
            "bud": list(choices.buds),
            "model": list(choices.models),
            "outcome": [value for value, _ in _OUTCOME_CHOICES],
            "action": [one.value for one in Action],
            "since": ["1h", "24h", "7d", "30d"],
            "sort": list(SORTS),
            "source": list(CHOICES["source"][2]),
            "refused": list(CHOICES["refused_by"][2]),
            "kind": list(CHOICES["kind"][2]),
        },
    }
