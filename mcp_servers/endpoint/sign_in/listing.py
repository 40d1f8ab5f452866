"""The sign-ins of clients that people may see: their own, and for administrators those of all members."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcp_servers.models import ClientSignIn
from workspaces.roles import Permission, require

if TYPE_CHECKING:
    from mcp_servers.models.client_sign_ins import ClientSignInQuerySet
    from workspaces.actors import Actor
    from workspaces.models import User, Workspace


def own_sign_ins(workspace: Workspace, user: User) -> ClientSignInQuerySet:
    """The clients that a person has let in here."""
    rows: ClientSignInQuerySet = ClientSignIn.objects.for_workspace(workspace)
    return rows.filter(user=user).under_way().select_related("user")


def all_sign_ins(workspace: Workspace, *, actor: Actor) -> ClientSignInQuerySet:
    """The clients that members have let in.

    Raises:
        PermissionDenied: the actor may not manage members.
    """
    require(actor, Permission.MANAGE_MEMBERS, workspace_id=workspace.pk)
    rows: ClientSignInQuerySet = ClientSignIn.objects.for_workspace(workspace)
    return rows.under_way().select_related("user")
