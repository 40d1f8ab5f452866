"""Entries for programs, read with a token of scope ``audit:read``; and what the log holds of the caller."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import django_filters
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import serializers
from rest_framework.response import Response

from audit import reports
from audit.actions import Action, Outcome, RefusedBy
from audit.api.filtering import EntryFilters, TextFilter
from audit.models import AuditEntry
from audit.views import record_opened
from workspaces.api import ListRows, RetrieveRow, RowFilterSet, Scopes, WorkspaceViewSet
from workspaces.api.filtering import MomentFilter

if TYPE_CHECKING:
    from rest_framework.request import Request

    from workspaces.scoping import WorkspaceQuerySet


class EntryOutput(serializers.ModelSerializer[AuditEntry]):
    """An entry without bodies. An outcome that does not apply is an empty text."""

    outcome = serializers.ChoiceField(
        [one.value for one in Outcome], allow_blank=True, read_only=True
    )
    refused_by = serializers.ChoiceField(
        [one.value for one in RefusedBy], allow_blank=True, read_only=True
    )
    annotations = serializers.DictField(allow_null=True, read_only=True)
    approval = serializers.DictField(allow_null=True, read_only=True)
    details = serializers.DictField(read_only=True)

    class Meta:
        model = AuditEntry
        fields = (
            *("id", "created_at", "action", "actor_kind", "actor_id", "actor_label", "actor_role"),
            *("token_id", "source", "ip_address", "request_id", "trace_id", "call_id"),
            *("bud_id", "bud_name", "conversation_id", "turn_id", "model"),
            *("server_id", "server_name", "transport", "protocol_revision"),
            *("tool_id", "tool_name", "definition_hash", "annotations"),
            *("arguments_size", "arguments_commitment", "result_size", "result_commitment"),
            *("outcome", "refused_by", "rule", "duration_ms", "queue_ms", "approval", "details"),
        )
        read_only_fields = fields


_SHOWN = EntryOutput.Meta.fields


class EntryDetailOutput(EntryOutput):
    """An entry with its bodies, which are null for those who may not read them."""

    arguments_preview = serializers.CharField(allow_null=True, read_only=True)
    result_preview = serializers.CharField(allow_null=True, read_only=True)

    class Meta:
        model = AuditEntry
        fields = (*_SHOWN, "arguments_preview", "result_preview")
        read_only_fields = fields

    def to_representation(self, instance: AuditEntry) -> dict[str, Any]:
        """Leave the bodies out unless the view says otherwise."""
        shown = super().to_representation(instance)
        if not self.context.get("with_bodies"):
            shown["arguments_preview"] = shown["result_preview"] = None
        return shown


@extend_schema_view(
    list=extend_schema(summary="List audit entries", tags=["audit"]),
    retrieve=extend_schema(
        summary="Read one audit entry", tags=["audit"], responses=EntryDetailOutput
    ),
)
class EntryViewSet(ListRows, RetrieveRow, WorkspaceViewSet):
    """Everything that happened in the workspace. Auditors see bodies; opening one is itself recorded."""

    model = AuditEntry  # type: ignore[assignment]  # holds values, not a foreign key
    scopes = Scopes(read="audit:read", write="audit:read")
    serializer_class = EntryOutput
    filterset_class = EntryFilters
    orderings = ("-id",)

    def rows(self) -> WorkspaceQuerySet[Any]:
        """The entries, for those who may see the log."""
        return reports.entries_of(self.workspace.pk, actor=self.actor)

    def retrieve(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Give one entry; its bodies only to those who may read them."""
        entry: AuditEntry = self.get_object()
        with_bodies = reports.may_see_bodies(entry, actor=self.actor)
        has_bodies = entry.arguments_size is not None or entry.result_size is not None
        if with_bodies and has_bodies and entry.actor_id != self.actor.user_id:
            record_opened(entry, self._http_request)
        context = {**self.get_serializer_context(), "with_bodies": with_bodies}
        return Response(EntryDetailOutput(entry, context=context).data)


class ActivityFilters(RowFilterSet):
    action = django_filters.ChoiceFilter(choices=[(one.value, one.value) for one in Action])
    tool = TextFilter(field_name="tool_name", max_length=256)
    since = MomentFilter(field_name="created_at", lookup_expr="gte")
    until = MomentFilter(field_name="created_at", lookup_expr="lt")


@extend_schema_view(
    list=extend_schema(summary="List your own audit entries", tags=["audit"]),
    retrieve=extend_schema(
        summary="Read one of your own audit entries", tags=["audit"], responses=EntryDetailOutput
    ),
)
class ActivityViewSet(ListRows, WorkspaceViewSet):
    """What the log holds of the caller, with what their own calls sent and received."""

    model = AuditEntry  # type: ignore[assignment]  # holds values, not a foreign key
    scopes = Scopes(read="chat", write="chat")
    serializer_class = EntryOutput
    filterset_class = ActivityFilters
    orderings = ("-id",)

    def rows(self) -> WorkspaceQuerySet[Any]:
        """The caller's own."""
        rows = AuditEntry.objects.for_workspace(self.workspace)
        return rows.filter(actor_id=self.person.pk)

    def retrieve(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Give one with its bodies."""
        context = {**self.get_serializer_context(), "with_bodies": True}
        return Response(EntryDetailOutput(self.get_object(), context=context).data)
