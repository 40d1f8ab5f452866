"""A call that waits for a person."""

from __future__ import annotations

from chat.models import ToolCall
from mcp_servers.models import McpTool
from tests.chat.conftest import Chat


def waiting_call(chat: Chat, arguments: dict[str, object] | None = None) -> ToolCall:
    """A destructive call that waits for its person."""
    chat.model.call(("counting__destroy", arguments or {"what": "the world"}))
    chat.send()
    chat.watching.turn("waiting_for_approval")
    return chat.calls()[0]


def tool_of(call: ToolCall) -> McpTool:
    """The tool of a call, with its server."""
    rows = McpTool.objects.for_workspace(call.workspace_id).select_related("server")
    tool: McpTool = rows.fetch(call.tool_id)
    return tool
