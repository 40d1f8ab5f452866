"""Trying one tool out on a page: a form from its schema, the call through the gate, what came of it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode
from uuid import UUID

from allauth.account.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST

from audit.views.words import ended
from mcp_servers.client.canonical import parse_arguments
from mcp_servers.client.errors import ApprovalMissing
from mcp_servers.client.values import Effect
from mcp_servers.gate import tester
from mcp_servers.pages import cards
from mcp_servers.pages.views.common import can_manage, servers_url, tool_of
from mcp_servers.registry.rights import require_to_manage
from workspaces.errors import DomainError, PermissionDenied
from workspaces.pages.parts import workspace_of
from workspaces.process.departures import departure_of

if TYPE_CHECKING:
    from mcp_servers.client.values import ToolCallOutcome
    from mcp_servers.models import McpTool
    from workspaces.middleware import WorkspaceRequest


@require_GET
@login_required
def tool_tester(
    request: WorkspaceRequest, workspace_slug: str, server_id: UUID, tool_id: UUID
) -> HttpResponse:
    """The page with the form."""
    tool = tool_of(request, server_id, tool_id)
    require_to_manage(request.actor, tool.server)
    decision = tester.decide_on(tool, {}, request.actor)
    context: dict[str, Any] = {
        "section": "servers",
        "servers_url": servers_url(request),
        "server": tool.server,
        "tool": cards.tool_row(tool),
        "decision": decision,
        # Whether call rules ask may depend on the arguments.
        "asks": decision.effect is Effect.CONFIRM or tester.may_ask_by_rule(tool),
        "is_denied": decision.effect is Effect.DENY,
        "schema": tool.input_schema,
        "has_arguments": bool(tool.input_schema.get("properties") or "$ref" in tool.input_schema),
        **_rule_addresses(request, tool),
    }
    return render(request, "mcp_servers/tester.html", context)


def _rule_addresses(request: WorkspaceRequest, tool: McpTool) -> dict[str, str]:
    """Where call rules are, and where one about this tool begins; nothing for those who make none."""
    if not can_manage(request):
        return {}
    slug = [workspace_of(request).slug]
    about = urlencode({"servers": tool.server.name, "tools": tool.name})
    return {
        "rules_url": reverse("mcp_servers:call_rules", args=slug),
        "new_rule_url": f"{reverse('mcp_servers:call_rule_new', args=slug)}?{about}",
    }


@require_POST
@login_required
def tool_try(
    request: WorkspaceRequest, workspace_slug: str, server_id: UUID, tool_id: UUID
) -> HttpResponse:
    """Call the tool once, and show what came of it."""
    tool = tool_of(request, server_id, tool_id)
    context: dict[str, Any] = {"servers_url": servers_url(request), "server": tool.server}
    try:
        outcome = tester.try_tool(
            tool=tool,
            arguments=parse_arguments(request.POST.get("arguments", "")),
            actor=request.actor,
            is_confirmed=request.POST.get("confirm") == "on",
            departure=departure_of(request),
        )
    except PermissionDenied:
        raise
    except ApprovalMissing as error:
        context["refusal"] = _("%(message)s Confirm that you want exactly this call.") % {
            "message": error.message
        }
    except DomainError as error:
        context["refusal"] = error.message
    else:
        context |= _shown(outcome)
        if outcome.details.get("kind") == "asks_back":
            slug = request.workspace.slug if request.workspace is not None else ""
            context["sessions_url"] = reverse("mcp_servers:use_sessions", args=[slug, server_id])
    return render(request, "mcp_servers/_outcome.html", context)


def _shown(outcome: ToolCallOutcome) -> dict[str, Any]:
    label, tone = ended(outcome.outcome, "")
    return {
        "outcome": outcome,
        "tone": tone,
        "label": label,
        "result": {"content": outcome.content_as_json(), "truncated": outcome.truncated},
        "structured": outcome.structured,
        "text": json.dumps(
            {"content": outcome.content_as_json(), "structured": outcome.structured},
            indent=2,
            ensure_ascii=False,
        ),
    }
