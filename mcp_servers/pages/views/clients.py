"""How other MCP clients use the tools of a workspace: its address, who signed in with one, and tokens for the others."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from allauth.account.decorators import login_required
from django import forms
from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from mcp_servers.endpoint.callers import widest_caller
from mcp_servers.endpoint.offering import count_offers
from mcp_servers.endpoint.sign_in.ending import end_sign_in
from mcp_servers.endpoint.sign_in.listing import all_sign_ins, own_sign_ins
from mcp_servers.endpoint.sign_in.scopes import REACHES, READ, in_words
from mcp_servers.pages.views.common import servers_url
from workspaces.errors import DomainError
from workspaces.lists.row_pages import (
    MOST_ON_PAGE,
    RowPage,
    page_faults,
    page_in_address,
    ways_from,
)
from workspaces.models import ApiToken
from workspaces.pages.forms import LIFETIMES, lifetime_end
from workspaces.pages.parts import workspace_of
from workspaces.people.tokens import MCP_SCOPES, issue_token
from workspaces.roles import Permission, has_permission

if TYPE_CHECKING:
    from uuid import UUID

    from mcp_servers.models import ClientSignIn
    from workspaces.middleware import WorkspaceRequest

NEWEST_FIRST = "-created_at"


class ClientForm(forms.Form):
    """What a person says of a client that they let in."""

    name = forms.CharField(
        label=_("Name of the client"),
        max_length=100,
        widget=forms.TextInput(attrs={"placeholder": _("VS Code on my laptop")}),
    )
    scope = forms.ChoiceField(
        label=_("It may use"), choices=REACHES, initial=READ, widget=forms.RadioSelect
    )
    days = forms.ChoiceField(choices=LIFETIMES, initial="90", label=_("Expires after"))


@dataclass(frozen=True, slots=True)
class ClientSetup:
    """How one kind of client is set up."""

    title: str
    where: str
    text: str


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def clients(request: WorkspaceRequest, workspace_slug: str) -> HttpResponse:
    """Show the endpoint's address and the person's clients; make a token for one that cannot sign in."""
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
    mine = page_in_address(
        own_sign_ins(workspace, request.user), request.GET, by=NEWEST_FIRST, most=MOST_ON_PAGE
    )
    address = request.build_absolute_uri(reverse("mcp_endpoint", args=[workspace.slug]))
    rows: Any = ApiToken.objects.for_workspace(workspace).visible_to(request.user)
    tokens = [one for one in rows.order_by("-created_at") if MCP_SCOPES.keys() & set(one.scopes)]
    context = {
        "section": "servers",
        "servers_url": servers_url(request),
        "address": address,
        "allowed": workspace.allows_mcp_clients,
        "tools": count_offers(widest_caller(request.actor, workspace))
        if workspace.allows_mcp_clients
        else None,
        "sets_rules": has_permission(
            request.actor, Permission.MANAGE_WORKSPACE, workspace_id=workspace.pk
        ),
        "manages_members": has_permission(
            request.actor, Permission.MANAGE_MEMBERS, workspace_id=workspace.pk
        ),
        "sign_ins": _with_words(mine),
        "ways": ways_from(mine, request.GET, anchor="#signed-in-heading"),
        "faults": page_faults(mine),
        "tokens": tokens,
        "form": form,
        "new_token": plain,
        "setups": setups(workspace.slug, address),
        "token_setups": setups(workspace.slug, address, plain or "TOKEN"),
    }
    return render(request, "mcp_servers/clients.html", context)


@require_safe
@login_required
def members(request: WorkspaceRequest, workspace_slug: str) -> HttpResponse:
    """The clients that members have let in, for whoever manages members."""
    workspace = workspace_of(request)
    rows = all_sign_ins(workspace, actor=request.actor)
    page = page_in_address(rows, request.GET, by=NEWEST_FIRST, most=MOST_ON_PAGE)
    context = {
        "section": "servers",
        "servers_url": servers_url(request),
        "sign_ins": _with_words(page),
        "ways": ways_from(page, request.GET),
        "faults": page_faults(page),
    }
    return render(request, "mcp_servers/member_clients.html", context)


@require_POST
@login_required
def end(request: WorkspaceRequest, workspace_slug: str, sign_in_id: UUID) -> HttpResponse:
    """Sign a client out: one's own, or as an administrator that of any member."""
    workspace = workspace_of(request)
    is_of_members = request.POST.get("back") == "members"
    rows = (
        all_sign_ins(workspace, actor=request.actor)
        if is_of_members
        else own_sign_ins(workspace, request.user)
    )
    sign_in = rows.fetch(sign_in_id)
    end_sign_in(sign_in=sign_in, actor=request.actor)
    messages.success(request, gettext("“%(name)s” is signed out.") % {"name": sign_in.client_name})
    to = "mcp_servers:member_clients" if is_of_members else "mcp_servers:clients"
    return redirect(reverse(to, args=[workspace.slug]))


def _with_words(page: RowPage[ClientSignIn]) -> list[tuple[ClientSignIn, str]]:
    """Sign-ins, each with what it may use."""
    return [(row, in_words(row.scopes)) for row in page.rows]


def setups(slug: str, address: str, token: str = "") -> list[ClientSetup]:
    """What people paste into their client. Without a token, the client opens a page on which they sign in."""
    name = f"trellis-{slug}"
    headers = {"headers": {"Authorization": f"Bearer {token}"}} if token else {}
    header = f' --header "Authorization: Bearer {token}"' if token else ""
    run = gettext("Run this in a terminal.")
    run_and_sign_in = gettext("Run this in a terminal. It opens the page on which you sign in.")
    run_and_type = gettext("Run this in a terminal. Then type /mcp auth %(name)s in %(client)s.")
    return [
        ClientSetup(
            "Claude Code",
            run
            if token
            else gettext("Run this in a terminal. Then type /mcp in Claude Code, and sign in."),
            f"claude mcp add --scope user --transport http {name} {address}{header}",
        ),
        ClientSetup(
            "VS Code",
            gettext("Put this into .vscode/mcp.json."),
            _json({"servers": {name: {"type": "http", "url": address, **headers}}}),
        ),
        ClientSetup(
            "Cursor",
            gettext("Put this into .cursor/mcp.json."),
            _json({"mcpServers": {name: {"url": address, **headers}}}),
        ),
        ClientSetup(
            "Codex",
            gettext(
                "Run this in a terminal. The first line is needed in each terminal from which you start Codex."
            )
            if token
            else run_and_sign_in,
            f"export TRELLIS_TOKEN={token}\n"
            f"codex mcp add {name} --url {address} --bearer-token-env-var TRELLIS_TOKEN"
            if token
            else f"codex mcp add {name} --url {address}",
        ),
        ClientSetup(
            "Gemini CLI",
            run if token else run_and_type % {"name": name, "client": "Gemini CLI"},
            f"gemini mcp add --scope user --transport http {name} {address}{header}",
        ),
        ClientSetup(
            "Copilot CLI",
            run if token else run_and_type % {"name": name, "client": "Copilot CLI"},
            f"copilot mcp add --transport http {name} {address}{header}",
        ),
        ClientSetup(
            "OpenCode",
            run if token else run_and_sign_in,
            f"opencode mcp add {name} --url {address}"
            + (
                f' --header "Authorization=Bearer {token}"'
                if token
                else f"\nopencode mcp auth {name}"
            ),
        ),
    ]


def _json(value: object) -> str:
    return json.dumps(value, indent=2)
