"""The page where people see what they allowed once and for all, and take it back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from audit.views.parts import workspace_of
from chat.services.permissions import given_permissions
from mcp_servers.models import ToolPermission
from mcp_servers.registry.consent.permissions import forget_permission
from workspaces.roles import Permission, require

if TYPE_CHECKING:
    from workspaces.middleware import WorkspaceRequest


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def permissions(request: WorkspaceRequest, workspace_slug: str) -> HttpResponse:
    """Show them; a POST takes one back."""
    workspace, person = workspace_of(request), request.user
    require(request.actor, Permission.USE_CHAT, workspace_id=workspace.pk)
    if request.method == "POST":
        mine = ToolPermission.objects.for_workspace(workspace).visible_to(person)
        row = mine.select_related("tool__server").fetch(request.POST.get("permission", ""))
        forget_permission(permission=row, actor=request.actor)
        messages.success(request, _("Revoked. The tool asks again."))
        return redirect("chat:permissions", workspace_slug=workspace_slug)
    context: dict[str, Any] = {
        "permissions": given_permissions(workspace, person),
        "remembers": workspace.remembers_permissions,
    }
    return render(request, "chat/permissions.html", context)
