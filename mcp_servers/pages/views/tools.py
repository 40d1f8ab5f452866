"""Switches of tools, resources and prompts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from allauth.account.decorators import login_required
from django.contrib import messages
from django.db.models import Q
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from mcp_servers.models import ApprovalOverride, McpPrompt, McpResource, McpTool
from mcp_servers.pages import cards
from mcp_servers.pages.views.common import (
    card,
    server_of,
    servers_url,
    switch,
    tool_of,
)
from mcp_servers.registry import services
from mcp_servers.registry.rights import may_manage, require_to_manage
from workspaces.errors import Conflict, InvalidInput
from workspaces.pages.parts import workspace_of
from workspaces.words.text_values import read_whole_number

if TYPE_CHECKING:
    from workspaces.middleware import WorkspaceRequest

OFFERS_SHOWN: Final = 200


@require_POST
@login_required
def set_tool_enabled(
    request: WorkspaceRequest, workspace_slug: str, server_id: UUID, tool_id: UUID
) -> HttpResponse:
    """Switch a tool on or off."""
    tool = tool_of(request, server_id, tool_id)
    services.set_tool_enabled(
        tool=tool, is_enabled=switch(request, "is_enabled"), actor=request.actor
    )
    return card(request, tool.server)


@require_POST
@login_required
def set_tool_approval(
    request: WorkspaceRequest, workspace_slug: str, server_id: UUID, tool_id: UUID
) -> HttpResponse:
    """Say whether a tool asks first."""
    tool = tool_of(request, server_id, tool_id)
    given = request.POST.get("approval_override", "")
    if given not in ApprovalOverride.values:
        raise InvalidInput(fields={"approval_override": [_("Choose one from the list.")]})
    services.set_approval_override(tool=tool, override=ApprovalOverride(given), actor=request.actor)
    return card(request, tool.server)


@require_POST
@login_required
def set_tool_cache(
    request: WorkspaceRequest, workspace_slug: str, server_id: UUID, tool_id: UUID
) -> HttpResponse:
    """Say for how long results of a tool are used again."""
    tool = tool_of(request, server_id, tool_id)
    given = request.POST.get("cache_seconds", "").strip()
    seconds = read_whole_number(given or "0", most=10**6)
    if seconds is None:
        raise InvalidInput(fields={"cache_seconds": [_("Enter seconds as a whole number.")]})
    services.set_tool_cache(tool=tool, seconds=seconds or None, actor=request.actor)
    return card(request, tool.server)


@require_POST
@login_required
def accept_tool(
    request: WorkspaceRequest, workspace_slug: str, server_id: UUID, tool_id: UUID
) -> HttpResponse:
    """Accept a tool's present definition."""
    tool = tool_of(request, server_id, tool_id)
    is_review = request.POST.get("back") == "review"
    try:
        services.accept_definition(
            tool=tool, actor=request.actor, seen_hash=request.POST.get("definition_hash") or None
        )
    except Conflict as error:
        if not is_review:
            raise
        messages.error(request, error.message)
    if is_review:
        return redirect("mcp_servers:review", workspace_slug, server_id)
    return card(request, tool.server)


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def review(request: WorkspaceRequest, workspace_slug: str, server_id: UUID) -> HttpResponse:
    """All tools that wait for somebody to accept them, on one page; accept them together."""
    row = server_of(request, server_id)
    require_to_manage(request.actor, row)
    problem = ""
    if request.method == "POST":
        try:
            accepted = services.accept_definitions(
                server=row, seen=_seen(request.POST.getlist("tool")), actor=request.actor
            )
        except Conflict as error:
            problem = error.message
        else:
            message = ngettext(
                "%(count)s tool accepted.", "%(count)s tools accepted.", len(accepted)
            ) % {"count": len(accepted)}
            messages.success(request, message)
            return redirect(request.path)
    tools = McpTool.objects.for_workspace(workspace_of(request)).offered().held()
    held = [
        cards.tool_row(tool)
        for tool in tools.filter(server=row).select_related("server").order_by("name")
    ]
    context = {
        "section": "servers",
        "servers_url": servers_url(request),
        "server": row,
        "problem": problem,
        "together": [tool for tool in held if not tool.warnings],
        "alone": [tool for tool in held if tool.warnings],
    }
    return render(request, "mcp_servers/review.html", context, status=409 if problem else 200)


def _seen(values: list[str]) -> dict[UUID, str]:
    """The tools of the form with the definitions that were shown, from "<id> <hash>".

    Raises:
        InvalidInput: the form was not ours.
    """
    seen: dict[UUID, str] = {}
    for value in values:
        tool_id, _space, definition_hash = value.partition(" ")
        try:
            seen[UUID(tool_id)] = definition_hash
        except ValueError as error:
            raise InvalidInput(fields={"tool": [_("Name a tool and its definition.")]}) from error
    if not seen:
        raise InvalidInput(fields={"tool": [_("Name a tool and its definition.")]})
    return seen


@require_GET
@login_required
def offers(request: WorkspaceRequest, workspace_slug: str, server_id: UUID) -> HttpResponse:
    """A server's resources, templates and prompts."""
    row = server_of(request, server_id)
    query = request.GET.get("q", "").strip().replace("\0", "")[:200]
    resources = (
        McpResource.objects.for_workspace(workspace_of(request)).offered().filter(server=row)
    )
    prompts = McpPrompt.objects.for_workspace(workspace_of(request)).offered().filter(server=row)
    if query:
        resources = resources.filter(
            Q(uri__icontains=query) | Q(name__icontains=query) | Q(title__icontains=query)
        )
        prompts = prompts.filter(Q(name__icontains=query) | Q(title__icontains=query))
    context: dict[str, Any] = {
        "section": "servers",
        "servers_url": servers_url(request),
        "server": row,
        "query": query,
        "can_manage": may_manage(request.actor, row),
        "resources": [cards.offer_of(one) for one in resources[:OFFERS_SHOWN]],
        "prompts": [cards.offer_of(one) for one in prompts[:OFFERS_SHOWN]],
        "resource_count": resources.count(),
        "prompt_count": prompts.count(),
        "most": OFFERS_SHOWN,
    }
    return render(request, "mcp_servers/offers.html", context)


@require_POST
@login_required
def set_resource_enabled(
    request: WorkspaceRequest, workspace_slug: str, server_id: UUID, resource_id: UUID
) -> HttpResponse:
    """Switch a resource on or off."""
    return _set_offer_enabled(request, McpResource, server_id, resource_id)


@require_POST
@login_required
def set_prompt_enabled(
    request: WorkspaceRequest, workspace_slug: str, server_id: UUID, prompt_id: UUID
) -> HttpResponse:
    """Switch a prompt on or off."""
    return _set_offer_enabled(request, McpPrompt, server_id, prompt_id)


def _set_offer_enabled(
    request: WorkspaceRequest, kind: type[McpResource | McpPrompt], server_id: UUID, pk: UUID
) -> HttpResponse:
    rows = kind.objects.for_workspace(workspace_of(request)).visible_to(request.user)
    row = rows.filter(server=server_id).select_related("server__workspace").fetch(pk)
    services.set_offer_enabled(
        offer=row, is_enabled=switch(request, "is_enabled"), actor=request.actor
    )
    context = {
        "servers_url": servers_url(request),
        "server": row.server,
        "offer": cards.offer_of(row),
        "can_manage": True,
    }
    return render(request, "mcp_servers/_offer.html", context)
