"""Everybody's own entries, and the platform's page over all workspaces."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode
from uuid import UUID

from allauth.account.decorators import login_required
from django.db.models import Q
from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET

from audit import reports
from audit.actions import Action
from audit.filters import ENDED, FAILED, read_filter
from audit.health import LogFinding, health
from audit.models import PLATFORM_CHAIN, AuditEntry
from audit.reports.overview import PLATFORM_DAYS, PlatformRow, platform_entries, platform_rows
from audit.rollups.reading import TimeRange
from audit.views.entry import bodies_of, changes_of, facts_of
from audit.views.parts import described
from audit.views.rows import shown_rows
from workspaces.lists.row_pages import page_faults, page_in_address, ways_from
from workspaces.models import Workspace
from workspaces.pages.parts import for_platform_owner, workspace_of

if TYPE_CHECKING:
    from workspaces.middleware import WorkspaceRequest
    from workspaces.scoping import WorkspaceQuerySet

_WORKSPACES_AFTER = "workspaces_after"
_ENTRIES_AFTER = "entries_after"


def _own(request: WorkspaceRequest) -> WorkspaceQuerySet[AuditEntry]:
    rows: WorkspaceQuerySet[AuditEntry] = AuditEntry.objects.for_workspace(workspace_of(request))
    return rows.filter(actor_id=request.user.pk)


@require_GET
@login_required
def activity(request: WorkspaceRequest, workspace_slug: str) -> HttpResponse:
    """What the log holds of oneself."""
    now = timezone.now()
    given = {name: request.GET.get(name, "") for name in ("range", "tool", "action")}
    wanted = read_filter({"range": "30d"} | {k: v for k, v in given.items() if v}, now=now)
    rows = AuditEntry.objects.for_workspace(workspace_of(request))
    page = reports.page_of(
        reports.first_of_calls(rows, wanted, also=Q(actor_id=request.user.pk)),
        before=request.GET.get("before"),
        after=request.GET.get("after"),
    )
    url = reverse("audit:activity", args=[workspace_slug])

    def neighbour(name: str, key: str | None) -> str | None:
        query = "&".join(filter(None, [wanted.as_query(), urlencode({name: key or ""})]))
        return f"{url}?{query}" if key else None

    context: dict[str, Any] = {
        "section": "account",
        "audit_url": url,
        "filters_active": wanted.is_narrowed,
        "columns": [
            {"label": label}
            for label in (_("When"), _("What"), _("Server"), _("Through"), _("Outcome"), _("Took"))
        ],
        "is_own": True,
        "is_by_time": True,
        "entries": page.entries,
        "rows": shown_rows(page.entries, _own(request), as_calls=True, now=now),
        "newer_url": neighbour("before", page.before),
        "older_url": neighbour("after", page.after),
    }
    if getattr(request, "htmx", False):
        return render(request, "audit/_entries.html", context)
    return render(request, "audit/activity.html", context)


@require_GET
@login_required
def own_entry(request: WorkspaceRequest, workspace_slug: str, entry_id: UUID) -> HttpResponse:
    """One entry of one's own, with what was sent and came back."""
    rows = _own(request)
    entry = rows.fetch(entry_id)
    related = reports.related_to(entry, rows)
    context = {
        "section": "account",
        "audit_url": reverse("audit:activity", args=[workspace_slug]),
        "back_url": None,
        "back_label": _("My activity"),
        "entry": described(entry),
        "facts": facts_of(entry),
        "can_see_bodies": True,
        "bodies": bodies_of(entry),
        "changes": changes_of(entry),
        "related": [described(other) for other in related.entries],
        "has_more_related": related.has_more,
    }
    return render(request, "audit/entry_detail.html", context)


@require_GET
@for_platform_owner
def platform(request: WorkspaceRequest) -> HttpResponse:
    """All workspaces in numbers, for the platform's owner: never what was sent or came back."""
    now = timezone.now()
    span = TimeRange.around(now - timedelta(days=PLATFORM_DAYS), now)
    numbers = platform_rows(span)
    workspaces = page_in_address(Workspace.objects.all(), request.GET, _WORKSPACES_AFTER, by="name")
    own = page_in_address(platform_entries(), request.GET, _ENTRIES_AFTER, by="-id")
    state = health()
    context = {
        "section": "audit",
        "health": state,
        "findings": _named(state.findings),
        "span": span,
        "tenants": [_tenant(workspace, numbers.get(workspace.pk)) for workspace in workspaces.rows],
        "workspace_ways": ways_from(
            workspaces, request.GET, _WORKSPACES_AFTER, anchor="#workspaces-heading"
        ),
        "platform_numbers": numbers.get(PLATFORM_CHAIN),
        "entries": [described(entry) for entry in own.rows],
        "entry_ways": ways_from(own, request.GET, _ENTRIES_AFTER, anchor="#own-heading"),
        "address_faults": page_faults(workspaces, own),
    }
    return render(request, "audit/platform.html", context)


def _named(found: Sequence[LogFinding]) -> list[tuple[LogFinding, str]]:
    """What the last verification found, each with the name of its workspace."""
    named = Workspace.objects.filter(pk__in=[one.chain for one in found if one.chain])
    names = dict(named.values_list("pk", "name"))
    return [(one, names.get(one.chain, "") if one.chain else "") for one in found]


def _tenant(workspace: Workspace, numbers: PlatformRow | None) -> dict[str, Any]:
    """One workspace of the platform's page; each number leads to the entries that it counts."""
    log = reverse("audit:entries", args=[workspace.slug]) if workspace.is_active else ""
    # By what it is and not by its outcome: resources and prompts are refused, too.
    refused = {"action": Action.TOOL_CALL_REFUSED.value}
    filters = {
        "entries": {},
        "calls": {"outcome": ENDED},
        "failed": {"outcome": FAILED},
        "refused": refused,
    }
    figures = []
    for name, chosen in filters.items():
        wanted = {"range": "7d", **chosen}
        figures.append(
            {
                "count": getattr(numbers, name) if numbers else 0,
                "url": f"{log}?{urlencode(wanted)}" if log else "",
            }
        )
    return {"workspace": workspace, "numbers": numbers, "url": log, "figures": figures}
