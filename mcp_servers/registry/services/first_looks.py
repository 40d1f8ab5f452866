"""The first look at a server that was just added, beside the page on which it was: some programs are fetched first."""

from __future__ import annotations

import logging
from uuid import UUID

from mcp_servers.models import McpServer, ServerStatus
from mcp_servers.registry import health
from mcp_servers.registry.rights import may_manage, require_to_manage
from mcp_servers.registry.services.inspection import test_connection
from mcp_servers.registry.services.server_notices import tell
from workspaces.actors import Actor, Source
from workspaces.middleware import actor_for
from workspaces.models import User

logger = logging.getLogger(__name__)


def begin_first_look(*, server: McpServer, actor: Actor) -> None:
    """Have a task connect to a server for whoever has added it, and say meanwhile that it is being connected.

    What comes of it shows on the server's card. If no worker takes it in time, the next check looks instead.

    Raises:
        PermissionDenied: the actor may not manage it.
    """
    require_to_manage(actor, server)
    server.state.write(status=ServerStatus.CONNECTING, status_reason="")
    # Nobody else looks meanwhile: only a person who manages the server accepts its tools by a first look.
    health.claim(server.workspace_id, server.pk)
    tell(server)
    try:
        from celery import current_app

        current_app.send_task(
            "mcp_servers.registry.tasks.look_first",
            (str(server.workspace_id), str(server.pk), str(actor.user_id)),
            expires=health.START_SECONDS,
        )
    except Exception:
        # A broker that is away keeps nobody from their server.
        logger.warning("first_look_not_handed_out", exc_info=True)
        test_connection(server=server, actor=actor)


def look_first(workspace_id: UUID, server_id: UUID, user_id: UUID) -> None:
    """Connect to a server as the person who has added it; nothing if they or the server are gone."""
    server = (
        McpServer.objects.for_workspace(workspace_id).select_related("workspace").find(server_id)
    )
    user = User.objects.filter(pk=user_id, is_active=True).first()
    if server is None or user is None:
        return
    actor = actor_for(user, server.workspace, source=Source.WEB)
    if may_manage(actor, server):
        test_connection(server=server, actor=actor)
    else:
        health.ask_for_check(server)
