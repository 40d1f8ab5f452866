"""What the SDK's handlers ask of an authorization server, answered from our rows. One provider serves one request."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NoReturn

from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    AuthorizationParams,
    AuthorizeError,
    RefreshToken,
    RegistrationError,
    TokenError,
)
from mcp.shared.auth import InvalidRedirectUriError, OAuthClientInformationFull, OAuthToken
from pydantic import AnyUrl, PrivateAttr

from mcp_servers.endpoint.sign_in import clients, grants, scopes
from mcp_servers.endpoint.sign_in.grants import AuthorizationRequest
from mcp_servers.endpoint.sign_in.redirects import is_one_of
from mcp_servers.models import ClientToken, KnownClient, TokenKind
from workspaces.actors import Actor
from workspaces.database import in_database
from workspaces.database.row_security import everywhere
from workspaces.errors import DomainError


class WireClient(OAuthClientInformationFull):
    """A client as the SDK knows it. Which addresses and scopes it may name, our own rules say."""

    _row: KnownClient = PrivateAttr()
    _redirect_uri: str = PrivateAttr(default="")

    def validate_redirect_uri(self, redirect_uri: AnyUrl | None) -> AnyUrl:
        """Compare what was sent, not what a library made of it. Source: RFC 9700, section 4.1.3."""
        if redirect_uri is None or not is_one_of(self._redirect_uri, self._row.redirect_uris):
            raise InvalidRedirectUriError("This is not an address that the client named.")
        return redirect_uri

    def validate_scope(self, requested_scope: str | None) -> list[str] | None:
        """Give all; what a person may choose from is decided by `scopes.offered`."""
        return requested_scope.split() if requested_scope else None


class CodeOfClient(AuthorizationCode):
    """A code, with its row."""

    _row: ClientToken = PrivateAttr()


class RefreshOfClient(RefreshToken):
    """A refresh token, with its row."""

    _row: ClientToken = PrivateAttr()


class AccessOfClient(AccessToken):
    """An access token, with its row."""

    _row: ClientToken = PrivateAttr()


@dataclass(slots=True, kw_only=True)
class Provider:
    """An authorization server for one request.

    Attributes:
        asked: what a client asks a person for, once its request was found to be in order.
    """

    actor: Actor
    slug_at: Callable[[str], str | None]
    """The name of the workspace whose endpoint has this address."""
    redirect_uri: str = ""
    """As it was sent."""
    redirect_uris: Sequence[str] = ()
    """As they were sent by a client that registers."""
    resource: str | None = None
    """As it was sent with a request for tokens."""
    asked: AuthorizationRequest | None = field(default=None)

    async def get_client(self, client_id: str) -> WireClient | None:
        """A client that is known."""
        row = await in_database(clients.find, client_id)
        if row is None:
            return None
        wire = WireClient(
            client_id=row.client_id,
            client_name=row.name,
            redirect_uris=[AnyUrl(one) for one in row.redirect_uris],
            scope=scopes.ALL,
            token_endpoint_auth_method="none",  # noqa: S106 - a name of RFC 7591
        )
        wire._row = row
        wire._redirect_uri = self.redirect_uri
        return wire

    async def register_client(self, client_info: OAuthClientInformationFull) -> None:
        """Keep a client that registers."""
        try:
            await in_database(
                clients.register,
                client_id=client_info.client_id,
                name=client_info.client_name or "",
                redirect_uris=self.redirect_uris,
                actor=self.actor,
            )
        except DomainError as error:
            raise RegistrationError("invalid_client_metadata", error.message) from error

    async def authorize(self, client: WireClient, params: AuthorizationParams) -> str:
        """Note what the client asks for; the page asks the person."""
        slug = self.slug_at(params.resource or "")
        if slug is None:
            raise AuthorizeError(
                "invalid_target", "Name the address of the MCP endpoint as the resource."
            )
        if not scopes.offered(params.scopes):
            raise AuthorizeError("invalid_scope", f"Known scopes: {scopes.ALL}.")
        self.asked = AuthorizationRequest(
            client=client._row,
            slug=slug,
            redirect_uri=self.redirect_uri,
            scopes=params.scopes,
            state=params.state,
            code_challenge=params.code_challenge,
            resource=params.resource or "",
        )
        return self.redirect_uri

    async def load_authorization_code(
        self, client: WireClient, authorization_code: str
    ) -> CodeOfClient | None:
        """A code that may be exchanged now."""
        row = await in_database(grants.find, authorization_code, TokenKind.CODE, client=client._row)
        if row is None:
            return None
        code = CodeOfClient(
            code=authorization_code,
            scopes=row.sign_in.scopes,
            expires_at=row.expires_at.timestamp(),
            client_id=client.client_id,
            code_challenge=row.sign_in.code_challenge,
            redirect_uri=AnyUrl(row.sign_in.redirect_uri),
            redirect_uri_provided_explicitly=True,
            resource=row.sign_in.resource,
        )
        code._row = row
        return code

    async def exchange_authorization_code(
        self, client: WireClient, authorization_code: CodeOfClient
    ) -> OAuthToken:
        """Give tokens for a code."""
        return await self._exchange(authorization_code._row, authorization_code.code)

    async def load_refresh_token(
        self, client: WireClient, refresh_token: str
    ) -> RefreshOfClient | None:
        """A refresh token that may be exchanged now."""
        row = await in_database(grants.find, refresh_token, TokenKind.REFRESH, client=client._row)
        if row is None:
            return None
        token = RefreshOfClient(
            token=refresh_token,
            client_id=client.client_id,
            scopes=row.sign_in.scopes,
            expires_at=_seconds(row.expires_at),
        )
        token._row = row
        return token

    async def exchange_refresh_token(
        self, client: WireClient, refresh_token: RefreshOfClient, scopes: list[str]
    ) -> OAuthToken:
        """Give new tokens for a refresh token."""
        return await self._exchange(refresh_token._row, refresh_token.token, scopes)

    async def load_access_token(self, token: str) -> AccessOfClient | None:
        """An access token that is to be revoked."""
        row = await in_database(grants.find, token, TokenKind.ACCESS)
        if row is None:
            return None
        client_id = await in_database(_client_id_of, row)
        found = AccessOfClient(token=token, client_id=client_id, scopes=row.sign_in.scopes)
        found._row = row
        return found

    async def revoke_token(self, token: AccessOfClient | RefreshOfClient) -> None:
        """End the sign-in that a token belongs to."""
        await in_database(
            grants.revoke,
            token._row,
            ip_address=self.actor.ip_address,
            request_id=self.actor.request_id,
        )

    async def exchange_identity_assertion(self, client: Any, params: Any) -> NoReturn:
        """Not offered."""
        raise TokenError("unsupported_grant_type")

    async def _exchange(
        self, row: ClientToken, plain: str, scopes: list[str] | None = None
    ) -> OAuthToken:
        if self.resource is not None and self.resource != row.sign_in.resource:
            raise TokenError("invalid_target", "The token is for another resource.")
        try:
            given = await in_database(grants.exchange, row, plain, scopes=scopes)
        except grants.InvalidGrant as error:
            raise TokenError("invalid_grant", "This was used before.") from error
        return OAuthToken(
            access_token=given.access,
            expires_in=given.seconds,
            refresh_token=given.refresh,
            scope=" ".join(given.scopes),
        )


def _client_id_of(row: ClientToken) -> str:
    with everywhere():
        return str(row.sign_in.client.client_id)


def _seconds(moment: datetime) -> int:
    return int(moment.timestamp())
