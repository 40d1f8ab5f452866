"""Pages of what people keep of the log: saved views and sign-offs."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode
from uuid import UUID

from allauth.account.decorators import login_required
from django.contrib import messages
from django.db.models import Q
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop
from django.views.decorators.http import require_http_methods, require_POST

from audit.models import SavedView, SentFile, SignOff
from audit.reviews import saved_views, sign_offs
from audit.reviews.stored_filters import log_query
from audit.views.header import header_of
from workspaces.errors import Conflict, InvalidInput
from workspaces.lists.row_pages import page_faults, page_in_address, ways_from
from workspaces.pages.parts import telling_refusals, workspace_of
from workspaces.roles import Permission
from workspaces.words.formats import whole
from workspaces.words.text_values import read_moment

if TYPE_CHECKING:
    from workspaces.middleware import WorkspaceRequest

_ROUTES = {SavedView.Page.LOG.value: "audit:entries", SavedView.Page.REPORTS.value: "audit:reports"}
_TOTALS = (
    ("entries", gettext_noop("entries")),
    ("calls", gettext_noop("tool calls")),
    ("failed", "failed"),
    ("refused", "refused"),
    ("waited", gettext_noop("approvals asked")),
)


@require_POST
@login_required
def save_view(request: WorkspaceRequest, workspace_slug: str) -> HttpResponse:
    """Keep a page's filters under a name."""
    page, query = request.POST.get("page", ""), request.POST.get("query", "")
    with telling_refusals(request, InvalidInput, Conflict):
        view = saved_views.save_view(
            workspace_id=workspace_of(request).pk,
            actor=request.actor,
            page=page,
            name=request.POST.get("name", ""),
            query=query,
            is_shared="is_shared" in request.POST,
        )
        messages.success(request, _("The view “%(name)s” is kept.") % {"name": view.name})
    return _back(workspace_slug, page, query)


@require_POST
@login_required
def delete_view(request: WorkspaceRequest, workspace_slug: str, view_id: UUID) -> HttpResponse:
    """Forget a view."""
    view = saved_views.delete_view(
        workspace_id=workspace_of(request).pk, actor=request.actor, view_id=view_id
    )
    messages.success(request, _("The view “%(name)s” is deleted.") % {"name": view.name})
    return _back(workspace_slug, view.page, "")


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def reviews(request: WorkspaceRequest, workspace_slug: str) -> HttpResponse:
    """Who reviewed the log, and when, page by page; a form to sign off."""
    workspace = workspace_of(request, Permission.VIEW_AUDIT)
    now = timezone.now()
    fault, faults = "", dict[str, list[str]]()
    if request.method == "POST":
        try:
            since, until = _moment(request, "since"), _moment(request, "until")
            sign_offs.sign_off(
                workspace_id=workspace.pk,
                actor=request.actor,
                since=since,
                until=until,
                note=request.POST.get("note", "").replace("\x00", ""),
                now=now,
            )
        except InvalidInput as error:
            fault, faults = "" if error.fields else error.message, error.fields
        except Conflict as error:
            fault = error.message
        else:
            messages.success(request, _("Your review is part of the log."))
            return redirect("audit:reviews", workspace_slug=workspace_slug)
    rows = SignOff.objects.for_workspace(workspace)
    page = page_in_address(rows, request.GET, by="-signed_at")
    # The next review begins where the last one of the whole log ended: a file may hold a part of it.
    newest = rows.filter(Q(sent_file_id=None) | Q(query="")).first()
    last = newest.until if newest is not None else now - timedelta(days=7)
    audit_url = reverse("audit:entries", args=[workspace_slug])
    files = SentFile.objects.for_workspace(workspace)
    files = files.filter(pk__in=[row.sent_file_id for row in page.rows if row.sent_file_id])
    names = dict(files.values_list("pk", "name"))
    context: dict[str, Any] = {
        "section": "audit",
        "tab": "reviews",
        "audit_url": audit_url,
        "fault": fault,
        "faults": faults,
        "form": {
            "since": _as_typed(request, "since", last),
            "until": _as_typed(request, "until", now),
            "note": request.POST.get("note", ""),
        },
        "sign_offs": [_shown(row, audit_url, names) for row in page.rows],
        "ways": ways_from(page, request.GET),
        "address_faults": page_faults(page),
        **header_of(request),
    }
    return render(request, "audit/reviews.html", context, status=422 if fault or faults else 200)


def _shown(row: SignOff, audit_url: str, names: Mapping[UUID, str]) -> dict[str, Any]:
    span = {"since": row.since.isoformat(), "until": row.until.isoformat()}
    query = (
        log_query(row.query, row.since, row.until)
        if row.sent_file_id
        else urlencode({"range": "custom", **span})
    )
    return {
        "row": row,
        "url": f"{audit_url}?{query}",
        "totals": ", ".join(totals_in_words(row)),
        "file": names.get(row.sent_file_id, "") if row.sent_file_id else "",
    }


def totals_in_words(row: SignOff) -> list[str]:
    """Say what a time held when it was signed off."""
    return [
        f"{whole(row.totals[name])} {_(label)}" for name, label in _TOTALS if name in row.totals
    ]


def _moment(request: WorkspaceRequest, name: str) -> datetime:
    moment = read_moment(request.POST.get(name, ""))
    if moment is None:
        raise InvalidInput(fields={name: [_("Enter a date and a time.")]})
    return moment


def _as_typed(request: WorkspaceRequest, name: str, usual: datetime) -> str:
    """What stands in a field, in UTC as its browser wants it: what came, as far as it can be read, else the usual."""
    given = request.POST.get(name, "")
    moment = read_moment(given) if given else usual
    return given if moment is None else f"{moment.astimezone(UTC):%Y-%m-%dT%H:%M}"


def _back(workspace_slug: str, page: str, query: str) -> HttpResponse:
    url = reverse(_ROUTES.get(page, "audit:entries"), args=[workspace_slug])
    return redirect(f"{url}?{query}" if query else url)
