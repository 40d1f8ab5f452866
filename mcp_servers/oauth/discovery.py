"""Who issues tokens for a server: asked of the server, then of the issuer it names.

Source: MCP specification, "Authorization": Authorization Server Discovery; RFC 9728, sections 3 and 5; RFC 8414,
section 3; OpenID Connect Discovery 1.0.
"""

from __future__ import annotations

import json
from typing import Final, TypeVar

import pydantic

from mcp_servers.oauth.reasons import Reason, SignInFailed
from mcp_servers.oauth.requests import check_url, get_json
from mcp_servers.oauth.values import (
    Challenge,
    Discovery,
    IssuerMetadata,
    ResourceMetadata,
    joined,
    scopes_of,
)
from workspaces import outbound
from workspaces.errors import InvalidEndpoint

T = TypeVar("T", bound=pydantic.BaseModel)

_S256: Final = "S256"
_WELL_KNOWN: Final = "/.well-known/oauth-protected-resource"
_OFFLINE: Final = "offline_access"


async def discover(
    endpoint: outbound.Endpoint, challenge: Challenge, *, preferred_issuer: str = ""
) -> Discovery:
    """Find out who issues tokens for a server, and which scopes to ask for.

    Args:
        challenge: what the server said when it refused a request.
        preferred_issuer: the one in use so far; taken if the server names several.

    Raises:
        SignInFailed: unreachable, no_metadata, insecure_url, other_resource, issuer_mismatch, no_pkce.
    """
    found = await _resource_metadata(endpoint, challenge)
    if found is None:
        # MCP 2025-03-26: the server is its own issuer.
        issuer = await _issuer_metadata(_bare_origin(endpoint), must_exist=False)
        scopes = scopes_of(challenge.scope)
        return Discovery(
            issuer=issuer,
            resource=str(endpoint),
            scopes=_with_offline(scopes, issuer),
            known_scopes=scopes,
        )
    if not found.authorization_servers:
        raise SignInFailed(Reason.NO_METADATA)
    named = found.authorization_servers
    chosen = preferred_issuer if preferred_issuer in named else named[0]
    issuer = await _issuer_metadata(chosen, must_exist=True)
    supported = scopes_of(" ".join(found.scopes_supported or ()))
    scopes = scopes_of(challenge.scope) or supported
    return Discovery(
        issuer=issuer,
        resource=found.resource,
        scopes=_with_offline(scopes, issuer),
        known_scopes=joined(scopes, supported),
    )


def check_can_sign_in(issuer: IssuerMetadata) -> None:
    """Make sure that people can be sent to this issuer.

    Raises:
        SignInFailed: no_metadata, insecure_url, no_pkce.
    Source: MCP specification, "Authorization": Authorization Code Protection; RFC 7636.
    """
    if not issuer.authorization_endpoint:
        raise SignInFailed(Reason.NO_METADATA)
    check_url(issuer.authorization_endpoint)
    if not issuer.is_assumed and _S256 not in (issuer.code_challenge_methods_supported or ()):
        raise SignInFailed(Reason.NO_PKCE)


async def _resource_metadata(
    endpoint: outbound.Endpoint, challenge: Challenge
) -> ResourceMetadata | None:
    """What the server publishes about itself; None if it publishes nothing, as servers of 2025-03-26 do."""
    from mcp.client.auth.utils import build_protected_resource_metadata_discovery_urls

    urls = build_protected_resource_metadata_discovery_urls(
        challenge.resource_metadata_url or None, str(endpoint)
    )
    for url in urls:
        answer = await get_json(url)
        if answer.status >= 500:
            raise SignInFailed(Reason.UNREACHABLE)
        if answer.status != 200 or not _names_a_resource(answer.body):
            continue
        metadata = _read(ResourceMetadata, answer.body)
        is_of_host = url == f"{_bare_origin(endpoint)}{_WELL_KNOWN}"
        if metadata is None or not _is_resource_of(metadata.resource, endpoint, is_of_host):
            raise SignInFailed(Reason.OTHER_RESOURCE)
        return metadata
    return None


def _names_a_resource(body: bytes) -> bool:
    """Whether an answer is metadata at all; many hosts answer every address with a page."""
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        return False
    return isinstance(document, dict) and "resource" in document


def _is_resource_of(resource: str, endpoint: outbound.Endpoint, is_of_host: bool) -> bool:
    """Whether tokens for that resource are for this server alone.

    The resource is the server's own address. Only metadata of the whole host may name the host, as its address says.
    Source: RFC 9728, section 3.3; MCP specification, "Authorization": Canonical Server URI.
    """
    try:
        named = str(outbound.parse_endpoint(resource))
    except InvalidEndpoint:
        return False
    own = str(endpoint).partition("?")[0]
    allowed = {own, _bare_origin(endpoint)} if is_of_host else {own}
    return named.rstrip("/") in {address.rstrip("/") for address in allowed}


async def _issuer_metadata(issuer: str, *, must_exist: bool) -> IssuerMetadata:
    """What an issuer publishes, under the very name it was asked for.

    Raises:
        SignInFailed: issuer_mismatch, no_metadata, unreachable, insecure_url.
    """
    from mcp.client.auth.utils import build_oauth_authorization_server_metadata_discovery_urls

    check_url(issuer)
    for url in build_oauth_authorization_server_metadata_discovery_urls(issuer, issuer):
        answer = await get_json(url)
        if answer.status >= 500:
            raise SignInFailed(Reason.UNREACHABLE)
        metadata = _read(IssuerMetadata, answer.body) if answer.status == 200 else None
        if metadata is None:
            continue
        # The name of a server that is its own issuer is our guess, and a bare origin has two spellings.
        is_as_asked = metadata.issuer == issuer or (
            not must_exist and metadata.issuer == f"{issuer}/"
        )
        if not is_as_asked:
            raise SignInFailed(Reason.ISSUER_MISMATCH)
        check_url(metadata.token_endpoint)
        return metadata
    if must_exist:
        raise SignInFailed(Reason.NO_METADATA)
    base = issuer.rstrip("/")
    return IssuerMetadata(
        issuer=issuer,
        authorization_endpoint=f"{base}/authorize",
        token_endpoint=f"{base}/token",
        registration_endpoint=f"{base}/register",
        is_assumed=True,
    )


def _with_offline(scopes: tuple[str, ...], issuer: IssuerMetadata) -> tuple[str, ...]:
    """Ask for a refresh token too, where that is a scope of its own (OpenID Connect Core, section 11)."""
    if scopes and _OFFLINE in (issuer.scopes_supported or ()):
        return joined(scopes, (_OFFLINE,))
    return scopes


def _bare_origin(endpoint: outbound.Endpoint) -> str:
    return str(endpoint).removesuffix(endpoint.target)


def _read(model: type[T], body: bytes) -> T | None:
    try:
        return model.model_validate_json(body)
    except (pydantic.ValidationError, ValueError):
        return None
