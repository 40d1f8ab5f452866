"""What policy decides on for one call: the tool's facts, and those of the action that the call really runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from mcp_servers.client.values import Effect
from mcp_servers.models import ActionRule, meta_tools

if TYPE_CHECKING:
    from mcp_servers.client.values import ToolFacts
    from mcp_servers.models import McpTool
    from mcp_servers.models.meta_tools import EffectiveAction


def facts_of_call(tool: McpTool, arguments: Mapping[str, object]) -> ToolFacts:
    """The facts of a tool, called with these arguments."""
    facts = tool.facts()
    if not facts.is_indirect:
        return facts
    action = meta_tools.read_action(tool.name, arguments)
    if action is None:
        return facts
    return replace(facts, action=action.label, action_effect=_effect_of(tool, action))


def action_of(tool: McpTool, arguments: Mapping[str, object]) -> EffectiveAction | None:
    """The action that a call runs, if the tool runs any and it can be said."""
    return meta_tools.read_action(tool.name, arguments) if tool.is_indirect else None


def details_of(tool: McpTool | None, arguments: Mapping[str, object]) -> dict[str, str]:
    """What the log says of the action; nothing of an ordinary tool."""
    if tool is None or not tool.is_indirect:
        return {}
    action = meta_tools.read_action(tool.name, arguments)
    return {"effective_action": action.label if action is not None else "(not to be told)"}


def _effect_of(tool: McpTool, action: EffectiveAction) -> Effect | None:
    """What an administrator decided. What refuses or asks counts for all that could be the same action."""
    effects: set[Effect] = set()
    for rule in ActionRule.objects.for_workspace(tool.workspace_id).filter(server=tool.server_id):
        known = meta_tools.EffectiveAction(
            service=rule.service, category=rule.category, action=rule.action
        )
        is_same = known.key == action.key
        if is_same or (rule.effect != Effect.AUTO and known.may_be(action)):
            effects.add(Effect(rule.effect))
    for effect in (Effect.DENY, Effect.CONFIRM, Effect.AUTO):
        if effect in effects:
            return effect
    return None
