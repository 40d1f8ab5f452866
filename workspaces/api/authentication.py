"""Who calls: an API token in the Authorization header, or a signed-in person with CSRF proof. Nothing else.

A credential that is there but not good is always 401: it never turns into another scheme's identity or into nobody's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, cast

from django.utils.translation import gettext as _
from rest_framework.authentication import BaseAuthentication, SessionAuthentication
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.exceptions import PermissionDenied as RestPermissionDenied
from rest_framework.permissions import SAFE_METHODS, BasePermission

from workspaces.database.row_security import in_workspace
from workspaces.errors import NotFound, NoWorkspace, PermissionDenied, WorkspaceNotFound
from workspaces.middleware import MemberRole, bind_platform, bind_workspace
from workspaces.people.entering import find_shut_out
from workspaces.people.tokens import MCP_SCOPES, authenticate, find_unexpired
from workspaces.roles import TAKES_PERSON

if TYPE_CHECKING:
    from rest_framework.request import Request
    from rest_framework.views import APIView

    from workspaces.middleware import WorkspaceRequest
    from workspaces.models import ApiToken, User, Workspace

_OTHER_CARRIERS = ("HTTP_X_API_KEY", "HTTP_X_AUTH_TOKEN", "HTTP_PROXY_AUTHORIZATION")
_CREDENTIAL_PARAMETERS = frozenset({"token", "access_token", "api_key", "apikey", "key", "auth"})


ANY_SCOPE: Final = "any"
"""In the place of a scope: whatever a token of REST holds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scopes:
    """What a token must hold to read (GET, HEAD, OPTIONS) and to change."""

    read: str
    write: str


class ApiTokenAuthentication(BaseAuthentication):
    """``Authorization: Bearer trl_…``; the token says which person and which workspace."""

    def authenticate(self, request: Request) -> tuple[User, ApiToken] | None:
        """Give the token's person and bind the request to its workspace.

        Raises:
            AuthenticationFailed: a credential is there, in whatever form, that is no live token.
            PermissionDenied: the request names a workspace that is not the token's; or the token is good, and works
                again once its workspace or its person is no longer suspended, or the person has the second step.
        """
        if any(request.META.get(name) for name in _OTHER_CARRIERS):
            raise AuthenticationFailed("Send the token as 'Authorization: Bearer …'.")
        if _CREDENTIAL_PARAMETERS & {name.lower() for name in request.query_params}:
            raise AuthenticationFailed("Credentials are not accepted in an address.")
        if request.META.get("HTTP_AUTHORIZATION") is None:
            return None
        plain = plain_bearer(request)
        live = authenticate(plain)
        if live is None:
            # A program that reads 401 gives its credential up.
            if (holder := self.find_holder(plain)) is not None:
                person, workspace = holder
                with in_workspace(workspace.pk):
                    found = find_shut_out(person, slug=workspace.slug)
                if found is not None:
                    raise PermissionDenied(f"{found.words} {found.remedy}")
            raise AuthenticationFailed("This token is not valid, or no longer.")
        token = live.token
        named = request.headers.get("X-Workspace")
        if named and named != token.workspace.slug:
            # To act in another workspace than the one that was named would be worse than to say no.
            raise PermissionDenied(
                _("X-Workspace names another workspace than this token's. Leave the header out.")
            )
        http_request = cast("WorkspaceRequest", request._request)
        http_request.user = token.user
        role = MemberRole(live.role, live.is_auditor)
        bind_workspace(http_request, token.workspace, token=token, known=role)
        return token.user, token

    def find_holder(self, plain: str) -> tuple[User, Workspace] | None:
        """Whose a credential is and of which workspace, if it is good but for what keeps the person out."""
        token = find_unexpired(plain)
        return None if token is None else (token.user, token.workspace)

    def authenticate_header(self, request: Request) -> str:
        """Makes failures 401 instead of 403."""
        return 'Bearer realm="Trellis"'


