"""Signing in to a server: the page that asks, the page that sends the browser on, and the one it comes back to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit
from uuid import UUID

from allauth.account.decorators import login_required
from django.http import Http404, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext, gettext_noop
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_http_methods

from mcp_servers.models import AccountUse, AuthType, McpServer
from mcp_servers.models.hosting import sign_in_path
from mcp_servers.oauth.attempts import has_not_come_back
from mcp_servers.oauth.identity import client_document
from mcp_servers.oauth.reasons import SignInFailed
from mcp_servers.oauth.services import server_for_callback, start_sign_in
from mcp_servers.pages.cards import host_of
from mcp_servers.pages.views.common import server_of
from mcp_servers.registry.limits import count_sign_in
from mcp_servers.registry.rights import may_manage, may_sign_in
from mcp_servers.registry.services.sign_ins import finish_sign_in
from workspaces.errors import DomainError, NotFound, PermissionDenied, RateLimited
from workspaces.middleware import bind_workspace, signed_in_user
from workspaces.people.entering import enterable_workspaces

if TYPE_CHECKING:
    from workspaces.middleware import WorkspaceRequest

INTERRUPTED = gettext_noop(
    "You were not signed in to Trellis when you came back, so nothing was connected. Please begin again."
)


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def sign_in(request: WorkspaceRequest, workspace_slug: str, server_id: UUID) -> HttpResponse:
    """Ask whether to sign in; after the answer, send the browser to where that is done."""
    row = server_of(request, server_id)
    if (elsewhere := sign_in_path(row)) is not None:
        return redirect(elsewhere)
    context: dict[str, Any] = {**_about(row), "may_sign_in": may_sign_in(request.actor, row)}
    if request.method != "POST":
        context["is_stuck"] = has_not_come_back(row, request.user.pk)
        context["may_register"] = may_manage(request.actor, row)
        # Only a page of ours may have the question answered by having it opened.
        begins = "now" in request.GET and request.headers.get("Sec-Fetch-Site") == "same-origin"
        context["begins"] = begins and context["may_sign_in"] and not context["is_stuck"]
        return render(request, "mcp_servers/sign_in.html", context)
    if not context["may_sign_in"]:
        raise PermissionDenied(_("Only an administrator can connect this server's account."))
    try:
        count_sign_in(request.actor, "begun")
        started = start_sign_in(
            server=row,
            actor=request.actor,
            session_key=request.session.session_key or "",
            origin=f"{request.scheme}://{request.get_host()}",
            registers_again=request.POST.get("register") == "again",
        )
    except (SignInFailed, RateLimited) as error:
        context["error"] = error.message
        return render(request, "mcp_servers/sign_in.html", context, status=error.status)
    if urlsplit(started.url).scheme not in ("http", "https"):
        raise NotFound
    context["started"] = started
    return render(request, "mcp_servers/sign_in_go.html", context)


@require_GET
def callback(request: WorkspaceRequest, server_id: UUID) -> HttpResponse:
    """Where an issuer sends people back to. Its words are read, and never shown."""
    user = signed_in_user(request)
    if user is None:
        # What came with the address is dropped: a code is worth nothing without the session it was asked for in.
        return redirect(f"{reverse('account_login')}?next={quote(request.path)}")
    row = _server_of_callback(request, server_id)
    context = _about(row)
    params = request.GET.dict()
    # RFC 6749, section 3.1: a parameter that comes twice makes the answer void, whichever it is.
    if "state" not in params or any(len(values) > 1 for _, values in request.GET.lists()):
        context |= {"error": gettext(INTERRUPTED), "reason": "interrupted"}
        return render(request, "mcp_servers/signed_in.html", context, status=422)
    try:
        count_sign_in(request.actor, "ended")
        finished = finish_sign_in(
            server=row,
            params=params,
            actor=request.actor,
            session_key=request.session.session_key or "",
        )
    except DomainError as error:
        reason = error.reason.value if isinstance(error, SignInFailed) else error.code
        context |= {"error": error.message, "reason": reason}
        return render(request, "mcp_servers/signed_in.html", context, status=error.status)
    context["finished"] = finished
    return render(request, "mcp_servers/signed_in.html", context)


@require_GET
def document(request: WorkspaceRequest, server_id: UUID) -> HttpResponse:
    """Who this installation is as a client, for issuers that read it; it tells nothing of the server."""
    if not McpServer.objects.across_workspaces().filter(pk=server_id).exists():
        raise Http404
    answer = JsonResponse(client_document(server_id))
    answer["Cache-Control"] = "public, max-age=600"
    return answer


def _about(row: McpServer) -> dict[str, Any]:
    slug = row.workspace.slug
    return {
        "server": row,
        "host": host_of(row),
        "is_shared": row.owner_id is None and row.account_use == AccountUse.WORKSPACE,
        "uses_sign_in": row.auth_type == AuthType.OAUTH,
        "sign_in_url": reverse("mcp_servers:sign_in", args=[slug, row.pk]),
        "servers_url": reverse("mcp_servers:servers", args=[slug]),
        "connections_url": reverse("mcp_servers:connections", args=[slug]),
    }


def _server_of_callback(request: WorkspaceRequest, server_id: UUID) -> McpServer:
    """The server of the address, whichever of the person's workspaces it is in; the request is of that one from now on.

    Raises:
        NotFound: it is nobody's business of theirs.
    """
    try:
        row = server_for_callback(server_id, request.user)
    except SignInFailed as error:
        raise NotFound from error
    if not enterable_workspaces(request.user).filter(pk=row.workspace_id).exists():
        raise NotFound
    if row.workspace != request.workspace:
        bind_workspace(request, row.workspace)
    return row
