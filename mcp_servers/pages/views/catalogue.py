"""The catalogue page: well-known servers, each one click away."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import UUID

from allauth.account.decorators import login_required
from django.contrib import messages
from django.core.paginator import Paginator
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST

from mcp_servers.models.hosting import all_hosts
from mcp_servers.pages.forms import read_where
from mcp_servers.pages.views.common import can_manage, servers_url, switch
from mcp_servers.registry.bud_choices import EVERYWHERE, buds_of
from mcp_servers.registry.catalogue import services
from mcp_servers.registry.catalogue.listing import list_entries
from mcp_servers.registry.catalogue.values import AUTH_LABELS
from workspaces.errors import DomainError, NotFound, PermissionDenied
from workspaces.pages.parts import workspace_of

if TYPE_CHECKING:
    from workspaces.middleware import WorkspaceRequest

ENTRIES_ON_A_PAGE = 60
_MAX_SEARCH = 100


@require_GET
@login_required
def catalogue(request: WorkspaceRequest, workspace_slug: str) -> HttpResponse:
    """What can be installed here, searched and narrowed by category."""
    return _page(request)


@require_POST
@login_required
def install(
    request: WorkspaceRequest, workspace_slug: str, source: str, entry_slug: str
) -> HttpResponse:
    """Install an entry, and go on to its sign-in or to its server."""
    workspace, for_workspace = workspace_of(request), request.POST.get("for") == "workspace"
    try:
        where = read_where(request.POST, workspace) if for_workspace else EVERYWHERE
        installing = services.install_entry(
            workspace=workspace,
            source=source,
            slug=entry_slug,
            actor=request.actor,
            for_workspace=for_workspace,
            secret=request.POST.get("secret", "").strip(),
            where=where,
        )
    except (PermissionDenied, NotFound):
        raise
    except DomainError as error:
        return _page(request, error=error.message, status=error.status)
    return redirect(installing.url)


@require_POST
@login_required
def uninstall(
    request: WorkspaceRequest, workspace_slug: str, source: str, entry_slug: str, server_id: UUID
) -> HttpResponse:
    """Remove a server that came from an entry."""
    services.uninstall_entry(
        workspace=workspace_of(request),
        source=source,
        slug=entry_slug,
        server_id=server_id,
        actor=request.actor,
    )
    messages.success(request, _("Uninstalled. What it did stays in the audit log."))
    return redirect(_home_as_filtered(request))


@require_POST
@login_required
def set_audience(
    request: WorkspaceRequest, workspace_slug: str, source: str, entry_slug: str
) -> HttpResponse:
    """Say whether members may install an entry for themselves."""
    services.set_audience(
        workspace=workspace_of(request),
        source=source,
        slug=entry_slug,
        is_for_everybody=switch(request, "is_for_everybody"),
        actor=request.actor,
    )
    return redirect(f"{_home_as_filtered(request)}#{source}-{entry_slug}")


def _page(request: WorkspaceRequest, *, error: str = "", status: int = 200) -> HttpResponse:
    workspace = workspace_of(request)
    search = request.GET.get("q", "")[:_MAX_SEARCH]
    category = request.GET.get("category", "")
    listing = list_entries(
        workspace=workspace, actor=request.actor, search=search, category=category
    )
    page = Paginator(listing.entries, ENTRIES_ON_A_PAGE).get_page(request.GET.get("page"))
    context: dict[str, Any] = {
        "section": "servers",
        "page": page,
        "servers_url": servers_url(request),
        "catalogue_url": _home(request),
        "listing": listing,
        "cards": [(entry, gettext(AUTH_LABELS[entry.auth])) for entry in page.object_list],
        "query": search,
        "category": category,
        "can_manage": can_manage(request),
        "has_buds": can_manage(request) and bool(buds_of(workspace.pk)),
        "allows_personal": workspace.allows_personal_servers,
        "hosts": [host for host in all_hosts() if not host.is_set_up(workspace.pk)],
        "error": error,
    }
    return render(request, "mcp_servers/catalogue.html", context, status=status)


def _home(request: WorkspaceRequest) -> str:
    return reverse("mcp_servers:catalogue", args=[workspace_of(request).slug])


def _home_as_filtered(request: WorkspaceRequest) -> str:
    """The catalogue as the person has searched and narrowed it."""
    query = request.GET.urlencode()
    return f"{_home(request)}?{query}" if query else _home(request)
