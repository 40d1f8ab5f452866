"""Pages about the people of a workspace."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST

from workspaces.actors import Role
from workspaces.errors import DomainError, InvalidInput
from workspaces.inviting import (
    LONGEST,
    MOST,
    invite_many,
    mail_many,
    read_invitees,
    resend_invitation,
)
from workspaces.models import ROLE_CHOICES, Invitation, Workspace
from workspaces.roles import Permission, require
from workspaces.services import revoke_invitation

if TYPE_CHECKING:
    from workspaces.middleware import WorkspaceRequest

MOST_SHOWN = 200


def _workspace_of(request: WorkspaceRequest) -> Workspace:
    if request.workspace is None:
        raise Http404
    require(request.actor, Permission.MANAGE_MEMBERS, workspace_id=request.workspace.pk)
    return request.workspace


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def invite(request: WorkspaceRequest, workspace_slug: str) -> HttpResponse:
    """Invite many people, and see who was invited."""
    workspace = _workspace_of(request)
    faults: dict[str, list[str]] = {}
    links = []
    text = request.POST.get("people", "").replace("\x00", "")
    role = request.POST.get("role", Role.MEMBER.value)
    if request.method == "POST":
        try:
            if (upload := request.FILES.get("file")) is not None:
                text = _text_of(upload)
            if role not in dict(ROLE_CHOICES):
                raise InvalidInput(fields={"role": ["Choose one of the roles."]})
            people = read_invitees(text, role=Role(role))
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
    rows = Invitation.objects.for_workspace(workspace).filter(accepted_at=None, revoked_at=None)
    context: dict[str, Any] = {
        "section": "people",
        "text": text,
        "role": role,
        "roles": ROLE_CHOICES,
        "faults": faults,
        "links": links,
        "most": MOST,
        "invitations": list(rows.select_related("invited_by")[:MOST_SHOWN]),
    }
    return render(request, "workspaces/invite.html", context, status=422 if faults else 200)


@require_POST
@login_required
def change_invitation(
    request: WorkspaceRequest, workspace_slug: str, invitation_id: UUID, verb: str
) -> HttpResponse:
    """What a button of an invitation says."""
    workspace = _workspace_of(request)
    rows = Invitation.objects.for_workspace(workspace).select_related("workspace")
    invitation: Invitation = rows.fetch(invitation_id)
    try:
        if verb == "resend":
            made = resend_invitation(invitation=invitation, actor=request.actor)
            [sent] = mail_many([made], actor=request.actor)
            if sent.fault:
                messages.error(request, sent.fault)
            elif sent.link:
                told = _("Give %(email)s this link. It is shown only now: %(link)s")
                given = {"email": sent.invitation.email, "link": sent.link}
                messages.warning(request, told % given)
            else:
                told = _("The invitation was mailed to %(email)s.")
                messages.success(request, told % {"email": sent.invitation.email})
        elif verb == "revoke":
            revoke_invitation(invitation=invitation, actor=request.actor)
            told = _("The invitation of %(email)s is revoked.")
            messages.success(request, told % {"email": invitation.email})
        else:
            raise Http404
    except DomainError as error:
        messages.error(request, error.message)
    return redirect("workspaces:invite", workspace_slug=workspace_slug)


def _text_of(upload: Any) -> str:
    raw = upload.read(LONGEST * 4 + 1)
    try:
        return str(raw.decode("utf-8-sig")).replace("\x00", "")
    except UnicodeDecodeError as error:
        raise InvalidInput(fields={"file": ["This file is not UTF-8 text."]}) from error
