"""How other MCP clients use the tools of a workspace: its address, and a token for each client."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from allauth.account.decorators import login_required
from django import forms
from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_http_methods

from mcp_servers.pages.views.common import servers_url, workspace_of
from workspaces.errors import DomainError
from workspaces.models import ApiToken
from workspaces.pages.forms import LIFETIMES, lifetime_end
from workspaces.people.tokens import MCP_SCOPES, issue_token
from workspaces.roles import Permission, has_permission

if TYPE_CHECKING:
    from workspaces.middleware import WorkspaceRequest

_REACHES = [
    ("mcp:read", _("Only tools that just read")),
    ("mcp:call", _("All tools that you may use here")),
]


class ClientForm(forms.Form):
    """What a person says of a client that they let in."""

    name = forms.CharField(
        label=_("Name of the client"),
        max_length=100,
        widget=forms.TextInput(attrs={"placeholder": _("VS Code on my laptop")}),
    )
    scope = forms.ChoiceField(
        label=_("It may use"), choices=_REACHES, initial="mcp:read", widget=forms.RadioSelect
    )
    days = forms.ChoiceField(choices=LIFETIMES, initial="90", label=_("Expires after"))


@dataclass(frozen=True, slots=True)
class Setup:
    """How one kind of client is set up."""

    title: str
    where: str
    text: str


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def clients(request: WorkspaceRequest, workspace_slug: str) -> HttpResponse:
    """Show the endpoint's address and the person's clients; let another one in, whose token is shown once."""
    workspace = workspace_of(request)
    form = ClientForm(request.POST or None)
    plain = ""
    if request.method == "POST" and workspace.allows_mcp_clients and form.is_valid():
        try:
            _row, plain = issue_token(
                workspace=workspace,
                user=request.user,
                name=form.cleaned_data["name"],
                scopes=[form.cleaned_data["scope"]],
                expires_at=lifetime_end(form.cleaned_data["days"]),
                actor=request.actor,
            )
            form = ClientForm()
        except DomainError as error:
            form.add_error(None, error.message)
    address = request.build_absolute_uri(reverse("mcp_endpoint", args=[workspace.slug]))
    rows: Any = ApiToken.objects.for_workspace(workspace).visible_to(request.user)
    tokens = [one for one in rows.order_by("-created_at") if MCP_SCOPES.keys() & set(one.scopes)]
    context = {
        "section": "servers",
        "servers_url": servers_url(request),
        "address": address,
        "allowed": workspace.allows_mcp_clients,
        "sets_rules": has_permission(
            request.actor, Permission.MANAGE_WORKSPACE, workspace_id=workspace.pk
        ),
        "tokens": tokens,
        "form": form,
        "new_token": plain,
        "setups": setups(workspace.slug, address, plain or "TOKEN"),
    }
    return render(request, "mcp_servers/clients.html", context)


def setups(slug: str, address: str, token: str) -> list[Setup]:
    """What people paste into their client."""
    name = f"trellis-{slug}"
    headers = {"Authorization": f"Bearer {token}"}
    return [
        Setup(
            "Claude Code",
            str(_("Run this in a terminal.")),
            f'claude mcp add --transport http {name} {address} --header "Authorization: Bearer {token}"',
        ),
        Setup(
            "VS Code",
            str(_("Put this into .vscode/mcp.json.")),
            _json({"servers": {name: {"type": "http", "url": address, "headers": headers}}}),
        ),
        Setup(
            "Cursor",
            str(_("Put this into .cursor/mcp.json.")),
            _json({"mcpServers": {name: {"url": address, "headers": headers}}}),
        ),
    ]


def _json(value: object) -> str:
    return json.dumps(value, indent=2)