class CookieAuthentication(SessionAuthentication):
    """The session of a signed-in person; changes need the CSRF token as header X-CSRFToken."""

    def enforce_csrf(self, request: Request) -> None:
        """Refuse a change without proof, and say what the proof is.

        Raises:
            RestPermissionDenied: it comes from another site, or does not have the header.
        """
        try:
            super().enforce_csrf(request)
        except RestPermissionDenied as error:
            message = _(
                "Send the session's CSRF token in the header X-CSRFToken, or use an API token."
            )
            raise RestPermissionDenied(f"{error.detail} {message}") from error

    def authenticate_header(self, request: Request) -> str:
        """Makes failures 401 instead of 403."""
        return 'Bearer realm="Trellis"'


class Nobody(BasePermission):
    """A viewset that does not say who may call it is closed."""

    def has_permission(self, request: Request, view: APIView) -> bool:
        """Give False."""
        return False


class InWorkspace(BasePermission):
    """A known person in a workspace, with a token (if there is one) that holds the view's scope.

    What the person's role allows is the services' question, which they ask for every door alike.
    """

    def has_permission(self, request: Request, view: APIView) -> bool:
        """Give False for nobody (401).

        Raises:
            NoWorkspace, WorkspaceNotFound: the request names no workspace, or one that the person may not enter.
            PermissionDenied: the token does not hold the scope, or the view accepts no tokens.
        """
        if not request.user.is_authenticated:
            return False
        http_request = cast("WorkspaceRequest", request._request)
        if http_request.workspace is None:
            slug = request.headers.get("X-Workspace")
            if (found := find_shut_out(http_request.user, slug=slug)) is not None:
                raise PermissionDenied(f"{found.words} {found.remedy}")
            raise WorkspaceNotFound if slug else NoWorkspace
        _require_scope(http_request.actor.scopes, request, view)
        return True


class OwnsPlatform(BasePermission):
    """The platform's owner: in a browser, or with a token that holds the view's scope. Everybody else finds nothing.

    A right that is taken away ends a token's use at once: each request asks who its person is now.
    """

    def has_permission(self, request: Request, view: APIView) -> bool:
        """Give False for nobody (401). From here on the request speaks for the platform, and for no workspace.

        Raises:
            NotFound: the person does not own the platform.
            PermissionDenied: the token does not hold the scope, or the action takes a person.
        """
        if not request.user.is_authenticated:
            return False
        if not request.user.is_superuser:
            raise NotFound
        http_request = cast("WorkspaceRequest", request._request)
        _require_scope(http_request.actor.scopes, request, view)
        bind_platform(http_request)
        return True


def _require_scope(held: frozenset[str] | None, request: Request, view: APIView) -> None:
    """Raise PermissionDenied where a token may not do this; None: it is no token."""
    if held is None:
        return
    scopes: Scopes | None = getattr(view, "scopes", None)
    needed = (
        None if scopes is None else scopes.read if request.method in SAFE_METHODS else scopes.write
    )
    if needed is None:
        raise PermissionDenied(TAKES_PERSON)
    if needed == ANY_SCOPE:
        if held <= MCP_SCOPES.keys():
            raise PermissionDenied(_("This token is for MCP clients. It opens nothing else."))
        return
    if needed not in held:
        raise PermissionDenied(
            _("This token does not hold the scope '%(needed)s'.") % {"needed": needed}
        )
    if getattr(view, "action", None) in getattr(view, "needs_person", ()):
        raise PermissionDenied(TAKES_PERSON)


def plain_bearer(request: Request) -> str:
    """The token in the Authorization header; empty where there is none, or none that could be a token."""
    scheme, _, plain = str(request.META.get("HTTP_AUTHORIZATION", "")).partition(" ")
    return plain.strip() if scheme.lower() == "bearer" and _is_plain(plain) else ""


def _is_plain(text: str) -> bool:
    return text.isascii() and text.isprintable() and len(text) <= 200
