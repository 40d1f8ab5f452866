"""When a membership ends, what the person connected, allowed and was asked goes with it."""

from __future__ import annotations

from uuid import UUID

from django.db.models import Q
from django.db.models.functions import Now

from mcp_servers.models import Approval, InputRequest, InputStatus, McpServer, ToolSighting
from mcp_servers.oauth.revoking import remove_grants_of_person
from mcp_servers.registry.consent.permissions import forget_permissions_of
from mcp_servers.registry.elicitation import withdraw_inputs
from mcp_servers.registry.services.servers import remove_row
from workspaces.changes import ConfigurationChange


def end_rows_of(workspace_id: UUID, user_id: UUID, change: ConfigurationChange) -> None:
    """Withdraw grants, permissions, approvals and questions, and remove the person's own servers."""
    remove_grants_of_person(workspace_id, user_id, change.actor)
    forget_permissions_of(workspace_id, user_id, change.actor)
    Approval.objects.for_workspace(workspace_id).filter(
        Q(requester_id=user_id) | Q(approver_id=user_id), consumed_at=None, expires_at__gt=Now()
    ).update(expires_at=Now())
    asked = InputRequest.objects.for_workspace(workspace_id).filter(
        asked_of_id=user_id, status=InputStatus.PENDING
    )
    for call_id in asked.values_list("call_id", flat=True).distinct():
        withdraw_inputs(call_id=call_id, workspace_id=workspace_id, actor=change.actor)
    ToolSighting.objects.for_workspace(workspace_id).filter(user_id=user_id).delete()
    own = McpServer.objects.for_workspace(workspace_id).filter(owner=user_id)
    for server in own.select_related("global_server"):
        remove_row(server, actor=change.actor)
