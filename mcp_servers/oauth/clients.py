"""The rows that say as whom we are known at an issuer, and the values made from them."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

from django.db.models import Q
from django.utils import timezone

from mcp_servers.models import ClientKind, OAuthClient
from mcp_servers.oauth import identity
from mcp_servers.oauth.identity import Identity
from mcp_servers.oauth.reasons import Reason, SignInFailed
from mcp_servers.oauth.registered_client import entered_client
from mcp_servers.oauth.values import Discovery, IssuerMetadata

if TYPE_CHECKING:
    from uuid import UUID

    from mcp_servers.models import McpServer


REGISTER_AGAIN_AFTER: Final = timedelta(days=1)
"""So seldom is a client registered anew at an issuer that does not know it any more."""


def known_client(server: McpServer, issuer: str) -> OAuthClient | None:
    """The client for this issuer, as long as the issuer's word on it holds and nothing about us has changed."""
    row = OAuthClient.objects.for_workspace(server.workspace_id).filter(
        server=server, issuer=issuer
    )
    client = row.first()
    if client is None or client.kind == ClientKind.REGISTERED:
        return None
    has_run_out = client.expires_at is not None and client.expires_at <= timezone.now()
    if has_run_out or client.redirect_uris != identity.callback_urls(server.pk):
        return None
    return client


def check_issuer_of_entered(server: McpServer, issuer: str) -> None:
    """What an administrator entered belongs to the issuer that it was first used at, and goes to no other.

    Raises:
        SignInFailed: issuer_changed.
    """
    rows = OAuthClient.objects.for_workspace(server.workspace_id)
    used = rows.filter(server=server, kind=ClientKind.REGISTERED).exclude(issuer=issuer)
    if used.exists():
        raise SignInFailed(Reason.ISSUER_CHANGED)


def save_client(server: McpServer, known_as: Identity, discovery: Discovery) -> OAuthClient:
    """Keep as whom we are known at an issuer; in the caller's transaction."""
    rows = OAuthClient.objects.for_workspace(server.workspace_id)
    row = rows.filter(server=server, issuer=discovery.issuer.issuer).first() or OAuthClient(
        workspace_id=server.workspace_id, server=server, issuer=discovery.issuer.issuer
    )
    row.kind = known_as.kind
    row.client_id = known_as.client_id
    # What an administrator entered stays in the server's own row, and nowhere else.
    is_entered = known_as.kind == ClientKind.REGISTERED
    row.client_secret = None if is_entered else known_as.client_secret or None
    row.auth_method = known_as.auth_method
    row.expires_at = known_as.expires_at
    row.redirect_uris = identity.callback_urls(server.pk)
    row.metadata = discovery.issuer.model_dump(mode="json")
    row.resource = discovery.resource
    row.save()
    return row


def forget_registration(server_id: UUID, workspace_id: UUID, known_as: Identity) -> bool:
    """Have the next sign-in register anew, since an issuer knows us no more.

    False: it did not know the registration before that one either, so another one would bring nothing just now.
    """
    now = timezone.now()
    rows = OAuthClient.objects.for_workspace(workspace_id).filter(
        server_id=server_id, kind=ClientKind.DYNAMIC, client_id=known_as.client_id
    )
    is_current = Q(expires_at=None) | Q(expires_at__gt=now)
    is_rare = Q(forgotten_at=None) | Q(forgotten_at__lte=now - REGISTER_AGAIN_AFTER)
    rows.filter(is_current, is_rare).update(expires_at=now, forgotten_at=now)
    return not rows.filter(is_current).exists()


def identity_of(client: OAuthClient, server: McpServer) -> Identity:
    """As whom we are known, with what proves it.

    Raises:
        SignInFailed: changed, if the administrator has taken the client away; unusable_client.
    """
    if client.kind == ClientKind.REGISTERED:
        credentials = entered_client(server, "being a client at an issuer")
        if credentials.get("client_id") != client.client_id:
            raise SignInFailed(Reason.CHANGED)
        return identity.entered(credentials, issuer_of(client))
    secret = client.client_secret
    return Identity(
        kind=ClientKind(client.kind),
        client_id=client.client_id,
        client_secret=secret.reveal("being a client at an issuer") if secret else "",
        auth_method=client.auth_method,
        expires_at=client.expires_at,
    )


def issuer_of(client: OAuthClient) -> IssuerMetadata:
    """What the issuer said of itself when the client became known there."""
    return IssuerMetadata.model_validate(client.metadata)
