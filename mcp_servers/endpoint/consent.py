"""The page on which a person lets a client in, or does not.

A link to it can be sent to anybody. So nothing is given for opening it: the person answers on the page, in the browser
that was shown it, and what the page was about is what the answer is about.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

from csp.decorators import csp_update
from django.core import signing
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods
from mcp.server.auth.handlers.authorize import AuthorizationHandler
from mcp.server.auth.provider import construct_redirect_uri

from mcp_servers.endpoint.callers import widest_caller
from mcp_servers.endpoint.offering import count_offers
from mcp_servers.endpoint.sign_in import clients, grants, metadata, redirects, scopes
from mcp_servers.endpoint.sign_in.grants import AuthorizationRequest
from mcp_servers.endpoint.sign_in.handling import HandlerResponse, handle_query
from mcp_servers.endpoint.sign_in.provider import Provider
from mcp_servers.models import KnownVia
from mcp_servers.registry.limits import count_up
from workspaces.errors import DomainError
from workspaces.middleware import bind_workspace, signed_in_user
from workspaces.models import Membership
from workspaces.people.entering import find_shut_out, lacks_second_step
from workspaces.roles import Permission, has_permission

if TYPE_CHECKING:
    from workspaces.middleware import WorkspaceRequest
    from workspaces.models import User, Workspace

PARAMETERS: Final = (
    *("response_type", "client_id", "redirect_uri", "scope", "state"),
    *("code_challenge", "code_challenge_method", "resource"),
)
LONGEST: Final = 2000
"""Of one parameter."""
ANSWER_SECONDS: Final = 600
MOST_PAGES: Final = 60
"""That one person may be shown in ten minutes."""
_CHALLENGE: Final = re.compile(r"[A-Za-z0-9_-]{43}")
"""As S256 makes one, RFC 7636, section 4.2."""
_SALT: Final = "mcp_servers.client_sign_in"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsentRefusal:
    """Why a client cannot be let in, and what to do."""

    reason: str
    remedy: str


@require_http_methods(["GET", "HEAD", "POST"])
def authorize(request: WorkspaceRequest) -> HttpResponse:
    """Ask whether a client may use the tools of a workspace; send the answer to where the client waits for it."""
    given = request.POST if request.method == "POST" else request.GET
    params = {name: given[name] for name in PARAMETERS if name in given}
    user = signed_in_user(request)
    if user is None:
        here = f"{request.path}?{urlencode(params)}"
        return redirect(f"{reverse('account_login')}?next={quote(here)}")
    # Source: RFC 6749, section 3.1: a parameter that comes twice makes a request void.
    if any(len(given.getlist(name)) > 1 or len(value) > LONGEST for name, value in params.items()):
        return _failed(request, _("The address of this page is damaged."))
    try:
        count_up(f"client-sign-in:{user.pk}", MOST_PAGES)
        if clients.is_document(params.get("client_id", "")):
            clients.read_document(params["client_id"], actor=request.actor)
    except DomainError as error:
        return _failed(request, error.message, status=error.status)
    asked, handled = _read(request, params)
    if asked is None:
        return _failed(request, _("What the client asks for is not possible."), handled=handled)
    members = Membership.objects.across_workspaces().select_related("workspace")
    member = members.filter(
        user=user, workspace__slug=asked.slug, workspace__is_active=True
    ).first()
    if member is None or lacks_second_step(user, member.workspace):
        return _not_possible(request, asked, _no_member(user, asked.slug))
    bind_workspace(request, member.workspace)
    if not member.workspace.allows_mcp_clients:
        return _not_possible(request, asked, _not_allowed(request, member.workspace))
    if request.method == "POST":
        answer = _answered(request, asked, params, member.workspace, user)
        if answer is not None:
            return answer
    return _page(request, asked, params, member.workspace)


def _read(
    request: WorkspaceRequest, params: Mapping[str, str]
) -> tuple[AuthorizationRequest | None, HandlerResponse]:
    """What the client asks for, if its request is in order."""
    provider = Provider(
        actor=request.actor,
        slug_at=partial(metadata.slug_at, metadata.origin_of(request)),
        redirect_uri=params.get("redirect_uri", ""),
    )
    # The SDK takes a challenge without a method for S256; OAuth takes it for "plain", which is not offered.
    sent = {"code_challenge_method": "plain", **params}
    if not _CHALLENGE.fullmatch(sent.get("code_challenge", "")):
        sent.pop("code_challenge", None)
    handled = handle_query(AuthorizationHandler(provider).handle, sent)  # type: ignore[arg-type]  # its client is ours
    return provider.asked, handled


def _answered(
    request: WorkspaceRequest,
    asked: AuthorizationRequest,
    params: Mapping[str, str],
    workspace: Workspace,
    user: User,
) -> HttpResponse | None:
    """The way back to the client, with the person's answer; None: the page asks again."""
    if not _is_of_page(request, params):
        return None
    if request.POST.get("answer") == "refuse":
        grants.refuse(asked=asked, workspace=workspace, actor=request.actor)
        return _back(_denied_at(request, asked))
    scope = request.POST.get("reach", "")
    if request.POST.get("answer") != "allow" or scope not in dict(scopes.offered(asked.scopes)):
        return None
    code = grants.allow(
        asked=asked, workspace=workspace, scopes=[scope], user=user, actor=request.actor
    )
    return _back(_return_address(request, asked, code=code))


