"""Alerts and the bell over REST."""

from __future__ import annotations

from typing import Any, ClassVar

import django_filters
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from audit.alerts import notices
from audit.alerts.filtering import log_path_of
from audit.models import Alert, Notice
from workspaces.api import ListRows, RowFilterSet, Scopes, WorkspaceViewSet
from workspaces.api.filtering import TruthFilter
from workspaces.delivery.mails import public_url
from workspaces.roles import Permission, require
from workspaces.scoping import WorkspaceQuerySet


class AlertOutput(serializers.ModelSerializer[Alert]):
    """One time that a rule's threshold was crossed, from then until it was no longer."""

    rule = serializers.UUIDField(source="rule_id", read_only=True)
    rule_name = serializers.CharField(source="rule.name", read_only=True)
    log_url = serializers.SerializerMethodField(help_text="The log, with what it is about.")

    class Meta:
        model = Alert
        fields = (
            "id",
            "rule",
            "rule_name",
            "started_at",
            "ended_at",
            "value",
            "peak",
            "told_at",
            "log_url",
        )
        read_only_fields = fields

    def get_log_url(self, alert: Alert) -> str:
        """The page of the log."""
        return public_url(log_path_of(alert, alert.rule))


class AlertFilters(RowFilterSet):
    rule = django_filters.UUIDFilter(field_name="rule_id")
    is_open = TruthFilter(field_name="ended_at", lookup_expr="isnull")


class AlertViewSet(ListRows, WorkspaceViewSet):
    """What alert rules found, for those who see the log."""

    model = Alert
    scopes = Scopes(read="audit:read", write="audit:read")
    serializer_class = AlertOutput
    filterset_class = AlertFilters
    orderings: ClassVar[Any] = ("-started_at",)

    def rows(self) -> WorkspaceQuerySet[Any]:
        """Those of the workspace."""
        require(self.actor, Permission.VIEW_AUDIT, workspace_id=self.workspace.pk)
        return super().rows().select_related("rule__workspace")


class NoticeOutput(serializers.ModelSerializer[Notice]):
    """A line in the caller's bell."""

    class Meta:
        model = Notice
        fields = ("id", "kind", "title", "text", "url", "created_at", "read_at")
        read_only_fields = fields


class NoticeFilters(RowFilterSet):
    is_read = TruthFilter(field_name="read_at", lookup_expr="isnull", exclude=True)


class NoticeReadInput(serializers.Serializer[Any]):
    notice = serializers.UUIDField(required=False, help_text="Left out: all of them.")


class UnreadOutput(serializers.Serializer[Any]):
    unread = serializers.IntegerField()


class NoticeViewSet(ListRows, WorkspaceViewSet):
    """The caller's own notices in this workspace."""

    model = Notice
    scopes = Scopes(read="chat", write="chat")
    serializer_class = NoticeOutput
    filterset_class = NoticeFilters

    def rows(self) -> WorkspaceQuerySet[Any]:
        """The caller's own."""
        return notices.notices_of(self.workspace, self.person)

    @extend_schema(request=NoticeReadInput, responses=UnreadOutput)
    @action(detail=False, methods=["post"], url_path="read", url_name="read")
    def mark_read(self, request: Request) -> Response:
        """Say that they are read, or that one is; gives how many are left."""
        only = self.read(NoticeReadInput).get("notice")
        if only is not None:
            self.get_queryset().fetch(only)
        notices.mark_read(self.workspace, self.person, only=only)
        left = notices.unread(self.workspace, self.person)
        return Response(UnreadOutput({"unread": left}).data)


routes = [("alerts", AlertViewSet), ("notices", NoticeViewSet)]
