"""Members of a workspace in the admin: their roles, who may audit, and who is suspended."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

from django.contrib import admin
from django.db import models
from django.http import HttpRequest
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext_lazy

from workspaces.actors import Role
from workspaces.admin.roles import GivesRoles
from workspaces.errors import Conflict
from workspaces.models import Membership
from workspaces.pages.admin_sections import AdminSection
from workspaces.pages.model_admin import AsksBeforeSaving, actor_of, telling
from workspaces.pages.row_actions import ConfirmQuestion, given_reason, row_action
from workspaces.people.browser_sessions import end_sessions
from workspaces.people.services import (
    change_membership,
    is_above,
    may_choose_auditors,
    remove_member,
)
from workspaces.people.suspending import LONGEST_REASON, resume_member, suspend_member
from workspaces.roles import Permission

if TYPE_CHECKING:
    from workspaces.middleware import WorkspaceRequest


_ROLE_QUESTIONS: Final = {
    Role.MEMBER: ConfirmQuestion(
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
    Role.ADMIN: ConfirmQuestion(
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
    Role.OWNER: ConfirmQuestion(
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
class MembershipAdmin(AsksBeforeSaving, GivesRoles):
    """Members of the workspace: their roles, and who may audit."""

    section = AdminSection.PEOPLE
    manage_permission = Permission.MANAGE_MEMBERS
    page_name = _("People, all fields")
    deletion_note = _(
        "They can no longer enter this workspace. Their tokens, sign-ins and own servers end. Their account and what they"
        " made stay. Nobody can read their chats; Audit → Settings erases them."
    )
    where_from = _(
        "People become members by an invitation, under “Invite people”. Here you see all of them."
    )
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
        if not membership.user.is_active:
            return _("account switched off")
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

    def question_before(self, form: Any) -> ConfirmQuestion | None:
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
        question=ConfirmQuestion(
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
        question=ConfirmQuestion(
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
