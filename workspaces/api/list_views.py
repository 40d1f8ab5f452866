"""Saved views of the admin's lists over REST."""

from __future__ import annotations

from typing import Any, ClassVar

import django_filters
from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from workspaces.api import ListRows, RetrieveRow, RowFilterSet, Scopes, WorkspaceViewSet
from workspaces.api.filtering import TruthFilter
from workspaces.errors import InvalidInput
from workspaces.lists.list_views import (
    change_list_view,
    delete_list_view,
    list_views_for,
    save_list_view,
)
from workspaces.lists.view_names import LONGEST_NAME, LONGEST_QUERY
from workspaces.models import SavedListView
from workspaces.pages.list_view_parts import lists_for, query_for
from workspaces.scoping import WorkspaceQuerySet

_LIST = "App and model, as in the list's address with a dot between them: `mcp_servers.mcptool`."
_QUERY = "Search, filters and order, as the list's address has them after the question mark."


class ListViewChanges(serializers.Serializer[Any]):
    """What is left out stays as it is."""

    name = serializers.CharField(max_length=LONGEST_NAME, required=False)
    query = serializers.CharField(max_length=LONGEST_QUERY, required=False, help_text=_QUERY)
    is_shared = serializers.BooleanField(
        required=False, help_text="With all administrators who see this list."
    )


class ListViewInput(serializers.Serializer[Any]):
    list = serializers.CharField(max_length=100, help_text=_LIST)
    name = serializers.CharField(max_length=LONGEST_NAME)
    query = serializers.CharField(max_length=LONGEST_QUERY, help_text=_QUERY)
    is_shared = serializers.BooleanField(
        required=False, default=False, help_text="With all administrators who see this list."
    )


class ListViewOutput(serializers.ModelSerializer[SavedListView]):
    """Filters of a list of the admin under a name."""

    owner = serializers.EmailField(
        source="owner.email",
        default=None,
        allow_null=True,
        read_only=True,
        help_text="Null if the person who saved a shared view has left.",
    )

    class Meta:
        model = SavedListView
        fields = (
            *("id", "list", "name", "query", "is_shared", "owner"),
            *("created_at", "updated_at"),
        )
        read_only_fields = fields


class ListViewFilters(RowFilterSet):
    list = django_filters.CharFilter()
    is_shared = TruthFilter()


class ListViewViewSet(ListRows, RetrieveRow, WorkspaceViewSet):
    """The caller's saved views of the admin's lists, and those that are shared. Only of lists that the caller may see."""

    model = SavedListView
    scopes = Scopes(read="chat", write="chat")
    serializer_class = ListViewOutput
    filterset_class = ListViewFilters
    orderings: ClassVar[Any] = ("-id", "name")

    def rows(self) -> WorkspaceQuerySet[Any]:
        """Those that the caller may see."""
        lists = lists_for(self._http_request)
        return list_views_for(self.actor, self.workspace.pk).filter(list__in=lists)

    @extend_schema(request=ListViewInput, responses={201: ListViewOutput})
    def create(self, request: Request) -> Response:
        """Save filters of a list under a name. A part that the list does not know is refused."""
        given = self.read(ListViewInput)
        of_list = given.pop("list")
        query = self._query(of_list, given.pop("query"))
        view = save_list_view(
            workspace_id=self.workspace.pk, actor=self.actor, of_list=of_list, query=query, **given
        )
        return self.answer(view, status=201)

    @extend_schema(request=ListViewChanges, responses=ListViewOutput)
    def partial_update(self, request: Request, pk: str) -> Response:
        """Change one of your own, or a shared one if you may share."""
        view: SavedListView = self.get_object()
        given = self.read(ListViewChanges, partial=True)
        if "query" in given:
            given["query"] = self._query(view.list, given["query"])
        return self.answer(change_list_view(view=view, actor=self.actor, **given))

    @extend_schema(responses={204: None})
    def destroy(self, request: Request, pk: str) -> Response:
        """Delete one of your own, or a shared one if you may share."""
        delete_list_view(view=self.get_object(), actor=self.actor)
        return Response(status=204)

    def _query(self, of_list: str, query: str) -> str:
        shown = lists_for(self._http_request).get(of_list)
        if shown is None:
            raise InvalidInput(fields={"list": [_("There is no such list that you may see.")]})
        return query_for(shown, self._http_request, query)


routes = [("list-views", ListViewViewSet)]
