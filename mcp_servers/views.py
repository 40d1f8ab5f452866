"""The servers page of a workspace."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import UUID

from allauth.account.decorators import login_required
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_POST

from mcp_servers import cards, services
from mcp_servers.forms import AddServerForm, CatalogueForm, add_domain_error
from mcp_servers.models import ApprovalOverride, McpServer, McpTool, ServerStatus
from mcp_servers.services import ConnectionReport
from workspaces.errors import DomainError, InvalidInput
from workspaces.roles import Permission, has_permission, require

if TYPE_CHECKING:
    from workspaces.middleware import WorkspaceRequest
    from workspaces.models import Workspace


@require_GET
@login_required
def servers(request: WorkspaceRequest, workspace_slug: str) -> HttpResponse:
    """All servers with their tools."""
    return _page(request)


@require_GET
@login_required
def server(request: WorkspaceRequest, workspace_slug: str, server_id: UUID) -> HttpResponse:
    """One server, for a page that was told to look again."""
    return _card(request, _server(request, server_id))


@require_POST
@login_required
def add(request: WorkspaceRequest, workspace_slug: str) -> HttpResponse:
    """Add a server by its address, and look at it."""
    form = AddServerForm(request.POST)
    return _add(request, form, opened="add") or _page(request, add_form=form, form_open="add")


@require_POST
@login_required
def add_from_catalogue(request: WorkspaceRequest, workspace_slug: str) -> HttpResponse:
    """Add a program of the catalogue, and look at it."""
    form = CatalogueForm(request.POST)
    return _add(request, form, opened="catalogue") or _page(
        request, catalogue_form=form, form_open="catalogue"
    )


@require_POST
@login_required
def try_out(request: WorkspaceRequest, workspace_slug: str) -> HttpResponse:
    """Look at a server that is not saved."""
    workspace = _workspace(request)
    form = AddServerForm(request.POST)
    try:
        if not form.is_valid():
            told = "; ".join(
                f"{form.fields[name].label or name}: {texts[0]}"
                for name, texts in form.errors.items()
            )
            raise InvalidInput(told)
        report = services.try_connection(
            workspace_id=workspace.pk, draft=form.draft(), actor=request.actor
        )
    except DomainError as error:
        require(request.actor, Permission.MANAGE_SERVERS, workspace_id=workspace.pk)
        report = ConnectionReport(ok=False, message=error.message, status=ServerStatus.ERROR)
    return render(request, "mcp_servers/_report.html", {"report": report})


@require_POST
@login_required
def test(request: WorkspaceRequest, workspace_slug: str, server_id: UUID) -> HttpResponse:
    """Connect anew and tell what came of it."""
    row = _server(request, server_id)
    return _card(request, row, report=services.test_connection(server=row, actor=request.actor))


@require_POST
@login_required
def refresh(request: WorkspaceRequest, workspace_slug: str, server_id: UUID) -> HttpResponse:
    """Read the tool list again."""
    row = _server(request, server_id)
    return _card(request, row, report=services.refresh_tools(server=row, actor=request.actor))


@require_POST
@login_required
def set_active(request: WorkspaceRequest, workspace_slug: str, server_id: UUID) -> HttpResponse:
    """Switch a server on or off."""
    row = _server(request, server_id)
    services.set_server_active(
        server=row, is_active=_switch(request, "is_active"), actor=request.actor
    )
    return _card(request, row)


@require_POST
@login_required
def delete(request: WorkspaceRequest, workspace_slug: str, server_id: UUID) -> HttpResponse:
    """Delete a server."""
    services.delete_server(server=_server(request, server_id), actor=request.actor)
    return redirect(_servers_url(request))


@require_POST
@login_required
def set_tool_enabled(
    request: WorkspaceRequest, workspace_slug: str, server_id: UUID, tool_id: UUID
) -> HttpResponse:
    """Switch a tool on or off."""
    tool = _tool(request, server_id, tool_id)
    services.set_tool_enabled(
        tool=tool, is_enabled=_switch(request, "is_enabled"), actor=request.actor
    )
    return _card(request, tool.server)


@require_POST
@login_required
def set_tool_approval(
    request: WorkspaceRequest, workspace_slug: str, server_id: UUID, tool_id: UUID
) -> HttpResponse:
    """Say whether a tool asks first."""
    tool = _tool(request, server_id, tool_id)
    given = request.POST.get("approval_override", "")
    if given not in ApprovalOverride.values:
        raise InvalidInput(fields={"approval_override": ["Choose one of the list."]})
    services.set_approval_override(tool=tool, override=ApprovalOverride(given), actor=request.actor)
    return _card(request, tool.server)


@require_POST
@login_required
def accept_tool(
    request: WorkspaceRequest, workspace_slug: str, server_id: UUID, tool_id: UUID
) -> HttpResponse:
    """Accept a tool's present definition."""
    tool = _tool(request, server_id, tool_id)
    services.accept_definition(
        tool=tool, actor=request.actor, seen_hash=request.POST.get("definition_hash") or None
    )
    return _card(request, tool.server)


