"""Saved views above a list of the admin: which there are, which one is open, and the forms that keep them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode

from django.contrib import admin, messages
from django.contrib.admin.views.main import ORDER_VAR
from django.http import HttpResponseRedirect
from django.utils.translation import gettext as _
from unfold.views import ChangeList

from workspaces.errors import DomainError, InvalidInput, NotFound
from workspaces.lists.list_views import (
    change_list_view,
    delete_list_view,
    list_views_for,
    may_change,
    may_share,
    save_list_view,
    version_of,
)
from workspaces.lists.view_names import LONGEST_NAME
from workspaces.pages.list_addresses import VIEW_VAR, faults_of_query, saved_part
from workspaces.pages.parts import id_of

if TYPE_CHECKING:
    from django.contrib.admin import ModelAdmin
    from django.http import HttpRequest

    from workspaces.middleware import WorkspaceRequest
    from workspaces.models import SavedListView

FORM_VAR: Final = "list_view"
"""What a form above a list does: save, update, edit or delete."""
_IN_ROW: Final = 6


class ListOfViews(ChangeList):
    """A list whose address may say which saved view it was opened with."""

    def get_filters_params(self, params: Any = None) -> Any:
        """Leave out the saved view, which is no filter."""
        kept = super().get_filters_params(params)
        kept.pop(VIEW_VAR, None)
        return kept

    def get_query_string(self, new_params: Any = None, remove: Any = None) -> Any:
        """As its base. With each row, the interface asks three times for each column how the list is sorted by it."""
        if new_params and not remove and new_params.keys() == {ORDER_VAR}:
            return self._sorted_by(new_params[ORDER_VAR])
        return super().get_query_string(new_params, remove)

    @cached_property
    def _sorted_by(self) -> Callable[[str], str]:
        base = super().get_query_string
        return cache(lambda order: base({ORDER_VAR: order}))


def name_of(shown: ModelAdmin[Any]) -> str:
    """What the list is called in saved views."""
    return str(shown.opts.label_lower)


def keeps_views(shown: ModelAdmin[Any], request: HttpRequest) -> bool:
    """Whether there is anything in this list that a view could save."""
    return bool(shown.get_list_filter(request) or shown.get_search_fields(request))


def lists_for(request: HttpRequest) -> dict[str, ModelAdmin[Any]]:
    """The lists that this person may see, by name."""
    if not admin.site.has_permission(request):
        return {}
    return {
        name_of(shown): shown
        for shown in admin.site._registry.values()
        if keeps_views(shown, request) and shown.has_view_permission(request)
    }


def query_for(shown: ModelAdmin[Any], request: HttpRequest, query: str) -> str:
    """What a view of this list saves of a query.

    Raises:
        InvalidInput: the list does not know a part of it.
    """
    try:
        kept = saved_part(query)
    except ValueError as error:
        raise InvalidInput(fields={"query": [_("These are too many filters.")]}) from error
    if faults := faults_of_query(kept, shown, request):
        raise InvalidInput(fields={"query": faults})
    return kept


@dataclass(frozen=True, slots=True)
class SavedViewLink:
    """One saved view in the row."""

    view: SavedListView
    url: str
    is_open: bool


@dataclass(slots=True)
class Form:
    """A form that was refused: what was typed, and why."""

    verb: str = ""
    name: str = ""
    is_shared: bool = False
    faults: dict[str, list[str]] = field(default_factory=dict)


class SavedViews:
    """What the template shows above a list."""

    longest_name = LONGEST_NAME

    def __init__(self, request: WorkspaceRequest, shown: ModelAdmin[Any], form: Form) -> None:
        assert request.workspace is not None
        self._request, self._shown, self.form = request, shown, form
        self._query = _saved_part_of(request)
        rows = list_views_for(request.actor, request.workspace.pk)
        self._views = list(rows.filter(list=name_of(shown)))
        self.may_share = may_share(request.actor, request.workspace.pk)

    @cached_property
    def open(self) -> SavedListView | None:
        """The view that the address names; else one that saves just this address."""
        named = self._request.GET.get(VIEW_VAR)
        if named:
            return next((one for one in self._views if str(one.pk) == named), None)
        return next((one for one in self._views if one.query == self._query), None)

    @property
    def is_gone(self) -> bool:
        """Whether the address names a view that does not exist, or is not for this person."""
        return bool(self._request.GET.get(VIEW_VAR)) and self.open is None

    @property
    def is_changed(self) -> bool:
        """Whether the list shows something else than the open view saves."""
        return self.open is not None and self.open.query != self._query

    @property
    def may_change(self) -> bool:
        """Whether the person may change the open view."""
        return self.open is not None and may_change(self.open, self._request.actor)

    @property
    def is_mine(self) -> bool:
        """Whether the open view is the person's own."""
        return self.open is not None and self.open.owner_id == self._request.actor.user_id

    @property
    def seen(self) -> str:
        """Which state of the open view its forms were made of."""
        return version_of(self.open) if self.open is not None else ""

    @property
    def can_save(self) -> bool:
        """Whether there is something to save under a new name."""
        is_new = self.open is None or self.is_changed or self.form.verb == "save"
        return is_new and bool(self._query)

    @property
    def can_update(self) -> bool:
        """Whether the open view could save what the list shows now."""
        return bool(self._query) and self.is_changed and self.may_change

    @property
    def is_all(self) -> bool:
        """Whether the list shows all rows, in its own order."""
        return not self._query and self.open is None

    @property
    def all_url(self) -> str:
        """The list without any filter."""
        return self._request.path

    @property
    def open_url(self) -> str:
        """The open view as it was saved."""
        return url_of(self.open, self._request.path) if self.open is not None else ""

    @property
    def row(self) -> list[SavedViewLink]:
        """The first ones, and the open one."""
        links = self._links()
        return [one for index, one in enumerate(links) if index < _IN_ROW or one.is_open]

    @property
    def rest(self) -> list[SavedViewLink]:
        """Those for which the row has no room."""
        return [one for one in self._links()[_IN_ROW:] if not one.is_open]

    @property
    def is_shown(self) -> bool:
        """Whether there is anything to show."""
        return bool(self._views or self._query)

    def _links(self) -> list[SavedViewLink]:
        return [
            SavedViewLink(view=one, url=url_of(one, self._request.path), is_open=one is self.open)
            for one in self._views
        ]


