"""Where each person signs in, each has lists of their own; they are read again when that person is there."""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import Final
from uuid import UUID

from django.core.cache import cache

from mcp_servers.models import McpServer, OAuthGrant
from mcp_servers.oauth.grants import needs_sign_in, uses_own_accounts
from mcp_servers.registry.services.inspection import ConnectionReport, look_as
from workspaces.actors import Source
from workspaces.database import database_now
from workspaces.middleware import actor_for
from workspaces.models import User

logger = logging.getLogger(__name__)

HOLD_SECONDS: Final = 15 * 60
"""How long what a person was shown counts as fresh."""


def look_again_if_old(server: McpServer, user_id: UUID) -> bool:
    """Have a server's list read again for a person whose own is old; whether it was handed out."""
    if not uses_own_accounts(server) or needs_sign_in(server, user_id):
        return False
    since = database_now() - timedelta(seconds=HOLD_SECONDS)
    grants = OAuthGrant.objects.for_workspace(server.workspace_id).of(user_id)
    is_fresh = grants.filter(server=server, looked_at__gte=since).exists()
    key = f"own-list.{server.workspace_id}.{server.pk}.{user_id}"
    if is_fresh or not cache.add(key, True, timeout=HOLD_SECONDS):
        return False
    try:
        from celery import current_app

        current_app.send_task(
            "mcp_servers.registry.tasks.look_as_person",
            (str(server.workspace_id), str(server.pk), str(user_id)),
            expires=60,
        )
    except Exception:
        # A broker that is away keeps nobody from their chat; the list is read another time.
        logger.warning("look_not_handed_out", exc_info=True)
        return False
    return True


def look_as_member(workspace_id: UUID, server_id: UUID, user_id: UUID) -> ConnectionReport | None:
    """Read the list of a person who has just opened a chat; None if they or the server are gone."""
    server = (
        McpServer.objects.for_workspace(workspace_id).select_related("workspace").find(server_id)
    )
    user = User.objects.filter(pk=user_id, is_active=True).first()
    if server is None or user is None:
        return None
    actor = actor_for(user, server.workspace, source=Source.CHAT)
    if actor.role is None and not actor.is_superuser:
        return None
    return look_as(server=server, actor=actor)
