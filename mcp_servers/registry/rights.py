"""Who may manage which server: the workspace's administrators theirs, a person their own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.utils.translation import gettext as _

from mcp_servers.models import AccountUse, AuthType, ServerScope
from workspaces.errors import PermissionDenied
from workspaces.roles import Permission, has_permission, passes, require

if TYPE_CHECKING:
    from uuid import UUID

    from mcp_servers.models import McpServer
    from workspaces.actors import Actor
    from workspaces.models import Workspace


def require_to_manage(actor: Actor, server: McpServer) -> None:
    """Make sure that the actor may change this server, look at it, and try its tools.

    Raises:
        PermissionDenied: it is not theirs, or the workspace allows no servers of people's own.
    """
    if server.owner_id is None:
        require(actor, Permission.MANAGE_SERVERS, workspace_id=server.workspace_id)
        return
    require_to_own(actor, server.workspace)
    if server.owner_id != actor.user_id:
        raise PermissionDenied


def may_manage(actor: Actor, server: McpServer) -> bool:
    """Whether require_to_manage() would let this pass."""
    return passes(require_to_manage, actor, server)


def require_to_own(actor: Actor, workspace: Workspace) -> None:
    """Make sure that the actor may have servers of their own here.

    Raises:
        PermissionDenied: the workspace does not allow it, or the actor is no person of it.
    """
    require(actor, Permission.USE_CHAT, workspace_id=workspace.pk)
    if not workspace.allows_personal_servers:
        raise PermissionDenied(_("This workspace does not allow personal servers."))
    if actor.user_id is None:
        raise PermissionDenied


def may_sign_in(actor: Actor, server: McpServer) -> bool:
    """Whether the actor may connect the account that this server is used with: their own, or the workspace's."""
    if server.hosted_by:
        return may_manage(actor, server)
    if server.auth_type != AuthType.OAUTH:
        return False
    if server.owner_id is None and server.account_use == AccountUse.WORKSPACE:
        return may_manage(actor, server)
    return server.owner_id in (None, actor.user_id) and actor.user_id is not None


def require_to_dismiss(actor: Actor, server: McpServer) -> None:
    """Make sure that the actor may switch this server off or delete it.

    An administrator may do that to everybody's servers, without ever using or reading them; the owner to their own,
    even when the workspace has stopped allowing them.
    """
    if server.scope == ServerScope.PERSONAL and server.owner_id == actor.user_id:
        require(actor, Permission.USE_CHAT, workspace_id=server.workspace_id)
        return
    require(actor, Permission.MANAGE_SERVERS, workspace_id=server.workspace_id)


def may_dismiss(actor: Actor, workspace_id: UUID) -> bool:
    """Whether the actor may switch off servers of the workspace and of its people."""
    return has_permission(actor, Permission.MANAGE_SERVERS, workspace_id=workspace_id)