def url_of(view: SavedListView, path: str) -> str:
    """The list as the view shows it."""
    return f"{path}?{view.query}&{urlencode({VIEW_VAR: view.pk})}"


def saved_views(
    request: WorkspaceRequest, shown: ModelAdmin[Any], form: Form | None = None
) -> SavedViews | None:
    """What to show above this list; None where nothing can be saved."""
    if request.workspace is None or not keeps_views(shown, request):
        return None
    return SavedViews(request, shown, form or Form())


def answer_form(
    request: WorkspaceRequest, shown: ModelAdmin[Any], views: SavedViews
) -> HttpResponseRedirect | Form:
    """Do what a form above the list says, and lead back to the list; or give the form with its faults."""
    given, actor = request.POST, request.actor
    verb, name = given.get(FORM_VAR, ""), given.get("name", "")
    form = Form(verb=verb, name=name, is_shared="is_shared" in given)
    assert request.workspace is not None
    try:
        if verb == "save":
            view = save_list_view(
                workspace_id=request.workspace.pk,
                actor=actor,
                of_list=name_of(shown),
                name=name,
                query=query_for(shown, request, request.GET.urlencode()),
                is_shared=form.is_shared,
            )
            message, where = _("The view “%(name)s” is saved."), url_of(view, request.path)
        elif verb == "delete":
            view = _named(given, views)
            delete_list_view(view=view, actor=actor)
            message = _("The view “%(name)s” is deleted. The list shows the same rows as before.")
            where = f"{request.path}?{_saved_part_of(request)}"
        else:
            view = _named(given, views)
            changes: dict[str, Any] = (
                {"name": name, "is_shared": form.is_shared if views.may_share else None}
                if verb == "edit"
                else {"query": query_for(shown, request, request.GET.urlencode())}
            )
            view = change_list_view(view=view, actor=actor, seen=given.get("seen", ""), **changes)
            message, where = _("The view “%(name)s” is saved."), url_of(view, request.path)
            if verb == "edit" and views.is_changed:
                query = urlencode({VIEW_VAR: view.pk})
                where = f"{request.path}?{_saved_part_of(request)}&{query}"
    except InvalidInput as error:
        form.faults = error.fields
        return form
    except DomainError as error:
        form.faults = {"form": [error.message]}
        return form
    messages.success(request, message % {"name": view.name})
    return HttpResponseRedirect(where)


def _named(given: Mapping[str, str], views: SavedViews) -> SavedListView:
    wanted = id_of(given.get("view", ""))
    found = next((one for one in views._views if one.pk == wanted), None)
    if found is None:
        raise NotFound(_("Saved view not found."))
    return found


def _saved_part_of(request: HttpRequest) -> str:
    try:
        return saved_part(request.GET.urlencode())
    except ValueError:
        return ""
