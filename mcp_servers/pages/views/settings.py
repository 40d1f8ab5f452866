"""One server's settings."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

from allauth.account.decorators import login_required
from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from mcp_servers.models.hosting import host_of
from mcp_servers.oauth.identity import callback_urls
from mcp_servers.pages.forms import SettingsForm, add_domain_error
from mcp_servers.pages.views.common import server_of, servers_url
from mcp_servers.registry import services
from mcp_servers.registry.rights import require_to_manage
from workspaces.errors import DomainError
from workspaces.pages.seen_values import hold, saves_one_at_a_time

if TYPE_CHECKING:
    from workspaces.middleware import WorkspaceRequest


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
@saves_one_at_a_time
def settings(request: WorkspaceRequest, workspace_slug: str, server_id: UUID) -> HttpResponse:
    """Show the settings of a server, or change them."""
    row = server_of(request, server_id)
    require_to_manage(request.actor, row)
    hold(request, row)
    initial = SettingsForm.values_of(row)
    form = SettingsForm(request.POST or None, server=row, initial=initial)
    if request.method == "POST" and form.is_valid():
        try:
            services.update_server(server=row, draft=form.draft(), actor=request.actor)
        except DomainError as error:
            add_domain_error(form, error)
        else:
            messages.success(request, _("Saved."))
            return redirect(f"{servers_url(request)}#server-{row.pk}")
    context = {
        "section": "servers",
        "servers_url": servers_url(request),
        "server": row,
        "provider": host_of(row),
        "form": form,
        "callback_urls": callback_urls(row.pk) if "auth_type" in form.fields else [],
    }
    return render(request, "mcp_servers/settings.html", context, status=422 if form.errors else 200)
