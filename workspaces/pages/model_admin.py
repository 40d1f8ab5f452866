"""What every page of the admin stands on: each shows and changes the rows of the current workspace only.

Admin classes of all apps inherit `WorkspaceModelAdmin`; a system check sees to it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, Final, cast

from django import forms
from django.contrib import messages
from django.contrib.admin.exceptions import DisallowedModelAdminLookup
from django.contrib.admin.utils import unquote
from django.contrib.admin.views.main import ERROR_FLAG, PAGE_VAR
from django.core.exceptions import FieldDoesNotExist
from django.db import DataError, connection, models, transaction
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.safestring import SafeString
from django.utils.text import capfirst
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from unfold.admin import ModelAdmin

from workspaces.changes import record_created, record_deleted, tracked_change
from workspaces.errors import Conflict, DomainError
from workspaces.models import Membership, User
from workspaces.pages.admin_sections import AdminSection
from workspaces.pages.list_addresses import LONGEST_SEARCH, cut_search, faults_of, no_page
from workspaces.pages.list_view_parts import FORM_VAR, ListOfViews, answer_form, saved_views
from workspaces.pages.row_actions import ConfirmQuestion, ask_before_saving, names_rows
from workspaces.pages.seen_values import NoticesOthers, hold
from workspaces.roles import Permission, has_permission
from workspaces.scoping import WorkspaceModel
from workspaces.secrets import encrypted_fields
from workspaces.words.formats import moment
from workspaces.words.local_times import written_locally

if TYPE_CHECKING:
    from workspaces.actors import Actor
    from workspaces.middleware import WorkspaceRequest


def actor_of(request: HttpRequest) -> Actor:
    """Who acts."""
    return cast("WorkspaceRequest", request).actor


@contextmanager
def telling(request: HttpRequest) -> Iterator[None]:
    """A refused change becomes a message on the page instead of an error page."""
    try:
        yield
    except DomainError as error:
        request.was_refused = True  # type: ignore[attr-defined]  # read by TrackedModelAdmin
        messages.error(request, error.message)


def was_refused(request: HttpRequest) -> bool:
    """Whether something on this page was refused, and said."""
    return getattr(request, "was_refused", False)


LOOKUPS: Final = frozenset({"exact", "in", "isnull", "gt", "gte", "lt", "lte"})
"""How an address may compare a field. Patterns could be such that nobody ever finds out whether they fit: on SQLite
that stops the whole process. Beginnings would give away what stands in a field that is not shown."""


def noticing(form: type[forms.ModelForm[Any]]) -> Any:
    """The same form of a stored row, which notices what somebody else saved meanwhile."""
    return type(form.__name__, (NoticesOthers, form), {})


class MomentColumn:
    """Moments of a list or a form: the server does not know the reader's time zone, and their browser does."""

    def __init__(self, field: models.DateTimeField[Any, Any]) -> None:
        self.__name__ = self.admin_order_field = self.field_name = field.name
        self.short_description = field.verbose_name

    def __call__(self, row: models.Model) -> SafeString | None:
        at = getattr(row, self.field_name)
        return written_locally(at, moment(at), "minute") if at else None


_column_of: Final = cache(MomentColumn)
"""Always the same one: a form finds out by it which of its fields are only read."""


