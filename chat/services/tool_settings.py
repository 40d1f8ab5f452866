"""One change after the other of what a conversation changes of its bud's tools."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Any
from uuid import UUID

from django.utils.translation import gettext as _

from chat.live.recording import changing
from chat.models import Conversation
from chat.services.conversations import active_status, set_overrides
from chat.values import McpConfigOverrides
from mcp_servers.models import McpServer, McpTool
from workspaces.actors import Actor
from workspaces.errors import InvalidInput
from workspaces.roles import Permission, require


class ToolChange(StrEnum):
    """What one change does. Done twice, it is done once."""

    ADD_SERVER = "add_server"
    REMOVE_SERVER = "remove_server"
    """One that was added before."""
    ENABLE_SERVER = "enable_server"
    DISABLE_SERVER = "disable_server"
    """One that the bud or the person brings along."""
    ENABLE_TOOL = "enable_tool"
    DISABLE_TOOL = "disable_tool"
    CHOOSE_TOOL = "choose_tool"
    """Which tool the model has to call, if any."""


_LIST_OF_SERVERS = {
    ToolChange.ADD_SERVER: ("additional_servers", True),
    ToolChange.REMOVE_SERVER: ("additional_servers", False),
    ToolChange.ENABLE_SERVER: ("disabled_servers", False),
    ToolChange.DISABLE_SERVER: ("disabled_servers", True),
}
"""Which list a change puts a server into, or takes it out of."""


def change_tools(
    *,
    conversation: Conversation,
    change: ToolChange,
    actor: Actor,
    server_id: UUID | None = None,
    tool_id: UUID | None = None,
    tool_choice: Any = None,
) -> Conversation:
    """Change one server, one tool or the choice; what other tabs and devices have changed stays.

    Args:
        server_id: of a change of a server.
        tool_id: of a change of a tool.
        tool_choice: of `CHOOSE_TOOL`; None: the bud's own counts.

    Raises:
        InvalidInput: what it is about is missing or not here, or there are too many of them.
    """
    require(actor, Permission.USE_CHAT, workspace_id=conversation.workspace_id)
    with changing(conversation.pk, conversation.workspace_id) as changes:
        row = changes.conversation
        before = row.overrides
        if change is ToolChange.CHOOSE_TOOL:
            after = {"tool_choice": tool_choice}
        elif change in _LIST_OF_SERVERS:
            after = _with_server(before, change, server_id)
        else:
            after = _with_tool(row, before, change, tool_id)
        set_overrides(row, {**before.model_dump(mode="json"), **after})
        row.save(update_fields=["mcp_config_overrides", "updated_at"])
        changes.conversation_row(turn_status=active_status(row))
    return row


def _with_server(
    before: McpConfigOverrides, change: ToolChange, server_id: UUID | None
) -> dict[str, Any]:
    if server_id is None:
        raise InvalidInput(fields={"server_id": [_("Say which server.")]})
    name, is_in = _LIST_OF_SERVERS[change]
    after = {name: _changed(map(str, getattr(before, name)), {str(server_id)}, is_in=is_in)}
    if change is ToolChange.ADD_SERVER:
        # Whoever adds one wants to use it, also where it was switched off before it was to be added.
        off = map(str, before.disabled_servers)
        after["disabled_servers"] = _changed(off, {str(server_id)}, is_in=False)
    return after


def _with_tool(
    row: Conversation, before: McpConfigOverrides, change: ToolChange, tool_id: UUID | None
) -> dict[str, Any]:
    servers = McpServer.objects.for_workspace(row.workspace_id).visible_to(row.owner)
    rows = McpTool.objects.for_workspace(row.workspace_id).filter(server__in=servers)
    tool: McpTool | None = rows.find(tool_id) if tool_id is not None else None
    if tool is None:
        raise InvalidInput(fields={"tool_id": [_("There is no such tool here.")]})
    # By its name, since a tool that goes and comes back has another id.
    names = {f"{tool.server_id}.{tool.name}", str(tool.pk)}
    is_off = change is ToolChange.DISABLE_TOOL
    rest = _changed(before.disabled_tools, names, is_in=False)
    return {"disabled_tools": [*rest, f"{tool.server_id}.{tool.name}"] if is_off else rest}


def _changed(names: Iterable[str], wanted: set[str], *, is_in: bool) -> list[str]:
    """Give the names with these in or out; none stands there twice."""
    others = [one for one in names if one not in wanted]
    return [*others, *sorted(wanted)] if is_in else others
