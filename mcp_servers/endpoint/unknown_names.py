"""Names that a client is not offered: what it is refused with, and what the log has of that."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

import mcp_types
from django.db.models import Q
from mcp.shared.exceptions import MCPError

from audit.actions import Action
from mcp_servers.client.tool_names import NamedTool, may_name, names_of
from mcp_servers.endpoint.offering import LONGEST_NAME
from mcp_servers.gate import refuse_unknown
from mcp_servers.models import McpServer, McpTool
from mcp_servers.registry.discovery import shown_to
from mcp_servers.registry.limits import count_up
from workspaces.errors import DomainError

if TYPE_CHECKING:
    from mcp_servers.endpoint.callers import EndpointCaller

MOST_UNKNOWN: Final = 30
"""Entries of one client, within the window, about what is not there."""


def tell_unknown(caller: EndpointCaller, action: Action, name: str) -> None:
    """Record that a client asked for what is not there.

    Raises:
        MCPError: it does so all the time. Further ones are not recorded, or a client could fill the log.
    """
    try:
        count_up(f"mcp-unknown:{caller.actor.token_id}", MOST_UNKNOWN)
        refuse_unknown(action, workspace_id=caller.workspace_id, actor=caller.actor, name=name)
    except DomainError as error:
        raise MCPError(mcp_types.INVALID_REQUEST, error.message) from error


def find_unoffered(caller: EndpointCaller, name: str) -> UUID | None:
    """A tool with this name that its person may know of, although it is not offered: blocked, withdrawn, or of another server.

    Of several, the one that its server still has.
    """
    rows: Any = McpServer.objects.for_workspace(caller.workspace_id)
    rows = rows.filter(Q(owner=None) | Q(owner=caller.user_id))
    near = {
        pk: other
        for pk, other in rows.values_list("pk", "name")
        if may_name(other, name, longest=LONGEST_NAME)
    }
    tools: Any = McpTool.objects.for_workspace(caller.workspace_id)
    tools = tools.filter(shown_to(caller.user_id), server_id__in=near) if near else tools.none()
    found = tools.order_by().values_list("server_id", "pk", "name", "removed_at")
    meant = [
        (removed_at is not None, tool_id)
        for server_id, tool_id, tool_name, removed_at in found
        if name
        in names_of(NamedTool(server_id, near[server_id], tool_id, tool_name), longest=LONGEST_NAME)
    ]
    return min(meant)[1] if meant else None
