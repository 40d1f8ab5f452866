"""Calls that ended with a question which no client answered: the log has their end all the same."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from django.db import transaction

from audit.services import is_call_open
from mcp_servers.client.values import ToolCallRequest
from mcp_servers.gate import abandon_call
from mcp_servers.models import InputRequest, InputStatus, McpTool
from workspaces.actors import Actor, Source
from workspaces.database import database_now
from workspaces.database.row_security import in_workspace

_RUNNING_FOR: Final = timedelta(hours=1)
"""A call whose question ran out so long ago has nobody who runs it."""
_LOOKED_BACK: Final = timedelta(days=2)


def end_unanswered() -> int:
    """Record the end of calls whose client never came back with an answer. Gives how many."""
    now = database_now()
    rows = InputRequest.objects.across_workspaces().filter(
        status=InputStatus.EXPIRED,
        conversation_id=None,
        expires_at__lt=now - _RUNNING_FOR,
        expires_at__gt=now - _LOOKED_BACK,
    )
    return sum(_end(row) for row in rows.order_by("expires_at"))


def _end(row: InputRequest) -> bool:
    with transaction.atomic(), in_workspace(row.workspace_id):
        tools = McpTool.objects.for_workspace(row.workspace_id)
        tool = tools.filter(server_id=row.server_id, name=row.tool_name).first()
        if tool is None or not is_call_open(row.workspace_id, row.call_id):
            return False
        request = ToolCallRequest(
            call_id=row.call_id,
            workspace_id=row.workspace_id,
            tool_id=tool.pk,
            arguments={},
            actor=Actor.system(source=Source.TASK, workspace_id=row.workspace_id),
        )
        abandon_call(request, reason="Nobody answered the server's question in time.")
        return True
