"""Lists of servers in and out, in the format that desktop clients share."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from allauth.account.decorators import login_required
from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import ngettext
from django.views.decorators.http import require_GET, require_http_methods

from mcp_servers.models.hosting import all_hosts
from mcp_servers.pages.forms import WhereForm
from mcp_servers.pages.views.common import servers_url
from mcp_servers.registry.bud_choices import EVERYWHERE
from mcp_servers.registry.scopes import lists
from workspaces.errors import DomainError, PermissionDenied
from workspaces.pages.parts import workspace_of
from workspaces.pages.secret_fields import ENTER_AGAIN
from workspaces.roles import Permission

if TYPE_CHECKING:
    from workspaces.middleware import WorkspaceRequest

_VALUE: Final = "value-"
"""How the names of fields begin in which values of variables are entered."""


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def import_servers(request: WorkspaceRequest, workspace_slug: str) -> HttpResponse:
    """Show what an import would do; with `intent=apply`, do it."""
    workspace = workspace_of(request, Permission.MANAGE_SERVERS)
    context: dict[str, Any] = {
        "section": "servers",
        "servers_url": servers_url(request),
        "hosts": all_hosts(),
        "text": "",
        "planned": None,
        "error": "",
    }
    has_faults = False
    if request.method == "POST":
        text = request.POST.get("servers", "")
        asked = request.POST if "use" in request.POST else None
        form = context["form"] = WhereForm(asked, workspace=workspace)
        values = _given_values(request.POST)
        try:
            if request.POST.get("intent") == "apply" and (asked is None or form.is_valid()):
                added = lists.apply_import(
                    workspace_id=workspace.pk,
                    text=text,
                    values=values,
                    where=EVERYWHERE if asked is None else form.where(),
                    actor=request.actor,
                )
                count = len(added)
                message = ngettext(
                    "%(count)s server added, switched off.",
                    "%(count)s servers added, switched off.",
                    count,
                ) % {"count": count}
                messages.success(request, message)
                return redirect(servers_url(request))
        except PermissionDenied:
            raise
        except DomainError as error:
            context["error"] = error.message
        try:
            planned = context["planned"] = lists.preview_import(
                workspace_id=workspace.pk, text=text, values=values, actor=request.actor
            )
        except DomainError as error:
            planned, context["error"] = [], error.message
        # What was pasted goes back into the person's own field, and nowhere else. Values do not.
        context["text"] = text
        names = dict.fromkeys(name for one in planned for name in one.placeholders)
        context["values"] = [(f"{_VALUE}{name}", name, bool(values.get(name))) for name in names]
        context["enter_again"] = ENTER_AGAIN
        context["adds"] = any(one.plan != "refuse" for one in planned)
        has_faults = bool(context["error"]) or bool(form.errors)
    status = 422 if has_faults else 200
    response = render(request, "mcp_servers/import.html", context, status=status)
    response["Cache-Control"] = "no-store"
    return response


def _given_values(posted: Mapping[str, str]) -> dict[str, str]:
    """What was entered for variables, by their names."""
    return {
        name.removeprefix(_VALUE): value
        for name, value in posted.items()
        if name.startswith(_VALUE)
    }


@require_GET
@login_required
def export_servers(request: WorkspaceRequest, workspace_slug: str) -> HttpResponse:
    """The workspace's servers as a file, without secrets."""
    workspace = workspace_of(request)
    listing = lists.export_servers(workspace_id=workspace.pk, actor=request.actor)
    response = HttpResponse(
        json.dumps(listing, indent=2, ensure_ascii=False), content_type="application/json"
    )
    response["Content-Disposition"] = f'attachment; filename="mcp-servers-{workspace_slug}.json"'
    return response
