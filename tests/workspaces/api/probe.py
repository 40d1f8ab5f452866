"""A viewset that does nothing but count, mounted alone, so that the foundation can be seen at work."""

from __future__ import annotations

from typing import Any

import django_filters
from django.urls import include, path
from rest_framework import serializers
from rest_framework.response import Response
from rest_framework.routers import SimpleRouter

from config.urls import handler400, handler403, handler404, handler500
from workspaces.api import ListRows, RetrieveRow, RowFilterSet, Scopes, WorkspaceViewSet
from workspaces.errors import Conflict, InvalidInput
from workspaces.models import Membership

__all__ = ["handler400", "handler403", "handler404", "handler500", "urlpatterns"]

calls: list[dict[str, Any]] = []


class MemberOutput(serializers.ModelSerializer[Membership]):
    """Output."""

    class Meta:
        model = Membership
        fields = ("id", "role", "is_auditor")


class ProbeInput(serializers.Serializer[Any]):
    """Input."""

    text = serializers.CharField()
    failure = serializers.CharField(required=False)
    extra = serializers.JSONField(required=False)


class MemberFilters(RowFilterSet):
    """Filters."""

    role = django_filters.CharFilter()
    created_after = django_filters.IsoDateTimeFilter(field_name="created_at", lookup_expr="gt")


class ProbeViewSet(ListRows, RetrieveRow, WorkspaceViewSet):
    """Memberships, and a POST with side effects that can be counted."""

    model = Membership
    scopes = Scopes(read="servers:read", write="servers:write")
    serializer_class = MemberOutput
    filterset_class = MemberFilters
    orderings = ("-id", "role")

    def create(self, request: Any) -> Response:
        """Count; fail as asked."""
        given = self.read(ProbeInput)
        calls.append(given)
        match given.get("failure"):
            case "conflict":
                raise Conflict
            case "invalid":
                raise InvalidInput(fields={"text": ["Not that."]})
            case "crash":
                raise RuntimeError("a secret detail")
        return Response({"number": len(calls), "text": given["text"]}, status=201)


_router = SimpleRouter(use_regex_path=False)
_router.register("probes", ProbeViewSet, basename="probe")
urlpatterns = [path("api/", include(_router.urls))]
