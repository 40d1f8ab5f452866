"""The endpoint's address. A token for MCP clients or a client's sign-in opens it, and nothing else does."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Any, NoReturn, cast

from django.conf import settings
from django.http import HttpResponse
from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema
from rest_framework.exceptions import AuthenticationFailed, MethodNotAllowed, NotAuthenticated
from rest_framework.views import APIView

from mcp_servers.client.connections.runtime import Pending
from mcp_servers.client.sdk import mcp_types
from mcp_servers.endpoint import streaming
from mcp_servers.endpoint.callers import EndpointCaller, caller_of
from mcp_servers.endpoint.protocol import ClientRequest, answer, fault_for, refusal_of
from mcp_servers.endpoint.sign_in import scopes
from mcp_servers.endpoint.sign_in.grants import authenticate, find_unexpired
from mcp_servers.endpoint.sign_in.metadata import resource_metadata_at
from mcp_servers.models import ClientSignIn
from workspaces.api.authentication import ApiTokenAuthentication, plain_bearer
from workspaces.api.viewsets import CallerThrottle
from workspaces.errors import PermissionDenied
from workspaces.middleware import MemberRole, bind_workspace
from workspaces.process.departures import departure_of
from workspaces.process.shutdown import ShuttingDown
from workspaces.process.streams import WorkingStream

if TYPE_CHECKING:
    from rest_framework.request import Request
    from rest_framework.response import Response

    from workspaces.middleware import WorkspaceRequest
    from workspaces.models import ApiToken, User, Workspace

_WORDS = "text/plain; charset=utf-8"
_STREAM = "text/event-stream"
_HOP_BY_HOP = frozenset({"content-length", "connection", "transfer-encoding"})


class EndpointAuthentication(ApiTokenAuthentication):
    """A token that a person pasted, or the access token of a client's sign-in. A refusal says where to sign in."""

    def authenticate(self, request: Request) -> tuple[User, ApiToken | ClientSignIn] | None:  # type: ignore[override]  # also a sign-in
        """Give the person and the credential, and bind the request to its workspace.

        Raises:
            AuthenticationFailed: a credential is there, in whatever form, that serves no more or never did.
            PermissionDenied: it serves again once its workspace or its person is no longer suspended.
        """
        live = authenticate(plain_bearer(request))
        if live is None:
            return super().authenticate(request)
        sign_in = live.sign_in
        http_request = cast("WorkspaceRequest", request._request)
        http_request.user = sign_in.user
        role = MemberRole(live.role, live.is_auditor)
        bind_workspace(http_request, sign_in.workspace, token=sign_in, known=role)
        return sign_in.user, sign_in

    def find_holder(self, plain: str) -> tuple[User, Workspace] | None:
        """The same of an access token as of one that was pasted."""
        sign_in = find_unexpired(plain)
        return super().find_holder(plain) if sign_in is None else (sign_in.user, sign_in.workspace)

    def authenticate_header(self, request: Request) -> str:
        """Source: RFC 9728, section 5.1; MCP specification, "Authorization": Scope Selection Strategy."""
        slug = request.parser_context["kwargs"]["workspace_slug"]
        error = "invalid_token" if request.headers.get("Authorization") else ""
        return _challenge(request, slug, scopes.ALL, error)


