"""Opening and closing a server's connections by hand, and how they are."""

from __future__ import annotations

import sys
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from django.db import transaction
from django.utils import timezone

from audit.actions import Action
from audit.services import EntryDraft, Ref, record
from mcp_servers.models import McpServer, ServerStatus
from mcp_servers.registry.rights import require_to_manage
from mcp_servers.registry.services.server_notices import drop_connections, tell
from workspaces.actors import Actor

if TYPE_CHECKING:
    from mcp_servers.client.connections.facts import ConnectionStatus

STAYS_CLOSED: Final = timedelta(hours=24)
"""How long no check opens a connection again that somebody closed."""


@transaction.atomic
def disconnect_server(*, server: McpServer, actor: Actor) -> McpServer:
    """Close this process's connections; calls that run on them end. A later call, or Connect, opens one again.

    Raises:
        PermissionDenied: the actor may not manage this server.
    """
    require_to_manage(actor, server)
    server = McpServer.objects.for_workspace(server.workspace_id).fetch(server.pk)
    server.state.write(
        status=ServerStatus.DISCONNECTED,
        status_reason="",
        next_check_at=timezone.now() + STAYS_CLOSED,
        lists_stale_at=None,
    )
    record(
        EntryDraft(
            action=Action.SERVER_DISCONNECTED,
            actor=actor,
            workspace_id=server.workspace_id,
            server=Ref(id=server.pk, name=server.name),
            transport=server.known_transport,
            protocol_revision=server.state.protocol_revision,
            details={"by": "hand"},
        )
    )
    tell(server)
    transaction.on_commit(lambda: drop_connections(server.pk))
    return server


def connections_of(server: McpServer) -> list[ConnectionStatus]:
    """This process's connections to a server, one for each principal that has or had one."""
    if "mcp_servers.client.connections.pool" not in sys.modules:
        return []
    from mcp_servers.client.connections.pool import pool

    return pool.connections_of(server.pk)
