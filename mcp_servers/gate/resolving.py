"""The tool that is meant, with its server and what it takes to connect: read each time, built only if it changed.

Every call reads the tool's and the server's columns, so nothing is ever stale; building rows, checking settings and
opening secrets is left out as long as no column differs.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from django.db.models import Exists

from mcp_servers.client import transports
from mcp_servers.models import OAUTH_TYPES, McpTool, ServerScope, ToolPermission
from mcp_servers.registry.consent import call_rules
from mcp_servers.registry.specs import connection_spec
from workspaces.database.prepared import PreparedRows
from workspaces.models import Membership, User

if TYPE_CHECKING:
    from mcp_servers.client.spec import ConnectionSpec

MOST_KEPT: Final = 2_000
_UNREAD: Final = (
    *("status_reason", "last_connected_at", "last_checked_at", "next_check_at", "latency_ms"),
    *("consecutive_failures", "instructions", "tools_listed_at", "lists_stale_at", "updated_at"),
)
"""Of a server's state: no call looks at it, so a check that went well leaves what is kept here as it is."""


class ResolvedTool:
    """A tool as it stands, for reading only: calls side by side share it."""

    def __init__(self, tool: McpTool) -> None:
        self.tool = tool
        self._spec: ConnectionSpec | None = None

    def spec(self, user_id: UUID | None) -> ConnectionSpec:
        """What it takes to connect to the tool's server for the person who is there. Raises as connection_spec()."""
        server = self.tool.server
        if (
            server.scope == ServerScope.GLOBAL
            or server.transport == transports.STDIO
            or server.auth_type in OAUTH_TYPES
            or server.hosted_by
        ):
            # The platform's file, the program on its disk, the account or the provider's word may be another by now.
            return connection_spec(server, user_id=user_id)
        if self._spec is None:
            self._spec = connection_spec(server)
        return self._spec


def _tools(workspace_id: UUID, tool_id: UUID) -> Any:
    tools = McpTool.objects.for_workspace(workspace_id).select_related(
        "workspace", "server__program", "server__global_server", "server__state"
    )
    unread = (f"server__state__{name}" for name in _UNREAD)
    return tools.filter(pk=tool_id).defer(*unread).order_by()


def _tools_for(workspace_id: UUID, tool_id: UUID, user_id: UUID) -> Any:
    tools = _tools(workspace_id, tool_id)
    asks = ToolPermission.objects.for_workspace(workspace_id).filter(
        user_id=user_id, tool_id=tool_id, asks_always=True
    )
    return tools.annotate(
        is_member=Exists(_members(user_id, workspace_id)),
        has_call_rules=call_rules.are_on(workspace_id),
        asks_always=Exists(asks.order_by().values("pk")),
    )


def _members(user_id: UUID, workspace_id: UUID) -> Any:
    members = Membership.objects.for_workspace(workspace_id).filter(
        user_id=user_id, user__is_active=True, workspace__is_active=True
    )
    return members.order_by().values("pk")


_TOOL_ROW: Final = PreparedRows(_tools, UUID, UUID)
_TOOL_ROW_FOR: Final = PreparedRows(_tools_for, UUID, UUID, UUID)
_IS_MEMBER: Final = len(McpTool._meta.concrete_fields)
"""Where its row says whether the person is a member: behind the tool's own columns."""
_BEHIND_FOR: Final = _IS_MEMBER + 3
"""Where the rest of the row begins: what follows says whether there are call rules, and whether the person wants to be asked."""
_MEMBER_ROW: Final = PreparedRows(_members, UUID, UUID)

_lock = threading.Lock()
_kept: OrderedDict[tuple[UUID, UUID], tuple[tuple[Any, ...], ResolvedTool]] = OrderedDict()


def resolve_tool(workspace_id: UUID, tool_id: UUID) -> ResolvedTool | None:
    """The tool with its server, as the database has it now; None if it is not in this workspace."""
    row = _TOOL_ROW.first_values(workspace_id, tool_id)
    return _built(workspace_id, tool_id, row) if row is not None else None


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedFor:
    """The same, and what goes with the person who asks, read in the one statement."""

    resolved: ResolvedTool | None
    may_enter: bool
    """They may still enter the workspace."""
    has_call_rules: bool = True
    """The workspace has rules on calls, and they are on."""
    asks_always: bool = False
    """They want to be asked each time before this tool runs."""


def resolve_tool_for(user_id: UUID, workspace_id: UUID, tool_id: UUID) -> ResolvedFor:
    """The tool as it stands, for this person."""
    row = _TOOL_ROW_FOR.first_values(workspace_id, tool_id, user_id)
    if row is None:
        return ResolvedFor(resolved=None, may_enter=may_still_enter(user_id, workspace_id))
    is_member, has_call_rules, asks_always = (bool(one) for one in row[_IS_MEMBER:_BEHIND_FOR])
    return ResolvedFor(
        resolved=_built(workspace_id, tool_id, row[:_IS_MEMBER] + row[_BEHIND_FOR:]),
        may_enter=is_member or _is_superuser(user_id),
        has_call_rules=has_call_rules,
        asks_always=asks_always,
    )


def _built(workspace_id: UUID, tool_id: UUID, row: tuple[Any, ...]) -> ResolvedTool | None:
    key = (workspace_id, tool_id)
    with _lock:
        kept = _kept.get(key)
        if kept is not None and kept[0] == row:
            _kept.move_to_end(key)
            return kept[1]
    tool = _tools(workspace_id, tool_id).first()
    if tool is None:
        return None
    tool.server.workspace = tool.workspace
    resolved = ResolvedTool(tool)
    with _lock:
        _kept[key] = (row, resolved)
        while len(_kept) > MOST_KEPT:
            _kept.popitem(last=False)
    return resolved


def may_still_enter(user_id: UUID, workspace_id: UUID) -> bool:
    """Whether a person is a member of this workspace now, or the platform's owner."""
    is_member = _MEMBER_ROW.first_values(user_id, workspace_id) is not None
    return is_member or _is_superuser(user_id)


def _is_superuser(user_id: UUID) -> bool:
    return User.objects.filter(pk=user_id, is_active=True, is_superuser=True).exists()
