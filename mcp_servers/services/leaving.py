"""When a membership ends, the accounts and servers that the person connected for themselves go with it."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from mcp_servers.models import McpServer
from mcp_servers.oauth.revoking import remove_grants_of_person
from mcp_servers.services.servers import remove_row
from workspaces.changes import ConfigurationChange, configuration_changed
from workspaces.models import Membership


def listen_to_leaving() -> None:
    """Delete grants and personal servers together with memberships. Called once at start."""
    configuration_changed.connect(
        _membership_changed, sender=Membership, dispatch_uid="mcp_servers.leaving"
    )


def _membership_changed(sender: type[Membership], change: ConfigurationChange, **_: Any) -> None:
    if change.verb != "deleted" or change.workspace_id is None:
        return
    owner_id = UUID(str(change.before["user"]))
    remove_grants_of_person(change.workspace_id, owner_id, change.actor)
    own = McpServer.objects.for_workspace(change.workspace_id).filter(owner=owner_id)
    for server in own.select_related("global_server"):
        remove_row(server, actor=change.actor)
