"""The servers page of a workspace: the platform's, the workspace's, and the person's own."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING
from uuid import UUID

from allauth.account.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_POST

from mcp_servers.client.values import Protocol
from mcp_servers.models import GlobalServer
from mcp_servers.models.hosting import all_hosts
from mcp_servers.pages import cards
from mcp_servers.pages.views.common import (
    can_manage,
    card,
    card_of,
    server_of,
    servers_url,
    switch,
)
from mcp_servers.registry import services
from mcp_servers.registry.scopes import platform
from workspaces.errors import NotFound
from workspaces.pages.parts import workspace_of
from workspaces.roles import Permission, has_permission

if TYPE_CHECKING:
    from workspaces.middleware import WorkspaceRequest


@require_GET
@login_required
def servers(request: WorkspaceRequest, workspace_slug: str) -> HttpResponse:
    """The servers, a page at a time; the next page alone for a list that goes on."""
    workspace = workspace_of(request)
    wanted = cards.ServerSearch.read(request.GET)
    list_of = partial(cards.list_servers, workspace, user=request.user, actor=request.actor)
    if request.headers.get("HX-Request") and wanted.after:
        context = {"servers_url": servers_url(request), "listed": list_of(wanted=wanted)}
        return render(request, "mcp_servers/_server_blocks.html", context)
    is_manager = can_manage(request)
    context = {
        "section": "servers",
        "servers_url": servers_url(request),
        "can_manage": is_manager,
        "listed": list_of(wanted=replace(wanted, is_own=False)),
        "own": list_of(wanted=cards.ServerSearch(is_own=True)),
        "origins": cards.ServerOrigin.choices,
        "catalogue_url": reverse("mcp_servers:catalogue", args=[workspace.slug]),
        "allows_personal": workspace.allows_personal_servers,
        "offers": platform.offers_for(workspace.pk) if is_manager else [],
        "sets_rules": has_permission(
            request.actor, Permission.MANAGE_WORKSPACE, workspace_id=workspace.pk
        ),
        "hosts": all_hosts(),
    }
    return render(request, "mcp_servers/servers.html", context)


@require_GET
@login_required
def server(request: WorkspaceRequest, workspace_slug: str, server_id: UUID) -> HttpResponse:
    """One server, for a page that was told to look again; as a row, or with all it has."""
    return card_of(request, server_of(request, server_id), as_row=request.GET.get("as") == "row")


@require_POST
@login_required
def test(request: WorkspaceRequest, workspace_slug: str, server_id: UUID) -> HttpResponse:
    """Connect anew and tell what came of it."""
    row = server_of(request, server_id)
    return card(request, row, report=services.test_connection(server=row, actor=request.actor))


@require_POST
@login_required
def refresh(request: WorkspaceRequest, workspace_slug: str, server_id: UUID) -> HttpResponse:
    """Read what it offers, over a connection that is opened now if none is."""
    row = server_of(request, server_id)
    return card(request, row, report=services.refresh_tools(server=row, actor=request.actor))


@require_POST
@login_required
def disconnect(request: WorkspaceRequest, workspace_slug: str, server_id: UUID) -> HttpResponse:
    """Close its connections."""
    row = server_of(request, server_id)
    services.disconnect_server(server=row, actor=request.actor)
    return card(request, row)


@require_POST
@login_required
def use_sessions(request: WorkspaceRequest, workspace_slug: str, server_id: UUID) -> HttpResponse:
    """Speak the older revisions with a server that wants to ask questions while it works."""
    row = server_of(request, server_id)
    draft = services.ServerDraft(protocol=Protocol.LEGACY)
    row = services.update_server(server=row, draft=draft, actor=request.actor)
    return card(request, row, report=services.test_connection(server=row, actor=request.actor))


@require_POST
@login_required
def set_active(request: WorkspaceRequest, workspace_slug: str, server_id: UUID) -> HttpResponse:
    """Switch a server on or off. One that nobody has looked at, as after an import, is tested as a new one is."""
    row = services.set_server_active(
        server=server_of(request, server_id),
        is_active=switch(request, "is_active"),
        actor=request.actor,
    )
    if not row.is_active or row.state.tools_listed_at is not None:
        return card(request, row)
    return card(request, row, report=services.test_connection(server=row, actor=request.actor))


@require_POST
@login_required
def delete(request: WorkspaceRequest, workspace_slug: str, server_id: UUID) -> HttpResponse:
    """Delete a server."""
    services.delete_server(server=server_of(request, server_id), actor=request.actor)
    return redirect(servers_url(request))


@require_POST
@login_required
def set_global(request: WorkspaceRequest, workspace_slug: str, global_id: UUID) -> HttpResponse:
    """Switch a server of the platform on or off for this workspace."""
    workspace = workspace_of(request)
    known = GlobalServer.objects.filter(pk=global_id).first()
    if known is None:
        raise NotFound
    change = platform.switch_on if switch(request, "is_on") else platform.switch_off
    change(workspace_id=workspace.pk, global_server=known, actor=request.actor)
    return redirect(servers_url(request))