class TrackedModelAdmin(ModelAdmin):
    """Saves and deletes so that each change is told to the audit log; a refused one is not called done."""

    section: ClassVar[AdminSection] = AdminSection.PLATFORM
    """Under which heading its page stands."""
    page_name: ClassVar[Promise | str] = ""
    """What the page is called in the navigation; empty: as the model, in the plural."""
    where_from: ClassVar[Promise | str] = ""
    """Said of a list without rows that cannot be added here: what stands in it, and where it comes from."""
    deletion_note: ClassVar[Promise | str] = ""
    """What becomes of what depends on a row that is deleted here: said where that is asked."""
    offers_export: ClassVar[bool] = True
    """Whether whoever sees the list may take it as a file."""
    change_form_after_template = "admin/seen_values.html"
    list_before_template = "admin/list_views.html"
    list_after_template = "admin/list_export.html"

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

    def _get_obj_does_not_exist_redirect(
        self, request: HttpRequest, opts: Any, object_id: str
    ) -> HttpResponseRedirect:
        """Say that a row is gone, and go on with its list. Django names its id, and leads to the first page."""
        message = gettext("This %(kind)s does not exist any more. Perhaps somebody deleted it.")
        messages.warning(request, message % {"kind": opts.verbose_name})
        is_listed = self.has_view_permission(request)
        name = f"{opts.app_label}_{opts.model_name}_changelist" if is_listed else "index"
        return HttpResponseRedirect(reverse(f"{self.admin_site.name}:{name}"))

    def get_list_display(self, request: HttpRequest) -> Any:
        """Show moments as the reader's browser writes them, as all other pages do."""
        return [self._as_read(column) for column in super().get_list_display(request)]

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        """Show moments that are only read in the same way."""
        return [self._as_read(field) for field in super().get_readonly_fields(request, obj)]

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        """Name fields that are only read as the form knows them."""
        read = self.get_readonly_fields(request, obj)
        is_read = obj is not None and not self.has_change_permission(request, obj)
        return [
            (
                name,
                {
                    **options,
                    "fields": [self._as_shown(f, read, is_read) for f in options["fields"]],
                },
            )
            for name, options in super().get_fieldsets(request, obj)
        ]

    def _as_shown(self, field: Any, read: Sequence[Any], is_read: bool) -> Any:
        shown = self._as_read(field)
        return shown if is_read or shown in read else field

    def _as_read(self, column: Any) -> Any:
        fields = {one.name: one for one in self.opts.fields}
        field = fields.get(column) if isinstance(column, str) else None
        return _column_of(field) if isinstance(field, models.DateTimeField) else column

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> Any:
        """Have a list whose address may name a saved view."""
        return ListOfViews

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> Any:
        """The list under its saved views; what their forms send comes to the list, which shows what is refused."""
        bound = cast("WorkspaceRequest", request)
        views = saved_views(bound, self) if self.has_view_permission(request) else None
        if views is None:
            return self._list(request, extra_context)
        if request.method == "POST" and FORM_VAR in request.POST:
            answer = answer_form(bound, self, views)
            if isinstance(answer, HttpResponseRedirect):
                return answer
            views = saved_views(bound, self, answer)
            response = self._list(request, {**(extra_context or {}), "saved_views": views})
            if response.status_code == 200:
                response.status_code = 422
            return response
        if views.is_gone:
            message = _("The saved view in this address does not exist any more, or is not shared.")
            messages.warning(request, message)
        return self._list(request, {**(extra_context or {}), "saved_views": views})

    def _list(self, request: HttpRequest, extra_context: dict[str, Any] | None) -> Any:
        """The list, and in words what of its address does not fit. Django refuses a name, and is silent of a value."""
        without_filters = f"{request.path}?{ERROR_FLAG}=1"
        try:
            # Django's own title asks to select a row; a tab of the browser has the name of its page.
            named = {"title": capfirst(self.opts.verbose_name_plural), **(extra_context or {})}
            response = super().changelist_view(request, named)
        except (DisallowedModelAdminLookup, OverflowError, DataError):
            # The two latter: moments of the calendar's first or last day, and numbers that no column holds.
            response = HttpResponseRedirect(without_filters)
        listed = (getattr(response, "context_data", None) or {}).get("cl")
        if listed is not None:
            for fault in (*faults_of(request, listed), cut_search(request)):
                if fault:
                    messages.warning(request, fault)
        elif isinstance(response, HttpResponseRedirect) and response.url == without_filters:
            if PAGE_VAR in request.GET:
                # Perhaps only the page does not fit; if there is more, that is told next.
                messages.warning(request, no_page(request.GET[PAGE_VAR]))
                query = request.GET.copy()
                del query[PAGE_VAR]
                return HttpResponseRedirect(f"{request.path}?{query.urlencode()}")
            message = _(
                "The address had a filter that does not exist, or a value that does not fit."
                " All rows are shown."
            )
            messages.warning(request, message)
        return response

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest | None = None) -> bool:
        """Filters by what `LOOKUPS` names alone; a link with a pattern would be enough to stop the process."""
        _name, separator, way = lookup.rpartition("__")
        return (not separator or way in LOOKUPS) and super().lookup_allowed(lookup, value, request)

    def get_search_results(
        self, request: HttpRequest, queryset: models.QuerySet[Any], search_term: str
    ) -> Any:
        """Look for as much as the database takes: each word is a condition of its own."""
        return super().get_search_results(request, queryset, search_term[:LONGEST_SEARCH])

    def log_addition(self, request: HttpRequest, obj: Any, message: Any) -> Any:
        return None if was_refused(request) else super().log_addition(request, obj, message)

    def log_change(self, request: HttpRequest, obj: Any, message: Any) -> Any:
        return None if was_refused(request) else super().log_change(request, obj, message)

    def response_add(
        self, request: HttpRequest, obj: Any, *args: Any, **kwargs: Any
    ) -> HttpResponse:
        if was_refused(request):
            return HttpResponseRedirect(request.get_full_path())
        answer: HttpResponse = super().response_add(request, obj, *args, **kwargs)
        return answer

    def delete_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None
    ) -> Any:
        """Ask, and say first what becomes of what depends on the row."""
        row = self.get_object(request, unquote(object_id))
        if row is not None and self.has_delete_permission(request, row):
            opts = self.opts
            change = f"{self.admin_site.name}:{opts.app_label}_{opts.model_name}_change"
            extra_context = {
                "name": self.row_name(row),
                "consequence": self.deletion_note,
                "change_url": reverse(change, args=[row.pk]),
                **(extra_context or {}),
            }
        return super().delete_view(request, object_id, extra_context)

    def log_deletions(self, request: HttpRequest, queryset: Any) -> Any:
        return []  # Django's would say so before it is tried; the audit log says it when it is done

    def response_delete(self, request: HttpRequest, obj_display: str, obj_id: Any) -> HttpResponse:
        if was_refused(request):
            return HttpResponseRedirect("../change/")
        answer: HttpResponse = super().response_delete(request, obj_display, obj_id)
        return answer

    def get_actions(self, request: HttpRequest) -> Any:
        actions = super().get_actions(request)
        actions.pop("delete_selected", None)  # what destroys is asked about one by one
        return actions

    def row_name(self, row: Any) -> str:
        """What a row is called where an action on several of them names it."""
        return str(row)

    def response_action(
        self, request: HttpRequest, queryset: models.QuerySet[Any], *args: Any, **kwargs: Any
    ) -> HttpResponse | None:
        """Do what was chosen in the menu of actions, with rows that can exist."""
        if not names_rows(self, request):
            return None
        answer: HttpResponse | None = super().response_action(request, queryset, *args, **kwargs)
        return answer

    def response_change(self, request: HttpRequest, obj: Any) -> HttpResponse:
        if was_refused(request):
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

    section = AdminSection.TOOLS

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
        if field.is_relation:
            known = {name, f"{name}__id__exact", f"{name}__isnull"}
        else:
            known = {name, *(f"{name}__{way}" for way in LOOKUPS)}
        return lookup in known and super().lookup_allowed(lookup, value, request)

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


