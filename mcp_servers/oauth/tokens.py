"""What is asked of token endpoints, and how their answers are read.

Source: RFC 6749, sections 2.3.1, 4.1.3, 4.4, 5 and 6; RFC 7009; RFC 7523; RFC 7636; RFC 8707.
"""

from __future__ import annotations

import base64
import json
import time
from typing import Any, Final
from urllib.parse import quote
from uuid import UUID, uuid4

import pydantic

from mcp_servers.oauth.identity import PRIVATE_KEY, Identity
from mcp_servers.oauth.reasons import Reason, SignInFailed
from mcp_servers.oauth.requests import IssuerResponse, post_form
from mcp_servers.oauth.values import IssuerMetadata, TokenResponse, scopes_of
from workspaces.redaction import redact_known, remember_secret

_BASIC: Final = "client_secret_basic"
_POST: Final = "client_secret_post"
_ASSERTION_TYPE: Final = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
_ASSERTION_SECONDS: Final = 300
_ALGORITHMS: Final = ("ES256", "RS256", "PS256", "EdDSA", "ES384", "RS384", "ES512", "RS512")
_PASSING_ERRORS: Final = frozenset({"server_error", "temporarily_unavailable", "slow_down"})
_FINAL_ERRORS: Final = {
    "invalid_client": Reason.CLIENT_REFUSED,
    "unauthorized_client": Reason.CLIENT_NOT_ALLOWED,
    "invalid_scope": Reason.SCOPE_REFUSED,
}
MOST_ID_TOKEN: Final = 16_384
MOST_SECONDS: Final = 10 * 365 * 24 * 3600


class _Given(pydantic.BaseModel):
    """A successful answer. Source: RFC 6749, section 5.1."""

    model_config = pydantic.ConfigDict(extra="ignore")

    access_token: str = pydantic.Field(min_length=1, max_length=16_384)
    token_type: str = "Bearer"  # noqa: S105 - the kind of token
    expires_in: int | None = None
    refresh_token: str | None = pydantic.Field(default=None, max_length=16_384)
    scope: str | None = None
    id_token: str | None = None

    @pydantic.field_validator("expires_in", mode="before")
    @classmethod
    def _seconds(cls, value: Any) -> int | None:
        try:
            seconds = int(float(value))
        except (TypeError, ValueError, OverflowError):
            return None
        return min(seconds, MOST_SECONDS) if seconds > 0 else None

    @pydantic.field_validator("scope", "id_token", "refresh_token", mode="before")
    @classmethod
    def _text(cls, value: Any) -> Any:
        return value if isinstance(value, str) and value else None


async def exchange_code(
    *,
    workspace_id: UUID,
    token_endpoint: str,
    issuer: IssuerMetadata,
    identity: Identity,
    code: str,
    verifier: str,
    redirect_uri: str,
    resource: str,
) -> TokenResponse:
    """Turn what the issuer sent back into tokens.

    Raises:
        SignInFailed: token_refused, client_refused, client_not_allowed, scope_refused, token_unreadable,
            issuer_failed, unreachable.
    """
    form = {
        "grant_type": "authorization_code",
        "code": code,
        "redirect_uri": redirect_uri,
        "code_verifier": verifier,
        "resource": resource,
    }
    return _read(await _ask(workspace_id, token_endpoint, form, identity, issuer), workspace_id)


async def refresh(
    *,
    workspace_id: UUID,
    token_endpoint: str,
    issuer: IssuerMetadata,
    identity: Identity,
    refresh_token: str,
    resource: str,
    scope: str = "",
) -> TokenResponse:
    """Get a new access token; raises as exchange_code()."""
    form = {"grant_type": "refresh_token", "refresh_token": refresh_token, "resource": resource}
    if scope:
        form["scope"] = scope
    tokens = _read(await _ask(workspace_id, token_endpoint, form, identity, issuer), workspace_id)
    if tokens.refresh_token:
        return tokens
    # RFC 6749, section 6: without a new one the old one goes on.
    return TokenResponse(
        access_token=tokens.access_token,
        refresh_token=refresh_token,
        expires_in=tokens.expires_in,
        scope=tokens.scope,
        account=tokens.account,
    )


async def request_as_client(
    *,
    workspace_id: UUID,
    token_endpoint: str,
    issuer: IssuerMetadata,
    identity: Identity,
    resource: str,
    scope: str = "",
) -> TokenResponse:
    """Get a token for the client itself, with nobody present; raises as exchange_code()."""
    form = {"grant_type": "client_credentials", "resource": resource}
    if scope:
        form["scope"] = scope
    return _read(await _ask(workspace_id, token_endpoint, form, identity, issuer), workspace_id)


