"""Health checks over REST: how the servers answered."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import django_filters
from django.db.models import Q
from rest_framework import serializers

from mcp_servers.models import HealthCheck
from workspaces.api import ListRows, RowFilterSet, Scopes, WorkspaceViewSet
from workspaces.api.filtering import MomentFilter, TruthFilter
from workspaces.roles import Permission, has_permission

if TYPE_CHECKING:
    from workspaces.scoping import WorkspaceQuerySet


class HealthCheckOutput(serializers.ModelSerializer[HealthCheck]):
    """One look at whether a server answers."""

    server_id = serializers.UUIDField(read_only=True)
    error = serializers.SerializerMethodField(help_text="Why it did not answer; empty: it did.")

    class Meta:
        model = HealthCheck
        fields = ("id", "server_id", "checked_at", "is_ok", "latency_ms", "error")
        read_only_fields = fields

    def get_error(self, check: HealthCheck) -> str:
        """The reason in plain words."""
        return check.error


class HealthCheckFilters(RowFilterSet):
    """What a list of checks may be narrowed by."""

    server = django_filters.UUIDFilter(field_name="server_id")
    is_ok = TruthFilter()
    since = MomentFilter(field_name="checked_at", lookup_expr="gte")
    until = MomentFilter(field_name="checked_at", lookup_expr="lt")


class HealthCheckViewSet(ListRows, WorkspaceViewSet):
    """How servers answered: the caller's own, and for those who manage servers also the workspace's."""

    model = HealthCheck
    scopes = Scopes(read="servers:read", write="servers:read")
    serializer_class = HealthCheckOutput
    filterset_class = HealthCheckFilters
    orderings: ClassVar[Any] = ("-checked_at", "-id")

    def rows(self) -> WorkspaceQuerySet[Any]:
        """Those of servers that the caller looks after."""
        rows = super().rows()
        manages = has_permission(
            self.actor, Permission.MANAGE_SERVERS, workspace_id=self.workspace.pk
        )
        own = Q(server__owner=self.person)
        return rows.filter(own | Q(server__owner__isnull=True) if manages else own)
