"""Whether a client still may use the endpoint: by its token or its sign-in, its person and the workspace."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.utils import timezone

from mcp_servers.endpoint.sign_in.proofs import is_proof_of
from mcp_servers.models import ClientSignIn
from workspaces.models import ApiToken, User
from workspaces.people.entering import open_workspaces

if TYPE_CHECKING:
    from mcp_servers.endpoint.callers import EndpointCaller


def has_access(caller: EndpointCaller) -> bool:
    """Whether it may now."""
    user = User.objects.filter(pk=caller.user_id, is_active=True).first()
    if user is None:
        return False
    entered = open_workspaces(user).filter(pk=caller.workspace_id)
    if not entered.filter(allows_mcp_clients=True).exists():
        return False
    token_id, workspace_id = caller.actor.token_id, caller.workspace_id
    if token_id is None:
        return False
    if ApiToken.objects.for_workspace(workspace_id).living().filter(pk=token_id).exists():
        return True
    sign_ins = ClientSignIn.objects.for_workspace(workspace_id)
    sign_in = sign_ins.filter(pk=token_id, expires_at__gt=timezone.now()).first()
    return sign_in is not None and is_proof_of(sign_in.proof, user)
