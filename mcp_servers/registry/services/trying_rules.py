"""Trying call rules out: which of them decides about a call that nobody makes, and which of them can decide about none."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from django.db.models import Q

from mcp_servers.models import McpTool, meta_tools
from mcp_servers.registry.consent import call_rules
from mcp_servers.registry.consent.rule_matching import (
    AppliedRule,
    MatchedCall,
    PossibleNames,
    is_about,
)
from workspaces.roles import Permission, require

if TYPE_CHECKING:
    from uuid import UUID

    from mcp_servers.client.decisions import RuleDecision
    from mcp_servers.models import CallRule
    from workspaces.actors import Actor

_MOST_TOOLS: Final = 5000
"""How many tools rules are compared with; where there are more, nothing is said of the rules."""


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
        call = call_rules.matched_call(known, arguments, role)
    else:
        call = MatchedCall(
            server=PossibleNames(known=(server,)),
            tool=PossibleNames(known=(tool,)),
            role=role,
            arguments=arguments,
        )
    return call_rules.decide(call_rules.enabled_rules(workspace_id), call)


def rules_without_tools(*, workspace_id: UUID, rules: Iterable[CallRule]) -> frozenset[UUID]:
    """Which of these rules are about no tool that the workspace knows: mostly, a name in them is mistyped."""
    # What is about everything has no name that could be wrong.
    named = [row for row in rules if not ("*" in row.servers and "*" in row.tools)]
    if not named:
        return frozenset()
    tools = McpTool.objects.for_workspace(workspace_id).offered()
    # Such a tool can be about anything, by what it is given.
    may_run_actions = ~Q(server__hosted_by="") | Q(name=meta_tools.RUNNING)
    rows = list(
        tools.exclude(may_run_actions)
        .order_by()
        .values_list("server__name", "name", "server__owner_id")[: _MOST_TOOLS + 1]
    )
    if len(rows) > _MOST_TOOLS:
        return frozenset()
    calls = [
        MatchedCall(
            server=PossibleNames(known=(server,)),
            tool=PossibleNames(known=(tool,)),
            is_personal=owner_id is not None,
            arguments={},
        )
        for server, tool, owner_id in rows
    ]
    with_actions = tools.filter(may_run_actions).select_related("server")[:_MOST_TOOLS]
    calls += [call_rules.matched_call(tool, {}, "") for tool in with_actions]
    return frozenset(
        row.pk
        for row in named
        # Whoever asks: nobody mistypes a role.
        if not _is_about_any(replace(call_rules.as_rule(row), roles=()), calls)
    )


def _is_about_any(rule: AppliedRule, calls: Iterable[MatchedCall]) -> bool:
    return any(is_about(rule, call) for call in calls)
