"""Whose account at a server a request uses, and whether there is one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from uuid import UUID

from mcp_servers.models import OAUTH_TYPES, AccountUse, AuthType, OAuthGrant
from mcp_servers.oauth.registered_client import entered_client
from mcp_servers.oauth.values import Challenge, joined, scopes_of
from workspaces.actors import ActorKind, Source
from workspaces.secrets import SecretUnreadable

if TYPE_CHECKING:
    from datetime import datetime

    from mcp_servers.models import McpServer
    from workspaces.actors import Actor

WORKSPACE_PRINCIPAL: Final = "workspace"
"""Connections with the credentials that the workspace, or the platform, stored."""
NOBODY: Final = "nobody"
"""Each person would have to sign in, and no person is there; no connection is made for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """Whose grant is meant, at which server."""

    workspace_id: UUID
    server_id: UUID
    user_id: UUID | None
    """None: the workspace's account."""


def person_of(actor: Actor) -> UUID | None:
    """The person who is there; none for tasks and the platform itself, whoever they work for."""
    is_person = actor.kind is ActorKind.USER and actor.source is not Source.TASK
    return actor.user_id if is_person else None


def uses_own_accounts(server: McpServer) -> bool:
    """Whether each person signs in to this server for themselves."""
    return server.auth_type == AuthType.OAUTH and (
        server.owner_id is not None or server.account_use == AccountUse.USER
    )


def principal_of(server: McpServer, user_id: UUID | None = None) -> str:
    """Whose credentials a server is used with: those of its owner, of this person, or the workspace's.

    Args:
        user_id: the person who is there, if any.
    """
    if server.owner_id is not None:
        return f"user:{server.owner_id}"
    if not uses_own_accounts(server):
        return WORKSPACE_PRINCIPAL
    return NOBODY if user_id is None else f"user:{user_id}"


def holder_of(server: McpServer, user_id: UUID | None) -> Holder | None:
    """Whose grant a request for this person uses; None if it would be a person's, and none is there."""
    own = uses_own_accounts(server)
    if own and (user_id is None or server.owner_id not in (None, user_id)):
        return None
    return Holder(
        workspace_id=server.workspace_id, server_id=server.pk, user_id=user_id if own else None
    )


def find_grant(holder: Holder, *, is_locked: bool = False) -> OAuthGrant | None:
    """The holder's grant, whether or not it still serves.

    Args:
        is_locked: nobody else changes it until the caller's transaction ends.
    """
    rows = OAuthGrant.objects.for_workspace(holder.workspace_id).of(holder.user_id)
    if is_locked:
        rows = rows.select_for_update(of=("self",))
    return rows.filter(server_id=holder.server_id).select_related("server", "client").first()


def usable_grant(server: McpServer, user_id: UUID | None) -> OAuthGrant | None:
    """The grant that a request for this person would use, if it serves; one for another address does not."""
    holder = holder_of(server, user_id)
    grant = find_grant(holder) if holder is not None else None
    return grant if grant is not None and has_usable_tokens(grant) else None


def is_renewed_since(server: McpServer, user_id: UUID | None, since: datetime) -> bool:
    """Whether the token that a request for this person uses is newer than a moment."""
    grant = usable_grant(server, user_id)
    return grant is not None and grant.refreshed_at is not None and grant.refreshed_at > since


def has_usable_tokens(grant: OAuthGrant) -> bool:
    """Whether a grant has tokens, for the address that its server still has."""
    return grant.is_usable and grant.endpoint == grant.server.url


def needs_sign_in(server: McpServer, user_id: UUID | None) -> bool:
    """Whether somebody has to sign in before this person's requests can be sent."""
    return server.auth_type == AuthType.OAUTH and usable_grant(server, user_id) is None


def note_refusal(server: McpServer, user_id: UUID | None, www_authenticate: str) -> None:
    """A request with this account was refused: if the server says that more is needed, the next sign-in asks for it."""
    challenge = Challenge.read(403, www_authenticate)
    if challenge.is_about_scope:
        want_scope(server=server, user_id=user_id, scope=challenge.scope)


def want_scope(*, server: McpServer, user_id: UUID | None, scope: str) -> None:
    """Have the next sign-in ask for more, since the server said that what was granted is not enough."""
    holder = holder_of(server, user_id)
    grant = find_grant(holder) if holder is not None else None
    if grant is not None:
        wanted = " ".join(joined(scopes_of(grant.wanted_scope), scopes_of(scope)))
        rows = OAuthGrant.objects.for_workspace(server.workspace_id)
        rows.filter(pk=grant.pk).update(wanted_scope=wanted)


def sign_in_of(server: McpServer) -> tuple[object, ...] | None:
    """What grants at a server are bound to; None if nobody signs in to it. Another value voids them all."""
    if server.auth_type not in OAUTH_TYPES:
        return None
    try:
        entered: object = entered_client(server, "seeing whether a client changed")
    except SecretUnreadable:
        entered = server.auth_config.sealed if server.auth_config else None
    return (server.auth_type, server.url, server.account_use, entered)


def has_usable_grant(server: McpServer) -> bool:
    """Whether anybody's sign-in serves at this server."""
    rows = OAuthGrant.objects.for_workspace(server.workspace_id)
    return (
        rows.filter(server=server, endpoint=server.url, lost_reason="")
        .exclude(tokens=None)
        .exists()
    )
