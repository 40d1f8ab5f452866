"""The list of entries with its numbers."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode
from uuid import UUID

from allauth.account.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_GET

from audit import exports, reports
from audit.actions import TITLES, Action, Outcome
from audit.filters import RANGES, REFUSED, EntryFilter, read_filter
from audit.views.parts import described, id_of, workspace_of
from workspaces.roles import Permission, has_permission

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


@require_GET
@login_required
def entries(request: WorkspaceRequest, workspace_slug: str) -> HttpResponse:
    """The log of a workspace, filtered, with its numbers; an htmx request gets the entries alone."""
    workspace = workspace_of(request)
    rows = reports.entries_of(workspace.pk, actor=request.actor)
    now = timezone.now()
    wanted = read_filter(request.GET.dict(), now=now)
    found = reports.matching(rows, wanted)
    page = reports.page_of(
        found,
        older_than=id_of(request.GET.get("before")),
        newer_than=id_of(request.GET.get("after")),
    )
    audit_url = reverse("audit:entries", args=[workspace_slug])
    context: dict[str, Any] = {
        "section": "audit",
        "audit_url": audit_url,
        "filters_active": wanted.is_narrowed,
        "entries": [described(entry) for entry in page.entries],
        "newer_url": _page_url(audit_url, wanted, "after", page.newer_than),
        "older_url": _page_url(audit_url, wanted, "before", page.older_than),
    }
    if getattr(request, "htmx", False):
        return render(request, "audit/_entries.html", context)
    can_export = has_permission(request.actor, Permission.EXPORT_AUDIT, workspace_id=workspace.pk)
    context |= _filter_context(wanted, rows)
    context |= {
        "can_export": can_export,
        "export_formats": _export_formats(workspace_slug, wanted) if can_export else [],
        "chart": _chart(found, wanted, now),
        "totals": reports.totals_of(found),
    }
    return render(request, "audit/entry_list.html", context)


def _page_url(audit_url: str, wanted: EntryFilter, name: str, entry_id: UUID | None) -> str | None:
    if entry_id is None:
        return None
    query = "&".join(filter(None, [wanted.as_query(), urlencode({name: str(entry_id)})]))
    return f"{audit_url}?{query}"


def _filter_context(wanted: EntryFilter, rows: Any) -> dict[str, Any]:
    choices = reports.choices_of(reports.matching(rows, EntryFilter(since=wanted.since)))
    return {
        "query": wanted.as_query(),
        "filters": {**wanted.typed, "range": wanted.range},
        "filter_errors": wanted.errors,
        "range_choices": [(value, label) for value, (label, _) in RANGES.items()],
        "action_choices": [(action.value, TITLES[action]) for action in Action],
        "outcome_choices": [
            *((outcome.value, label) for outcome, label in _OUTCOME_LABELS.items()),
            (REFUSED, "Refused"),
        ],
        "server_choices": choices.servers,
        "tool_choices": choices.tools,
        "user_choices": choices.users,
    }


def _export_formats(workspace_slug: str, wanted: EntryFilter) -> list[dict[str, str]]:
    formats = []
    for extension, (label, _, _) in exports.FORMATS.items():
        url = reverse("audit:export", args=[workspace_slug, extension])
        query = wanted.as_query()
        formats.append({"label": label, "url": f"{url}?{query}" if query else url})
    return formats


def _chart(found: Any, wanted: EntryFilter, now: datetime) -> dict[str, Any] | None:
    chart = reports.chart_of(found, since=wanted.since, until=wanted.until or now)
    return chart.as_json() if chart else None
