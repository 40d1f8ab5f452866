"""When a membership ends, what the person connected, allowed and was asked goes with it."""

from __future__ import annotations

from typing import Any

from django.db.models import Q
from django.db.models.functions import Now

from mcp_servers.models import Approval, InputRequest, InputStatus, McpServer, ToolSighting
from mcp_servers.oauth.revoking import remove_grants_of_person
from mcp_servers.registry.consent.permissions import forget_permissions_of
from mcp_servers.registry.elicitation import withdraw_inputs
from mcp_servers.registry.services.servers import remove_row
from workspaces.changes import ConfigurationChange, configuration_changed
from workspaces.models import Membership
from workspaces.people.memberships import person_parted


def listen_to_leaving() -> None:
    """Called once at start."""
    configuration_changed.connect(
        _membership_changed, sender=Membership, dispatch_uid="mcp_servers.leaving"
    )


def _membership_changed(sender: type[Membership], change: ConfigurationChange, **_: Any) -> None:
    parted = person_parted(change)
    if parted is None:
        return
    workspace_id, user_id = parted
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
