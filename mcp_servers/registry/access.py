"""The servers that a member may use, and why."""

from __future__ import annotations

from django.db.models import Q
from django.utils.translation import gettext, gettext_noop
from django.utils.translation import gettext as _

from mcp_servers.models import McpServer, OAuthGrant, ServerScope
from workspaces.access import MOST_SHOWN, Access
from workspaces.models import Membership

_WHY = {
    ServerScope.GLOBAL: gettext_noop("The platform offers it to the workspace"),
    ServerScope.WORKSPACE: gettext_noop("Everybody in the workspace may use it"),
    ServerScope.PERSONAL: gettext_noop("Their own"),
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
        Access(kind="server", name=server.name, why=gettext(_WHY[ServerScope(server.scope)]))
        for server in servers[:MOST_SHOWN]
    ] + [
        Access(
            kind="sign-in",
            name=grant.server.name,
            why=_("They signed in there as %(account)s") % {"account": grant.account}
            if grant.account
            else _("They signed in there"),
        )
        for grant in grants[:MOST_SHOWN]
    ]
