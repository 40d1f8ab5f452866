"""The admin, scoped: each page shows and changes the rows of the current workspace only.

Other apps' admin classes inherit `WorkspaceModelAdmin`; a system check sees to it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, cast

import allauth.account.admin  # noqa: F401 - registers what is taken out below
from allauth.account.internal.flows.email_verification import send_verification_email_to_address
from allauth.account.models import EmailAddress
from django import forms
from django.contrib import admin, messages
from django.contrib.admin.exceptions import DisallowedModelAdminLookup
from django.contrib.admin.views.main import ERROR_FLAG
from django.contrib.auth.admin import UserAdmin as DjangoUserAdmin
from django.contrib.auth.models import Group
from django.core.exceptions import FieldDoesNotExist
from django.db import connection, models, transaction
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _
from unfold.admin import ModelAdmin
from unfold.forms import AdminPasswordChangeForm, UserChangeForm, UserCreationForm

from workspaces.actors import Role
from workspaces.admin_sections import Section
from workspaces.changes import record_created, record_deleted, tracked_change
from workspaces.errors import Conflict, DomainError
from workspaces.mails import public_url
from workspaces.middleware import enterable_workspaces, signed_in_user
from workspaces.models import ApiToken, Invitation, Membership, Theme, User, Workspace
from workspaces.roles import Permission, has_permission
from workspaces.scoping import WorkspaceModel, WorkspaceQuerySet
from workspaces.secrets import encrypted_fields
from workspaces.seen_values import NoticesOthers, hold
from workspaces.services import (
    change_membership,
    mail_invitation,
    make_invitation,
    remove_member,
    revoke_invitation,
)

if TYPE_CHECKING:
    from workspaces.middleware import WorkspaceRequest

admin.site.unregister(Group)
# An address is confirmed by answering its mail, and in no other way.
admin.site.unregister(EmailAddress)


@contextmanager
def telling(request: HttpRequest) -> Iterator[None]:
    """A refused change becomes a message on the page instead of an error page."""
    try:
        yield
    except DomainError as error:
        request.was_refused = True  # type: ignore[attr-defined]  # read by TrackedModelAdmin
        messages.error(request, error.message)


def _was_refused(request: HttpRequest) -> bool:
    return getattr(request, "was_refused", False)


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
    """The other workspaces that the person administers, for the menu at the name of this one."""
    user = signed_in_user(request)
    current = getattr(request, "workspace", None)
    if user is None or current is None:
        return []
    others = enterable_workspaces(user).exclude(pk=current.pk)
    if not user.is_superuser:
        strong = [Role.ADMIN.value, Role.OWNER.value]
        mine = Membership.objects.across_workspaces().filter(user=user, role__in=strong)
        others = others.filter(pk__in=mine.values("workspace_id"))
    return [
        {
            "icon": "swap_horiz",
            "title": other.name,
            "link": reverse("workspaces:open_admin", args=[other.slug]),
        }
        for other in others[:30]
    ]


def noticing(form: type[forms.ModelForm[Any]]) -> Any:
    """The same form of a stored row, which notices what somebody else saved meanwhile."""
    return type(form.__name__, (NoticesOthers, form), {})


class TrackedModelAdmin(ModelAdmin):
    """Saves and deletes so that each change is told to the audit log; a refused one is not called done."""

    section: ClassVar[Section] = Section.PLATFORM
    """Under which heading its page stands."""
    page_name: ClassVar[Promise | str] = ""
    """What the page is called in the navigation; empty: as the model, in the plural."""
    change_form_after_template = "admin/seen_values.html"

    def get_form(
        self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any
    ) -> Any:
        """Have the form of a row notice what somebody else saved meanwhile."""
        form = super().get_form(request, obj, change=change, **kwargs)
        return noticing(form) if obj is not None else form

    def get_object(self, request: HttpRequest, object_id: str, from_field: Any = None) -> Any:
        """Give the row, and hold it where it is saved: Django has begun the transaction."""
        row = super().get_object(request, object_id, from_field)
        if row is not None and connection.in_atomic_block:
            hold(request, row)
        return row

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, str] | None = None
    ) -> Any:
        """The list, and in words what of its address does not fit. Django refuses a name, and is silent of a value."""
        without_filters = f"{request.path}?{ERROR_FLAG}=1"
        try:
            response = super().changelist_view(request, extra_context)
        except DisallowedModelAdminLookup:
            response = HttpResponseRedirect(without_filters)
        if isinstance(response, HttpResponseRedirect) and response.url == without_filters:
            told = _(
                "The address had a filter that does not exist, or a value that does not fit."
                " All rows are shown."
            )
            messages.warning(request, told)
        return response

    def log_addition(self, request: HttpRequest, obj: Any, message: Any) -> Any:
        return None if _was_refused(request) else super().log_addition(request, obj, message)

    def log_change(self, request: HttpRequest, obj: Any, message: Any) -> Any:
        return None if _was_refused(request) else super().log_change(request, obj, message)

    def response_add(
        self, request: HttpRequest, obj: Any, *args: Any, **kwargs: Any
    ) -> HttpResponse:
        if _was_refused(request):
            return HttpResponseRedirect(request.get_full_path())
        answer: HttpResponse = super().response_add(request, obj, *args, **kwargs)
        return answer

    def log_deletions(self, request: HttpRequest, queryset: Any) -> Any:
        return []  # Django's would say so before it is tried; the audit log says it when it is done

    def response_delete(self, request: HttpRequest, obj_display: str, obj_id: Any) -> HttpResponse:
        if _was_refused(request):
            return HttpResponseRedirect("../change/")
        answer: HttpResponse = super().response_delete(request, obj_display, obj_id)
        return answer

    def get_actions(self, request: HttpRequest) -> Any:
        actions = super().get_actions(request)
        actions.pop("delete_selected", None)  # what destroys is asked about one by one
        return actions

    def response_change(self, request: HttpRequest, obj: Any) -> HttpResponse:
        if _was_refused(request):
            return HttpResponseRedirect(request.get_full_path())
        answer: HttpResponse = super().response_change(request, obj)
        return answer

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        actor = cast("WorkspaceRequest", request).actor
        if change:
            with tracked_change(obj, actor=actor):
                super().save_model(request, obj, form, change)
        else:
            with transaction.atomic():
                super().save_model(request, obj, form, change)
                record_created(obj, actor=actor)

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        with telling(request):
            try:
                with transaction.atomic():
                    record_deleted(obj, actor=cast("WorkspaceRequest", request).actor)
                    super().delete_model(request, obj)
            except models.ProtectedError as error:
                users = ", ".join(sorted(str(row) for row in error.protected_objects)[:5])
                raise Conflict(
                    _("This is still in use by %(users)s.") % {"users": users}
                ) from error

    def delete_queryset(self, request: HttpRequest, queryset: models.QuerySet[Any]) -> None:
        for obj in queryset:
            self.delete_model(request, obj)


class WorkspaceModelAdmin(TrackedModelAdmin):
    """Rows of the current workspace, for those with `manage_permission` in it."""

    section = Section.TOOLS

    manage_permission: ClassVar[Permission]
    view_permission: ClassVar[Permission | None] = None
    """Who may look without changing; None: the same people."""

    def get_queryset(self, request: HttpRequest) -> models.QuerySet[Any]:
        workspace = cast("WorkspaceRequest", request).workspace
        if workspace is None:
            return cast("models.QuerySet[Any]", self.model._default_manager.none())
        rows = self.model.objects.for_workspace(workspace)
        ordering = self.get_ordering(request)
        return cast("models.QuerySet[Any]", rows.order_by(*ordering) if ordering else rows)

    def may(self, request: HttpRequest, permission: Permission, obj: Any = None) -> bool:
        """Whether the person has this permission here, and the row is of here."""
        bound = cast("WorkspaceRequest", request)
        if bound.workspace is None:
            return False
        if obj is not None and getattr(obj, "workspace_id", None) != bound.workspace.pk:
            return False
        return has_permission(bound.actor, permission, workspace_id=bound.workspace.pk)

    def has_module_permission(self, request: HttpRequest) -> bool:
        return self.has_view_permission(request)

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self.may(request, self.view_permission or self.manage_permission, obj)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return self.may(request, self.manage_permission)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self.may(request, self.manage_permission, obj)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self.may(request, self.manage_permission, obj)

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest | None = None) -> bool:
        """Filters by the row's own plain fields only, and never by a secret one."""
        name = lookup.split("__", 1)[0]
        secret = {field.name for field in encrypted_fields(self.model)}
        if name in secret or name.startswith("workspace"):
            return False
        try:
            field = self.model._meta.get_field(name)
        except FieldDoesNotExist:
            return False
        if field.is_relation and lookup not in {name, f"{name}__id__exact", f"{name}__isnull"}:
            return False
        return bool(super().lookup_allowed(lookup, value, request))

    def to_field_allowed(self, request: HttpRequest, to_field: str) -> bool:
        return bool(to_field == self.model._meta.pk.name)

    def formfield_for_foreignkey(
        self, db_field: models.ForeignKey[Any, Any], request: HttpRequest, **kwargs: Any
    ) -> Any:
        kwargs.setdefault("queryset", self.choices_for(db_field, request))
        return super().formfield_for_foreignkey(db_field, request, **kwargs)

    def formfield_for_manytomany(
        self, db_field: models.ManyToManyField[Any, Any], request: HttpRequest, **kwargs: Any
    ) -> Any:
        kwargs.setdefault("queryset", self.choices_for(db_field, request))
        return super().formfield_for_manytomany(db_field, request, **kwargs)

    def choices_for(self, db_field: Any, request: HttpRequest) -> models.QuerySet[Any]:
        """The rows that a field may point at: of this workspace; of platform tables, none
        unless the admin class says which."""
        target = db_field.remote_field.model
        workspace = cast("WorkspaceRequest", request).workspace
        if issubclass(target, WorkspaceModel) and workspace is not None:
            return cast("models.QuerySet[Any]", target.objects.for_workspace(workspace))
        if target is User and workspace is not None:
            members = Membership.objects.for_workspace(workspace).values("user_id")
            return User.objects.filter(pk__in=members)
        return cast("models.QuerySet[Any]", target._default_manager.none())

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        if not change:
            obj.workspace = cast("WorkspaceRequest", request).workspace
        super().save_model(request, obj, form, change)

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        """Name what goes, but never walk to rows of another model that were not asked for."""
        names = [str(obj) for obj in objs]
        label = str(self.model._meta.verbose_name_plural)
        return names, {label: len(names)}, set(), []


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
    fields = ["user", "role", "is_auditor"]
    readonly_fields = ["user"]

    @admin.display(description=_("Address"))
    def address_confirmed(self, membership: Membership) -> str:
        return "confirmed" if membership.user.is_address_confirmed else "address not confirmed"

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
    def state(self, invitation: Invitation) -> str:
        if invitation.accepted_at:
            return "accepted"
        if invitation.revoked_at:
            return "revoked"
        return "open" if invitation.is_open else "expired"

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
        if _was_refused(request):
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


class PlatformModelAdmin(TrackedModelAdmin):
    """Tables of the platform's owner: superusers only."""

    def has_module_permission(self, request: HttpRequest) -> bool:
        return bool(request.user.is_superuser)

    has_add_permission = has_module_permission

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return bool(request.user.is_superuser)

    has_change_permission = has_view_permission
    has_delete_permission = has_view_permission


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
