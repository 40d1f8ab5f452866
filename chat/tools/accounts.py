"""What a page needs to know of accounts: where a sign-in is done that a call waits for, and whose access a call uses."""

from __future__ import annotations

from typing import Any

from django.urls import reverse

from chat.models import ToolCall
from chat.values import ToolCallStatus
from mcp_servers.client.inputs import InputKind
from mcp_servers.models import InputRequest, InputStatus, McpServer
from mcp_servers.oauth.grants import uses_own_accounts
from mcp_servers.registry.elicitation.sign_ins import OWN
from workspaces.actors import Source
from workspaces.middleware import actor_for
from workspaces.roles import Permission, has_permission


def sign_in_json(request: InputRequest) -> dict[str, Any] | None:
    """None for any other question, and for one that is settled."""
    if request.kind != InputKind.SIGN_IN or request.status != InputStatus.PENDING:
        return None
    path = reverse("mcp_servers:sign_in", args=[request.workspace.slug, request.server_id])
    return {"path": path, "may_connect": _may_connect(request)}


def credential_of(call: ToolCall) -> str | None:
    """Whose access a call that waits for approval would use: workspace, or personal; None for any other."""
    if call.status != ToolCallStatus.WAITING_FOR_APPROVAL or call.server_id is None:
        return None
    server = McpServer.objects.for_workspace(call.workspace_id).find(call.server_id)
    is_personal = server is not None and (server.owner_id is not None or uses_own_accounts(server))
    return "personal" if is_personal else "workspace"


def _may_connect(request: InputRequest) -> bool:
    """Their own account is theirs to connect, and the workspace's its administrators'."""
    if request.params.get("account") == OWN:
        return True
    person = actor_for(request.asked_of, request.workspace, source=Source.WEB)
    return has_permission(person, Permission.MANAGE_SERVERS, workspace_id=request.workspace_id)
