"""Calls that wait for approval of a tool that cannot be used any more: the gate refuses them, and their answers go on."""

from __future__ import annotations

from typing import Any, Final
from uuid import UUID

from django.db.models import Exists, OuterRef

from chat.engine.waiting import tell_second_persons
from chat.live.recording import changing
from chat.models import ToolCall
from chat.services.turns import queue_again
from chat.values import ToolCallStatus
from mcp_servers.models import ApprovalOverride, McpServer, McpTool
from workspaces.changes import ConfigurationChange, configuration_changed
from workspaces.database import once_after_commit
from workspaces.jobs.sweeping import sweep
from workspaces.scoping import WorkspaceQuerySet

_MOST_RELEASED: Final = 500
"""In one round; the next one goes on."""
_FIELDS: Final = frozenset(
    {"is_active", "is_enabled", "removed_at", "definition_hash", "approval_override"}
)
"""Of a server or a tool. After a change of one of them, a tool may be one that nobody can use any more."""


def listen_to_servers() -> None:
    """Called once at start."""
    for model in (McpServer, McpTool):
        uid = f"chat.withdrawn_tools.{model.__name__}"
        configuration_changed.connect(_changed, sender=model, dispatch_uid=uid)


def _changed(sender: type[McpServer | McpTool], change: ConfigurationChange, **_: Any) -> None:
    if change.verb == "created" or (change.verb == "changed" and not _FIELDS & set(change.after)):
        return
    if change.workspace_id is not None:
        once_after_commit(release_calls, workspace_id=change.workspace_id)


def release_calls(workspace_id: UUID | None = None) -> int:
    """Let every call go on whose tool is gone, switched off, blocked, or not what the person is asked about; how many.

    The gate refuses such a call, and says why on its card and in the log.

    Args:
        workspace_id: looks at the calls of this one alone.
    """
    rows = _withdrawn()
    if workspace_id is not None:
        rows = rows.filter(workspace_id=workspace_id)
    return sweep(rows, _release, label="release_calls", most=_MOST_RELEASED)


def _withdrawn() -> WorkspaceQuerySet[ToolCall]:
    usable = McpTool.objects.across_workspaces().filter(
        pk=OuterRef("tool_id"),
        workspace_id=OuterRef("workspace_id"),
        definition_hash=OuterRef("definition_hash"),
        is_enabled=True,
        removed_at=None,
        server__is_active=True,
    )
    usable = usable.exclude(approval_override=ApprovalOverride.DENY.value)
    waiting: WorkspaceQuerySet[ToolCall] = ToolCall.objects.across_workspaces().filter(
        ~Exists(usable.order_by()),
        status=ToolCallStatus.WAITING_FOR_APPROVAL.value,
        tool_id__isnull=False,
    )
    return waiting.select_related("turn").order_by("pk")


def _release(found: ToolCall) -> bool:
    with changing(found.turn.conversation_id, found.workspace_id) as changes:
        call = _withdrawn().filter(pk=found.pk).first()
        if call is None:
            return False  # somebody decided, or it can be used again
        call.status = ToolCallStatus.QUEUED.value
        call.save(update_fields=["status", "updated_at"])
        changes.tool_call(call)
        queue_again(call.turn, changes)
        if call.needs_second_person:
            tell_second_persons(call)
    return True
