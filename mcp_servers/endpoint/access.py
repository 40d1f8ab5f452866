"""Whether a client still may use the endpoint while what it asked for is done. Each request asks that only once."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Final

from django.db import DatabaseError, InterfaceError
from django.utils import timezone
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_REQUEST

from mcp_servers.endpoint.sign_in.proofs import is_proof_of
from mcp_servers.models import ClientSignIn
from workspaces.database import in_database
from workspaces.models import ApiToken, User, Workspace

if TYPE_CHECKING:
    from mcp_servers.endpoint.callers import EndpointCaller

CHECK_SECONDS: Final = 3.0
"""How often it is asked again."""
ENDED: Final = (
    "Your access to this workspace ended while Trellis worked on this request, so it was stopped."
)


@contextlib.asynccontextmanager
async def ends_with_access(caller: EndpointCaller) -> AsyncIterator[None]:
    """Do something for a client, and stop it once the client's access ends.

    Raises:
        MCPError: it has ended.
    """
    try:
        async with asyncio.timeout(None) as limit:
            watching = asyncio.ensure_future(_watch(caller, limit))
            try:
                yield
            finally:
                watching.cancel()
    except TimeoutError:
        if limit.expired():
            raise MCPError(INVALID_REQUEST, ENDED) from None
        raise


async def _watch(caller: EndpointCaller, limit: asyncio.Timeout) -> None:
    may_go_on = True
    while may_go_on:
        await asyncio.sleep(CHECK_SECONDS)
        with contextlib.suppress(DatabaseError, InterfaceError):  # nobody can tell now
            may_go_on = await in_database(_has_access, caller)
    limit.reschedule(asyncio.get_running_loop().time())


def _has_access(caller: EndpointCaller) -> bool:
    user = User.objects.filter(pk=caller.user_id, is_active=True).first()
    if user is None:
        return False
    open_to = Workspace.objects.open_to(user).filter(pk=caller.workspace_id)
    if not open_to.filter(allows_mcp_clients=True).exists():
        return False
    token_id, workspace_id = caller.actor.token_id, caller.workspace_id
    if token_id is None:
        return False
    if ApiToken.objects.for_workspace(workspace_id).living().filter(pk=token_id).exists():
        return True
    sign_ins = ClientSignIn.objects.for_workspace(workspace_id)
    sign_in = sign_ins.filter(pk=token_id, expires_at__gt=timezone.now()).first()
    return sign_in is not None and is_proof_of(sign_in.proof, user)
