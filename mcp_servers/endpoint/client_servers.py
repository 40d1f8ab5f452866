"""Which servers a client uses: those that its person would use with a bud that takes all tools."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcp_servers.registry.scopes.effective import effective_servers

if TYPE_CHECKING:
    from mcp_servers.endpoint.callers import EndpointCaller
    from mcp_servers.models import McpServer


def servers_of(caller: EndpointCaller) -> list[McpServer]:
    """The servers that may be used now, in their order. One statement."""
    considered = effective_servers(
        workspace_id=caller.workspace_id,
        user_id=caller.user_id,
        bud_servers=(),
        takes_all_tools=True,
    )
    return [one.server for one in considered if one.is_usable and one.server is not None]
