"""What administrators see of chats that others have, over REST: never what they say."""

from __future__ import annotations

from typing import Any, ClassVar

import django_filters
from django.db.models import Count
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from chat.models import ShareAudience, SharedChat, Turn
from chat.services.permissions import tool_title, why_lapsed
from chat.services.sharing import stop_sharing
from chat.values import Rating
from mcp_servers.client.hidden_text import show_hidden
from mcp_servers.models import ToolPermission
from mcp_servers.registry.consent.permissions import given_by_members, revoke_permission
from workspaces.api import ListRows, RetrieveRow, RowFilterSet, Scopes, WorkspaceViewSet
from workspaces.roles import Permission, require
from workspaces.scoping import WorkspaceQuerySet

_AUDIENCES = [one.value for one in ShareAudience]
_RATINGS = [one.value for one in Rating if one]


class MemberShareOutput(serializers.ModelSerializer[SharedChat]):
    """A chat that a member shares."""

    owner = serializers.EmailField(source="owner.email", read_only=True)
    audience = serializers.ChoiceField(_AUDIENCES, read_only=True)
    people = serializers.IntegerField(
        read_only=True, help_text="That were chosen. They count where the audience is `people`."
    )

    class Meta:
        model = SharedChat
        fields = (
            *("id", "owner", "audience", "people", "with_files", "with_calls"),
            *("created_at", "expires_at"),
        )
        read_only_fields = fields


class MemberShareFilters(RowFilterSet):
    audience = django_filters.ChoiceFilter(choices=[(one, one) for one in _AUDIENCES])


class MemberShareViewSet(ListRows, RetrieveRow, WorkspaceViewSet):
    """What members share, and with whom, for those who manage members. They can stop it."""

    model = SharedChat
    scopes = Scopes(read="members:write", write="members:write")
    serializer_class = MemberShareOutput
    filterset_class = MemberShareFilters

    def rows(self) -> WorkspaceQuerySet[Any]:
        """Those of the workspace, of chats that are there."""
        require(self.actor, Permission.MANAGE_MEMBERS, workspace_id=self.workspace.pk)
        rows = SharedChat.objects.for_workspace(self.workspace).filter(
            conversation__deleted_at=None
        )
        return rows.select_related("owner").annotate(people=Count("readers"))

    @extend_schema(responses={204: None})
    def destroy(self, request: Request, pk: str) -> Response:
        """Stop sharing the chat."""
        stop_sharing(shared=self.get_object(), actor=self.actor)
        return Response(status=204)


class MemberToolPermissionOutput(serializers.ModelSerializer[ToolPermission]):
    """A tool that runs for a member without asking them."""

    member = serializers.EmailField(source="user.email", read_only=True)
    server = serializers.SerializerMethodField()
    tool = serializers.SerializerMethodField()
    is_in_one_chat = serializers.SerializerMethodField()
    is_current = serializers.SerializerMethodField(
        help_text="False: it has lapsed, and the tool asks."
    )

    class Meta:
        model = ToolPermission
        fields = ("id", "member", "server", "tool", "is_in_one_chat", "is_current", "created_at")
        read_only_fields = fields

    def get_server(self, row: ToolPermission) -> str:
        return row.tool.server.name

    def get_tool(self, row: ToolPermission) -> str:
        return tool_title(row) or show_hidden(row.tool.name)

    def get_is_in_one_chat(self, row: ToolPermission) -> bool:
        return row.conversation_id is not None

    def get_is_current(self, row: ToolPermission) -> bool:
        return not why_lapsed(row)


class MemberToolPermissionViewSet(ListRows, RetrieveRow, WorkspaceViewSet):
    """Which tools members always allow, for those who manage members. They can revoke it."""

    model = ToolPermission
    scopes = Scopes(read="members:write", write="members:write")
    serializer_class = MemberToolPermissionOutput

    def rows(self) -> WorkspaceQuerySet[Any]:
        """Those of the workspace."""
        require(self.actor, Permission.MANAGE_MEMBERS, workspace_id=self.workspace.pk)
        return given_by_members(self.workspace.pk)

    @extend_schema(responses={204: None})
    def destroy(self, request: Request, pk: str) -> Response:
        """Revoke it: the tool asks the member again."""
        revoke_permission(permission=self.get_object(), actor=self.actor)
        return Response(status=204)


class RatingOutput(serializers.ModelSerializer[Turn]):
    """What somebody thinks of an answer. What was asked and answered stays theirs."""

    rating = serializers.ChoiceField(_RATINGS, read_only=True)
    bud = serializers.CharField(source="answering_bud.name", read_only=True)
    asked_by = serializers.EmailField(source="asked_by.email", read_only=True)

    class Meta:
        model = Turn
        fields = ("id", "rated_at", "rating", "rating_reason", "bud", "model", "asked_by")
        read_only_fields = fields


class RatingFilters(RowFilterSet):
    rating = django_filters.ChoiceFilter(choices=[(one, one) for one in _RATINGS])
    model = django_filters.CharFilter()


class RatingViewSet(ListRows, WorkspaceViewSet):
    """What people think of answers, for those who manage buds."""

    model = Turn
    scopes = Scopes(read="buds:write", write="buds:write")
    serializer_class = RatingOutput
    filterset_class = RatingFilters
    orderings: ClassVar[Any] = ("-id",)

    def rows(self) -> WorkspaceQuerySet[Any]:
        """Rated ones of the workspace."""
        require(self.actor, Permission.MANAGE_BUDS, workspace_id=self.workspace.pk)
        rows = Turn.objects.for_workspace(self.workspace).exclude(rating="")
        return rows.select_related("conversation__bud", "mentioned_bud", "asked_by")
