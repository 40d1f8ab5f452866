"""What stands above every page of the log: its pages, the files of what is shown, and saved views."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.urls import NoReverseMatch, reverse
from django.utils.translation import gettext, gettext_noop
from django.utils.translation import gettext as _

from audit import exports
from audit.models import SavedView
from audit.reviews.saved_views import views_for
from audit.sealing.rotation import find_missing_key
from workspaces.pages.parts import workspace_of
from workspaces.restore_detection import is_unconfirmed
from workspaces.roles import Permission, has_permission

if TYPE_CHECKING:
    from audit.reports.facts import LogState
    from workspaces.middleware import WorkspaceRequest

_TABS = (
    ("overview", gettext_noop("Overview"), "audit:overview", Permission.VIEW_AUDIT),
    ("log", gettext_noop("Log"), "audit:entries", Permission.VIEW_AUDIT),
    ("reports", gettext_noop("Reports"), "audit:reports", Permission.VIEW_AUDIT),
    ("reviews", gettext_noop("Reviews"), "audit:reviews", Permission.VIEW_AUDIT),
    ("schedules", gettext_noop("Schedules"), "audit:schedules", Permission.EXPORT_AUDIT),
    ("alerts", gettext_noop("Alerts"), "audit:alerts", Permission.VIEW_AUDIT),
    ("streams", gettext_noop("Streams"), "audit:streams", Permission.VIEW_AUDIT),
    ("settings", gettext_noop("Settings"), "audit:settings", Permission.VIEW_AUDIT),
)


def header_of(
    request: WorkspaceRequest, query: str = "", *, log_state: LogState | None = None
) -> dict[str, Any]:
    """Give the pages of the log that this person may open, and the files of what the page shows.

    Args:
        log_state: how the log is, if the page has looked.
    """
    workspace = workspace_of(request)
    tabs = []
    for name, label, route, permission in _TABS:
        if has_permission(request.actor, permission, workspace_id=workspace.pk):
            try:
                tabs.append((name, gettext(label), reverse(route, args=[workspace.slug])))
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
        "is_log_unsigned": log_state.health.is_key_missing
        if log_state
        else find_missing_key() is not None,
        "is_restored": is_unconfirmed(),
        "can_export": can_export,
        "export_formats": _formats(workspace.slug, query) if can_export else [],
        "proof_files": _proof_files(workspace.slug) if can_export else [],
    }


def saved_views(request: WorkspaceRequest, page: SavedView.Page) -> list[SavedView]:
    """Give the views of a page that are one's own or shared."""
    rows = views_for(request.actor, workspace_of(request).pk)
    return list(rows.filter(page=page))


def schedule_url(request: WorkspaceRequest, query: str) -> str:
    """Give the form that sends what a page shows again and again; nothing for those who may not export."""
    workspace = workspace_of(request)
    if not has_permission(request.actor, Permission.EXPORT_AUDIT, workspace_id=workspace.pk):
        return ""
    return f"{reverse('audit:schedules', args=[workspace.slug])}?{query}#schedule-form"


def _formats(slug: str, query: str) -> list[dict[str, str]]:
    found = []
    for extension, one in exports.FORMATS.items():
        url = reverse("audit:export", args=[slug, extension])
        found.append({"label": gettext(one.label), "url": f"{url}?{query}" if query else url})
    return found


def _proof_files(slug: str) -> list[dict[str, str]]:
    files = ((_("Verifiable export"), "proof-export"), (_("Verifier program"), "verifier"))
    return [
        {"label": label, "url": reverse(f"audit:{route}", args=[slug])} for label, route in files
    ]