def _add(
    request: WorkspaceRequest, form: AddServerForm | CatalogueForm, *, opened: str
) -> HttpResponse | None:
    """Save what the form says; None if the page has to show its faults."""
    workspace = _workspace(request)
    require(request.actor, Permission.MANAGE_SERVERS, workspace_id=workspace.pk)
    if not form.is_valid():
        return None
    try:
        added = services.add_server(
            workspace_id=workspace.pk, draft=form.draft(), actor=request.actor
        )
    except DomainError as error:
        add_domain_error(form, error)
        return None
    # Whatever comes of it shows on the card; the server stays, so that its settings can be corrected.
    services.test_connection(server=added, actor=request.actor)
    return redirect(f"{_servers_url(request)}#server-{added.pk}")


def _page(
    request: WorkspaceRequest,
    *,
    add_form: AddServerForm | None = None,
    catalogue_form: CatalogueForm | None = None,
    form_open: str = "",
) -> HttpResponse:
    workspace = _workspace(request)
    can_manage = _can_manage(request)
    rows = (
        McpServer.objects.for_workspace(workspace)
        .visible_to(request.user)
        .select_related("program")
    )
    context: dict[str, Any] = {
        "section": "servers",
        "servers_url": _servers_url(request),
        "socket_url": f"/ws/w/{workspace.slug}/",
        "can_manage": can_manage,
        "cards": cards.cards_of(rows, can_manage=can_manage),
        "add_form": None,
        "catalogue_form": None,
        "catalogue": [],
        "form_open": form_open,
    }
    if can_manage:
        context["add_form"] = add_form or AddServerForm()
        choosing = catalogue_form or CatalogueForm()
        if choosing.programs:
            context["catalogue_form"] = choosing
            context["catalogue"] = choosing.programs
    return render(request, "mcp_servers/servers.html", context, status=422 if form_open else 200)


def _card(
    request: WorkspaceRequest, row: McpServer, *, report: ConnectionReport | None = None
) -> HttpResponse:
    fresh = (
        McpServer.objects.for_workspace(_workspace(request)).select_related("program").fetch(row.pk)
    )
    can_manage = _can_manage(request)
    (card,) = cards.cards_of([fresh], can_manage=can_manage)
    context = {
        "servers_url": _servers_url(request),
        "can_manage": can_manage,
        "card": card,
        "report": report,
    }
    return render(request, "mcp_servers/_server.html", context)


def _server(request: WorkspaceRequest, server_id: UUID) -> McpServer:
    return (
        McpServer.objects.for_workspace(_workspace(request))
        .visible_to(request.user)
        .fetch(server_id)
    )


def _tool(request: WorkspaceRequest, server_id: UUID, tool_id: UUID) -> McpTool:
    tools = McpTool.objects.for_workspace(_workspace(request)).visible_to(request.user)
    return tools.filter(server=server_id).select_related("server").fetch(tool_id)


def _workspace(request: WorkspaceRequest) -> Workspace:
    if request.workspace is None:
        raise Http404
    return request.workspace


def _can_manage(request: WorkspaceRequest) -> bool:
    return has_permission(
        request.actor, Permission.MANAGE_SERVERS, workspace_id=_workspace(request).pk
    )


def _servers_url(request: WorkspaceRequest) -> str:
    return reverse("mcp_servers:servers", args=[_workspace(request).slug])


def _switch(request: WorkspaceRequest, name: str) -> bool:
    given = request.POST.get(name)
    if given not in ("on", "off"):
        raise InvalidInput(fields={name: ["Say on or off."]})
    return given == "on"