class AsksBeforeSaving(TrackedModelAdmin):
    """Asks before a form is saved whose change shuts people out, as the action of the list does.

    Not for a form with secrets: the page that asks would hold them.
    """

    def question_before(self, form: Any) -> ConfirmQuestion | None:
        """What is asked before this valid form is saved; None: nothing."""
        raise NotImplementedError

    def changeform_view(
        self,
        request: HttpRequest,
        object_id: str | None = None,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> Any:
        """Show or save the form; where saving it does much, ask first."""
        if request.method == "POST" and object_id is not None:
            row = self.get_object(request, unquote(object_id))
            if row is not None and self.has_change_permission(request, row):
                name = self.row_name(row)
                made = self.get_form(request, row, change=True)
                form = made(request.POST, request.FILES, instance=row)
                question = self.question_before(form) if form.is_valid() else None
                if question and (page := ask_before_saving(self, request, name, question)):
                    return page
        return super().changeform_view(request, object_id, form_url, extra_context)


class MadeElsewhere(TrackedModelAdmin):
    """Rows that other pages make: here they are read, and ended at most. Stands before the class that says who may look."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


class ReadOnly(MadeElsewhere):
    """Rows that are only read here, and ended by the actions that a list names at most."""

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


class PlatformModelAdmin(TrackedModelAdmin):
    """Tables of the platform's owner: superusers only."""

    def has_module_permission(self, request: HttpRequest) -> bool:
        return bool(request.user.is_superuser)

    has_add_permission = has_module_permission

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return bool(request.user.is_superuser)

    has_change_permission = has_view_permission
    has_delete_permission = has_view_permission
