"""The trace over REST: outlines for who looks after servers, bodies for who may read them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import django_filters
from django.db.models import Q
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.response import Response

from mcp_servers.models import McpServer, TraceMessage
from mcp_servers.registry.trace import reading
from workspaces.api import ListRows, RetrieveRow, RowFilterSet, Scopes, WorkspaceViewSet
from workspaces.api.filtering import TruthFilter
from workspaces.errors import PermissionDenied
from workspaces.roles import Permission, has_permission

if TYPE_CHECKING:
    from rest_framework.request import Request

    from workspaces.scoping import WorkspaceQuerySet


class TraceOutput(serializers.ModelSerializer[TraceMessage]):
    """One message; the outline has no values of people's calls."""

    server_id = serializers.UUIDField(read_only=True)
    outline = serializers.SerializerMethodField()

    class Meta:
        model = TraceMessage
        fields = (
            *("id", "server_id", "at", "connection", "direction", "kind", "method", "rpc_id"),
            *("call_id", "text", "size", "duration_ms", "outline"),
        )
        read_only_fields = fields

    @extend_schema_field({"description": "Any JSON; null for an event."})
    def get_outline(self, message: TraceMessage) -> Any:
        """The message without people's values."""
        return message.outline


class TraceBodyOutput(serializers.Serializer[Any]):
    """The whole message, with secrets masked."""

    body = serializers.SerializerMethodField()

    @extend_schema_field({"description": "Any JSON; null for an event."})
    def get_body(self, shown: dict[str, Any]) -> Any:
        """The message."""
        return shown["body"]


class TraceFilters(RowFilterSet):
    """What a list of messages may be narrowed by."""

    server = django_filters.UUIDFilter(field_name="server_id")
    direction = django_filters.ChoiceFilter(choices=[(one, one) for one in reading.DIRECTIONS])
    kind = django_filters.CharFilter(max_length=15)
    method = django_filters.CharFilter(max_length=100)
    rpc_id = django_filters.CharFilter(max_length=100)
    call_id = django_filters.UUIDFilter()
    checks = TruthFilter(
        method="with_checks", help_text="Show regular health checks that went well, too."
    )

    def with_checks(self, rows: Any, name: str, value: bool) -> Any:
        """Narrow nothing: without it they are hidden, see filter_queryset()."""
        return rows

    def filter_queryset(self, queryset: Any) -> Any:
        """Hide regular checks unless they are asked for."""
        rows = super().filter_queryset(queryset)
        return rows if self.form.cleaned_data.get("checks") else rows.filter(is_check=False)


class TraceViewSet(ListRows, RetrieveRow, WorkspaceViewSet):
    """Messages of the connections to the workspace's servers."""

    model = TraceMessage
    scopes = Scopes(read="servers:read", write="servers:read")
    serializer_class = TraceOutput
    filterset_class = TraceFilters
    orderings: ClassVar[Any] = ("-id", "id")

    def rows(self) -> WorkspaceQuerySet[Any]:
        """Of the workspace's servers for who looks after them; of one's own for everybody."""
        rows = super().rows().select_related("server")
        may_see_all = any(
            has_permission(self.actor, permission, workspace_id=self.workspace.pk)
            for permission in (Permission.MANAGE_SERVERS, Permission.VIEW_AUDIT_BODIES)
        )
        own = Q(server__owner=self.person)
        if may_see_all:
            return rows.filter(own | Q(server__owner__isnull=True))
        if not McpServer.objects.for_workspace(self.workspace).filter(owner=self.person).exists():
            raise PermissionDenied
        return rows.filter(own)

    @extend_schema(request=None, responses=TraceBodyOutput)
    @action(detail=True, methods=["post"])
    def body(self, request: Request, pk: str) -> Response:
        """Read the whole message; somebody else's only as an auditor, and that is an entry of the log."""
        message = self.get_object()
        shown = {"body": reading.open_body(message, actor=self.actor)}
        return Response(TraceBodyOutput(shown).data)
