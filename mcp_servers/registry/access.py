"""The servers that a member may use, and why."""

from __future__ import annotations

from django.db.models import Q

from mcp_servers.models import McpServer, OAuthGrant, ServerScope
from workspaces.access import MOST_SHOWN, Access
from workspaces.models import Membership

_WHY = {
    ServerScope.GLOBAL: "The platform offers it to the workspace",
    ServerScope.WORKSPACE: "Everybody in the workspace may use it",
    ServerScope.PERSONAL: "Their own",
}


def read_access(membership: Membership) -> list[Access]:
    """Servers that are switched on, and where the person is signed in."""
    servers = (
        McpServer.objects.for_workspace(membership.workspace_id)
        .filter(Q(owner=None) | Q(owner_id=membership.user_id), is_active=True)
        .order_by("name")
    )
    grants = (
        OAuthGrant.objects.for_workspace(membership.workspace_id)
        .of(membership.user_id)
        .select_related("server")
        .order_by("server__name")
    )
    return [
        Access(kind="server", name=server.name, why=_WHY[ServerScope(server.scope)])
        for server in servers[:MOST_SHOWN]
    ] + [
        Access(
            kind="sign-in",
            name=grant.server.name,
            why=f"They signed in there as {grant.account}"
            if grant.account
            else "They signed in there",
        )
        for grant in grants[:MOST_SHOWN]
    ]
