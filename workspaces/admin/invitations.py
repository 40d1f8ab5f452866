"""Invitations in the admin."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, cast
from urllib.parse import urlencode

from django.contrib import admin, messages
from django.db import transaction
from django.db.models import EmailField
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext_lazy
from unfold.widgets import UnfoldAdminEmailInputWidget

from workspaces.actors import Role
from workspaces.admin.roles import GivesRoles
from workspaces.delivery.mails import public_url
from workspaces.models import Invitation
from workspaces.pages.address_fields import SeenAddress
from workspaces.pages.admin_sections import AdminSection
from workspaces.pages.model_admin import actor_of, telling, was_refused
from workspaces.pages.row_actions import ConfirmQuestion, row_action
from workspaces.people.inviting import MOST as MOST_INVITED
from workspaces.people.inviting import resend_invitation
from workspaces.people.services import (
    mail_invitation,
    make_invitation,
    may_choose_auditors,
    revoke_invitation,
)
from workspaces.roles import Permission

if TYPE_CHECKING:
    from workspaces.middleware import WorkspaceRequest


class AddressInputOfAdmin(SeenAddress, UnfoldAdminEmailInputWidget):
    """An address, on pages of the admin."""


@admin.register(Invitation)
class InvitationAdmin(GivesRoles):
    """Invitations by e-mail; the link is shown, once, only where no mail server is configured."""

    section = AdminSection.PEOPLE
    manage_permission = Permission.MANAGE_MEMBERS
    list_display = ["email", "role", "is_auditor", "state", "expires_at", "invited_by"]
    list_filter = ["role"]
    list_select_related = ["invited_by"]
    search_fields = ["email"]
    formfield_overrides: ClassVar[Any] = {EmailField: {"widget": AddressInputOfAdmin}}
    actions = ["send_again", "revoke"]

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        """The right to audit is asked for only of those who decide about it; all see it of an invitation."""
        asks = obj is not None or may_choose_auditors(actor_of(request))
        return ["email", "role", *(["is_auditor"] if asks else [])]

    @admin.display(description=_("State"))
    def state(self, invitation: Invitation) -> Promise:
        if invitation.accepted_at:
            return _("accepted")
        if invitation.revoked_at:
            return _("revoked")
        return _("open") if invitation.is_open else _("expired")

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False  # an invitation is revoked and sent anew, never edited

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def save_model(self, request: HttpRequest, obj: Invitation, form: Any, change: bool) -> None:
        bound = cast("WorkspaceRequest", request)
        assert bound.workspace is not None
        with telling(request):
            invitation, token = make_invitation(
                workspace=bound.workspace,
                email=obj.email,
                role=Role(obj.role),
                is_auditor=obj.is_auditor,
                actor=bound.actor,
            )
            obj.pk = invitation.pk
            # The admin's page is one transaction, and no mail leaves before the row is there.
            transaction.on_commit(partial(self._mail, request, invitation, token))

    def response_add(
        self, request: HttpRequest, obj: Any, *args: Any, **kwargs: Any
    ) -> HttpResponse:
        """Back to the list; what became of the mail is told there. A refused one is in the form again."""
        if was_refused(request):
            typed = {"email": obj.email, "role": obj.role}
            if obj.is_auditor:
                typed["is_auditor"] = "1"
            return HttpResponseRedirect(f"{request.path}?{urlencode(typed)}")
        answer: HttpResponse = self.response_post_save_add(request, obj)
        return answer

    def _mail(self, request: HttpRequest, invitation: Invitation, token: str) -> None:
        with telling(request):
            self._send(request, invitation, token)
            if not invitation.is_link_shown:
                messages.info(
                    request,
                    _("The invitation was mailed to %(email)s.") % {"email": invitation.email},
                )

    def _send(self, request: HttpRequest, invitation: Invitation, token: str) -> None:
        """Mail an invitation, or show its link where no mail server is configured.

        Raises:
            Conflict: the mail server did not take it.
        """
        link = public_url(reverse("workspaces:invitation", args=[token]))
        mail_invitation(invitation=invitation, link=link, actor=actor_of(request))
        if not invitation.is_link_shown:
            return
        message = _(
            "No mail server is configured, so give %(email)s this link yourself. It is shown only now: %(link)s"
            " A new account that comes by it is marked “address not confirmed” until the mail to its address is"
            " answered."
        )
        messages.warning(request, message % {"email": invitation.email, "link": link})

    @row_action(
        _("Send again"),
        done=ngettext_lazy(
            "%(count)s invitation sent again. Its earlier link no longer works.",
            "%(count)s invitations sent again. Their earlier links no longer work.",
            "count",
        ),
        permissions=["add"],
        most=MOST_INVITED,
    )
    def send_again(self, request: HttpRequest, row: Invitation) -> None:
        invitation, token = resend_invitation(invitation=row, actor=actor_of(request))
        # No mail leaves before the row is there. What the mail server refuses counts as refused.
        transaction.on_commit(partial(self._send, request, invitation, token))

    @row_action(
        _("Revoke"),
        done=ngettext_lazy(
            "%(count)s invitation revoked.", "%(count)s invitations revoked.", "count"
        ),
        question=ConfirmQuestion(
            asked=ngettext_lazy(
                "Revoke %(count)s invitation?", "Revoke %(count)s invitations?", "count"
            ),
            consequence=_("Their links no longer work. You can send an invitation again later."),
            verb=_("Revoke"),
        ),
        permissions=["add"],
    )
    def revoke(self, request: HttpRequest, row: Invitation) -> None:
        revoke_invitation(invitation=row, actor=actor_of(request))
