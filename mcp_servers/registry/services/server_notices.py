"""What servers say by themselves, and what open pages and connections are told."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from functools import wraps
from typing import ParamSpec
from uuid import UUID

from django.db import close_old_connections
from django.utils import timezone

from mcp_servers.client.connections.hooks import hooks
from mcp_servers.models import McpResource, McpServer
from mcp_servers.registry import health
from workspaces.delivery.announcements import Announcement, announce

P = ParamSpec("P")


def listen_to_servers() -> None:
    """Have lists read again when servers say that they changed. Called once at start."""
    hooks.tools_changed = _lists_changed
    hooks.prompts_changed = _lists_changed
    hooks.resources_changed = _lists_changed
    hooks.resource_updated = _resource_updated
    hooks.elicitation_completed = _elicitation_completed


def drop_connections(server_id: UUID) -> None:
    """Close this process's connections to a server, if it ever opened any."""
    if "mcp_servers.client.connections.pool" not in sys.modules:
        return  # nothing was ever connected in this process
    from mcp_servers.client.connections import runtime
    from mcp_servers.client.connections.pool import pool

    runtime.current().submit(pool.drop(server_id))


def tell(server: McpServer, *, kind: str = "server.changed") -> None:
    """Tell open pages that this server, or what it offers, changed; of somebody's own server only its owner."""
    announce(
        server.workspace_id,
        Announcement(
            kind=kind,
            id=str(server.pk),
            user_id=str(server.owner_id) if server.owner_id else None,
        ),
    )


def _in_a_thread(hook: Callable[P, None]) -> Callable[P, None]:
    """Hooks run in threads that Django knows nothing of."""

    @wraps(hook)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        close_old_connections()
        try:
            hook(*args, **kwargs)
        finally:
            close_old_connections()

    return run


@_in_a_thread
def _lists_changed(server_id: UUID) -> None:
    server = McpServer.objects.across_workspaces().find(server_id)
    if server is not None:
        health.ask_for_check(server)
        health.hand_out_check(server.workspace_id, server.pk)


@_in_a_thread
def _resource_updated(workspace_id: UUID, server_id: UUID, uri: str) -> None:
    rows: Iterable[McpResource] = (
        McpResource.objects.for_workspace(workspace_id)
        .filter(server=server_id, uri=uri, is_template=False)
        .select_related("server")
    )
    for resource in rows:
        resource.changed_at = timezone.now()
        resource.save(update_fields=["changed_at", "updated_at"])
        owner_id = resource.server.owner_id
        announcement = Announcement(
            kind="resource.changed",
            id=str(resource.pk),
            user_id=str(owner_id) if owner_id else None,
        )
        announce(workspace_id, announcement)


@_in_a_thread
def _elicitation_completed(server_id: UUID, elicitation_id: str) -> None:
    from mcp_servers.registry.elicitation import complete_url_inputs

    complete_url_inputs(server_id=server_id, elicitation_id=elicitation_id)
