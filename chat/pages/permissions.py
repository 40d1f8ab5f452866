"""The page where people see what they allowed once and for all, and take it back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from chat.services.permissions import given_permissions, permissions_of
from mcp_servers.registry.consent.permissions import forget_permission
from workspaces.lists.row_pages import page_faults, page_in_address, ways_from
from workspaces.pages.parts import workspace_of
from workspaces.roles import Permission

if TYPE_CHECKING:
    from workspaces.middleware import WorkspaceRequest


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def permissions(request: WorkspaceRequest, workspace_slug: str) -> HttpResponse:
    """Show them, newest first and page by page; a POST takes one back."""
    workspace, person = workspace_of(request, Permission.USE_CHAT), request.user
    if request.method == "POST":
        row = permissions_of(workspace, person).fetch(request.POST.get("permission", ""))
        forget_permission(permission=row, actor=request.actor)
        message = (
            _("Revoked. The workspace decides again whether the tool asks.")
            if row.asks_always
            else _("Revoked. The tool asks again.")
        )
        messages.success(request, message)
        return redirect("chat:permissions", workspace_slug=workspace_slug)
    page = page_in_address(permissions_of(workspace, person), request.GET, by="-created_at")
    context: dict[str, Any] = {
        "permissions": given_permissions(workspace, person, page.rows),
        "ways": ways_from(page, request.GET),
        "address_faults": page_faults(page),
        "remembers": workspace.remembers_permissions,
    }
    return render(request, "chat/permissions.html", context)
