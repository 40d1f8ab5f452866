"""A call as one span with its ids, by the conventions for GenAI tools and MCP; log lines of the call carry its id.

The SDK makes the client's span of the request itself inside this one, and gives the server its `traceparent` in
`_meta` (SEP-414).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, TypeAlias

from audit.actions import FAILURES
from workspaces.process.tracing import bound, mark_failed, span

if TYPE_CHECKING:
    from mcp_servers.client.values import ToolCallOutcome, ToolCallRequest
    from mcp_servers.gate.caller import Caller

    Call: TypeAlias = Callable[..., Coroutine[Any, Any, ToolCallOutcome]]


def observed(call: Call) -> Call:
    """The same call, observed."""

    @functools.wraps(call)
    async def run(request: ToolCallRequest, *, caller: Caller | None = None) -> ToolCallOutcome:
        ids = bound(
            call_id=request.call_id, turn_id=request.turn_id, workspace_id=request.workspace_id
        )
        with ids, span("execute_tool", attributes=_attributes(request)) as current:
            outcome = await call(request, caller=caller)
            current.set_attribute("trellis.outcome", outcome.outcome.value)
            if outcome.outcome in FAILURES:
                mark_failed(current, outcome.outcome.value)
            return outcome

    return run


def _attributes(request: ToolCallRequest) -> dict[str, str | int | float | bool]:
    found: dict[str, str | int | float | bool] = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.call.id": str(request.call_id),
        "mcp.method.name": "tools/call",
        "trellis.tool.id": str(request.tool_id),
        "trellis.workspace.id": str(request.workspace_id),
    }
    if request.conversation_id is not None:
        found["gen_ai.conversation.id"] = str(request.conversation_id)
    return found
