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
from mcp_servers.pages.forms import UseFields
from mcp_servers.pages.views.common import can_manage, servers_url, switch, workspace_of
from mcp_servers.registry.bud_choices import buds_of
from mcp_servers.registry.catalogue import services
from mcp_servers.registry.catalogue.listing import list_entries
from mcp_servers.registry.catalogue.values import AUTH_LABELS
from workspaces.errors import DomainError, InvalidInput, NotFound, PermissionDenied

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
    try:
        installing = services.install_entry(
            workspace=workspace_of(request),
            source=source,
            slug=entry_slug,
            actor=request.actor,
            for_workspace=request.POST.get("for") == "workspace",
            secret=request.POST.get("secret", "").strip(),
            **_use_of(request, for_workspace=request.POST.get("for") == "workspace"),
        )
    except (PermissionDenied, NotFound):
        raise
    except DomainError as error:
        return _page(request, error=_words_of(error), status=error.status)
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
    return redirect(_home(request))


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
    return redirect(f"{_home(request)}#{source}-{entry_slug}")


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


def _use_of(request: WorkspaceRequest, *, for_workspace: bool) -> dict[str, Any]:
    """Where the page says that the server shall be used; without a word about it, everywhere."""
    if not for_workspace:
        return {}
    use = UseFields(request.POST, workspace=workspace_of(request))
    if not use.is_valid():
        raise InvalidInput(" ".join(str(text) for texts in use.errors.values() for text in texts))
    return use.use_values()


def _home(request: WorkspaceRequest) -> str:
    return reverse("mcp_servers:catalogue", args=[workspace_of(request).slug])


def _words_of(error: DomainError) -> str:
    if isinstance(error, InvalidInput) and error.fields:
        return " ".join(text for texts in error.fields.values() for text in texts)
    return error.message
