"""Trying one tool out, as an administrator: through the same gate as everybody."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Final

from django.utils import timezone
from uuid_utils.compat import uuid7

from audit.actions import RefusedBy
from mcp_servers.client.canonical import JsonValue
from mcp_servers.client.connections.runtime import run_sync
from mcp_servers.client.values import Effect, ToolCallOutcome, ToolCallRequest
from mcp_servers.gate import call_tool
from mcp_servers.gate.access import for_manager
from mcp_servers.gate.admission import GatedCall
from mcp_servers.gate.resolving import resolve_tool
from mcp_servers.registry.consent import call_rules, policy
from mcp_servers.registry.consent.approvals import grant_approval
from mcp_servers.registry.consent.call_policy import facts_of_call
from mcp_servers.registry.rights import may_dismiss, require_to_manage
from workspaces.errors import PermissionDenied

if TYPE_CHECKING:
    from uuid import UUID

    from mcp_servers.client.decisions import PolicyDecision
    from mcp_servers.models import McpTool
    from workspaces.actors import Actor
    from workspaces.process.departures import Departure

_CONFIRMED_FOR: Final = timedelta(minutes=1)


def find_tool(workspace_id: UUID, tool_id: UUID, actor: Actor) -> McpTool | None:
    """The tool, for reading only, of an actor who was let into the workspace by this request.

    None: there is none, or this person does not manage its server, and whether they see it has to be looked up.
    """
    resolved = resolve_tool(workspace_id, tool_id)
    if resolved is None:
        return None
    owner_id = resolved.tool.server.owner_id
    if owner_id is None:
        return resolved.tool if may_dismiss(actor, workspace_id) else None
    return resolved.tool if owner_id == actor.user_id else None


def decide_on(tool: McpTool, arguments: Mapping[str, JsonValue], actor: Actor) -> PolicyDecision:
    """What policy and the workspace's call rules say of this call, before anybody's own "always"."""
    facts = facts_of_call(tool, arguments)
    call = call_rules.matched_call(tool, arguments, call_rules.role_of(actor))
    ruled = call_rules.decide(call_rules.enabled_rules(tool.workspace_id), call)
    return policy.apply_rule(policy.decide(facts), facts, ruled)


def may_ask_by_rule(tool: McpTool) -> bool:
    """Whether a call rule may have calls of this workspace ask first, depending on their arguments."""
    rules = call_rules.enabled_rules(tool.workspace_id)
    return any(rule.effect is Effect.CONFIRM for rule in rules)


def try_tool(
    *,
    tool: McpTool,
    arguments: Mapping[str, JsonValue],
    actor: Actor,
    is_confirmed: bool = False,
    departure: Departure | None = None,
) -> ToolCallOutcome:
    """Call a tool once.

    Args:
        is_confirmed: the actor has said yes to exactly this call; needed where policy asks first.
        departure: of the actor, who alone wants the outcome: the call is stopped then.

    Raises:
        CallerLeft: it was stopped.
        AccessEnded: so it was, because the actor does not manage the server any more.
        PermissionDenied: the actor may not manage servers here; recorded as a refusal.
        ApprovalMissing: it is not confirmed, and has to be.
        And whatever call_tool() raises.
    """
    request = ToolCallRequest(
        call_id=uuid7(),
        workspace_id=tool.workspace_id,
        tool_id=tool.pk,
        arguments=arguments,
        actor=actor,
    )
    try:
        require_to_manage(actor, tool.server)
    except PermissionDenied as error:
        GatedCall(request, tool).refuse(error, RefusedBy.PERMISSION, "tester.forbidden")
    if is_confirmed and decide_on(tool, arguments, actor).effect is Effect.CONFIRM:
        approval = grant_approval(
            call_id=request.call_id,
            tool=tool,
            arguments=arguments,
            requester=actor,
            approver=actor,
            expires_at=timezone.now() + _CONFIRMED_FOR,
        )
        request = replace(request, approval_id=approval.pk)
    # Where the connections live: from there to the server is no further crossing.
    work = for_manager(partial(call_tool, request), actor, tool.server_id)
    return run_sync(work, departure=departure)
