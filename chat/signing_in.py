"""What a page needs to know of a sign-in that a call waits for: where it is done, and whether this person may do it."""

from __future__ import annotations

from typing import Any

from django.urls import reverse

from mcp_servers.elicitation.sign_ins import OWN
from mcp_servers.inputs import InputKind
from mcp_servers.models import InputRequest, InputStatus
from workspaces.actors import Source
from workspaces.middleware import actor_for
from workspaces.roles import Permission, has_permission


def sign_in_json(request: InputRequest) -> dict[str, Any] | None:
    """None for any other question, and for one that is settled."""
    if request.kind != InputKind.SIGN_IN or request.status != InputStatus.PENDING:
        return None
    path = reverse("mcp_servers:sign_in", args=[request.workspace.slug, request.server_id])
    return {"path": path, "may_connect": _may_connect(request)}


def _may_connect(request: InputRequest) -> bool:
    """Their own account is theirs to connect, and the workspace's its administrators'."""
    if request.params.get("account") == OWN:
        return True
    person = actor_for(request.asked_of, request.workspace, source=Source.WEB)
    return has_permission(person, Permission.MANAGE_SERVERS, workspace_id=request.workspace_id)
