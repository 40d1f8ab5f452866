"""Pages around workspaces: the way in, invitations, API tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING

from allauth.account.internal.flows.email_verification import send_verification_email_to_address
from allauth.account.models import EmailAddress
from django.contrib import messages
from django.contrib.auth import login
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from workspaces.errors import Conflict, DomainError, InvalidInput, NotFound
from workspaces.lists.row_pages import page_faults, page_in_address, ways_from
from workspaces.middleware import signed_in_user, tell_shut_out
from workspaces.models import ApiToken
from workspaces.pages import accounts
from workspaces.pages.forms import SetupForm, TokenForm
from workspaces.pages.parts import telling_refusals
from workspaces.people import first_owner
from workspaces.people.entering import find_shut_out
from workspaces.people.joining import find_join_link, is_for, join_by_link, joined_by_link
from workspaces.people.services import (
    WorkspaceSuspended,
    accept_invitation,
    find_invitation,
    joined_by_invitation,
)
from workspaces.people.tokens import issue_token, revoke_token

if TYPE_CHECKING:
    from workspaces.middleware import WorkspaceRequest

_SETUP_KEY = "setup_token"


@require_GET
@login_required
def index(request: WorkspaceRequest) -> HttpResponse:
    """The way in: the workspace one was in last, or a page that says there is none."""
    if request.workspace is None:
        if accounts.join_link_of(request) is not None:
            return redirect("workspaces:join")
        if (shut_out := find_shut_out(request.user, slug=None)) is not None:
            return tell_shut_out(request, shut_out)
        return render(request, "workspaces/no_workspace.html")
    return redirect("chat:home", workspace_slug=request.workspace.slug)


@require_GET
def open_setup(request: HttpRequest, token: str) -> HttpResponse:
    """Take the token of the first start out of the address."""
    request.session[_SETUP_KEY] = token
    return redirect("workspaces:setup")


@require_http_methods(["GET", "POST"])
def setup(request: HttpRequest) -> HttpResponse:
    """Make the first account and its workspace, by the link that the server prints at its first start."""
    token = str(request.session.get(_SETUP_KEY, ""))
    form = SetupForm(request.POST or None)
    try:
        first_owner.check(token)
        if request.method == "POST" and form.is_valid():
            user, workspace = first_owner.make_first_owner(token, **form.cleaned_data)
            request.session.pop(_SETUP_KEY, None)
            login(request, user, backend="allauth.account.auth_backends.AuthenticationBackend")
            return redirect("workspaces:open_admin", workspace_slug=workspace.slug)
    except NotFound as error:
        return render(request, "workspaces/setup.html", {"error": error.message}, status=404)
    except InvalidInput as error:
        form.refuse(error)
    return render(request, "workspaces/setup.html", {"form": form})


@require_GET
def open_invitation(request: HttpRequest, token: str) -> HttpResponse:
    """Take the token out of the address, and show what it offers."""
    request.session[accounts.SESSION_KEY] = token
    return redirect("workspaces:accept_invitation")


@require_http_methods(["GET", "POST"])
def accept(request: WorkspaceRequest) -> HttpResponse:
    """Show an invitation; join by it."""
    token = str(request.session.get(accounts.SESSION_KEY, ""))
    user = signed_in_user(request)
    # Whoever has joined opens the mail's link again, or on a second page.
    if user is not None and (joined := joined_by_invitation(token, user)) is not None:
        return redirect("chat:home", workspace_slug=joined.slug)
    try:
        invitation = find_invitation(token)
    except WorkspaceSuspended as error:
        suspended = {"workspace": error.workspace, "is_invitation": True}
        return render(request, "workspaces/no_entry_now.html", suspended, status=403)
    except NotFound as error:
        refusal = {"invitation": None, "error": error.message}
        return render(request, "workspaces/invitation_accept.html", refusal, status=404)
    is_for_user = user is not None and user.email.lower() == invitation.email.lower()
    if request.method == "POST" and user is not None:
        with telling_refusals(request, DomainError):
            accept_invitation(token=token, user=user, actor=request.actor)
            messages.success(
                request, _("Welcome to %(name)s.") % {"name": invitation.workspace.name}
            )
            return redirect("chat:home", workspace_slug=invitation.workspace.slug)
    context = {
        "invitation": invitation,
        "workspace_name": invitation.workspace.name,
        "role": invitation.get_role_display(),
        "is_for_user": is_for_user,
        "again": reverse("workspaces:invitation", args=[token]),
        "error": None,
    }
    return render(request, "workspaces/invitation_accept.html", context)


@require_GET
def open_join_link(request: HttpRequest, token: str) -> HttpResponse:
    """Take the token out of the address, and show what it offers."""
    request.session[accounts.JOIN_KEY] = token
    return redirect("workspaces:join")


@require_http_methods(["GET", "POST"])
def join(request: WorkspaceRequest) -> HttpResponse:
    """Show a join link; confirm one's address; join by it."""
    token = str(request.session.get(accounts.JOIN_KEY, ""))
    user = signed_in_user(request)
    if user is not None and (joined := joined_by_link(token, user)) is not None:
        request.session.pop(accounts.JOIN_KEY, None)
        return redirect("chat:home", workspace_slug=joined.slug)
    try:
        link = find_join_link(token)
    except WorkspaceSuspended as error:
        suspended = {"workspace": error.workspace, "is_invitation": False}
        return render(request, "workspaces/no_entry_now.html", suspended, status=403)
    except NotFound as error:
        refusal = {"link": None, "error": error.message}
        return render(request, "workspaces/join.html", refusal, status=404)
    if request.method == "POST" and user is not None:
        if "send" in request.POST:
            row = EmailAddress.objects.filter(user=user, email=user.email.lower()).first()
            if row is not None and not row.verified:
                send_verification_email_to_address(request, row)
            return redirect("workspaces:join")
        try:
            join_by_link(token=token, user=user, actor=request.actor)
        except Conflict:
            return redirect("chat:home", workspace_slug=link.workspace.slug)
        except DomainError as error:
            messages.error(request, error.message)
        else:
            messages.success(request, _("Welcome to %(name)s.") % {"name": link.workspace.name})
            return redirect("chat:home", workspace_slug=link.workspace.slug)
    context = {
        "link": link,
        "workspace_name": link.workspace.name,
        "role": link.get_role_display(),
        "is_for_user": user is not None and is_for(link, user.email),
        "again": reverse("workspaces:join_link", args=[token]),
        "error": None,
    }
    return render(request, "workspaces/join.html", context)


