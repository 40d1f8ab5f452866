"""The admin's pages about people and workspaces, and what stands at the head of every page."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Final, cast

import allauth.account.admin  # noqa: F401 - registers what is taken out below
from allauth.account.internal.flows.email_verification import send_verification_email_to_address
from allauth.account.models import EmailAddress
from django import forms
from django.contrib import admin, messages
from django.contrib.auth.admin import UserAdmin as DjangoUserAdmin
from django.contrib.auth.models import Group
from django.db import models, transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.html import format_html
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext_lazy
from unfold.forms import AdminPasswordChangeForm, UserChangeForm, UserCreationForm

from workspaces.actors import Role
from workspaces.errors import Conflict
from workspaces.mails import public_url
from workspaces.middleware import signed_in_user
from workspaces.models import ApiToken, Invitation, Membership, Theme, User, Workspace
from workspaces.pages.admin_sections import Section
from workspaces.pages.model_admin import (
    AsksBeforeSaving,
    PlatformModelAdmin,
    WorkspaceModelAdmin,
    actor_of,
    telling,
    was_refused,
)
from workspaces.pages.row_actions import Question, given_reason, is_switched_off, row_action
from workspaces.people.inviting import MOST as MOST_INVITED
from workspaces.people.inviting import resend_invitation
from workspaces.people.pictures import inline_picture
from workspaces.people.platform import (
    WORKSPACE_RULES,
    remove_picture_of,
    resume_workspace,
    save_account,
    save_workspace,
    suspend_workspace,
    switch_account,
)
from workspaces.people.services import (
    change_membership,
    is_above,
    mail_invitation,
    make_invitation,
    may_choose_auditors,
    remove_member,
    revoke_invitation,
    roles_to_give,
)
from workspaces.people.suspending import LONGEST_REASON, resume_member, suspend_member
from workspaces.people.tokens import revoke_token
from workspaces.people.visits import end_sessions
from workspaces.roles import Permission
from workspaces.switching import other_admins_of

if TYPE_CHECKING:
    from workspaces.middleware import WorkspaceRequest

admin.site.unregister(Group)
# An address is confirmed by answering its mail, and in no other way.
admin.site.unregister(EmailAddress)


def current_workspace(request: HttpRequest) -> str:
    """Under the admin's title: whose rooms these are."""
    workspace = getattr(request, "workspace", None)
    return workspace.name if workspace is not None else ""


def theme(request: HttpRequest) -> str | None:
    """The person's theme in the admin's word for it; None where they never chose one."""
    user = signed_in_user(request)
    chosen = user.theme if user is not None else ""
    return "auto" if chosen == Theme.SYSTEM else chosen or None


def ways_out(request: HttpRequest) -> list[dict[str, str]]:
    """The other workspaces that the person administers, for the menu at the name of this one; after many, the page of all."""
    user = signed_in_user(request)
    current = getattr(request, "workspace", None)
    if user is None or current is None:
        return []
    others = other_admins_of(user, current)
    ways = [
        {
            "icon": "swap_horiz",
            "title": other.name,
            "link": reverse("workspaces:open_admin", args=[other.slug]),
        }
        for other in others.shown
    ]
    if others.has_more:
        title = str(_("All workspaces"))
        ways.append({"icon": "more_horiz", "title": title, "link": reverse("workspaces:all")})
    return ways


class _GivesRoles(WorkspaceModelAdmin):
    """Rows with a role: offers those that the person may give, and the right to audit to those who decide about it."""

    def formfield_for_choice_field(
        self, db_field: Any, request: HttpRequest, **kwargs: Any
    ) -> forms.Field | None:
        if db_field.name == "role":
            kwargs["choices"] = roles_to_give(actor_of(request))
        field: forms.Field | None = super().formfield_for_choice_field(db_field, request, **kwargs)
        return field


