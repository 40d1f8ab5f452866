"""Accounts at servers: a person's own, and for administrators everybody's at one server."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

from allauth.account.decorators import login_required
from django.contrib import messages
from django.db.models import Q
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST

from mcp_servers.models import OAuthGrant
from mcp_servers.oauth.services import revoke_grant
from mcp_servers.pages import cards
from mcp_servers.pages.views.common import can_manage, server_of, servers_url
from mcp_servers.registry.rights import require_to_manage
from workspaces.pages.parts import workspace_of

if TYPE_CHECKING:
    from workspaces.middleware import WorkspaceRequest


@require_GET
@login_required
def connections(request: WorkspaceRequest, workspace_slug: str) -> HttpResponse:
    """The reader's own accounts, and where they could sign in."""
    accounts = cards.accounts_of(
        workspace=workspace_of(request), user=request.user, actor=request.actor
    )
    context = {
        "section": "servers",
        "servers_url": servers_url(request),
        "accounts": [one for one in accounts if one.state != "missing"],
        "missing": [one for one in accounts if one.state == "missing"],
    }
    return render(request, "mcp_servers/connections.html", context)


@require_POST
@login_required
def revoke(request: WorkspaceRequest, workspace_slug: str, grant_id: UUID) -> HttpResponse:
    """Disconnect an account: one's own, or as an administrator anybody's at the workspace's servers."""
    workspace = workspace_of(request)
    rows = OAuthGrant.objects.for_workspace(workspace)
    own = Q(user=request.user)
    rows = rows.filter(own | Q(server__owner__isnull=True) if can_manage(request) else own)
    grant = rows.select_related("server__workspace", "client", "user").fetch(grant_id)
    server = grant.server
    revoke_grant(grant=grant, actor=request.actor)
    messages.success(request, _("Disconnected from %(name)s.") % {"name": server.name})
    if request.POST.get("back") == "people":
        return redirect(reverse("mcp_servers:server_people", args=[workspace.slug, server.pk]))
    return redirect(reverse("mcp_servers:connections", args=[workspace.slug]))


@require_GET
@login_required
def people(request: WorkspaceRequest, workspace_slug: str, server_id: UUID) -> HttpResponse:
    """Who is connected to a server, for whoever manages it."""
    row = server_of(request, server_id)
    require_to_manage(request.actor, row)
    context = {
        "section": "servers",
        "servers_url": servers_url(request),
        "server": row,
        "accounts": cards.people_of(row),
    }
    return render(request, "mcp_servers/people.html", context)
