"""Accounts in the admin, for the owner of the platform."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, cast

import allauth.account.admin
import allauth.mfa.admin
import allauth.socialaccount.admin  # noqa: F401 - all three register what is taken out below
from allauth.account.internal.flows.email_verification import send_verification_email_to_address
from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from allauth.socialaccount.models import SocialAccount, SocialApp, SocialToken
from django import forms
from django.contrib import admin
from django.contrib.auth.admin import UserAdmin as DjangoUserAdmin
from django.contrib.auth.models import Group
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.html import format_html
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext_lazy
from unfold.forms import AdminPasswordChangeForm, UserChangeForm, UserCreationForm

from workspaces.models import Membership, User
from workspaces.pages.model_admin import (
    AsksBeforeSaving,
    PlatformModelAdmin,
    actor_of,
    telling,
    was_refused,
)
from workspaces.pages.row_actions import ConfirmQuestion, is_switched_off, row_action
from workspaces.people.pictures import inline_picture
from workspaces.people.platform import remove_picture_of, save_account, switch_account
from workspaces.people.two_step import turn_off_two_steps

if TYPE_CHECKING:
    from workspaces.middleware import WorkspaceRequest

admin.site.unregister(Group)
# An address is confirmed by answering its mail, and in no other way.
admin.site.unregister(EmailAddress)
# The second step is shown with its account, and is turned off there.
admin.site.unregister(Authenticator)
# The provider stands in the installation's settings. Its tokens are not kept.
admin.site.unregister([SocialAccount, SocialApp, SocialToken])


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

    class Meta(UserChangeForm.Meta):
        labels: ClassVar = {
            "is_active": _("Active"),
            "is_superuser": _("Owner of the platform"),
        }
        help_texts: ClassVar = {
            "is_superuser": _("They may do everything in the whole installation."),
            "has_two_steps": _("Whether they are asked for a second step after the password."),
        }


class NewAccountForm(_OneOfAnAddress, UserCreationForm):
    """A new account."""


_SWITCHING_OFF = ConfirmQuestion(
    asked=ngettext_lazy("Switch off %(count)s account?", "Switch off %(count)s accounts?", "count"),
    consequence=_(
        "These people can no longer sign in, and their sessions, tokens and running answers stop at once. What"
        " they made stays, and you can switch an account on again."
    ),
    verb=_("Switch off"),
)
_MAKING_OWNER = ConfirmQuestion(
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
_NO_LONGER_OWNER = ConfirmQuestion(
    asked=ngettext_lazy(
        "Take ownership of the platform from %(count)s account?",
        "Take ownership of the platform from %(count)s accounts?",
        "count",
    ),
    consequence=_(
        "They can no longer open the pages of the whole installation. What they are in their workspaces stays. If this is"
        " your own account, only another owner can make you an owner again."
    ),
    verb=_("Take ownership"),
)


@admin.register(User)
class UserAdmin(AsksBeforeSaving, PlatformModelAdmin, DjangoUserAdmin):
    form = AccountForm
    add_form = NewAccountForm
    change_password_form = AdminPasswordChangeForm
    list_display = [
        *("email", "is_address_confirmed", "name", "two_steps"),
        *("is_active", "is_superuser", "last_login"),
    ]
    list_filter = ["is_active", "is_superuser", "is_address_confirmed", "has_two_steps"]
    search_fields = ["email", "name"]
    ordering = ["email"]
    filter_horizontal = []
    fieldsets = [
        (None, {"fields": ["email", "name", "picture", "new_password", "has_two_steps"]}),
        (_("Rights"), {"fields": ["is_active", "is_superuser"]}),
        (_("Times"), {"fields": ["last_login", "created_at"]}),
    ]
    readonly_fields = ["picture", "new_password", "has_two_steps", "last_login", "created_at"]
    add_fieldsets = [(None, {"fields": ["email", "name", "password1", "password2"]})]
    actions = ["switch_off", "switch_on", "remove_picture", "turn_off_two_steps"]

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

    def question_before(self, form: Any) -> ConfirmQuestion | None:
        """Switching off by the form is what the action does, too. Who owns the platform is asked about as well."""
        if is_switched_off(form):
            return _SWITCHING_OFF
        if "is_superuser" not in form.changed_data:
            return None
        return _MAKING_OWNER if form.cleaned_data["is_superuser"] else _NO_LONGER_OWNER

    def response_change(self, request: HttpRequest, obj: User) -> HttpResponse:
        """Lead whoever gave up the platform to what is still theirs: the list of accounts is not."""
        answer = super().response_change(request, obj)
        gave_up = obj.pk == actor_of(request).user_id and not obj.is_superuser
        return redirect("workspaces:all") if gave_up and not was_refused(request) else answer

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
        question=ConfirmQuestion(
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

    @row_action(
        _("Turn off two-step verification"),
        done=ngettext_lazy(
            "Two-step verification turned off for %(count)s account.",
            "Two-step verification turned off for %(count)s accounts.",
            "count",
        ),
        question=ConfirmQuestion(
            asked=ngettext_lazy(
                "Turn off two-step verification for %(count)s account?",
                "Turn off two-step verification for %(count)s accounts?",
                "count",
            ),
            consequence=_(
                "The password alone lets these people in, until they set it up again. Their passkeys end, too. Each"
                " gets a mail. First make sure that they asked for it themselves: call them, for example."
            ),
            verb=_("Turn off"),
        ),
        permissions=["change"],
    )
    def turn_off_two_steps(self, request: HttpRequest, row: User) -> None:
        turn_off_two_steps(account=row, actor=actor_of(request))

    @admin.display(description=_("Two steps"), boolean=True, ordering="has_two_steps")
    def two_steps(self, account: User) -> bool:
        """Under a heading that leaves the other columns their room."""
        return account.has_two_steps

    @admin.display(description=_("Password"))
    def new_password(self, account: User) -> str:
        """Not what is stored of it, which tells nobody anything."""
        address = reverse("admin:auth_user_password_change", args=[account.pk])
        return format_html(
            '{} <a class="text-primary-600 underline dark:text-primary-500" href="{}">{}</a>',
            _("Nobody can read it."),
            address,
            _("Set another one"),
        )

    @admin.display(description=_("picture"))
    def picture(self, account: User) -> str:
        """As pages show it. Whoever owns the platform need not be in a workspace of theirs."""
        shown = inline_picture(account)
        if not shown:
            return str(_("None. Pages show the first letter of the name."))
        return format_html('<img src="{}" width="96" height="96" alt="">', shown)