_ROLE_QUESTIONS: Final = {
    Role.MEMBER: Question(
        asked=ngettext_lazy(
            "Change the role of %(count)s person to member?",
            "Change the role of %(count)s people to member?",
            "count",
        ),
        consequence=_(
            "Owners and administrators among them can no longer manage members, buds and servers."
        ),
        verb=_("Change role"),
    ),
    Role.ADMIN: Question(
        asked=ngettext_lazy(
            "Change the role of %(count)s person to admin?",
            "Change the role of %(count)s people to admin?",
            "count",
        ),
        consequence=_(
            "They manage members, buds and servers. Owners among them no longer own the workspace."
        ),
        verb=_("Change role"),
    ),
    Role.OWNER: Question(
        asked=ngettext_lazy(
            "Change the role of %(count)s person to owner?",
            "Change the role of %(count)s people to owner?",
            "count",
        ),
        consequence=_("They may do everything here, and can remove you."),
        verb=_("Change role"),
    ),
}


@admin.register(Membership)
class MembershipAdmin(AsksBeforeSaving, _GivesRoles):
    """Members of the workspace: their roles, and who may audit."""

    section = Section.PEOPLE
    manage_permission = Permission.MANAGE_MEMBERS
    page_name = _("Members")
    list_display = ["user", "address_confirmed", "role", "auditor", "suspended", "created_at"]
    list_filter = ["role", "is_auditor"]
    list_select_related = ["user"]
    search_fields = ["user__email", "user__name"]
    readonly_fields = ["person", "auditor"]
    actions = [
        *("suspend", "let_in", "make_member", "make_admin", "make_owner"),
        *("let_audit", "no_longer_audit", "sign_out"),
    ]

    @admin.display(description=_("User"))
    def person(self, membership: Membership) -> str:
        """Without the link to the account, which would lead most people back here."""
        return str(membership.user)

    @admin.display(description=_("Address"))
    def address_confirmed(self, membership: Membership) -> Promise:
        is_confirmed = membership.user.is_address_confirmed
        return _("confirmed") if is_confirmed else _("address not confirmed")

    @admin.display(description=_("Right to audit"), ordering="is_auditor")
    def auditor(self, membership: Membership) -> Promise | str:
        """A word where there is something to say: a cross would read as a failure."""
        return _("auditor") if membership.is_auditor else ""

    @admin.display(description=_("Access"), ordering="suspended_at")
    def suspended(self, membership: Membership) -> Promise | str:
        """Only where it is not as usual."""
        return _("suspended") if membership.suspended_at else ""

    def get_queryset(self, request: HttpRequest) -> models.QuerySet[Any]:
        workspace = cast("WorkspaceRequest", request).workspace
        if workspace is None:
            return super().get_queryset(request)
        rows = Membership.objects.also_suspended(workspace)
        return cast("models.QuerySet[Any]", rows.order_by(*self.get_ordering(request)))

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False  # people join by invitation

    def has_change_permission(self, request: HttpRequest, obj: Membership | None = None) -> bool:
        """Not of those whose role is above the person's own."""
        return super().has_change_permission(request, obj) and self._reaches(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: Membership | None = None) -> bool:
        """As above."""
        return super().has_delete_permission(request, obj) and self._reaches(request, obj)

    @staticmethod
    def _reaches(request: HttpRequest, row: Membership | None) -> bool:
        return row is None or not is_above(actor_of(request), Role(row.role))

    def get_actions(self, request: HttpRequest) -> Any:
        """Without what would be refused for every row."""
        actions = super().get_actions(request)
        if is_above(actor_of(request), Role.OWNER):
            actions.pop("make_owner", None)
        if not may_choose_auditors(actor_of(request)):
            for name in ("let_audit", "no_longer_audit"):
                actions.pop(name, None)
        return actions

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        """The right to audit is only shown to those who do not decide about it."""
        right = "is_auditor" if may_choose_auditors(actor_of(request)) else "auditor"
        return ["person", "role", right]

    def question_before(self, form: Any) -> Question | None:
        """A role chosen in the form is what the actions give, too."""
        is_changed = "role" in form.changed_data
        return _ROLE_QUESTIONS[Role(form.cleaned_data["role"])] if is_changed else None

    def save_model(self, request: HttpRequest, obj: Membership, form: Any, change: bool) -> None:
        kept = Membership.objects.also_suspended(obj.workspace_id).fetch(obj.pk)
        with telling(request):
            change_membership(
                membership=kept,
                role=Role(obj.role),
                is_auditor=obj.is_auditor,
                actor=actor_of(request),
            )

    def delete_model(self, request: HttpRequest, obj: Membership) -> None:
        with telling(request):
            remove_member(membership=obj, actor=actor_of(request))

    def row_name(self, row: Membership) -> str:
        """Name and address: people of one name are told apart by it."""
        return f"{row.user.name} ({row.user.email})" if row.user.name else row.user.email

    @row_action(
        _("Suspend"),
        done=ngettext_lazy("%(count)s member suspended.", "%(count)s members suspended.", "count"),
        question=Question(
            asked=ngettext_lazy("Suspend %(count)s member?", "Suspend %(count)s members?", "count"),
            consequence=_(
                "They can no longer enter this workspace. Their open pages, tokens and running answers stop at once."
                " Nothing of theirs is deleted, and you can let them in again."
            ),
            verb=_("Suspend"),
            reason_help=_("They read it on the page that tells them."),
            longest_reason=LONGEST_REASON,
        ),
        permissions=["change"],
    )
    def suspend(self, request: HttpRequest, row: Membership) -> None:
        suspend_member(membership=row, reason=given_reason(request), actor=actor_of(request))

    @row_action(
        _("Let in again"),
        done=ngettext_lazy(
            "%(count)s member may enter again.", "%(count)s members may enter again.", "count"
        ),
        permissions=["change"],
    )
    def let_in(self, request: HttpRequest, row: Membership) -> None:
        resume_member(membership=row, actor=actor_of(request))

    @row_action(
        _("Change role to member"),
        done=ngettext_lazy(
            "%(count)s person is a member now.", "%(count)s people are members now.", "count"
        ),
        question=_ROLE_QUESTIONS[Role.MEMBER],
        permissions=["change"],
    )
    def make_member(self, request: HttpRequest, row: Membership) -> None:
        self._give_role(request, row, Role.MEMBER)

    @row_action(
        _("Change role to admin"),
        done=ngettext_lazy(
            "%(count)s person is an admin now.", "%(count)s people are admins now.", "count"
        ),
        question=_ROLE_QUESTIONS[Role.ADMIN],
        permissions=["change"],
    )
    def make_admin(self, request: HttpRequest, row: Membership) -> None:
        self._give_role(request, row, Role.ADMIN)

    @row_action(
        _("Change role to owner"),
        done=ngettext_lazy(
            "%(count)s person is an owner now.", "%(count)s people are owners now.", "count"
        ),
        question=_ROLE_QUESTIONS[Role.OWNER],
        permissions=["change"],
    )
    def make_owner(self, request: HttpRequest, row: Membership) -> None:
        self._give_role(request, row, Role.OWNER)

    def _give_role(self, request: HttpRequest, row: Membership, role: Role) -> None:
        """Leave out whoever acts: with many rows chosen, one's own is easily among them."""
        actor = actor_of(request)
        if row.user_id == actor.user_id and row.role != role.value:
            raise Conflict(_("Your own role stays as it is. Change it on your own row."))
        if row.role == role.value:
            raise Conflict(_("This is their role already."))
        change_membership(membership=row, role=role, is_auditor=row.is_auditor, actor=actor)

    @row_action(
        _("Give the right to audit"),
        done=ngettext_lazy("%(count)s person may audit.", "%(count)s people may audit.", "count"),
        permissions=["change"],
    )
    def let_audit(self, request: HttpRequest, row: Membership) -> None:
        self._set_auditor(request, row, is_auditor=True)

    @row_action(
        _("Take back the right to audit"),
        done=ngettext_lazy(
            "%(count)s person may no longer audit.",
            "%(count)s people may no longer audit.",
            "count",
        ),
        permissions=["change"],
    )
    def no_longer_audit(self, request: HttpRequest, row: Membership) -> None:
        self._set_auditor(request, row, is_auditor=False)

    def _set_auditor(self, request: HttpRequest, row: Membership, *, is_auditor: bool) -> None:
        if row.is_auditor == is_auditor:
            raise Conflict(
                _("They may audit already.") if is_auditor else _("They may not audit anyway.")
            )
        change_membership(
            membership=row, role=Role(row.role), is_auditor=is_auditor, actor=actor_of(request)
        )

    @row_action(
        _("Sign out everywhere"),
        done=ngettext_lazy(
            "%(count)s member is signed out.", "%(count)s members are signed out.", "count"
        ),
        question=Question(
            asked=ngettext_lazy(
                "Sign out %(count)s member?", "Sign out %(count)s members?", "count"
            ),
            consequence=_(
                "Every browser in which they used this workspace has to sign in again. Tokens and running answers go on."
            ),
            verb=_("Sign out"),
        ),
        permissions=["change"],
    )
    def sign_out(self, request: HttpRequest, row: Membership) -> None:
        actor = actor_of(request)
        if row.user_id == actor.user_id:
            # The answer to this very request belongs to one of these sessions.
            raise Conflict(_("Your own sessions go on. End them in your settings, under Sessions."))
        end_sessions(membership=row, actor=actor)


