"""Who may do what with a hosted instance: administrators with the workspace's, people with their own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcp_servers.registry.rights import require_to_own
from workspaces.errors import PermissionDenied
from workspaces.roles import Permission, has_permission, passes, require

if TYPE_CHECKING:
    from mcp_servers.klavis.models import KlavisInstance
    from workspaces.actors import Actor


def require_to_manage(actor: Actor, instance: KlavisInstance) -> None:
    """Make sure that the actor may sign this instance in, change and look after it.

    Raises:
        PermissionDenied: it is not theirs, or the workspace allows no servers of people's own.
    """
    if instance.user_id is None:
        require(actor, Permission.MANAGE_SERVERS, workspace_id=instance.workspace_id)
        return
    require_to_own(actor, instance.workspace)
    if instance.user_id != actor.user_id:
        raise PermissionDenied


def may_manage(actor: Actor, instance: KlavisInstance) -> bool:
    """Whether require_to_manage() would let this pass."""
    return passes(require_to_manage, actor, instance)


def require_to_remove(actor: Actor, instance: KlavisInstance) -> None:
    """Make sure that the actor may uninstall it: their own always, and administrators everybody's."""
    if instance.user_id is not None and instance.user_id == actor.user_id:
        require(actor, Permission.USE_CHAT, workspace_id=instance.workspace_id)
        return
    require(actor, Permission.MANAGE_SERVERS, workspace_id=instance.workspace_id)


def may_remove(actor: Actor, instance: KlavisInstance) -> bool:
    """Whether require_to_remove() would let this pass."""
    return passes(require_to_remove, actor, instance)


def may_follow_sign_in(actor: Actor, instance: KlavisInstance) -> bool:
    """Whether the actor sees where a sign-in goes, and hears what came of it: who began it; administrators, of the workspace's."""
    if actor.user_id is None or actor.workspace_id != instance.workspace_id:
        return False
    if instance.user_id is not None:
        return instance.user_id == actor.user_id and may_manage(actor, instance)
    return has_permission(actor, Permission.MANAGE_SERVERS, workspace_id=instance.workspace_id)