@login_required
@require_http_methods(["GET", "POST"])
def tokens(request: WorkspaceRequest) -> HttpResponse:
    """The person's API tokens in this workspace; make one, which is shown once."""
    if request.workspace is None:
        return redirect("workspaces:index")
    form = TokenForm(request.POST or None, actor=request.actor)
    plain = None
    if request.method == "POST" and form.is_valid():
        try:
            _, plain = issue_token(
                workspace=request.workspace,
                user=request.user,
                name=form.cleaned_data["name"],
                scopes=form.cleaned_data["scopes"],
                expires_at=form.expires_at(),
                actor=request.actor,
            )
            form = TokenForm(actor=request.actor)
        except DomainError as error:
            form.add_error(None, error.message)
    mine = ApiToken.objects.for_workspace(request.workspace).visible_to(request.user)
    page = page_in_address(mine, request.GET, by="-created_at")
    context = {
        "tokens": page.rows,
        "ways": ways_from(page, request.GET),
        "faults": page_faults(page),
        "form": form,
        "new_token": plain,
    }
    return render(request, "workspaces/tokens.html", context)


@login_required
@require_POST
def revoke(request: WorkspaceRequest, token_id: str) -> HttpResponse:
    """End one of the person's tokens."""
    rows = ApiToken.objects.for_workspace(request.workspace) if request.workspace else None
    if rows is None:
        raise NotFound
    token = rows.filter(user=request.user).fetch(token_id)
    revoke_token(token=token, actor=request.actor)
    messages.success(request, _("The token “%(name)s” no longer works.") % {"name": token.name})
    return redirect(reverse("workspaces:tokens"))


@login_required
@require_GET
def open_admin(request: WorkspaceRequest, workspace_slug: str) -> HttpResponse:
    """The admin, in this workspace: the middleware has made it the current one."""
    return redirect("admin:index")
