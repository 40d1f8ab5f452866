"""What servers and issuers say, and what comes of a sign-in, as values. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator

from mcp_servers.client.challenges import bearer_parameters
from mcp_servers.models.oauth import MAX_SCOPE_LENGTH

MAX_SCOPES: Final = 100
_SCOPE: Final = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]{1,200}")
"""RFC 6749, section 3.3: scope-token."""


def scopes_of(text: str | None) -> tuple[str, ...]:
    """The scopes in a text, each once, without what is none."""
    return _bounded(one for one in (text or "").split() if _SCOPE.fullmatch(one))


def joined(*parts: Iterable[str]) -> tuple[str, ...]:
    """Several sets of scopes as one, in the order in which they first come."""
    return _bounded(scope for part in parts for scope in part)


def _bounded(scopes: Iterable[str]) -> tuple[str, ...]:
    """Each once, and no more than can be kept."""
    kept: list[str] = []
    left = MAX_SCOPE_LENGTH
    for scope in dict.fromkeys(scopes):
        left -= len(scope) + 1
        if left < 0 or len(kept) == MAX_SCOPES:
            break
        kept.append(scope)
    return tuple(kept)


@dataclass(frozen=True, slots=True, kw_only=True)
class Challenge:
    """What a server said when it refused a request.

    Source: RFC 6750, section 3; RFC 9728, section 5.1; MCP specification, "Authorization": Scope Challenge Handling.
    """

    http_status: int = 401
    scope: str = ""
    resource_metadata_url: str = ""
    error: str = ""

    @classmethod
    def read(cls, status: int, www_authenticate: str) -> Self:
        """Read a WWW-Authenticate header; what is not there or not readable stays empty."""
        values = bearer_parameters(www_authenticate)
        return cls(
            http_status=status,
            scope=" ".join(scopes_of(values.get("scope"))),
            resource_metadata_url=values.get("resource_metadata", "")[:2048],
            error=values.get("error", "")[:100],
        )

    @property
    def is_about_scope(self) -> bool:
        """The token is good, and not enough."""
        return self.http_status == 403 and self.error == "insufficient_scope"

    @property
    def asks_for_sign_in(self) -> bool:
        """Another token would help."""
        return self.http_status == 401 or self.is_about_scope


def _words(value: Any) -> Any:
    """A list of texts; anything else counts as not said."""
    if isinstance(value, list):
        return [one for one in value if isinstance(one, str) and _is_plain(one)]
    return None


def _is_plain(text: str) -> bool:
    return text.isascii() and text.isprintable()


class ResourceMetadata(BaseModel):
    """What a protected server says of itself. Source: RFC 9728, section 2."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    resource: str = Field(min_length=1, max_length=2048)
    authorization_servers: list[str] = Field(default_factory=list)
    scopes_supported: list[str] | None = None

    _read_scopes = field_validator("scopes_supported", mode="before")(_words)


class IssuerMetadata(BaseModel):
    """What an issuer says of itself; texts as they came, because issuers are compared character by character.

    Source: RFC 8414, section 2; OpenID Connect Discovery 1.0, section 3.
    """

    model_config = ConfigDict(extra="ignore", frozen=True)

    issuer: str = Field(min_length=1, max_length=2048)
    authorization_endpoint: str = Field(default="", max_length=2048)
    token_endpoint: str = Field(min_length=1, max_length=2048)
    registration_endpoint: str = Field(default="", max_length=2048)
    revocation_endpoint: str = Field(default="", max_length=2048)
    scopes_supported: list[str] | None = None
    grant_types_supported: list[str] | None = None
    token_endpoint_auth_methods_supported: list[str] | None = None
    token_endpoint_auth_signing_alg_values_supported: list[str] | None = None
    code_challenge_methods_supported: list[str] | None = None
    client_id_metadata_document_supported: bool = False
    authorization_response_iss_parameter_supported: bool = False
    is_assumed: bool = False
    """It published nothing; these are the usual places (MCP 2025-03-26, "Fallbacks for Servers without Metadata")."""

    _read_words = field_validator(
        "scopes_supported",
        "grant_types_supported",
        "token_endpoint_auth_methods_supported",
        "token_endpoint_auth_signing_alg_values_supported",
        "code_challenge_methods_supported",
        mode="before",
    )(_words)

    @field_validator(
        "authorization_endpoint", "registration_endpoint", "revocation_endpoint", mode="before"
    )
    @classmethod
    def _nothing_is_empty(cls, value: Any) -> Any:
        return value if isinstance(value, str) and _is_plain(value) else ""

    @field_validator(
        "client_id_metadata_document_supported",
        "authorization_response_iss_parameter_supported",
        "is_assumed",
        mode="before",
    )
    @classmethod
    def _only_true_is_true(cls, value: Any) -> bool:
        return value is True


@dataclass(frozen=True, slots=True, kw_only=True)
class Discovery:
    """Who issues tokens for a server, and what to ask them for."""

    issuer: IssuerMetadata
    resource: str
    """What tokens are for, RFC 8707."""
    scopes: tuple[str, ...] = ()
    """To ask for, in a first sign-in."""
    known_scopes: tuple[str, ...] = ()
    """All that the server speaks of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenResponse:
    """What a token endpoint gave."""

    access_token: str
    refresh_token: str = ""
    expires_in: int | None = None
    """Seconds."""
    scope: str | None = None
    """None: as asked for."""
    account: str = ""
    """Who that is over there, as far as the issuer says."""

    def __repr__(self) -> str:
        return "TokenResponse(…)"

    def as_stored(self) -> dict[str, str]:
        """For the grant's encrypted column."""
        stored = {"access_token": self.access_token}
        if self.refresh_token:
            stored["refresh_token"] = self.refresh_token
        return stored


@dataclass(frozen=True, slots=True, kw_only=True)
class StartedSignIn:
    """Where to send the browser, and what to tell the person before."""

    url: str
    host: str
    """The issuer's, for people."""
    scopes: tuple[str, ...]
    expires_at: datetime