@admin.register(Invitation)
class InvitationAdmin(_GivesRoles):
    """Invitations by e-mail; the link is shown, once, only where no mail server is configured."""

    section = Section.PEOPLE
    manage_permission = Permission.MANAGE_MEMBERS
    list_display = ["email", "role", "is_auditor", "state", "expires_at", "invited_by"]
    list_filter = ["role"]
    list_select_related = ["invited_by"]
    search_fields = ["email"]
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
        """Back to the list; what became of the mail is told there."""
        if was_refused(request):
            return super().response_add(request, obj, *args, **kwargs)
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
        told = _(
            "No mail server is configured, so give %(email)s this link yourself. It is shown only now: %(link)s"
            " A new account that comes by it is marked “address not confirmed” until the mail to its address is"
            " answered."
        )
        messages.warning(request, told % {"email": invitation.email, "link": link})

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
        question=Question(
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


class WorkspaceForm(forms.ModelForm):
    """A workspace, with its rules in words."""

    class Meta:
        model = Workspace
        fields: ClassVar[Any] = ["name", "slug", "is_active", *WORKSPACE_RULES]
        labels: ClassVar[Any] = {
            "is_active": _("Open"),
            "slug": _("Short name"),
            "approves_new_tools": _("Use new tools right away"),
            "allows_personal_servers": _("Servers of one's own"),
            "remembers_permissions": _("Remembered permissions"),
            "reads_outside_unasked": _("Reading outside without asking"),
            "allows_mcp_clients": _("Other MCP clients"),
            "allows_public_links": _("Public links to chats"),
        }
        help_texts: ClassVar[Any] = {
            "slug": _("Its name in addresses, such as “garden” in /w/garden/."),
            "is_active": _("Off suspends the whole workspace: everybody is shut out."),
        }
        error_messages: ClassVar[Any] = {
            "slug": {"unique": _("Another workspace has this short name.")},
        }


_SUSPENDING = Question(
    asked=ngettext_lazy("Suspend %(count)s workspace?", "Suspend %(count)s workspaces?", "count"),
    consequence=_(
        "Everybody is shut out at once, also who is signed in now. Running answers stop. Schedules, API tokens, other"
        " MCP clients and public links do not work any more. Nothing is deleted, and you can open a workspace again."
    ),
    verb=_("Suspend"),
)


@admin.register(Workspace)
class WorkspaceAdmin(AsksBeforeSaving, PlatformModelAdmin):
    form = WorkspaceForm
    fieldsets = [
        (None, {"fields": ["name", "slug", "is_active"]}),
        (_("Advanced"), {"classes": ["collapse"], "fields": WORKSPACE_RULES}),
    ]
    list_display = ["name", "slug", "is_active", "created_at"]
    list_filter = ["is_active"]
    search_fields = ["name", "slug"]
    prepopulated_fields: ClassVar[Any] = {"slug": ["name"]}
    actions = ["suspend", "open_again"]

    def save_model(self, request: HttpRequest, obj: Workspace, form: Any, change: bool) -> None:
        with telling(request):
            save_workspace(workspace=obj, actor=actor_of(request))

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False  # suspended, so that nothing is lost by a click

    def question_before(self, form: Any) -> Question | None:
        """Closing it by its form is what the action does, too."""
        return _SUSPENDING if is_switched_off(form, "is_active") else None

    @row_action(
        _("Suspend"),
        done=ngettext_lazy(
            "%(count)s workspace suspended.", "%(count)s workspaces suspended.", "count"
        ),
        question=_SUSPENDING,
        permissions=["change"],
    )
    def suspend(self, request: HttpRequest, row: Workspace) -> None:
        # The page that was confirmed has named it, which stands for typing its name.
        suspend_workspace(workspace=row, typed=row.name, actor=actor_of(request))

    @row_action(
        _("Open again"),
        done=ngettext_lazy(
            "%(count)s workspace is open again.", "%(count)s workspaces are open again.", "count"
        ),
        permissions=["change"],
    )
    def open_again(self, request: HttpRequest, row: Workspace) -> None:
        resume_workspace(workspace=row, actor=actor_of(request))


class _OneOfAnAddress(forms.ModelForm):
    """Says at the field, once and in words, that somebody has this address already."""

    def clean_email(self) -> str:
        """As the table has it: in whatever case it is written."""
        email = str(self.cleaned_data["email"])
        others = User.objects.filter(email__iexact=email.strip())
        if others.exclude(pk=self.instance.pk).exists():
            raise forms.ValidationError(_("Another account has this address."))
        return email


class AccountForm(_OneOfAnAddress, UserChangeForm):
    """An account as it is stored."""


class NewAccountForm(_OneOfAnAddress, UserCreationForm):
    """A new account."""


_SWITCHING_OFF = Question(
    asked=ngettext_lazy("Switch off %(count)s account?", "Switch off %(count)s accounts?", "count"),
    consequence=_(
        "These people can no longer sign in, and their sessions, tokens and running answers stop at once. What"
        " they made stays, and you can switch an account on again."
    ),
    verb=_("Switch off"),
)
_MAKING_OWNER = Question(
    asked=ngettext_lazy(
        "Make %(count)s account an owner of the platform?",
        "Make %(count)s accounts owners of the platform?",
        "count",
    ),
    consequence=_(
        "They may do everything in the whole installation: open and suspend workspaces, change every account, and"
        " take your rights away."
    ),
    verb=_("Make owner"),
)


@admin.register(User)
class UserAdmin(AsksBeforeSaving, PlatformModelAdmin, DjangoUserAdmin):
    form = AccountForm
    add_form = NewAccountForm
    change_password_form = AdminPasswordChangeForm
    list_display = [
        *("email", "is_address_confirmed", "name", "is_active", "is_superuser", "last_login"),
    ]
    list_filter = ["is_active", "is_superuser", "is_address_confirmed"]
    search_fields = ["email", "name"]
    ordering = ["email"]
    filter_horizontal = []
    fieldsets = [
        (None, {"fields": ["email", "name", "picture", "password"]}),
        (_("Rights"), {"fields": ["is_active", "is_superuser"]}),
        (_("Times"), {"fields": ["last_login", "created_at"]}),
    ]
    readonly_fields = ["picture", "last_login", "created_at"]
    add_fieldsets = [(None, {"fields": ["email", "name", "password1", "password2"]})]
    actions = ["switch_off", "switch_on", "remove_picture"]

    def change_view(self, request: HttpRequest, object_id: str, *args: Any, **kwargs: Any) -> Any:
        """The account; to those who administer a workspace, the person's page there. Many pages link to it."""
        if not self.has_view_permission(request):
            workspace = cast("WorkspaceRequest", request).workspace
            person = self.get_object(request, object_id)
            if workspace is not None and person is not None:
                members = Membership.objects.also_suspended(workspace)
                if (member := members.filter(user=person).first()) is not None:
                    return redirect("admin:workspaces_membership_change", member.pk)
        return super().change_view(request, object_id, *args, **kwargs)

    def save_model(self, request: HttpRequest, obj: User, form: Any, change: bool) -> None:
        with telling(request):
            if save_account(account=obj, actor=actor_of(request)):
                send_verification_email_to_address(request, obj.keep_address())

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False  # switched off instead: what a person did stays

    def question_before(self, form: Any) -> Question | None:
        """Switching off by the form is what the action does, too. Who owns the platform is asked about as well."""
        if is_switched_off(form, "is_active"):
            return _SWITCHING_OFF
        becomes_owner = "is_superuser" in form.changed_data and form.cleaned_data["is_superuser"]
        return _MAKING_OWNER if becomes_owner else None

    @row_action(
        _("Switch off"),
        done=ngettext_lazy(
            "%(count)s account switched off.", "%(count)s accounts switched off.", "count"
        ),
        question=_SWITCHING_OFF,
        permissions=["change"],
    )
    def switch_off(self, request: HttpRequest, row: User) -> None:
        switch_account(account=row, is_active=False, actor=actor_of(request))

    @row_action(
        _("Switch on"),
        done=ngettext_lazy(
            "%(count)s account switched on.", "%(count)s accounts switched on.", "count"
        ),
        permissions=["change"],
    )
    def switch_on(self, request: HttpRequest, row: User) -> None:
        switch_account(account=row, is_active=True, actor=actor_of(request))

    @row_action(
        _("Remove the picture"),
        done=ngettext_lazy("%(count)s picture removed.", "%(count)s pictures removed.", "count"),
        question=Question(
            asked=ngettext_lazy(
                "Remove the picture of %(count)s person?",
                "Remove the pictures of %(count)s people?",
                "count",
            ),
            consequence=_(
                "Pages show the first letter of their name instead. Trellis keeps no copy. They can choose another picture"
                " in their settings."
            ),
            verb=_("Remove"),
        ),
        permissions=["change"],
    )
    def remove_picture(self, request: HttpRequest, row: User) -> None:
        remove_picture_of(account=row, actor=actor_of(request))

    @admin.display(description=_("picture"))
    def picture(self, account: User) -> str:
        """As pages show it. Whoever owns the platform need not be in a workspace of theirs."""
        shown = inline_picture(account)
        if not shown:
            return str(_("None. Pages show the first letter of the name."))
        return format_html('<img src="{}" width="96" height="96" alt="">', shown)


@admin.register(ApiToken)
class ApiTokenAdmin(WorkspaceModelAdmin):
    """Which keys to the API exist here; an admin can end one, but never read or make one."""

    section = Section.PEOPLE
    manage_permission = Permission.MANAGE_MEMBERS
    list_display = ["name", "user", "hint", "expires_at", "last_used_at"]
    list_select_related = ["user"]
    search_fields = ["name", "user__email"]
    fields = ["name", "user", "hint", "scopes", "expires_at", "last_used_at"]
    actions = ["revoke"]

    def row_name(self, row: ApiToken) -> str:
        """The token, how it begins, and whose it is."""
        return f"{row.name} ({row.hint}…, {row.user.email})"

    @row_action(
        _("Revoke"),
        done=ngettext_lazy("%(count)s token revoked.", "%(count)s tokens revoked.", "count"),
        question=Question(
            asked=ngettext_lazy("Revoke %(count)s token?", "Revoke %(count)s tokens?", "count"),
            consequence=_(
                "Programs that use them are refused from the next request on. This cannot be undone: their owners make new"
                " ones."
            ),
            verb=_("Revoke"),
        ),
        permissions=["delete"],
    )
    def revoke(self, request: HttpRequest, row: ApiToken) -> None:
        revoke_token(token=row, actor=actor_of(request))

    def delete_model(self, request: HttpRequest, obj: ApiToken) -> None:
        with telling(request):
            revoke_token(token=obj, actor=actor_of(request))

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False
