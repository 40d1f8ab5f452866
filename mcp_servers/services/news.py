"""What servers say by themselves, and what open pages and connections are told."""

from __future__ import annotations

import sys
from uuid import UUID

from django.db import close_old_connections

from mcp_servers import health
from mcp_servers.connections.hooks import hooks
from mcp_servers.models import McpServer
from workspaces.announcements import Announcement, announce


def listen_to_servers() -> None:
    """Have tool lists read again when servers say that they changed. Called once at start."""
    hooks.tools_changed = _tools_changed


def _tools_changed(server_id: UUID) -> None:
    from mcp_servers.tasks import hand_out_check

    close_old_connections()
    try:
        server = McpServer.objects.across_workspaces().find(server_id)
        if server is not None:
            health.ask_for_check(server)
            hand_out_check(server.workspace_id, server.pk)
    finally:
        close_old_connections()


def drop_connections(server_id: UUID) -> None:
    """Close this process's connections to a server, if it ever opened any."""
    if "mcp_servers.connections.pool" not in sys.modules:
        return  # nothing was ever connected in this process
    from mcp_servers.connections import runtime
    from mcp_servers.connections.pool import pool

    runtime.current().submit(pool.drop(server_id))


def tell(server: McpServer) -> None:
    """Tell open pages that this server changed."""
    announce(server.workspace_id, Announcement(kind="server.changed", id=str(server.pk)))