def _page(
    request: WorkspaceRequest,
    asked: AuthorizationRequest,
    params: Mapping[str, str],
    workspace: Workspace,
) -> HttpResponse:
    choices = scopes.offered(asked.scopes)
    context: dict[str, Any] = {
        "client": asked.client,
        "client_host": redirects.host_of(asked.client.client_id)
        if asked.client.via == KnownVia.DOCUMENT
        else "",
        "workspace": workspace,
        "returns_to": redirects.host_of(asked.redirect_uri),
        "is_on_this_computer": redirects.is_on_this_computer(asked.redirect_uri),
        "choices": choices,
        "tools": count_offers(widest_caller(request.actor, workspace)),
        "chosen": choices[-1][0] if set(asked.scopes or ()) == {scopes.CALL} else choices[0][0],
        "params": params,
        "page": _page_mark(request, params),
        "was_answered": request.method == "POST",
    }
    response = render(request, "mcp_servers/client_sign_in.html", context)
    # Browsers hold a form's redirects to this, too.
    to = ["'self'", redirects.source_of(asked.redirect_uri)]
    csp_update({"form-action": to})(lambda _request: response)(request)
    return response


def _failed(
    request: WorkspaceRequest,
    reason: str,
    *,
    handled: HandlerResponse | None = None,
    status: int = 400,
) -> HttpResponse:
    back = handled.headers.get("location", "") if handled is not None else ""
    answer = dict(parse_qsl(urlsplit(back).query))
    if handled is not None and handled.body:
        answer = json.loads(handled.body)
    details = str(answer.get("error_description") or "")
    why = ConsentRefusal(
        reason=reason,
        remedy=_("Nothing was allowed. Start again from your client, and update it if that fails."),
    )
    context = {"why": why, "details": details, "back": _with_issuer(request, back)}
    return render(request, "mcp_servers/client_sign_in_failed.html", context, status=status)


def _not_possible(
    request: WorkspaceRequest, asked: AuthorizationRequest, why: ConsentRefusal
) -> HttpResponse:
    context = {"client": asked.client, "why": why, "back": _denied_at(request, asked)}
    return render(request, "mcp_servers/client_sign_in_failed.html", context, status=403)


def _no_member(user: User, slug: str) -> ConsentRefusal:
    if (shut_out := find_shut_out(user, slug=slug)) is not None:
        return ConsentRefusal(reason=shut_out.words, remedy=shut_out.remedy)
    return ConsentRefusal(
        reason=_("%(email)s is not a member of the workspace “%(slug)s”.")
        % {"email": user.email, "slug": slug},
        remedy=_(
            "Check the address in your client. Ask an administrator of the workspace to invite you, or sign in with"
            " another account."
        ),
    )


def _not_allowed(request: WorkspaceRequest, workspace: Workspace) -> ConsentRefusal:
    may_set = has_permission(request.actor, Permission.MANAGE_WORKSPACE, workspace_id=workspace.pk)
    return ConsentRefusal(
        reason=_("%(name)s does not let other MCP clients in.") % {"name": workspace.name},
        remedy=_(
            "You can allow it in the rules of the workspace. Then start again from your client."
        )
        if may_set
        else _("Ask an owner of the workspace to allow it in its rules."),
    )


def _page_mark(request: WorkspaceRequest, params: Mapping[str, str]) -> str:
    """What binds an answer to this page, this browser and this person."""
    return signing.dumps(_digest(params), salt=_salt(request))


def _is_of_page(request: WorkspaceRequest, params: Mapping[str, str]) -> bool:
    mark = request.POST.get("page", "")
    try:
        digest = signing.loads(mark, salt=_salt(request), max_age=ANSWER_SECONDS)
    except signing.BadSignature:
        return False
    return bool(digest == _digest(params))


def _salt(request: WorkspaceRequest) -> str:
    return f"{_SALT}:{request.session.session_key}:{request.user.pk}"


def _digest(params: Mapping[str, str]) -> str:
    return hashlib.sha256(json.dumps(sorted(params.items())).encode()).hexdigest()


def _denied_at(request: WorkspaceRequest, asked: AuthorizationRequest) -> str:
    description = "The person did not let the client in."
    return _return_address(request, asked, error="access_denied", error_description=description)


def _return_address(
    request: WorkspaceRequest, asked: AuthorizationRequest, **parameters: str
) -> str:
    """Where the client waits, with an answer. Source: RFC 9207, section 2."""
    state = {"state": asked.state} if asked.state is not None else {}
    issuer = metadata.origin_of(request)
    return construct_redirect_uri(asked.redirect_uri, **parameters, **state, iss=issuer)


def _with_issuer(request: WorkspaceRequest, address: str) -> str:
    return construct_redirect_uri(address, iss=metadata.origin_of(request)) if address else ""


def _back(address: str) -> HttpResponse:
    # Not Django's own: a program's own scheme is no mistake here.
    response = HttpResponse(status=302)
    response["Location"] = address
    return response
