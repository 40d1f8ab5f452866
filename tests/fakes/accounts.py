"""Clients, codes and tokens of the test's authorization server: the provider that the SDK's handlers ask."""

from __future__ import annotations

import base64
import itertools
import json
import secrets
import time
from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import anyio.to_thread
import httpx2
import jwt
from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    AuthorizationParams,
    OAuthAuthorizationServerProvider,
    RefreshToken,
    construct_redirect_uri,
)
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken
from starlette.responses import JSONResponse, Response

SCOPES = (
    *("mail.read", "mail.write", "files.read", "offline_access"),
    *("openid", "profile", "email"),
)
"""What may be asked for; anything else is refused as invalid_scope."""

at_page: ContextVar[str] = ContextVar("at_page", default="")
"""Who is at the issuer's page in this request, if it is not the one who usually is."""


class Tokens(OAuthToken):
    """What the token endpoint answers, with an ID token where the issuer gives one."""

    id_token: str | None = None


@dataclass
class _Asked:
    client: OAuthClientInformationFull
    params: AuthorizationParams
    account: str


class Accounts(OAuthAuthorizationServerProvider[AuthorizationCode, RefreshToken, AccessToken]):
    """All that the issuer remembers. Tokens that came of one sign-in are a family."""

    def __init__(self) -> None:
        self.name = "ada@example.com"
        """Whose account is signed in at the issuer's page."""
        self.denies = False
        self.lifetime: int | None = 3600
        """Seconds that an access token lives; None: the issuer does not say, and it lives on."""
        self.gives_refresh_tokens = True
        self.rotates = True
        """Each refresh gives a new refresh token; the old one, used again, kills its family."""
        self.granted_scopes: tuple[str, ...] | None = None
        """What is granted whatever was asked; None: all that was asked."""
        self.reads_documents = True
        """Whether a client may be named by the URL of its metadata document."""
        self.documents: dict[str, dict[str, Any]] = {}
        """Metadata documents by their URL, for those that a test cannot serve under that name; others are fetched."""
        self.clients: dict[str, OAuthClientInformationFull] = {}
        self.reused: list[str] = []
        """Refresh tokens that were used after they had been replaced."""
        self.revoked: list[str] = []
        """Tokens whose revocation was asked for."""
        self.asks = False
        self.consent_url = ""
        self.id_token_issuer = ""
        self.claims: dict[str, Any] = {}
        """What ID tokens say besides and otherwise; None leaves a claim out."""
        self._codes: dict[str, AuthorizationCode] = {}
        self._access: dict[str, AccessToken] = {}
        self._refresh: dict[str, RefreshToken] = {}
        self._family: dict[str, int] = {}
        self._retired: dict[str, RefreshToken] = {}
        self._asked: dict[str, _Asked] = {}
        self._families = itertools.count(1)

    # For tests and for the protected server

    def live(self, token: str) -> AccessToken | None:
        """An access token that serves now."""
        found = self._access.get(token)
        if found is None or (found.expires_at and found.expires_at <= time.time()):
            return None
        return found

    def give(
        self,
        account: str,
        *scopes: str,
        resource: str = "",
        client_id: str = "by-hand",
        lifetime: int | None = 3600,
    ) -> Tokens:
        """Tokens without a sign-in, for a test that begins after one."""
        return self._issue(
            client_id,
            account,
            list(scopes),
            resource or None,
            next(self._families),
            lifetime=lifetime,
        )

    def expire_access_tokens(self, account: str = "") -> None:
        """Let every access token, or those of one account, serve no longer."""
        for token, found in list(self._access.items()):
            if not account or found.subject == account:
                self._access.pop(token, None)

    def forget_refresh_tokens(self, account: str = "") -> None:
        """Answer each refresh token, or those of one account, with invalid_grant."""
        for token, found in list(self._refresh.items()):
            if not account or found.subject == account:
                self._refresh.pop(token, None)

    # Clients

    async def get_client(self, client_id: str) -> OAuthClientInformationFull | None:
        if client := self.clients.get(client_id):
            return client.model_copy(update={"scope": " ".join(SCOPES)})
        if not (self.reads_documents and client_id.startswith(("http://", "https://"))):
            return None
        document = self.documents.get(client_id)
        if document is None:
            document = await anyio.to_thread.run_sync(_fetched, client_id)
        if document is None or document.get("client_id") != client_id:
            return None
        client = OAuthClientInformationFull.model_validate(document)
        return client.model_copy(update={"scope": " ".join(SCOPES)})

    async def register_client(self, client_info: OAuthClientInformationFull) -> None:
        self.clients[client_info.client_id] = client_info

    # Codes

    async def authorize(
        self, client: OAuthClientInformationFull, params: AuthorizationParams
    ) -> str:
        asked = _Asked(client, params, at_page.get() or self.name)
        if self.asks:
            ticket = secrets.token_urlsafe(16)
            self._asked[ticket] = asked
            return f"{self.consent_url}?ticket={ticket}"
        return self._back(asked, not self.denies)

    def decided(self, ticket: str, is_allowed: bool) -> str:
        """Where the browser goes after the person pressed a button."""
        return self._back(self._asked.pop(ticket), is_allowed)

    def _back(self, asked: _Asked, is_allowed: bool) -> str:
        params = asked.params
        back = str(params.redirect_uri)
        if not is_allowed:
            return construct_redirect_uri(
                back,
                error="access_denied",
                error_description="The person said no",
                state=params.state,
            )
        code = AuthorizationCode(
            code=secrets.token_urlsafe(24),
            scopes=list(params.scopes or []),
            expires_at=time.time() + 300,
            client_id=asked.client.client_id,
            code_challenge=params.code_challenge,
            redirect_uri=params.redirect_uri,
            redirect_uri_provided_explicitly=params.redirect_uri_provided_explicitly,
            resource=params.resource,
            subject=asked.account,
        )
        self._codes[code.code] = code
        return construct_redirect_uri(back, code=code.code, state=params.state)

    async def load_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: str
    ) -> AuthorizationCode | None:
        return self._codes.get(authorization_code)

    async def exchange_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: AuthorizationCode
    ) -> OAuthToken:
        code = self._codes.pop(authorization_code.code)
        return self._issue(
            client.client_id,
            code.subject or "",
            list(self.granted_scopes) if self.granted_scopes is not None else code.scopes,
            code.resource,
            next(self._families),
            lifetime=self.lifetime,
        )

    # Tokens

    async def load_refresh_token(
        self, client: OAuthClientInformationFull, refresh_token: str
    ) -> RefreshToken | None:
        if refresh_token in self._retired:
            self.reused.append(refresh_token)
            self._kill(refresh_token)
            return None
        return self._refresh.get(refresh_token)

    async def exchange_refresh_token(
        self,
        client: OAuthClientInformationFull,
        refresh_token: RefreshToken,
        scopes: list[str],
    ) -> OAuthToken:
        family = self._family[refresh_token.token]
        if self.rotates:
            self._retired[refresh_token.token] = self._refresh.pop(refresh_token.token)
        return self._issue(
            client.client_id,
            refresh_token.subject or "",
            scopes,
            refresh_token.resource,
            family,
            lifetime=self.lifetime,
            refresh_token="" if self.rotates else refresh_token.token,
        )

    async def load_access_token(self, token: str) -> AccessToken | None:
        return self.live(token)

    async def revoke_token(self, token: AccessToken | RefreshToken) -> None:
        self.revoked.append(token.token)
        self._kill(token.token)

    async def client_credentials(
        self, form: Mapping[str, str], headers: Mapping[str, str]
    ) -> Response:
        """A token for the client itself, RFC 6749 §4.4; the SDK's handler does not know this grant."""
        client_id, secret = form.get("client_id", ""), form.get("client_secret", "")
        scheme, _, encoded = headers.get("authorization", "").partition(" ")
        if scheme == "Basic":
            client_id, _, secret = base64.b64decode(encoded).decode().partition(":")
        client = self.clients.get(client_id)
        if client is None or not client.client_secret or client.client_secret != secret:
            return JSONResponse({"error": "invalid_client"}, status_code=401)
        scopes = form.get("scope", "").split()
        if set(scopes) - set(SCOPES):
            return JSONResponse({"error": "invalid_scope"}, status_code=400)
        tokens = self._issue(
            client_id,
            f"client {client_id}",
            scopes,
            form.get("resource"),
            next(self._families),
            lifetime=self.lifetime,
            refresh_token=None,
        )
        return JSONResponse(json.loads(tokens.model_dump_json(exclude_none=True)))

    def _issue(
        self,
        client_id: str,
        account: str,
        scopes: list[str],
        resource: str | None,
        family: int,
        *,
        lifetime: int | None,
        refresh_token: str | None = "",
    ) -> Tokens:
        access = AccessToken(
            token=f"at-{secrets.token_urlsafe(24)}",
            client_id=client_id,
            scopes=scopes,
            expires_at=None if lifetime is None else int(time.time()) + lifetime,
            resource=resource,
            subject=account,
        )
        self._access[access.token] = access
        self._family[access.token] = family
        if refresh_token == "" and self.gives_refresh_tokens:
            refresh_token = f"rt-{secrets.token_urlsafe(24)}"
            self._refresh[refresh_token] = RefreshToken(
                token=refresh_token,
                client_id=client_id,
                scopes=scopes,
                resource=resource,
                subject=account,
            )
            self._family[refresh_token] = family
        return Tokens(
            access_token=access.token,
            expires_in=lifetime,
            scope=" ".join(scopes) or None,
            refresh_token=refresh_token or None,
            id_token=self._id_token(client_id, account),
        )

    def _id_token(self, client_id: str, account: str) -> str | None:
        if not self.id_token_issuer:
            return None
        values = {
            "iss": self.id_token_issuer,
            "sub": account,
            "email": account,
            "aud": client_id,
            "iat": int(time.time()),
            "exp": int(time.time()) + 600,
            **self.claims,
        }
        values = {name: value for name, value in values.items() if value is not None}
        return jwt.encode(values, secrets.token_bytes(32), algorithm="HS256")

    def _kill(self, token: str) -> None:
        family = self._family.get(token)
        for known in (self._access, self._refresh):
            for other in [name for name in known if self._family[name] == family]:
                known.pop(other, None)


def _fetched(url: str) -> dict[str, Any] | None:
    try:
        answer = httpx2.get(url, timeout=10)
        document = answer.json()
    except (httpx2.HTTPError, ValueError):
        return None
    return document if answer.status_code == 200 and isinstance(document, dict) else None
