"""The list of entries with its numbers."""

from __future__ import annotations

import hashlib
from datetime import datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode
from uuid import UUID

from allauth.account.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import render
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils import timezone
from django.utils.cache import get_conditional_response
from django.utils.translation import gettext
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET

from audit import reports
from audit.filters import ENTRIES, SORTS, EntryFilter, read_filter
from audit.models import SavedView
from audit.rollups.reading import one_tail
from audit.views.filtering import filter_context
from audit.views.header import header_of, saved_views, schedule_url
from audit.views.rows import shown_rows
from audit.views.sent_files import looked_through
from workspaces.pages.parts import workspace_of
from workspaces.words.formats import current_zone

if TYPE_CHECKING:
    from workspaces.middleware import WorkspaceRequest


@require_GET
@login_required
@one_tail()
def entries(request: WorkspaceRequest, workspace_slug: str) -> HttpResponse:
    """The log of a workspace, filtered, with its numbers; a live list gets what changed of it."""
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
    sent = request.GET.get("sent", "")
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
        "newer_url": _page_url(audit_url, wanted, sent, "before", page.before),
        "older_url": _page_url(audit_url, wanted, sent, "after", page.after),
    }
    if getattr(request, "htmx", False):
        return _live(request, workspace.pk, wanted, context, now=now)
    context |= _numbers(request, workspace.pk, wanted, now=now)
    context |= header_of(request, wanted.as_query())
    context |= filter_context(wanted, workspace.pk, audit_url)
    context |= {
        "looked": looked_through(request, wanted),
        "schedule_url": schedule_url(request, wanted.as_query()),
        "can_search": can_search,
        "words_unread": bool(wanted.words) and not can_search,
        "shows_calls": wanted.shows_calls,
        "kept": [] if wanted.shows_calls else [("show", ENTRIES)],
        "can_be_live": wanted.sort == "time" and not wanted.is_ascending and wanted.until is None,
        "show_links": [
            (gettext("Calls"), f"{audit_url}?{wanted.as_query(show='')}", wanted.shows_calls),
            (
                gettext("Every entry"),
                f"{audit_url}?{wanted.as_query(show=ENTRIES)}",
                not wanted.shows_calls,
            ),
        ],
        "sorted_by": "" if wanted.sort == "time" else gettext(SORTS[wanted.sort][0]).lower(),
        "leaves_out_empty": wanted.leaves_out_empty,
        "views": saved_views(request, SavedView.Page.LOG),
        "view_page": "log",
    }
    return render(request, "audit/entry_list.html", context)


def _live(
    request: WorkspaceRequest,
    workspace_id: UUID,
    wanted: EntryFilter,
    context: dict[str, Any],
    *,
    now: datetime,
) -> HttpResponse:
    """Answer with rows and numbers, or with 304 if the browser has them.

    The numbers are counted only with new rows, and once a minute, because time moves on.
    """
    entries_html = render_to_string("audit/_entries.html", context, request)
    state = f"{entries_html}{now:%Y-%m-%dT%H:%M}"
    etag = f'"{hashlib.sha256(state.encode()).hexdigest()}"'
    unchanged = get_conditional_response(request, etag=etag)
    if unchanged is not None:
        return unchanged
    context = _numbers(request, workspace_id, wanted, now=now) | {"entries_html": entries_html}
    answer = render(request, "audit/_live.html", context)
    answer["ETag"] = etag
    return answer


def _numbers(
    request: WorkspaceRequest, workspace_id: UUID, wanted: EntryFilter, *, now: datetime
) -> dict[str, Any]:
    rows = reports.entries_of(workspace_id, actor=request.actor)
    overview = reports.overview_of(
        workspace_id, rows, wanted, now=now, actor=request.actor, zone=current_zone()
    )
    return {
        "overview": overview,
        "totals": overview.totals,
        "chart": overview.chart.as_json() if overview.chart else None,
    }


def _columns(audit_url: str, wanted: EntryFilter) -> list[dict[str, str]]:
    """Headings of the table, each with the address that sorts by it, or turns the order round."""
    shown = [(_("When"), "time"), (_("What"), "action"), (_("About"), "server"), (_("Who"), "")]
    shown += [(_("Outcome"), "outcome"), (_("Took"), "duration")]
    found = []
    for label, sort in shown:
        is_sorted = sort == wanted.sort
        order = "asc" if is_sorted and not wanted.is_ascending else ""
        state = ("ascending" if wanted.is_ascending else "descending") if is_sorted else ""
        query = wanted.as_query(sort=sort if sort != "time" else "", order=order)
        url = f"{audit_url}?{query}" if sort else ""
        found.append({"label": label, "url": url, "state": state})
    return found


def _page_url(
    audit_url: str, wanted: EntryFilter, sent: str, name: str, key: str | None
) -> str | None:
    if key is None:
        return None
    more = {name: key, **({"sent": sent} if sent else {})}
    query = "&".join(filter(None, [wanted.as_query(), urlencode(more)]))
    return f"{audit_url}?{query}"
