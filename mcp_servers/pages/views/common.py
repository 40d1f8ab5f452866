"""What the views on servers share: the way to rows, and the card of one server."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _

from mcp_servers.models import McpServer, McpTool
from mcp_servers.pages import cards
from mcp_servers.registry.discovery import listed_for
from mcp_servers.registry.services import ConnectionReport
from workspaces.errors import InvalidInput
from workspaces.pages.parts import workspace_of
from workspaces.roles import Permission, has_permission

if TYPE_CHECKING:
    from workspaces.middleware import WorkspaceRequest


def server_of(request: WorkspaceRequest, server_id: UUID) -> McpServer:
    """The server of the address, if the person may see it."""
    return (
        McpServer.objects.for_workspace(workspace_of(request))
        .visible_to(request.user)
        .select_related("program", "global_server", "workspace")
        .fetch(server_id)
    )


def tool_of(request: WorkspaceRequest, server_id: UUID, tool_id: UUID) -> McpTool:
    """The tool of the address, if the person may see it."""
    tools = McpTool.objects.for_workspace(workspace_of(request)).visible_to(request.user)
    return (
        tools.filter(listed_for(request.actor, workspace_of(request).pk), server=server_id)
        .select_related("server__workspace", "server__program", "server__global_server")
        .fetch(tool_id)
    )


def can_manage(request: WorkspaceRequest) -> bool:
    """Whether the person looks after the workspace's servers."""
    return has_permission(
        request.actor, Permission.MANAGE_SERVERS, workspace_id=workspace_of(request).pk
    )


def servers_url(request: WorkspaceRequest) -> str:
    """The list of servers."""
    return reverse("mcp_servers:servers", args=[workspace_of(request).slug])


def switch(request: WorkspaceRequest, name: str) -> bool:
    """The value of a switch in the form.

    Raises:
        InvalidInput: it is neither on nor off.
    """
    given = request.POST.get(name)
    if given not in ("on", "off"):
        raise InvalidInput(fields={name: [_("Use on or off.")]})
    return given == "on"


def card(
    request: WorkspaceRequest, row: McpServer, *, report: ConnectionReport | None = None
) -> HttpResponse:
    """One server as it is now, for the page to put in the place of what it shows."""
    return card_of(request, server_of(request, row.pk), report=report)


def card_of(
    request: WorkspaceRequest,
    fresh: McpServer,
    *,
    report: ConnectionReport | None = None,
    as_row: bool = False,
) -> HttpResponse:
    """The same of one that has just been read."""
    (shown,) = cards.cards_of([fresh], actor=request.actor, as_rows=as_row)
    context = {"servers_url": servers_url(request), "card": shown, "report": report}
    return render(request, "mcp_servers/_server.html", context)
