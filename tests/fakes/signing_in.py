"""What tests of signing in share: an authorization server, a server behind it, and grants without the way there."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from typing import Any

import pytest
from django.utils import timezone

from mcp_servers.models import McpServer
from mcp_servers.models.oauth import ClientKind, OAuthClient, OAuthGrant
from tests.fakes.accounts import Tokens
from tests.fakes.authorization import Issuer
from tests.fakes.protected_server import ProtectedServer


@pytest.fixture
def issuer() -> Iterator[Issuer]:
    """An authorization server whose page says yes at once."""
    server = Issuer()
    yield server
    server.stop()


@pytest.fixture
def protected(issuer: Issuer) -> Iterator[ProtectedServer]:
    """An MCP server that lets in who has a token of that issuer, with mail.read."""
    server = ProtectedServer(issuer)
    yield server
    server.stop()


def granted(
    server: McpServer,
    protected: ProtectedServer,
    user: Any = None,
    account: str = "ada@example.com",
    scopes: tuple[str, ...] = ("mail.read",),
    **fields: Any,
) -> OAuthGrant:
    """A stored grant with tokens that the issuer knows, as a sign-in of that person (none: of the workspace) leaves it."""
    issuer = protected.issuer
    if "by-hand" not in issuer.accounts.clients:
        issuer.add_client("by-hand")
    client, _ = OAuthClient.objects.across_workspaces().get_or_create(
        server=server,
        issuer=issuer.url,
        defaults={
            "workspace_id": server.workspace_id,
            "kind": ClientKind.REGISTERED,
            "client_id": "by-hand",
            "metadata": issuer.metadata(),
            "resource": protected.url,
        },
    )
    tokens: Tokens = issuer.accounts.give(account, *scopes, resource=protected.url)
    now = timezone.now()
    return OAuthGrant.objects.create(
        **{
            "workspace_id": server.workspace_id,
            "server": server,
            "user": user,
            "granted_by": user,
            "client": client,
            "issuer": issuer.url,
            "token_endpoint": issuer.endpoint("token"),
            "endpoint": server.url,
            "resource": protected.url,
            "tokens": {
                "access_token": tokens.access_token,
                "refresh_token": tokens.refresh_token,
            },
            "account": account,
            "scope": " ".join(scopes),
            "granted_at": now,
            "expires_at": now + datetime.timedelta(seconds=tokens.expires_in or 3600),
            **fields,
        }
    )
