"""Pages with which servers are added: by an address, as a program of the platform, or as one's own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from allauth.account.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from mcp_servers.models import ServerStatus
from mcp_servers.models.hosting import all_hosts
from mcp_servers.pages.forms import (
    AddServerForm,
    PersonalServerForm,
    ProgramForm,
    add_domain_error,
    buds,
)
from mcp_servers.pages.views.common import servers_url
from mcp_servers.registry import services
from mcp_servers.registry.rights import require_to_own
from mcp_servers.registry.services import ConnectionReport
from workspaces.errors import DomainError, InvalidInput, PermissionDenied
from workspaces.pages.parts import workspace_of
from workspaces.roles import Permission, require

if TYPE_CHECKING:
    from workspaces.middleware import WorkspaceRequest
    from workspaces.models import Workspace

_PAGES: Final = ["GET", "HEAD", "POST"]
_Form: TypeAlias = AddServerForm | ProgramForm | PersonalServerForm
_FORMS: Final[Mapping[str, type[_Form]]] = {
    "program": ProgramForm,
    "personal": PersonalServerForm,
}


@require_http_methods(_PAGES)
@login_required
def add(request: WorkspaceRequest, workspace_slug: str) -> HttpResponse:
    """Add a server by its address, and have it looked at."""
    workspace = workspace_of(request, Permission.MANAGE_SERVERS)
    form = AddServerForm(request.POST or None, workspace=workspace)
    return _added(request, form) or _page(request, "address", form)


@require_http_methods(_PAGES)
@login_required
def add_from_catalogue(request: WorkspaceRequest, workspace_slug: str) -> HttpResponse:
    """Choose a program of the platform, add it, and have it looked at."""
    workspace = workspace_of(request, Permission.MANAGE_SERVERS)
    form = ProgramForm(
        request.POST or None, workspace=workspace, chosen=request.GET.get("program", "")
    )
    return _added(request, form) or _page(request, "program", form, programs=form.programs)


@require_http_methods(_PAGES)
@login_required
def add_personal(request: WorkspaceRequest, workspace_slug: str) -> HttpResponse:
    """Add a server of the person's own, and have it looked at."""
    workspace = workspace_of(request)
    require_to_own(request.actor, workspace)
    form = PersonalServerForm(request.POST or None, workspace=workspace)
    return _added(request, form) or _page(request, "personal", form)


@require_GET
@login_required
def buds_to_choose(request: WorkspaceRequest, workspace_slug: str) -> HttpResponse:
    """The buds that a server can be given to, searched by name."""
    workspace = workspace_of(request, Permission.MANAGE_SERVERS)
    shown = buds.buds_to_choose(
        workspace,
        buds.buds_by_name(workspace),
        ticked=request.GET.getlist("bud_ids"),
        query=request.GET.get("bud_q", ""),
    )
    return render(request, "mcp_servers/_buds_to_choose.html", shown)


@require_POST
@login_required
def try_out(request: WorkspaceRequest, workspace_slug: str) -> HttpResponse:
    """Look at a server that is not saved: at an address, a program of the platform, or one of the person's own."""
    workspace = workspace_of(request)
    form = _FORMS.get(request.GET.get("as", ""), AddServerForm)(request.POST, workspace=workspace)
    is_tried = True
    try:
        # Nobody else hears what would be wrong with the form.
        if isinstance(form, PersonalServerForm):
            require_to_own(request.actor, workspace)
        else:
            require(request.actor, Permission.MANAGE_SERVERS, workspace_id=workspace.pk)
        if not form.is_valid():
            reasons = "; ".join(
                f"{form.fields[name].label or name}: {texts[0]}"
                for name, texts in form.errors.items()
            )
            raise InvalidInput(reasons)
        report = _try(request, workspace, form)
    except PermissionDenied:
        raise
    except DomainError as error:
        report = ConnectionReport(ok=False, message=error.message, status=ServerStatus.ERROR)
        is_tried = False
    return render(request, "mcp_servers/_report.html", {"report": report, "is_tried": is_tried})


def _try(request: WorkspaceRequest, workspace: Workspace, form: _Form) -> ConnectionReport:
    if isinstance(form, PersonalServerForm):
        return services.try_personal_connection(
            workspace=workspace, draft=form.draft(), actor=request.actor
        )
    return services.try_connection(
        workspace_id=workspace.pk, draft=form.draft(), actor=request.actor
    )


def _added(request: WorkspaceRequest, form: _Form) -> HttpResponse | None:
    """Save what the form says; None if the page has to be shown."""
    if request.method != "POST" or not form.is_valid():
        return None
    workspace = workspace_of(request)
    try:
        if isinstance(form, PersonalServerForm):
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
    services.begin_first_look(server=added, actor=request.actor)
    return redirect(f"{servers_url(request)}#server-{added.pk}")


def _page(
    request: WorkspaceRequest,
    tab: str,
    form: _Form,
    **context: Any,
) -> HttpResponse:
    context |= {
        "section": "servers",
        "servers_url": servers_url(request),
        "tab": tab,
        "form": form,
        "hosts": all_hosts(),
    }
    status = 422 if form.is_bound and form.errors else 200
    return render(request, "mcp_servers/add.html", context, status=status)
