"""What stands above every page of the log: its pages, the files of what is shown, and saved views."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db.models import Q
from django.urls import NoReverseMatch, reverse

from audit import exports
from audit.models import SavedView
from audit.sealing.rotation import find_missing_key
from audit.views.parts import workspace_of
from workspaces.roles import Permission, has_permission

if TYPE_CHECKING:
    from workspaces.middleware import WorkspaceRequest

_TABS = (
    ("overview", "Overview", "audit:overview", Permission.VIEW_AUDIT),
    ("log", "Log", "audit:entries", Permission.VIEW_AUDIT),
    ("reports", "Reports", "audit:reports", Permission.VIEW_AUDIT),
    ("reviews", "Reviews", "audit:reviews", Permission.VIEW_AUDIT),
    ("schedules", "Schedules", "audit:schedules", Permission.EXPORT_AUDIT),
    ("alerts", "Alerts", "audit:alerts", Permission.VIEW_AUDIT),
    ("streams", "Streams", "audit:streams", Permission.VIEW_AUDIT),
    ("settings", "Settings", "audit:settings", Permission.VIEW_AUDIT),
)


def header_of(request: WorkspaceRequest, query: str = "") -> dict[str, Any]:
    """Give the pages of the log that this person may open, and the files of what the page shows."""
    workspace = workspace_of(request)
    tabs = []
    for name, label, route, permission in _TABS:
        if has_permission(request.actor, permission, workspace_id=workspace.pk):
            try:
                tabs.append((name, label, reverse(route, args=[workspace.slug])))
            except NoReverseMatch:
                continue
    can_export = has_permission(request.actor, Permission.EXPORT_AUDIT, workspace_id=workspace.pk)
    looks_after_people = has_permission(
        request.actor, Permission.MANAGE_MEMBERS, workspace_id=workspace.pk
    )
    return {
        "tabs": tabs,
        "people_url": reverse("workspaces:members", args=[workspace.slug])
        if looks_after_people
        else "",
        "is_log_unsigned": find_missing_key() is not None,
        "can_export": can_export,
        "export_formats": _formats(workspace.slug, query) if can_export else [],
    }


def saved_views(request: WorkspaceRequest, page: SavedView.Page) -> list[SavedView]:
    """Give the views of a page that are one's own or shared."""
    workspace = workspace_of(request)
    rows = SavedView.objects.for_workspace(workspace).filter(page=page)
    mine = Q(owner_id=request.actor.user_id) | Q(is_shared=True)
    return list(rows.filter(mine).select_related("owner")[:100])


def _formats(slug: str, query: str) -> list[dict[str, str]]:
    found = []
    for extension, one in exports.FORMATS.items():
        url = reverse("audit:export", args=[slug, extension])
        found.append({"label": one.label, "url": f"{url}?{query}" if query else url})
    for label, route in (
        ("Verifiable export", "audit:proof-export"),
        ("Verifier program", "audit:verifier"),
    ):
        try:
            found.append({"label": label, "url": reverse(route, args=[slug])})
        except NoReverseMatch:
            continue
    return found
