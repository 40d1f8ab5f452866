"""The admin's pages about people and workspaces, and what stands at the head of every page."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, cast

import allauth.account.admin  # noqa: F401 - registers what is taken out below
from allauth.account.internal.flows.email_verification import send_verification_email_to_address
from allauth.account.models import EmailAddress
from django.contrib import admin, messages
from django.contrib.auth.admin import UserAdmin as DjangoUserAdmin
from django.contrib.auth.models import Group
from django.db import models, transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _
from unfold.forms import AdminPasswordChangeForm, UserChangeForm, UserCreationForm

from workspaces.actors import Role
from workspaces.mails import public_url
from workspaces.middleware import signed_in_user
from workspaces.models import ApiToken, Invitation, Membership, Theme, User, Workspace
from workspaces.pages.admin_sections import Section
from workspaces.pages.model_admin import (
    PlatformModelAdmin,
    WorkspaceModelAdmin,
    telling,
    was_refused,
)
from workspaces.people.services import (
    change_membership,
    mail_invitation,
    make_invitation,
    remove_member,
    revoke_invitation,
)
from workspaces.roles import Permission
from workspaces.scoping import WorkspaceQuerySet
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


@admin.register(Membership)
class MembershipAdmin(WorkspaceModelAdmin):
    """Members of the workspace: their roles, and who may audit."""

    section = Section.PEOPLE
    manage_permission = Permission.MANAGE_MEMBERS
    page_name = _("Members")
    list_display = ["user", "address_confirmed", "role", "auditor", "suspended", "created_at"]
    list_filter = ["role", "is_auditor"]
    list_select_related = ["user"]
    search_fields = ["user__email", "user__name"]
    fields = ["person", "role", "is_auditor"]
    readonly_fields = ["person"]

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

    def save_model(self, request: HttpRequest, obj: Membership, form: Any, change: bool) -> None:
        kept = Membership.objects.also_suspended(obj.workspace_id).fetch(obj.pk)
        with telling(request):
            change_membership(
                membership=kept,
                role=Role(obj.role),
                is_auditor=obj.is_auditor,
                actor=cast("WorkspaceRequest", request).actor,
            )

    def delete_model(self, request: HttpRequest, obj: Membership) -> None:
        with telling(request):
            remove_member(membership=obj, actor=cast("WorkspaceRequest", request).actor)


@admin.register(Invitation)
class InvitationAdmin(WorkspaceModelAdmin):
    """Invitations by e-mail; the link is shown, once, only where no mail server is configured."""

    section = Section.PEOPLE
    manage_permission = Permission.MANAGE_MEMBERS
    list_display = ["email", "role", "is_auditor", "state", "expires_at", "invited_by"]
    list_filter = ["role"]
    list_select_related = ["invited_by"]
    search_fields = ["email"]
    fields = ["email", "role", "is_auditor"]
    actions = ["revoke"]

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
        link = public_url(reverse("workspaces:invitation", args=[token]))
        with telling(request):
            mail_invitation(
                invitation=invitation, link=link, actor=cast("WorkspaceRequest", request).actor
            )
            if not invitation.is_link_shown:
                messages.info(
                    request,
                    _("The invitation was mailed to %(email)s.") % {"email": invitation.email},
                )
                return
            messages.warning(
                request,
                _(
                    "No mail server is configured, so give %(email)s this link yourself. It is shown only now: %(link)s"
                    " A new account that comes by it is marked “address not confirmed” until the mail to its address is"
                    " answered."
                )
                % {"email": invitation.email, "link": link},
            )

    @admin.action(description=_("Revoke the selected invitations"), permissions=["add"])
    def revoke(self, request: HttpRequest, queryset: WorkspaceQuerySet[Invitation]) -> None:
        for invitation in queryset:
            revoke_invitation(invitation=invitation, actor=cast("WorkspaceRequest", request).actor)


@admin.register(Workspace)
class WorkspaceAdmin(PlatformModelAdmin):
    list_display = ["name", "slug", "is_active", "created_at"]
    list_filter = ["is_active"]
    search_fields = ["name", "slug"]
    prepopulated_fields: ClassVar[Any] = {"slug": ["name"]}

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False  # suspended, so that nothing is lost by a click


@admin.register(User)
class UserAdmin(PlatformModelAdmin, DjangoUserAdmin):
    form = UserChangeForm
    add_form = UserCreationForm
    change_password_form = AdminPasswordChangeForm
    list_display = [
        *("email", "is_address_confirmed", "name", "is_active", "is_superuser", "last_login"),
    ]
    list_filter = ["is_active", "is_superuser", "is_address_confirmed"]
    search_fields = ["email", "name"]
    ordering = ["email"]
    filter_horizontal = []
    fieldsets = [
        (None, {"fields": ["email", "name", "password"]}),
        (_("Rights"), {"fields": ["is_active", "is_superuser"]}),
        (_("Times"), {"fields": ["last_login", "created_at"]}),
    ]
    readonly_fields = ["last_login", "created_at"]
    add_fieldsets = [(None, {"fields": ["email", "name", "password1", "password2"]})]

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
        super().save_model(request, obj, form, change)
        if "email" in form.changed_data:
            send_verification_email_to_address(request, obj.keep_address())

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False  # switched off instead: what a person did stays


@admin.register(ApiToken)
class ApiTokenAdmin(WorkspaceModelAdmin):
    """Which keys to the API exist here; an admin can end one, but never read or make one."""

    section = Section.PEOPLE
    manage_permission = Permission.MANAGE_MEMBERS
    list_display = ["name", "user", "hint", "expires_at", "last_used_at"]
    list_select_related = ["user"]
    search_fields = ["name", "user__email"]
    fields = ["name", "user", "hint", "scopes", "expires_at", "last_used_at"]

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False
