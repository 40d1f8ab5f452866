"""The end of grants: rows and tokens at once, connections soon, and the issuer is told as far as it listens.

Source: RFC 7009.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Final

from django.db import transaction

from audit.actions import Action
from mcp_servers.client.connections import runtime
from mcp_servers.models import OAuthAttempt, OAuthClient, OAuthGrant, ToolSighting
from mcp_servers.oauth import tokens
from mcp_servers.oauth.clients import identity_of, issuer_of
from mcp_servers.oauth.entries import record_grant
from mcp_servers.oauth.grants import principal_of
from mcp_servers.oauth.identity import Identity
from mcp_servers.oauth.reasons import SignInFailed
from mcp_servers.oauth.values import IssuerMetadata
from workspaces.secrets import SecretUnreadable

if TYPE_CHECKING:
    from uuid import UUID

    from mcp_servers.models import McpServer
    from workspaces.actors import Actor

logger = logging.getLogger(__name__)

SECONDS: Final = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Farewell:
    """What the issuer is told, kept in memory after the row is gone."""

    workspace_id: UUID
    issuer: IssuerMetadata
    identity: Identity
    tokens: tuple[str, ...] = field(repr=False)


def remove_grant(grant: OAuthGrant, actor: Actor, *, why: str = "") -> None:
    """Delete a grant in the caller's transaction; after it the issuer is told and connections close."""
    farewell = _farewell(grant)
    record_grant(grant, Action.GRANT_REVOKED, actor, details={"reason": why} if why else None)
    principal = principal_of(grant.server, grant.user_id)
    if grant.user_id is not None:
        sightings = ToolSighting.objects.for_workspace(grant.workspace_id)
        sightings.filter(server_id=grant.server_id, user_id=grant.user_id).delete()
    grant.delete()
    transaction.on_commit(partial(close_connections, grant.server_id, principal))
    if farewell is not None:
        transaction.on_commit(partial(_send, farewell))


def remove_grants_of_server(server: McpServer, actor: Actor, *, why: str) -> None:
    """All grants at a server that is deleted, or is another one by now, with what we were known as there."""
    rows = OAuthGrant.objects.for_workspace(server.workspace_id).filter(server=server)
    for grant in rows.select_related("server", "client"):
        remove_grant(grant, actor, why=why)
    for model in (OAuthAttempt, OAuthClient):
        model.objects.for_workspace(server.workspace_id).filter(server=server).delete()


def remove_grants_of_person(workspace_id: UUID, user_id: UUID, actor: Actor) -> None:
    """All that a person connected in a workspace that they leave."""
    rows = OAuthGrant.objects.for_workspace(workspace_id).of(user_id)
    for grant in rows.select_related("server", "client"):
        remove_grant(grant, actor, why="The person left the workspace.")
    attempts = OAuthAttempt.objects.for_workspace(workspace_id)
    attempts.filter(user_id=user_id).delete()


def close_connections(server_id: UUID, principal: str) -> None:
    """Close this process's connections of one principal; others notice by themselves, see ended_grants."""
    if "mcp_servers.client.connections.pool" not in sys.modules:
        return  # nothing was ever connected in this process
    from mcp_servers.client.connections.pool import pool

    runtime.current().submit(pool.drop(server_id, principal=principal))


def _farewell(grant: OAuthGrant) -> _Farewell | None:
    issuer = issuer_of(grant.client)
    if not issuer.revocation_endpoint or not grant.tokens:
        return None
    try:
        known_as = identity_of(grant.client, grant.server)
        stored = grant.tokens.reveal_json("telling an issuer that a grant is over")
    except (SignInFailed, SecretUnreadable):
        return None  # nobody is kept by what cannot be told
    # The refresh token first: with it the whole grant ends where the issuer sees it so (RFC 7009, section 2.1).
    names = ("refresh_token", "access_token")
    return _Farewell(
        workspace_id=grant.workspace_id,
        issuer=issuer,
        identity=known_as,
        tokens=tuple(stored[name] for name in names if stored.get(name)),
    )


def _send(farewell: _Farewell) -> None:
    runtime.current().submit(_tell_issuer(farewell))


async def _tell_issuer(farewell: _Farewell) -> None:
    """Best effort: the tokens are gone here in any case."""
    try:
        async with asyncio.timeout(SECONDS):
            for token in farewell.tokens:
                await tokens.revoke(
                    workspace_id=farewell.workspace_id,
                    endpoint=farewell.issuer.revocation_endpoint,
                    issuer=farewell.issuer,
                    identity=farewell.identity,
                    token=token,
                )
    except (SignInFailed, TimeoutError):
        logger.info("issuer_not_told_of_end", extra={"issuer": farewell.issuer.issuer[:200]})
