"""The rules of a workspace: for its people, servers and chats."""

from __future__ import annotations

from typing import TYPE_CHECKING

from allauth.account.decorators import login_required
from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.text import capfirst
from django.utils.translation import gettext
from django.views.decorators.http import require_http_methods

from mcp_servers.pages.views.common import servers_url, switch
from mcp_servers.registry import services
from mcp_servers.registry.services.rules import RULES
from workspaces.errors import Conflict
from workspaces.models import Membership, Workspace
from workspaces.pages.parts import workspace_of
from workspaces.people.entering import has_second_step, members_without_second_step
from workspaces.roles import Permission
from workspaces.words.columns import column_in_words, kind_of

if TYPE_CHECKING:
    from workspaces.middleware import WorkspaceRequest


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def rules(request: WorkspaceRequest, workspace_slug: str) -> HttpResponse:
    """Show the rules of the workspace, or switch one of them on or off."""
    workspace = workspace_of(request, Permission.MANAGE_WORKSPACE)
    if request.method == "POST":
        try:
            services.set_workspace_rule(
                workspace=workspace,
                rule=request.POST.get("rule", ""),
                is_on=switch(request, "is_on"),
                actor=request.actor,
            )
        except Conflict as error:
            messages.error(request, error.message)
        return redirect(request.path)
    kind = kind_of(Workspace)
    context = {
        "section": "servers",
        "servers_url": servers_url(request),
        "rules": [
            {
                "name": name,
                "title": capfirst(column_in_words(kind, name)),
                "help": gettext(text),
                "is_on": getattr(workspace, name),
            }
            for name, text in RULES.items()
        ],
        "may_require_two_steps": has_second_step(request.user),
        "kept_out": members_without_second_step(workspace).count(),
        "has_members": Membership.objects.also_suspended(workspace).exists(),
    }
    return render(request, "mcp_servers/rules.html", context)
