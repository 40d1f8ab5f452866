"""Trying call rules out: which of them decides about a call that nobody makes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from mcp_servers.models import McpTool
from mcp_servers.registry.consent import call_rules
from mcp_servers.registry.consent.rule_matching import Called, Names
from workspaces.roles import Permission, require

if TYPE_CHECKING:
    from uuid import UUID

    from mcp_servers.client.decisions import RuleDecision
    from workspaces.actors import Actor


def try_call_rules(
    *,
    workspace_id: UUID,
    server: str,
    tool: str,
    arguments: Mapping[str, Any],
    role: str,
    actor: Actor,
) -> RuleDecision | None:
    """What the rules that are on say of a call; None: nothing. Server and tool need not exist yet.

    Raises:
        PermissionDenied: the actor may not manage servers.
    """
    require(actor, Permission.MANAGE_SERVERS, workspace_id=workspace_id)
    tools = McpTool.objects.for_workspace(workspace_id).select_related("server")
    known = tools.filter(server__name=server, server__owner=None, name=tool).first()
    if known is not None:
        call = call_rules.called(known, arguments, role)
    else:
        call = Called(
            server=Names(known=(server,)),
            tool=Names(known=(tool,)),
            role=role,
            arguments=arguments,
        )
    return call_rules.decide(call_rules.enabled_rules(workspace_id), call)
