"""What clients read before they ask: where people sign in for an endpoint, and what is possible there.

Source: RFC 9728, section 3.1; RFC 8414, section 3; MCP specification, "Authorization".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from django.conf import settings
from django.urls import Resolver404, resolve, reverse
from mcp.shared.auth import OAuthMetadata, ProtectedResourceMetadata
from pydantic import AnyHttpUrl

from mcp_servers.endpoint.sign_in import scopes

if TYPE_CHECKING:
    from django.http import HttpRequest

_WELL_KNOWN: Final = "/.well-known/oauth-protected-resource"


def origin_of(request: HttpRequest) -> str:
    """The address under which the client reaches this installation, and the issuer's name."""
    return f"{request.scheme}://{request.get_host()}"


def endpoint_at(request: HttpRequest, slug: str) -> str:
    """The address of a workspace's endpoint."""
    return origin_of(request) + reverse("mcp_endpoint", args=[slug])


def resource_metadata_at(request: HttpRequest, slug: str) -> str:
    """Where a client reads about an endpoint."""
    return origin_of(request) + _WELL_KNOWN + reverse("mcp_endpoint", args=[slug])


def slug_at(origin: str, resource: str) -> str | None:
    """The name of the workspace whose endpoint has this address, with or without its last slash.

    There may be no such workspace.
    """
    try:
        parts = urlsplit(resource)
    except ValueError:
        return None
    if f"{parts.scheme}://{parts.netloc}" != origin or parts.query or parts.fragment:
        return None
    try:
        match = resolve(parts.path if parts.path.endswith("/") else f"{parts.path}/")
    except Resolver404:
        return None
    if match.url_name != "mcp_endpoint":
        return None
    return str(match.kwargs["workspace_slug"])


def describe_endpoint(request: HttpRequest, slug: str) -> ProtectedResourceMetadata:
    """An endpoint. It says the same for every name, so that nobody learns which workspaces there are."""
    return ProtectedResourceMetadata(
        resource=AnyHttpUrl(endpoint_at(request, slug)),
        authorization_servers=[AnyHttpUrl(origin_of(request))],
        scopes_supported=list(scopes.SCOPES),
        resource_name="Trellis",
    )


def describe_server(request: HttpRequest) -> OAuthMetadata:
    """This installation as an authorization server."""
    origin = origin_of(request)

    def at(name: str) -> AnyHttpUrl:
        return AnyHttpUrl(origin + reverse(name))

    return OAuthMetadata(
        issuer=AnyHttpUrl(origin),
        authorization_endpoint=at("mcp_authorize"),
        token_endpoint=at("mcp_token"),
        registration_endpoint=at("mcp_register"),
        revocation_endpoint=at("mcp_revoke"),
        scopes_supported=list(scopes.SCOPES),
        response_types_supported=["code"],
        grant_types_supported=["authorization_code", "refresh_token"],
        token_endpoint_auth_methods_supported=["none"],
        revocation_endpoint_auth_methods_supported=["none"],
        code_challenge_methods_supported=["S256"],
        client_id_metadata_document_supported=settings.TRELLIS.mcp_client_documents,
        authorization_response_iss_parameter_supported=True,
    )


def as_json(
    description: OAuthMetadata | ProtectedResourceMetadata, origin: str
) -> dict[str, object]:
    """The text of a description. An issuer is compared character by character, so it keeps its form."""
    given = description.model_dump(mode="json", exclude_none=True)
    if isinstance(description, OAuthMetadata):
        given["issuer"] = origin
    else:
        given["authorization_servers"] = [origin]
    return given
