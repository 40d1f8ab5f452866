"""As whom this platform is known at an issuer: entered by an administrator, by its own document, or registered by itself.

Source: MCP specification, "Authorization": Client Registration Approaches; RFC 7591; OAuth Client ID Metadata Document
(draft-ietf-oauth-client-id-metadata-document).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final
from uuid import UUID

import pydantic
from django.conf import settings
from django.urls import reverse
from django.utils import timezone

from mcp_servers.models import ClientKind
from mcp_servers.oauth.reasons import Reason, SignInFailed
from mcp_servers.oauth.requests import post_json
from mcp_servers.oauth.values import Discovery, IssuerMetadata

CLIENT_NAME: Final = "Trellis"
GRANT_TYPES: Final = ("authorization_code", "refresh_token")

_NONE: Final = "none"
_BASIC: Final = "client_secret_basic"
_POST: Final = "client_secret_post"
PRIVATE_KEY: Final = "private_key_jwt"
_METHODS: Final = (_BASIC, _POST, _NONE)
"""How a client proves itself, the best first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """What to call ourselves at one issuer."""

    kind: ClientKind
    client_id: str
    client_secret: str = field(default="", repr=False)
    private_key: str = field(default="", repr=False)
    auth_method: str = _NONE
    expires_at: datetime | None = None


class _Registered(pydantic.BaseModel):
    """What an issuer answers to a registration; it may have changed what was asked. Source: RFC 7591, section 3.2.1."""

    model_config = pydantic.ConfigDict(extra="ignore")

    # RFC 6749, appendices A.1 and A.2.
    client_id: str = pydantic.Field(min_length=1, max_length=2048, pattern=r"^[\x20-\x7e]+$")
    client_secret: str | None = pydantic.Field(
        default=None, max_length=8192, pattern=r"^[\x20-\x7e]*$"
    )
    client_secret_expires_at: Any = None
    token_endpoint_auth_method: str | None = None
    redirect_uris: Any = None


def callback_path(server_id: UUID) -> str:
    """Where an issuer sends people back to, below a public origin."""
    return reverse("mcp_servers:oauth_callback", args=[server_id])


def callback_urls(server_id: UUID) -> list[str]:
    """The same under every address by which browsers reach this installation."""
    return [f"{origin}{callback_path(server_id)}" for origin in settings.TRELLIS.public_origins]


def document_url(server_id: UUID) -> str:
    """The address of the client's own document, which is its id; empty where issuers could not fetch it."""
    path = reverse("mcp_servers:oauth_client_document", args=[server_id])
    secure = [one for one in settings.TRELLIS.public_origins if one.startswith("https://")]
    return f"{secure[0]}{path}" if secure else ""


def client_document(server_id: UUID) -> dict[str, Any]:
    """What this platform publishes about itself as a client; nothing of any server or workspace."""
    return {
        "client_id": document_url(server_id),
        **_about_us(callback_urls(server_id)),
        "token_endpoint_auth_method": _NONE,
    }


def entered(credentials: dict[str, str], issuer: IssuerMetadata) -> Identity:
    """The client that an administrator entered.

    Raises:
        SignInFailed: unusable_client.
    """
    secret, key = credentials.get("client_secret", ""), credentials.get("private_key", "")
    method = PRIVATE_KEY if key else _method_for(issuer, has_secret=bool(secret))
    return Identity(
        kind=ClientKind.REGISTERED,
        client_id=credentials["client_id"],
        client_secret=secret,
        private_key=key,
        auth_method=method,
    )


async def introduce(server_id: UUID, discovery: Discovery) -> Identity:
    """Become known at an issuer without anybody's help: by our document, else by registering.

    Raises:
        SignInFailed: no_client, registration_refused, unusable_client, unreachable, insecure_url.
    """
    issuer = discovery.issuer
    document = document_url(server_id)
    if document and issuer.client_id_metadata_document_supported:
        return Identity(kind=ClientKind.DOCUMENT, client_id=document)
    if not issuer.registration_endpoint:
        raise SignInFailed(Reason.NO_CLIENT)
    wanted: dict[str, Any] = {
        **_about_us(callback_urls(server_id)),
        "token_endpoint_auth_method": _method_for(issuer, has_secret=True, may_go_without=True),
    }
    if discovery.known_scopes:
        wanted["scope"] = " ".join(dict.fromkeys([*discovery.known_scopes, *discovery.scopes]))
    answer = await post_json(issuer.registration_endpoint, wanted)
    if answer.status >= 500:
        raise SignInFailed(Reason.ISSUER_FAILED)
    if answer.status not in (200, 201):
        raise SignInFailed(Reason.REGISTRATION_REFUSED)
    try:
        given = _Registered.model_validate_json(answer.body)
    except pydantic.ValidationError as error:
        raise SignInFailed(Reason.REGISTRATION_REFUSED) from error
    if _is_for_others(given.redirect_uris, wanted["redirect_uris"]):
        raise SignInFailed(Reason.REGISTRATION_REFUSED)
    method = given.token_endpoint_auth_method or str(wanted["token_endpoint_auth_method"])
    if method not in _METHODS or (method != _NONE and not given.client_secret):
        raise SignInFailed(Reason.UNUSABLE_CLIENT)
    return Identity(
        kind=ClientKind.DYNAMIC,
        client_id=given.client_id,
        client_secret=given.client_secret or "",
        auth_method=method,
        expires_at=_moment(given.client_secret_expires_at),
    )


def _about_us(redirect_uris: Sequence[str]) -> dict[str, Any]:
    return {
        "client_name": CLIENT_NAME,
        "client_uri": settings.TRELLIS.public_origins[0],
        "redirect_uris": list(redirect_uris),
        "grant_types": list(GRANT_TYPES),
        "response_types": ["code"],
        "application_type": "web",
    }


def _method_for(issuer: IssuerMetadata, *, has_secret: bool, may_go_without: bool = False) -> str:
    """How to prove ourselves at the token endpoint, by what the issuer takes.

    Raises:
        SignInFailed: unusable_client.
    """
    # RFC 8414, section 2: absent means client_secret_basic.
    taken = issuer.token_endpoint_auth_methods_supported or [_BASIC]
    if not has_secret:
        return _NONE
    for method in _METHODS:
        if method in taken and (method != _NONE or may_go_without):
            return method
    raise SignInFailed(Reason.UNUSABLE_CLIENT)


def _is_for_others(registered: object, ours: list[str]) -> bool:
    """Whether an issuer says that it registered addresses, and none of ours."""
    listed = registered if isinstance(registered, list) else []
    return bool(listed) and not any(address in listed for address in ours)


def _moment(seconds: Any) -> datetime | None:
    """RFC 7591: seconds since 1970, 0 for never. A moment that is over, or is none, says nothing."""
    try:
        moment = datetime.fromtimestamp(float(seconds), UTC)
    except (TypeError, OverflowError, OSError, ValueError):
        return None
    return moment if moment > timezone.now() else None
