"""What people decide about tools."""

from __future__ import annotations

from typing import Any

from django.db import transaction

from mcp_servers import discovery
from mcp_servers.models import ApprovalOverride, McpTool
from mcp_servers.rights import require_to_manage
from workspaces.actors import Actor
from workspaces.announcements import Announcement, announce
from workspaces.changes import tracked_change
from workspaces.errors import Conflict


@transaction.atomic
def set_tool_enabled(*, tool: McpTool, is_enabled: bool, actor: Actor) -> McpTool:
    """Offer a tool or stop offering it; a call that already runs may finish."""
    return _change_tool(tool, actor, is_enabled=is_enabled)


@transaction.atomic
def set_approval_override(*, tool: McpTool, override: ApprovalOverride, actor: Actor) -> McpTool:
    """Say for one tool whether it runs by itself, asks first, or is blocked."""
    return _change_tool(tool, actor, approval_override=override)


@transaction.atomic
def accept_definition(*, tool: McpTool, actor: Actor, seen_hash: str | None = None) -> McpTool:
    """Accept a tool's present definition, so that it may be used.

    Args:
        seen_hash: the definition that the person looked at.

    Raises:
        Conflict: it is another one by now.
    """
    require_to_manage(actor, tool.server)
    tool = McpTool.objects.for_workspace(tool.workspace_id).select_for_update().fetch(tool.pk)
    if seen_hash is not None and seen_hash != tool.definition_hash:
        raise Conflict("The definition has changed again. Please look at it once more.")
    with tracked_change(tool, actor=actor):
        discovery.accept(tool)
        tool.save(update_fields=["approved_hash", "approved_definition", "updated_at"])
    announce(tool.workspace_id, Announcement(kind="tools.changed", id=str(tool.server_id)))
    return tool


def _change_tool(tool: McpTool, actor: Actor, **values: Any) -> McpTool:
    require_to_manage(actor, tool.server)
    tool = McpTool.objects.for_workspace(tool.workspace_id).select_for_update().fetch(tool.pk)
    with tracked_change(tool, actor=actor):
        for name, value in values.items():
            setattr(tool, name, value)
        tool.save(update_fields=[*values, "updated_at"])
    announce(tool.workspace_id, Announcement(kind="tools.changed", id=str(tool.server_id)))
    return tool
