"""The servers and tools that a member may use, and why."""

from __future__ import annotations

from django.db.models import Q
from django.utils.translation import gettext, gettext_noop
from django.utils.translation import gettext as _

from mcp_servers.client.values import Effect
from mcp_servers.models import McpServer, McpTool, OAuthGrant, ServerScope
from mcp_servers.registry.consent.call_rules import PersonRules, rules_for
from mcp_servers.registry.consent.policy import apply_rule, decide
from mcp_servers.registry.discovery import shown_to
from workspaces.models import Membership
from workspaces.people.access import AccessCursor, AccessItem, rows_after

_WHY = {
    ServerScope.GLOBAL: gettext_noop("The platform offers it to the workspace"),
    ServerScope.WORKSPACE: gettext_noop("Everybody in the workspace may use it"),
    ServerScope.PERSONAL: gettext_noop("Their own"),
}


def read_servers(membership: Membership, after: AccessCursor | None, most: int) -> list[AccessItem]:
    """Servers that are switched on: the platform's and the workspace's that it uses, and the person's own."""
    servers = McpServer.objects.for_workspace(membership.workspace_id).filter(
        Q(owner=None) | Q(owner_id=membership.user_id), is_active=True
    )
    return [
        AccessItem(
            kind="server",
            name=server.name,
            why=gettext(_WHY[ServerScope(server.scope)]),
            key=str(server.pk),
        )
        for server in rows_after(servers, after, most)
    ]


def read_tools(membership: Membership, after: AccessCursor | None, most: int) -> list[AccessItem]:
    """Tools of these servers that can be called, and whether a call of theirs runs, asks or is blocked."""
    mine = Q(server__owner=None) | Q(server__owner_id=membership.user_id)
    tools = (
        McpTool.objects.for_workspace(membership.workspace_id)
        .callable()
        .filter(mine, shown_to(membership.user_id))
        .select_related("server")
    )
    rules = rules_for(membership.workspace_id, membership.user_id)
    return [
        AccessItem(kind="tool", name=tool.name, why=_why_of_tool(tool, rules), key=str(tool.pk))
        for tool in rows_after(tools, after, most)
    ]


def _why_of_tool(tool: McpTool, rules: PersonRules) -> str:
    facts = tool.facts()
    decision = apply_rule(decide(facts), facts, rules.every_call(tool))
    values = {"server": tool.server.name, "reason": gettext(decision.reason)}
    if decision.effect is Effect.AUTO:
        return _("Of %(server)s. It runs without asking. %(reason)s") % values
    if decision.effect is Effect.CONFIRM:
        return _("Of %(server)s. It asks first. %(reason)s") % values
    return _("Of %(server)s. It is blocked. %(reason)s") % values


def read_sign_ins(
    membership: Membership, after: AccessCursor | None, most: int
) -> list[AccessItem]:
    """Servers where the person is signed in."""
    grants = (
        OAuthGrant.objects.for_workspace(membership.workspace_id)
        .of(membership.user_id)
        .select_related("server")
    )
    return [
        AccessItem(
            kind="sign-in",
            name=grant.server.name,
            why=_("They signed in there as %(account)s") % {"account": grant.account}
            if grant.account
            else _("They signed in there"),
            key=str(grant.pk),
        )
        for grant in rows_after(grants, after, most, name="server__name")
    ]
