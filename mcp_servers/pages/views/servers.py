"""The servers page of a workspace: the platform's, the workspace's, and the person's own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import UUID

from allauth.account.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_POST

from mcp_servers.client.values import Protocol
from mcp_servers.models import GlobalServer, McpServer, ServerStatus
from mcp_servers.models.hosting import all_hosts
from mcp_servers.pages import cards
from mcp_servers.pages.forms import (
    AddServerForm,
    PersonalServerForm,
    ProgramForm,
    add_domain_error,
)
from mcp_servers.pages.views.common import (
    can_manage,
    card,
    server_of,
    servers_url,
    switch,
    workspace_of,
)
from mcp_servers.registry import services
from mcp_servers.registry.rights import require_to_own
from mcp_servers.registry.scopes import platform
from mcp_servers.registry.services import ConnectionReport
from mcp_servers.registry.services.rules import RULES
from workspaces.errors import DomainError, InvalidInput, NotFound
from workspaces.roles import Permission, has_permission, require

if TYPE_CHECKING:
    from workspaces.middleware import WorkspaceRequest


@require_GET
@login_required
def servers(request: WorkspaceRequest, workspace_slug: str) -> HttpResponse:
    """All servers with their tools."""
    return _page(request)


@require_GET
@login_required
def server(request: WorkspaceRequest, workspace_slug: str, server_id: UUID) -> HttpResponse:
    """One server, for a page that was told to look again."""
    return card(request, server_of(request, server_id))


@require_POST
@login_required
def add(request: WorkspaceRequest, workspace_slug: str) -> HttpResponse:
    """Add a server by its address, and look at it."""
    form = AddServerForm(request.POST, workspace_id=workspace_of(request).pk)
    return _add(request, form) or _page(request, forms={"add_form": form}, form_open="add")


@require_POST
@login_required
def add_from_catalogue(request: WorkspaceRequest, workspace_slug: str) -> HttpResponse:
    """Add a program of the catalogue, and look at it."""
    form = ProgramForm(request.POST, workspace_id=workspace_of(request).pk)
    forms = {"program_form": form}
    return _add(request, form) or _page(request, forms=forms, form_open="catalogue")


@require_POST
@login_required
def add_personal(request: WorkspaceRequest, workspace_slug: str) -> HttpResponse:
    """Add a server of the person's own, and look at it."""
    form = PersonalServerForm(request.POST, workspace_id=workspace_of(request).pk)
    forms = {"personal_form": form}
    return _add(request, form) or _page(request, forms=forms, form_open="personal")


@require_POST
@login_required
def try_out(request: WorkspaceRequest, workspace_slug: str) -> HttpResponse:
    """Look at a server that is not saved."""
    workspace = workspace_of(request)
    form = AddServerForm(request.POST, workspace_id=workspace_of(request).pk)
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
    row = server_of(request, server_id)
    return card(request, row, report=services.test_connection(server=row, actor=request.actor))


@require_POST
@login_required
def refresh(request: WorkspaceRequest, workspace_slug: str, server_id: UUID) -> HttpResponse:
    """Read again what it offers."""
    row = server_of(request, server_id)
    return card(request, row, report=services.refresh_tools(server=row, actor=request.actor))


@require_POST
@login_required
def connect(request: WorkspaceRequest, workspace_slug: str, server_id: UUID) -> HttpResponse:
    """Open a connection now."""
    row = server_of(request, server_id)
    return card(request, row, report=services.connect_server(server=row, actor=request.actor))


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
    """Switch a server on or off."""
    row = server_of(request, server_id)
    services.set_server_active(
        server=row, is_active=switch(request, "is_active"), actor=request.actor
    )
    return card(request, row)


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


@require_POST
@login_required
def set_rule(request: WorkspaceRequest, workspace_slug: str) -> HttpResponse:
    """Switch a rule of the workspace on or off."""
    services.set_workspace_rule(
        workspace=workspace_of(request),
        rule=request.POST.get("rule", ""),
        is_on=switch(request, "is_on"),
        actor=request.actor,
    )
    return redirect(f"{servers_url(request)}#rules")


def _add(
    request: WorkspaceRequest, form: AddServerForm | ProgramForm | PersonalServerForm
) -> HttpResponse | None:
    """Save what the form says; None if the page has to show its faults."""
    workspace = workspace_of(request)
    is_personal = isinstance(form, PersonalServerForm)
    if is_personal:
        require_to_own(request.actor, workspace)
    else:
        require(request.actor, Permission.MANAGE_SERVERS, workspace_id=workspace.pk)
    if not form.is_valid():
        return None
    try:
        if is_personal:
            added = services.add_personal_server(
                workspace=workspace, draft=form.draft(), actor=request.actor
            )
        else:
            added = services.add_server(
                workspace_id=workspace.pk, draft=form.draft(), actor=request.actor
            )
    except DomainError as error:
        add_domain_error(form, error)
        return None
    # Whatever comes of it shows on the card; the server stays, so that its settings can be corrected.
    services.test_connection(server=added, actor=request.actor)
    return redirect(f"{servers_url(request)}#server-{added.pk}")


def _page(
    request: WorkspaceRequest, *, forms: dict[str, Any] | None = None, form_open: str = ""
) -> HttpResponse:
    workspace = workspace_of(request)
    is_manager = can_manage(request)
    rows = (
        McpServer.objects.for_workspace(workspace)
        .visible_to(request.user)
        .select_related("program", "global_server", "workspace")
    )
    shown = cards.cards_of(rows, actor=request.actor)
    context: dict[str, Any] = {
        "section": "servers",
        "servers_url": servers_url(request),
        "socket_url": f"/ws/w/{workspace.slug}/",
        "can_manage": is_manager,
        "cards": [one for one in shown if not one.is_personal],
        "own_cards": [one for one in shown if one.is_personal],
        "catalogue_url": reverse("mcp_servers:catalogue", args=[workspace.slug]),
        "allows_personal": workspace.allows_personal_servers,
        "offers": platform.offers_for(workspace.pk) if is_manager else [],
        "rules": [
            {"name": name, "title": title, "help": text, "is_on": getattr(workspace, name)}
            for name, (title, text) in RULES.items()
        ]
        if has_permission(request.actor, Permission.MANAGE_WORKSPACE, workspace_id=workspace.pk)
        else [],
        "hosts": all_hosts(),
        "form_open": form_open,
        "add_form": None,
        "program_form": None,
        "personal_form": PersonalServerForm(workspace_id=workspace.pk)
        if workspace.allows_personal_servers
        else None,
        "programs": [],
    }
    if is_manager:
        choosing = (forms or {}).get("program_form") or ProgramForm(workspace_id=workspace.pk)
        context["add_form"] = AddServerForm(workspace_id=workspace.pk)
        if choosing.programs:
            context["program_form"] = choosing
            context["programs"] = choosing.programs
    context |= forms or {}
    return render(request, "mcp_servers/servers.html", context, status=422 if form_open else 200)
