"""Servers' icons, from our own origin."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

from allauth.account.decorators import login_required
from django.http import HttpResponse, JsonResponse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from mcp_servers.models import ServerIcon
from mcp_servers.pages.views.common import server_of
from mcp_servers.registry.icons import MIME_TYPE, icon_addresses
from workspaces.errors import NotFound
from workspaces.pages.parts import workspace_of

if TYPE_CHECKING:
    from workspaces.middleware import WorkspaceRequest

_CACHE = "private, max-age=31536000, immutable"


@require_safe
@login_required
def icons(request: WorkspaceRequest, workspace_slug: str) -> JsonResponse:
    """Where the icons are that this person sees, for a page that was open before one of them came."""
    return JsonResponse(icon_addresses(workspace_of(request), request.user))


@require_safe
@login_required
def icon(request: WorkspaceRequest, workspace_slug: str, server_id: UUID) -> HttpResponse:
    """The picture of a server; its address changes with it."""
    server = server_of(request, server_id)
    rows = ServerIcon.objects.for_workspace(server.workspace_id).visible_to(request.user)
    row = rows.filter(server=server).exclude(digest="").first()
    if row is None:
        raise NotFound(_("This server has no icon."))
    return HttpResponse(bytes(row.content), MIME_TYPE, headers={"Cache-Control": _CACHE})