async def revoke(
    *, workspace_id: UUID, endpoint: str, issuer: IssuerMetadata, identity: Identity, token: str
) -> bool:
    """Tell the issuer that a token is no longer wanted; whether it said yes. Source: RFC 7009.

    Raises:
        SignInFailed: unreachable, insecure_url.
    """
    answer = await _ask(workspace_id, endpoint, {"token": token}, identity, issuer)
    if answer.status in (400, 401) and identity.auth_method == _BASIC:
        # Issuers made with the MCP SDK want the secret in this form as well.
        form = {"token": token, "client_secret": identity.client_secret}
        answer = await _ask(workspace_id, endpoint, form, identity, issuer)
    return answer.status == 200


async def _ask(
    workspace_id: UUID,
    endpoint: str,
    form: dict[str, str],
    identity: Identity,
    issuer: IssuerMetadata,
) -> IssuerResponse:
    headers: dict[str, str] = {}
    form = {**form, "client_id": identity.client_id}
    if identity.auth_method == _BASIC:
        pair = f"{quote(identity.client_id, safe='')}:{quote(identity.client_secret, safe='')}"
        headers["authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
        remember_secret(headers["authorization"].removeprefix("Basic "), workspace_id=workspace_id)
    elif identity.auth_method == _POST:
        form["client_secret"] = identity.client_secret
    elif identity.auth_method == PRIVATE_KEY:
        form["client_assertion_type"] = _ASSERTION_TYPE
        form["client_assertion"] = _assertion(workspace_id, identity, issuer)
    return await post_form(endpoint, form, headers)


def _assertion(workspace_id: UUID, identity: Identity, issuer: IssuerMetadata) -> str:
    """A short-lived proof that we hold the key. Source: RFC 7523, section 3."""
    now = int(time.time())
    claims = {
        "iss": identity.client_id,
        "sub": identity.client_id,
        "aud": issuer.issuer,
        "iat": now,
        "exp": now + _ASSERTION_SECONDS,
        "jti": uuid4().hex,
    }
    taken = issuer.token_endpoint_auth_signing_alg_values_supported or _ALGORITHMS
    import jwt  # heavy, and needed by few sign-ins

    for algorithm in _ALGORITHMS:
        if algorithm in taken:
            try:
                signed = jwt.encode(claims, identity.private_key, algorithm=algorithm)
            except (jwt.PyJWTError, ValueError, TypeError):
                continue  # a key of another kind
            remember_secret(signed, workspace_id=workspace_id)
            return signed
    raise SignInFailed(Reason.UNUSABLE_CLIENT)


def reason_of(error: str) -> Reason:
    """What an issuer's error means for a sign-in. Source: RFC 6749, sections 4.1.2.1 and 5.2."""
    if error in _PASSING_ERRORS:
        return Reason.ISSUER_FAILED
    return _FINAL_ERRORS.get(error, Reason.TOKEN_REFUSED)


def _read(answer: IssuerResponse, workspace_id: UUID) -> TokenResponse:
    code = _error_of(answer.body)
    # A proxy's page, an overload: only the issuer's own word ends anything. Some say it with status 200.
    if answer.status >= 500 or answer.status == 429:
        raise SignInFailed(Reason.ISSUER_FAILED)
    if code:
        raise SignInFailed(reason_of(code))
    if answer.status != 200:
        raise SignInFailed(Reason.ISSUER_FAILED)
    try:
        given = _Given.model_validate_json(answer.body)
    except pydantic.ValidationError as error:
        raise SignInFailed(Reason.TOKEN_UNREADABLE) from error
    if given.token_type.lower() != "bearer" or not _fits_header(given.access_token):
        raise SignInFailed(Reason.TOKEN_UNREADABLE)
    for secret in (given.access_token, given.refresh_token):
        if secret:
            remember_secret(secret, workspace_id=workspace_id)
    return TokenResponse(
        access_token=given.access_token,
        refresh_token=given.refresh_token or "",
        expires_in=given.expires_in,
        scope=" ".join(scopes_of(given.scope)) if given.scope is not None else None,
        account=redact_known(_account_of(given.id_token), workspace_id=workspace_id),
    )


def _fits_header(token: str) -> bool:
    return token.isascii() and token.isprintable() and " " not in token


def _error_of(body: bytes) -> str:
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return ""
    error = value.get("error") if isinstance(value, dict) else None
    return error if isinstance(error, str) else ""


def _account_of(id_token: str | None) -> str:
    """Who an ID token speaks of: shown to the same person, and trusted with nothing, so its signature is not checked.

    Source: OpenID Connect Core 1.0, section 3.1.3.7: it came straight from the issuer's token endpoint.
    """
    if not id_token or len(id_token) > MOST_ID_TOKEN:
        return ""
    import jwt

    try:
        claims = jwt.decode(id_token, options={"verify_signature": False})
    except (jwt.PyJWTError, RecursionError, ValueError):
        return ""
    for name in ("email", "preferred_username", "name"):
        value = claims.get(name)
        if isinstance(value, str) and value.strip() and value.isprintable():
            return value.strip()[:254]
    return ""
