"""A grant without a person: the platform signs in as the client that an administrator entered.

Source: RFC 6749, section 4.4; MCP extension "OAuth Client Credentials".
"""

from __future__ import annotations

import asyncio
import logging
import time
from datetime import timedelta
from typing import Final

from django.db import transaction

from audit.actions import Action
from mcp_servers.models import AuthType, McpServer, OAuthGrant
from mcp_servers.oauth import discovery, identity, tokens
from mcp_servers.oauth.clients import check_issuer_of_entered, save_client
from mcp_servers.oauth.entries import record_grant
from mcp_servers.oauth.grants import Holder, find_grant
from mcp_servers.oauth.probing import ask_challenge
from mcp_servers.oauth.reasons import Reason, SignInFailed
from mcp_servers.oauth.registered_client import entered_client
from mcp_servers.oauth.values import Discovery, TokenResponse, scopes_of
from workspaces import outbound
from workspaces.actors import Actor, Source
from workspaces.database import database_now, in_database
from workspaces.errors import DomainError

logger = logging.getLogger(__name__)

SECONDS: Final = 40.0
PAUSE_SECONDS: Final = 20.0
"""After a failure, until the next try in this process."""

_FOR_NOW: Final = frozenset({Reason.UNREACHABLE, Reason.ISSUER_FAILED})

_failed_at: dict[Holder, float] = {}


async def obtain(holder: Holder) -> bool:
    """Get the first token of a server's own client, or a new one after the last was refused.

    Called on the connections' loop, by one task at a time for each holder.

    Returns:
        False: nobody answered, or with a fault of their own; a later try may do better.
    """
    if time.monotonic() - _failed_at.get(holder, -PAUSE_SECONDS) < PAUSE_SECONDS:
        return False
    try:
        async with asyncio.timeout(SECONDS):
            await _obtain(holder)
    except (DomainError, TimeoutError) as error:
        _forget_old_failures()
        _failed_at[holder] = time.monotonic()
        reason = error.reason if isinstance(error, SignInFailed) else Reason.UNREACHABLE
        facts = {"server": str(holder.server_id), "reason": reason.value}
        logger.info("no_token_as_client", extra=facts)
        return reason not in _FOR_NOW
    _failed_at.pop(holder, None)
    return True


def _forget_old_failures() -> None:
    limit = time.monotonic() - PAUSE_SECONDS
    for holder in [one for one, at in _failed_at.items() if at < limit]:
        del _failed_at[holder]


async def _obtain(holder: Holder) -> None:
    server = await in_database(_load, holder)
    if server is None:
        return
    challenge = await ask_challenge(server)
    found = await discovery.discover(outbound.parse_endpoint(server.url), challenge)
    credentials = await in_database(_credentials, server, found)
    known_as = identity.entered(credentials, found.issuer)
    scope = " ".join(scopes_of(server.oauth_scope) or found.scopes)
    given = await tokens.request_as_client(
        workspace_id=holder.workspace_id,
        token_endpoint=found.issuer.token_endpoint,
        issuer=found.issuer,
        identity=known_as,
        resource=found.resource,
        scope=scope,
    )
    await in_database(_store, server, found, known_as, given, scope)


def _load(holder: Holder) -> McpServer | None:
    rows = McpServer.objects.for_workspace(holder.workspace_id)
    found: McpServer | None = rows.filter(
        pk=holder.server_id, auth_type=AuthType.OAUTH_CLIENT, is_active=True
    ).first()
    return found


def _credentials(server: McpServer, found: Discovery) -> dict[str, str]:
    check_issuer_of_entered(server, found.issuer.issuer)
    return entered_client(server, "signing in as a client")


@transaction.atomic
def _store(
    server: McpServer,
    found: Discovery,
    known_as: identity.Identity,
    given: TokenResponse,
    scope: str,
) -> None:
    rows = McpServer.objects.for_workspace(server.workspace_id)
    current = rows.select_for_update(of=("self",)).find(server.pk)
    if current is None or (current.url, current.auth_type) != (server.url, server.auth_type):
        return
    holder = Holder(workspace_id=server.workspace_id, server_id=server.pk, user_id=None)
    before = find_grant(holder, is_locked=True)
    is_news = before is None or not before.is_usable
    grant = before or OAuthGrant(workspace_id=server.workspace_id, server=server)
    now = database_now()
    grant.client = save_client(server, known_as, found)
    grant.issuer, grant.token_endpoint = found.issuer.issuer, found.issuer.token_endpoint
    grant.endpoint, grant.resource = server.url, found.resource
    grant.tokens = {"access_token": given.access_token}
    grant.scope = given.scope if given.scope is not None else scope
    grant.granted_at, grant.refreshed_at, grant.refreshing_until = now, None, None
    grant.expires_at = now + timedelta(seconds=given.expires_in) if given.expires_in else None
    grant.generation += 1
    grant.lost_reason = ""
    grant.save()
    if is_news:
        actor = Actor.system(label="sign-in", source=Source.TASK, workspace_id=server.workspace_id)
        record_grant(grant, Action.GRANT_GIVEN, actor)
