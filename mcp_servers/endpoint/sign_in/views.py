"""What clients themselves ask of Trellis: its descriptions, registration, tokens and their end."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from django.http import HttpResponse, JsonResponse
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST, require_safe
from mcp.server.auth.handlers.register import RegistrationHandler
from mcp.server.auth.handlers.revoke import RevocationHandler
from mcp.server.auth.handlers.token import TokenHandler
from mcp.server.auth.middleware.client_auth import ClientAuthenticator
from mcp.server.auth.settings import ClientRegistrationOptions

from mcp_servers.endpoint.sign_in import metadata, scopes
from mcp_servers.endpoint.sign_in.handling import Handler, handle_form, handle_json
from mcp_servers.endpoint.sign_in.provider import Provider
from mcp_servers.registry.limits import count_up
from workspaces.actors import Actor, Source
from workspaces.errors import RateLimited
from workspaces.middleware import client_address

if TYPE_CHECKING:
    from workspaces.middleware import WorkspaceRequest

MOST_BYTES: Final = 16 * 1024
MOST_REGISTRATIONS: Final = 20
"""From one address in ten minutes."""
MOST_REQUESTS: Final = 600
"""For tokens, from one address in ten minutes: many people may share one."""
KEPT: Final = "public, max-age=3600"


@require_safe
def describe_endpoint(request: WorkspaceRequest, name: str) -> HttpResponse:
    """Where people sign in for a workspace's endpoint."""
    description = metadata.describe_endpoint(request, name)
    return _described(metadata.as_json(description, metadata.origin_of(request)))


@require_safe
def describe_server(request: WorkspaceRequest) -> HttpResponse:
    """What is possible here."""
    description = metadata.describe_server(request)
    return _described(metadata.as_json(description, metadata.origin_of(request)))


@csrf_exempt
@require_POST
def register(request: WorkspaceRequest) -> HttpResponse:
    """Note a program that people may sign in with."""
    if (refused := _counted(request, "register", MOST_REGISTRATIONS)) is not None:
        return refused
    try:
        document = json.loads(request.body) if len(request.body) <= MOST_BYTES else None
    except (ValueError, RecursionError):
        document = None
    if not isinstance(document, dict):
        return _refused("invalid_client_metadata", "Send a JSON object of at most 16 KiB.")
    addresses = document.get("redirect_uris")
    provider = _provider(request)
    provider.redirect_uris = addresses if isinstance(addresses, list) else ()
    options = ClientRegistrationOptions(enabled=True, valid_scopes=list(scopes.SCOPES))
    handler: Any = RegistrationHandler(provider, options)  # type: ignore[arg-type]  # its client is ours
    return _handled(handle_json(handler.handle, json.dumps(_as_we_take_it(document)).encode()))


@csrf_exempt
@require_POST
def token(request: WorkspaceRequest) -> HttpResponse:
    """Give tokens for a code or a refresh token."""
    return _form(request, lambda one: TokenHandler(one, ClientAuthenticator(one)).handle)


@csrf_exempt
@require_POST
def revoke(request: WorkspaceRequest) -> HttpResponse:
    """End the sign-in that a token belongs to."""
    return _form(request, lambda one: RevocationHandler(one, ClientAuthenticator(one)).handle)


def _form(request: WorkspaceRequest, made: Callable[[Any], Handler]) -> HttpResponse:
    if (refused := _counted(request, "tokens", MOST_REQUESTS)) is not None:
        return refused
    if len(request.body) > MOST_BYTES:
        return _refused("invalid_request", "Send at most 16 KiB.")
    # Source: RFC 6749, section 3.2: a parameter that comes twice makes a request void.
    if any(len(values) > 1 for _name, values in request.POST.lists()):
        return _refused("invalid_request", "Send each parameter once.")
    provider = _provider(request)
    provider.resource = request.POST.get("resource")
    # The SDK's form of a revocation wants a secret to be there, and asks no public client for what it is.
    params = {"client_secret": "", **request.POST.dict()}
    return _handled(handle_form(made(provider), params))


def _as_we_take_it(document: Mapping[str, Any]) -> dict[str, Any]:
    """What a client registers, as far as it matters. All clients are public: a secret on a laptop is none.

    Source: RFC 7591, section 3.2.1: a server may put other values in the place of those that it was sent.
    """
    kept = {name: document[name] for name in ("redirect_uris", "client_name") if name in document}
    return {
        **kept,
        "token_endpoint_auth_method": "none",
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "scope": scopes.ALL,
        **({"client_uri": document["client_uri"]} if document.get("client_uri") else {}),
    }


def _provider(request: WorkspaceRequest) -> Provider:
    return Provider(
        actor=Actor.anonymous(
            source=Source.GATEWAY,
            ip_address=client_address(request),
            request_id=request.request_id,
        ),
        slug_at=partial(metadata.slug_at, metadata.origin_of(request)),
    )


def _counted(request: WorkspaceRequest, what: str, most: int) -> HttpResponse | None:
    """A refusal, if there were too many from this address."""
    try:
        count_up(f"client-{what}:{client_address(request)}", most)
    except RateLimited as error:
        response = _refused("temporarily_unavailable", error.message, status=429)
        response["Retry-After"] = str(error.retry_seconds)
        return response
    return None


def _refused(error: str, description: str, *, status: int = 400) -> HttpResponse:
    response = JsonResponse({"error": error, "error_description": description}, status=status)
    response["Cache-Control"] = "no-store"
    return response


def _handled(answer: Any) -> HttpResponse:
    response: HttpResponse = answer.as_response()
    response["Cache-Control"] = "no-store"
    return response


def _described(description: Mapping[str, object]) -> HttpResponse:
    response = JsonResponse(dict(description))
    response["Cache-Control"] = KEPT
    return response