@extend_schema(exclude=True)
class EndpointView(APIView):
    """Streamable HTTP without sessions: one POST, one answer, as a stream if it takes long. Other methods are 405."""

    authentication_classes = (EndpointAuthentication,)
    throttle_classes = (CallerThrottle,)
    http_method_names = ("post",)

    def perform_content_negotiation(self, request: Request, force: bool = False) -> Any:
        """Leave ``Accept`` to the protocol: a client that asks for a stream by GET has to read 405, and not 406."""
        return super().perform_content_negotiation(request, force=True)

    def http_method_not_allowed(  # type: ignore[override]  # the framework's views get its requests
        self, request: Request, *args: object, **kwargs: object
    ) -> NoReturn:
        """Tell whoever opens the address in a browser what it is for."""
        message = _(
            "This is the address of an MCP endpoint. Add it to an MCP client; it takes POST."
        )
        raise MethodNotAllowed(str(request.method), message)

    def handle_exception(self, exc: Exception) -> Response:
        """Say why a message is refused in an error of the protocol. Clients show their people only the protocol's errors.

        Source: MCP specification, "Transports": the body of an HTTP error may be a JSON-RPC error without an id.
        """
        response = super().handle_exception(exc)
        if self.request.method == "POST":
            message = " ".join(str(error["detail"]) for error in response.data["errors"])
            response.data = refusal_of(message)
        return response

    def post(self, request: Request, workspace_slug: str) -> HttpResponse | WorkingStream:
        """Answer one message of a client.

        Raises:
            NotAuthenticated, AuthenticationFailed: no token, or not one for MCP clients of this workspace.
            PermissionDenied: a browser of another origin sends this.
            ShuttingDown: the process ends, and this is no request that could be answered.
        """
        caller = _caller_of(request, workspace_slug)
        _check_origin(request)
        http_request = request._request
        headers = [
            (name.lower().encode("latin-1"), value.encode("latin-1"))
            for name, value in http_request.headers.items()
            if name.lower() not in ("authorization", "cookie")
        ]
        exchange, body = ClientRequest(caller), http_request.body
        pending = Pending(
            answer(exchange, headers=headers, body=body),
            departure=departure_of(http_request) if _hangs_up(request) else None,
        )
        try:
            given = pending.result(streaming.PATIENCE if _takes_streams(request) else None)
        except ShuttingDown as error:
            fault = fault_for(body, error.message)
            if fault is None:
                raise
            given = fault
        except TimeoutError:
            return WorkingStream(
                streaming.stream(pending, exchange, body),
                content_type=_STREAM,
                headers=streaming.HEADERS,
            )
        status = HTTPStatus.FORBIDDEN if exchange.lacks_scope else given.status
        # What the protocol's library says without a type is words.
        response = HttpResponse(given.body, status=status, content_type=_WORDS)
        for name, value in given.headers:
            if name.lower() not in _HOP_BY_HOP:
                response[name] = value
        if exchange.lacks_scope:
            response["WWW-Authenticate"] = _challenge(
                request, workspace_slug, scopes.CALL, "insufficient_scope"
            )
        response["Cache-Control"] = "no-store"
        return response


def _takes_streams(request: Request) -> bool:
    """Whether the client says that it reads streams, as all have to."""
    return _STREAM in request.headers.get("Accept", "")


def _hangs_up(request: Request) -> bool:
    """Whether the client takes a request back by hanging up. Before 2026-07-28, a lost connection says nothing.

    Source: MCP specification, "Cancellation".
    """
    revision = request.headers.get("Mcp-Protocol-Version")
    return revision in mcp_types.version.MODERN_PROTOCOL_VERSIONS


def _caller_of(request: Request, workspace_slug: str) -> EndpointCaller:
    credential = cast("ApiToken | ClientSignIn | None", request.auth)
    if credential is None:
        raise NotAuthenticated
    caller = None
    if credential.workspace.slug == workspace_slug:
        caller = caller_of(cast("WorkspaceRequest", request._request).actor, credential)
    if caller is None:
        # A token for something else is no credential here, whatever it opens elsewhere.
        raise AuthenticationFailed(_("This token is not for MCP clients of this workspace."))
    if not credential.workspace.allows_mcp_clients:
        raise PermissionDenied(_("This workspace does not let other MCP clients in."))
    return caller


def _challenge(request: Request, slug: str, scope: str, error: str) -> str:
    """What a client reads that may not come in: where people sign in, and what to ask them for."""
    parameters = {
        "realm": "Trellis",
        **({"error": error} if error else {}),
        "resource_metadata": resource_metadata_at(request._request, slug),
        "scope": scope,
    }
    return "Bearer " + ", ".join(f'{name}="{value}"' for name, value in parameters.items())


def _check_origin(request: Request) -> None:
    """Source: MCP specification, "Transports": servers must validate the header Origin (DNS rebinding)."""
    origin = request.headers.get("Origin")
    if origin is not None and origin not in settings.TRELLIS.public_origins:
        raise PermissionDenied(_("This address is not for pages of other origins."))
