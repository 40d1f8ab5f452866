"""Pages about the people of a workspace."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST

from workspaces.actors import Role
from workspaces.delivery.mails import public_url
from workspaces.errors import Conflict, DomainError, InvalidInput
from workspaces.lists.row_pages import page_faults, page_in_address, ways_from
from workspaces.models import ROLE_CHOICES, Invitation, JoinLink, Workspace
from workspaces.pages.forms import JoinLinkForm
from workspaces.pages.parts import put_faults, telling_refusals, workspace_of
from workspaces.people.inviting import (
    LONGEST,
    MOST,
    InvitationResult,
    invite_many,
    mail_many,
    read_invitees,
    read_list,
    resend_invitation,
)
from workspaces.people.joining import make_join_link, revoke_join_link
from workspaces.people.services import may_invite_as, revoke_invitation, roles_to_give
from workspaces.roles import Permission
from workspaces.scoping import WorkspaceQuerySet

if TYPE_CHECKING:
    from workspaces.middleware import WorkspaceRequest

_INVITATIONS_AFTER = "invitations_after"
_LINKS_AFTER = "links_after"
_NEWEST_FIRST = "-created_at"


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def invite(request: WorkspaceRequest, workspace_slug: str) -> HttpResponse:
    """Invite many people, and see page by page who was invited."""
    workspace = workspace_of(request, Permission.MANAGE_MEMBERS)
    faults: dict[str, list[str]] = {}
    links = []
    text = request.POST.get("people", "").replace("\x00", "")
    role = request.POST.get("role", Role.MEMBER.value)
    if request.method == "POST":
        try:
            if (upload := request.FILES.get("file")) is not None:
                read = read_list(upload.read(LONGEST * 4 + 1))
                text = f"{text.rstrip()}\n{read}" if text.strip() else read
            if role not in dict(ROLE_CHOICES):
                raise InvalidInput(fields={"role": [_("Choose one of the roles.")]})
            people = read_invitees(text, workspace=workspace, role=Role(role))
            made = invite_many(workspace=workspace, people=people, actor=request.actor)
        except DomainError as error:
            is_of_fields = isinstance(error, InvalidInput) and error.fields
            faults = error.fields if is_of_fields else {"": [error.message]}  # type: ignore[attr-defined]
        else:
            sent = mail_many(made, actor=request.actor)
            for one in sent:
                if one.fault:
                    messages.error(request, f"{one.invitation.email}: {one.fault}")
            mailed = sum(not (one.link or one.fault) for one in sent)
            links = [one for one in sent if one.link]
            if mailed:
                messages.success(
                    request, _("Invitations were mailed: %(number)s.") % {"number": mailed}
                )
            if not links:
                return redirect("workspaces:invite", workspace_slug=workspace_slug)
            text = ""
    return _invite_page(request, workspace, faults=faults, links=links, text=text, role=role)


def _invite_page(
    request: WorkspaceRequest,
    workspace: Workspace,
    *,
    links: Sequence[InvitationResult],
    faults: Mapping[str, list[str]] | None = None,
    text: str = "",
    role: str = Role.MEMBER.value,
) -> HttpResponse:
    """Show who is invited, with links to pass on by hand: here alone, since a redirect would have to keep them."""
    address = reverse("workspaces:invite", args=[workspace.slug])
    rows = Invitation.objects.for_workspace(workspace).filter(accepted_at=None, revoked_at=None)
    invitations = page_in_address(
        rows.select_related("invited_by"), request.GET, _INVITATIONS_AFTER, by=_NEWEST_FIRST
    )
    join_links = page_in_address(
        _open_links(workspace), request.GET, _LINKS_AFTER, by=_NEWEST_FIRST
    )
    context: dict[str, Any] = {
        "section": "people",
        "text": text,
        "role": role,
        "roles": roles_to_give(request.actor),
        "faults": faults or {},
        "address": address,
        "links": links,
        "most": MOST,
        "invitations": [
            (one, may_invite_as(request.actor, Role(one.role), is_auditor=one.is_auditor))
            for one in invitations.rows
        ],
        "invitation_ways": ways_from(
            invitations, request.GET, _INVITATIONS_AFTER, path=address, anchor="#open-heading"
        ),
        "join_links": join_links.rows,
        "link_ways": ways_from(
            join_links, request.GET, _LINKS_AFTER, path=address, anchor="#join-heading"
        ),
        "address_faults": page_faults(invitations, join_links),
    }
    return render(request, "workspaces/invite.html", context, status=422 if faults else 200)


def _open_links(workspace: Workspace) -> WorkspaceQuerySet[JoinLink]:
    rows = JoinLink.objects.for_workspace(workspace).filter(revoked_at=None)
    return rows.select_related("made_by")


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def make_link(request: WorkspaceRequest, workspace_slug: str) -> HttpResponse:
    """Make a join link, which is shown once."""
    workspace = workspace_of(request, Permission.MANAGE_MEMBERS)
    form = JoinLinkForm(request.POST or None)
    address = ""
    if request.method == "POST" and form.is_valid():
        given = form.cleaned_data
        try:
            _link, token = make_join_link(
                workspace=workspace,
                email_domain=given["email_domain"],
                role=Role(given["role"]),
                days=given["days"],
                most_uses=given["most_uses"],
                lets_in_anybody=given.get("lets_in_anybody", False),
                actor=request.actor,
            )
        except InvalidInput as error:
            put_faults(form, error)
        except DomainError as error:
            form.add_error(None, error.message)
        else:
            address = public_url(reverse("workspaces:join_link", args=[token]))
            form = JoinLinkForm()
    context: dict[str, Any] = {"section": "people", "form": form, "address": address}
    is_refused = request.method == "POST" and not address
    return render(request, "workspaces/join_link.html", context, status=422 if is_refused else 200)


@require_POST
@login_required
def revoke_link(request: WorkspaceRequest, workspace_slug: str, link_id: UUID) -> HttpResponse:
    """End a join link."""
    workspace = workspace_of(request, Permission.MANAGE_MEMBERS)
    link: JoinLink = JoinLink.objects.for_workspace(workspace).fetch(link_id)
    with telling_refusals(request, Conflict):
        revoke_join_link(link=link, actor=request.actor)
        messages.success(
            request, _("The link for @%(name)s no longer works.") % {"name": link.email_domain}
        )
    return redirect("workspaces:invite", workspace_slug=workspace_slug)


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def change_invitation(
    request: WorkspaceRequest, workspace_slug: str, invitation_id: UUID, verb: str
) -> HttpResponse:
    """What a button of an invitation says. Whoever opens the address itself gets to the page with the buttons."""
    workspace = workspace_of(request, Permission.MANAGE_MEMBERS)
    if request.method != "POST":
        return redirect("workspaces:invite", workspace_slug=workspace_slug)
    rows = Invitation.objects.for_workspace(workspace).select_related("workspace")
    invitation: Invitation = rows.fetch(invitation_id)
    with telling_refusals(request, DomainError):
        if verb == "resend":
            made = resend_invitation(invitation=invitation, actor=request.actor)
            [sent] = mail_many([made], actor=request.actor)
            if sent.fault:
                messages.error(request, sent.fault)
            elif sent.link:
                return _invite_page(request, workspace, links=[sent])
            else:
                message = _("The invitation was mailed to %(email)s.")
                messages.success(request, message % {"email": sent.invitation.email})
        elif verb == "revoke":
            revoke_invitation(invitation=invitation, actor=request.actor)
            message = _("The invitation of %(email)s is revoked.")
            messages.success(request, message % {"email": invitation.email})
        else:
            raise Http404
    return redirect("workspaces:invite", workspace_slug=workspace_slug)
