"""The endpoint's address. A token for MCP clients opens it, and nothing else does."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, cast

from django.conf import settings
from django.http import HttpResponse
from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema
from rest_framework.exceptions import AuthenticationFailed, NotAuthenticated
from rest_framework.views import APIView

from mcp_servers.client.connections.runtime import run_sync
from mcp_servers.endpoint.callers import CALL, Caller, caller_of
from mcp_servers.endpoint.protocol import answer
from workspaces.api.authentication import ApiTokenAuthentication
from workspaces.api.viewsets import CallerThrottle
from workspaces.errors import PermissionDenied

if TYPE_CHECKING:
    from rest_framework.request import Request

    from workspaces.middleware import WorkspaceRequest
    from workspaces.models import ApiToken

_HOP_BY_HOP = frozenset({"content-length", "connection", "transfer-encoding"})


@extend_schema(exclude=True)
class Endpoint(APIView):
    """Streamable HTTP without sessions: one POST, one answer. Other methods are 405."""

    authentication_classes = (ApiTokenAuthentication,)
    throttle_classes = (CallerThrottle,)
    http_method_names = ("post",)

    def post(self, request: Request, workspace_slug: str) -> HttpResponse:
        """Answer one message of a client.

        Raises:
            NotAuthenticated, AuthenticationFailed: no token, or not one for MCP clients of this workspace.
            PermissionDenied: a browser of another origin sends this.
        """
        caller = _caller_of(request, workspace_slug)
        _check_origin(request)
        http_request = request._request
        headers = [
            (name.lower().encode("latin-1"), value.encode("latin-1"))
            for name, value in http_request.headers.items()
            if name.lower() not in ("authorization", "cookie")
        ]
        given, lacks_scope = run_sync(answer(caller, headers=headers, body=http_request.body))
        status = HTTPStatus.FORBIDDEN if lacks_scope else given.status
        response = HttpResponse(given.body, status=status)
        for name, value in given.headers:
            if name.lower() not in _HOP_BY_HOP:
                response[name] = value
        if lacks_scope:
            response["WWW-Authenticate"] = f'Bearer error="insufficient_scope", scope="{CALL}"'
        response["Cache-Control"] = "no-store"
        return response


def _caller_of(request: Request, workspace_slug: str) -> Caller:
    token = cast("ApiToken | None", request.auth)
    if token is None:
        raise NotAuthenticated
    caller = None
    if token.workspace.slug == workspace_slug:
        caller = caller_of(cast("WorkspaceRequest", request._request).actor, token)
    if caller is None:
        # A token for something else is no credential here, whatever it opens elsewhere.
        raise AuthenticationFailed(_("This token is not for MCP clients of this workspace."))
    if not token.workspace.allows_mcp_clients:
        raise PermissionDenied(_("This workspace does not let other MCP clients in."))
    return caller


def _check_origin(request: Request) -> None:
    """Source: MCP specification, "Transports": servers must validate the header Origin (DNS rebinding)."""
    origin = request.headers.get("Origin")
    if origin is not None and origin not in settings.TRELLIS.public_origins:
        raise PermissionDenied(_("This address is not for pages of other origins."))
