"""How a call that brought no result ended, as an outcome in plain words."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from audit.actions import Outcome
from mcp_servers.client.connections.failures import NOT_CARRIED_OUT
from mcp_servers.client.values import JsonValue, ToolCallOutcome
from workspaces.redaction import redact_known

if TYPE_CHECKING:
    from mcp_servers.client.connections.failures import CallFailed
    from mcp_servers.client.errors import McpServersError
    from mcp_servers.gate.admission import Plan

_NOTHING_DONE: Final = NOT_CARRIED_OUT | {
    "unreadable",
    "too_large",
    "asks_back",
    "task_gone",
    "task_failed",
    "task_cancelled",
}
"""Kinds after which nobody need fear that something was done unseen: nothing was, or the server itself tells of the end."""


def outcome_of(plan: Plan, kind: str) -> Outcome:
    """What a broken call means: the worst that the tool's nature allows."""
    if kind in _NOTHING_DONE or may_repeat(plan):
        return Outcome.TRANSPORT_ERROR
    return Outcome.OUTCOME_UNKNOWN


def may_repeat(plan: Plan) -> bool:
    """Whether calling the tool twice does no more than calling it once, by the word of a trusted server."""
    hints = plan.tool.typed_annotations
    return plan.tool.server.trusts_annotations and (
        hints.read_only is True or hints.idempotent is True
    )


def words_of(plan: Plan, error: CallFailed) -> str:
    text = f"{plan.tool.server.name}: {error.message}"
    if outcome_of(plan, error.kind) is Outcome.OUTCOME_UNKNOWN:
        text += " Whether the call was carried out is unknown."
    return text


def facts(error: McpServersError) -> dict[str, JsonValue]:
    return {
        key: value
        for key, value in error.details.items()
        if value is None or isinstance(value, bool | int | float | str)
    }


def failed(
    plan: Plan, outcome: Outcome, message: str, started: float, details: Mapping[str, JsonValue]
) -> ToolCallOutcome:
    return ToolCallOutcome(
        outcome=outcome,
        message=redact_known(message, workspace_id=plan.request.workspace_id),
        duration_ms=since(started),
        details=details,
    )


def since(started: float) -> int:
    return round((time.monotonic() - started) * 1000)
