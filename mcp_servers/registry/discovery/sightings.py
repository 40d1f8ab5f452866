"""Which tools each person's own account was shown: nobody is offered, or may call, what was shown to another.

Somebody for whom nothing was listed yet is offered what the workspace accepted; a sign-in then says what is theirs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Final
from uuid import UUID

from django.db.models import Exists, OuterRef, Q

from mcp_servers.models import AccountUse, AuthType, OAuthGrant, ToolSighting
from mcp_servers.oauth.grants import uses_own_accounts
from mcp_servers.registry.rights import may_dismiss
from workspaces.database import database_now

if TYPE_CHECKING:
    from mcp_servers.models import McpServer, McpTool
    from workspaces.actors import Actor


SEEN_EVERY: Final = timedelta(hours=1)
"""How exactly it is kept when something that has not changed was last seen: each look would write it otherwise."""


def keep(server: McpServer, viewer: UUID, tools: Iterable[McpTool]) -> None:
    """What this person was shown, and nothing else any more; in the caller's transaction."""
    rows = ToolSighting.objects.for_workspace(server.workspace_id).filter(
        server=server, user_id=viewer
    )
    seen = {tool.pk: tool for tool in tools}
    if set(rows.values_list("tool_id", "definition_hash")) != {
        (tool.pk, tool.definition_hash) for tool in seen.values()
    }:
        rows.delete()
        ToolSighting.objects.bulk_create(
            ToolSighting(
                workspace_id=server.workspace_id,
                server=server,
                user_id=viewer,
                tool=tool,
                definition_hash=tool.definition_hash,
            )
            for tool in seen.values()
        )
    grants = OAuthGrant.objects.for_workspace(server.workspace_id).of(viewer)
    grants.filter(server=server).update(looked_at=database_now())


def without_viewers(server: McpServer, viewer: UUID, tools: Sequence[McpTool]) -> list[McpTool]:
    """Those of these tools that no other person was shown either."""
    rows = ToolSighting.objects.for_workspace(server.workspace_id).filter(server=server)
    others = set(rows.exclude(user_id=viewer).values_list("tool_id", flat=True))
    return [tool for tool in tools if tool.pk not in others]


def is_shown_to(tool: McpTool, user_id: UUID | None) -> bool:
    """Whether this person may use the tool in its present form, where each has an account of their own."""
    if user_id is None or not uses_own_accounts(tool.server):
        return True
    rows = ToolSighting.objects.for_workspace(tool.workspace_id).filter(user_id=user_id)
    if rows.filter(tool=tool, definition_hash=tool.definition_hash).exists():
        return True
    grants = OAuthGrant.objects.for_workspace(tool.workspace_id).of(user_id)
    return not grants.filter(server_id=tool.server_id, looked_at__isnull=False).exists()


def shown_to(user_id: UUID) -> Q:
    """The same as a condition on McpTool rows, for lists."""
    mine = ToolSighting.unscoped.filter(user_id=user_id)
    looked = OAuthGrant.unscoped.filter(user_id=user_id, looked_at__isnull=False)
    shared = ~Q(server__auth_type=AuthType.OAUTH) | Q(
        server__owner__isnull=True, server__account_use=AccountUse.WORKSPACE
    )
    exactly = mine.filter(tool_id=OuterRef("pk"), definition_hash=OuterRef("definition_hash"))
    of_server = looked.filter(server_id=OuterRef("server_id"))
    return shared | Q(Exists(exactly)) | ~Q(Exists(of_server))


def listed_for(actor: Actor, workspace_id: UUID) -> Q:
    """Which tools lists outside of a turn show: to who manages the server all, to others what their account was shown."""
    if actor.user_id is None or may_dismiss(actor, workspace_id):
        return Q()
    return Q(server__owner=actor.user_id) | shown_to(actor.user_id)
