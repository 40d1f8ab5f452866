"""What the editor of a bud has to choose from: servers, and their tools as soon as somebody looks at them."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final

from django.db.models import Count, Q
from django.db.models.functions import Left
from django.urls import reverse
from django.utils.translation import gettext

from chat.services.buds import offered_servers, offered_tools
from mcp_servers.client.values import Effect, ToolFacts
from mcp_servers.models import McpTool
from mcp_servers.registry.consent.policy import decide

if TYPE_CHECKING:
    from chat.models import Bud
    from workspaces.models import Workspace

MOST_IN_PAGE: Final = 500
"""Up to so many tools come with the page. More are read by the page when somebody turns to them."""
MOST_DESCRIBED: Final = 300
"""Characters of a tool's description."""


def picker_of(workspace: Workspace, bud: Bud | None) -> dict[str, Any]:
    """Give the servers by name with their tools; with the address of the tools where these are many."""
    servers_here = offered_servers(workspace.pk).order_by("name")
    counted = servers_here.annotate(offered=Count("tools", filter=Q(tools__removed_at=None)))
    rows = list(counted.values_list("pk", "name", "offered"))
    tools: dict[str, list[dict[str, str]]] = {}
    address = ""
    if sum(count for _, _, count in rows) > MOST_IN_PAGE:
        query = f"?bud={bud.pk}" if bud is not None else ""
        address = reverse("chat:bud_tools", args=[workspace.slug]) + query
    else:
        tools = all_tools(workspace)
    left_out = _left_out(workspace)
    servers = [
        {
            "id": str(pk),
            "name": name,
            "count": count,
            "tools": tools.get(str(pk), []),
            "left_out": left_out.get(str(pk), {}),
        }
        for pk, name, count in rows
    ]
    return {"servers": servers, "tools_url": address}


def _left_out(workspace: Workspace) -> dict[str, dict[str, str]]:
    """Give the tools that no bud gets now, by their servers' ids, each with the reason."""
    rows = offered_tools(workspace.pk)
    sound = McpTool.objects.for_workspace(workspace.pk).callable()
    refused = rows.exclude(pk__in=sound.order_by().values("pk")).order_by("name")
    found: defaultdict[str, dict[str, str]] = defaultdict(dict)
    # Without their definitions, which are large and decide nothing here.
    for server_id, name, is_on, is_enabled, problem, approved, current in refused.values_list(
        *("server_id", "name", "server__is_active", "is_enabled", "problem"),
        *("approved_hash", "definition_hash"),
    ):
        facts = ToolFacts(
            is_server_active=is_on,
            is_enabled=is_enabled,
            problem=problem,
            is_quarantined=approved != current,
            override=Effect.DENY,
        )
        found[str(server_id)][name] = gettext(decide(facts).reason)
    return found


def all_tools(workspace: Workspace) -> dict[str, list[dict[str, str]]]:
    """Give the tools of all servers that a bud may name, by the servers' ids."""
    rows = offered_tools(workspace.pk)
    shown = rows.order_by("name").values_list(
        "server_id", "name", "title", Left("description", MOST_DESCRIBED)
    )
    found: defaultdict[str, list[dict[str, str]]] = defaultdict(list)
    for server_id, name, title, text in shown:
        found[str(server_id)].append({"name": name, "title": title, "description": text})
    return found
