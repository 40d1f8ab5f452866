"""The log for programs, read with a token of scope ``audit:read``; what people keep of it and its settings are beside their services."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, cast
from uuid import UUID

import django_filters
from django import forms
from django.core.validators import MaxValueValidator
from django.utils import timezone
from django.utils.translation import gettext as _
from drf_spectacular.helpers import forced_singular_serializer
from drf_spectacular.utils import (
    OpenApiParameter,
    extend_schema,
    extend_schema_field,
    extend_schema_view,
)
from rest_framework import serializers
from rest_framework.response import Response

from audit import reports
from audit.actions import Action, Outcome, RefusedBy
from audit.alerts.api import AlertRuleViewSet
from audit.alerts.bell_api import routes as bell_routes
from audit.filter_language import LONGEST
from audit.filters import (
    CHOICES,
    IDS,
    MAX_LENGTH,
    MOST_NUMBER,
    NUMBERS,
    RANGES,
    TEXTS,
    EntryFilter,
    read_filter,
)
from audit.models import AuditEntry
from audit.reports import CallState
from audit.reports.report import BY, SHARES, AuditReport, report_of
from audit.retention.api import AuditSettingsViewSet, ErasureViewSet, LegalHoldViewSet
from audit.reviews.api import (
    SavedViewViewSet,
    ScheduleViewSet,
    SentFileViewSet,
    SignOffViewSet,
)
from audit.rollups.pieces import UNITS
from audit.streams.api import AuditStreamViewSet
from audit.views import bodies_for, record_opened
from audit.views.api import AuditFileViewSet
from workspaces.api import ListRows, RetrieveRow, RowFilterSet, Scopes, WorkspaceViewSet
from workspaces.api.filtering import MomentFilter, one_of
from workspaces.errors import InvalidInput

if TYPE_CHECKING:
    from django.db.models import QuerySet
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


class TextFilter(django_filters.CharFilter):
    """The whole text, or with a star at the end how it begins."""

    def filter(self, qs: QuerySet[Any], value: str) -> QuerySet[Any]:
        """Narrow the entries."""
        if not value.endswith("*"):
            return cast("QuerySet[Any]", super().filter(qs, value))
        return qs.filter(**{f"{self.field_name}__startswith": value.rstrip("*")})


class AddressFilter(django_filters.CharFilter):
    """An IP address."""

    field_class = forms.GenericIPAddressField


class TypedField(forms.CharField):
    """Filters as people type them; gives what they say."""

    def clean(self, value: Any) -> Any:
        """Read them.

        Raises:
            ValidationError: with everything that is wrong.
        """
        text = super().clean(value)
        if not text:
            return None
        wanted = read_filter({"q": text, "range": "all"}, now=timezone.now())
        errors = list(wanted.errors)
        if wanted.sort != "time":
            errors.append("The list is always in the order of time.")
        if errors:
            raise forms.ValidationError(errors)
        return wanted


class TypedFilter(django_filters.Filter):
    """The search field of the log's page."""

    field_class = TypedField

    def filter(self, qs: QuerySet[Any], value: EntryFilter | None) -> QuerySet[Any]:
        """Narrow the entries; words only for those who may read bodies."""
        if value is None:
            return qs
        actor = cast("Any", self.parent).request.actor
        return reports.matching(cast("WorkspaceQuerySet[Any]", qs), value, actor=actor)


class WholeNumberFilter(django_filters.NumberFilter):
    """A number that the database can compare with."""

    field_class = forms.IntegerField

    def get_max_validator(self) -> MaxValueValidator:
        """The largest one."""
        return MaxValueValidator(MOST_NUMBER)


class _CommonFilters(RowFilterSet):
    """What a list is narrowed by most."""

    action = django_filters.ChoiceFilter(choices=[(one.value, one.value) for one in Action])
    outcome = django_filters.ChoiceFilter(choices=[(one.value, one.value) for one in Outcome])
    server = TextFilter(field_name="server_name", max_length=200)
    tool = TextFilter(field_name="tool_name", max_length=256)
    actor = django_filters.UUIDFilter(field_name="actor_id")
    q = TypedFilter(
        label="Filters as they are typed on the page: `tool:mail.send outcome:refused since:7d words`.",
        max_length=LONGEST,
    )
    since = MomentFilter(field_name="created_at", lookup_expr="gte")
    until = MomentFilter(field_name="created_at", lookup_expr="lt")


def _filters_of_the_page() -> dict[str, django_filters.Filter]:
    """What the log's page has behind "More filters", under the same names."""
    found: dict[str, django_filters.Filter] = {"ip": AddressFilter(field_name="ip_address")}
    for name, (label, column, known) in CHOICES.items():
        choices = [(value, value) for value in known]
        found[name] = django_filters.ChoiceFilter(column, label=label, choices=choices)
    for name, (label, column) in TEXTS.items():
        found[name] = TextFilter(column, label=label, max_length=MAX_LENGTH)
    for name, (label, column) in IDS.items():
        found[name] = django_filters.UUIDFilter(column, label=label)
    for name, (label, column) in NUMBERS.items():
        for end, lookup in (("min", "gte"), ("max", "lte")):
            found[f"{name}_{end}"] = WholeNumberFilter(
                column, lookup, label=f"{label}, {end}", min_value=0
            )
    return found


EntryFilters = type("EntryFilters", (_CommonFilters,), _filters_of_the_page())
"""What a list may be narrowed by."""


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

    def get_queryset(self) -> WorkspaceQuerySet[Any]:
        """The entries, for those who may see the log."""
        if getattr(self, "swagger_fake_view", False):
            return cast("WorkspaceQuerySet[Any]", AuditEntry.objects.across_workspaces().none())
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

    def get_queryset(self) -> WorkspaceQuerySet[Any]:
        """The caller's own."""
        if getattr(self, "swagger_fake_view", False):
            return cast("WorkspaceQuerySet[Any]", AuditEntry.objects.across_workspaces().none())
        rows = AuditEntry.objects.for_workspace(self.workspace)
        return rows.filter(actor_id=self.person.pk)

    def retrieve(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Give one with its bodies."""
        context = {**self.get_serializer_context(), "with_bodies": True}
        return Response(EntryDetailOutput(self.get_object(), context=context).data)


class CallOutput(serializers.Serializer[Any]):
    """A call with all its entries. Bodies are null for those who may not read them."""

    id = serializers.UUIDField()
    state = serializers.ChoiceField([one.value for one in CallState])
    outcome = serializers.ChoiceField([one.value for one in Outcome], allow_blank=True)
    refused_by = serializers.ChoiceField([one.value for one in RefusedBy], allow_blank=True)
    reason = serializers.CharField(allow_blank=True)
    duration_ms = serializers.IntegerField(allow_null=True)
    arguments = serializers.CharField(allow_null=True)
    result = serializers.CharField(allow_null=True)
    entries = EntryOutput(many=True)


@extend_schema_view(
    retrieve=extend_schema(
        summary="Read one call with its entries", tags=["audit"], responses=CallOutput
    )
)
class CallViewSet(WorkspaceViewSet):
    """Calls as the log knows them. Auditors see bodies; opening them is itself recorded."""

    model = AuditEntry  # type: ignore[assignment]  # holds values, not a foreign key
    scopes = Scopes(read="audit:read", write="audit:read")
    serializer_class = CallOutput

    def retrieve(self, request: Request, pk: UUID) -> Response:
        """Give one call from its request to its end."""
        row = reports.call_of(self.workspace.pk, pk, actor=self.actor, now=timezone.now())
        sent, received, _ = bodies_for(row, self.actor)
        if (sent or received) and row.about.actor_id != self.actor.user_id:
            record_opened(row.about, self._http_request)
        end = row.end
        shown = {
            "id": pk,
            "state": row.state,
            "outcome": end.outcome if end else "",
            "refused_by": end.refused_by if end else "",
            "reason": row.reason,
            "duration_ms": row.duration_ms,
            "arguments": sent.text if sent else None,
            "result": received.text if received else None,
            "entries": row.entries,
        }
        return Response(CallOutput(shown).data)


class FigureOutput(serializers.Serializer[Any]):
    """A number, and what it was in the period before; null where there is nothing to count."""

    name = serializers.CharField()
    now = serializers.IntegerField(allow_null=True)
    before = serializers.IntegerField(allow_null=True)


class LineOutput(serializers.Serializer[Any]):
    """One series, with a value for each piece of time; null: nothing was measured."""

    name = serializers.CharField(source="label")
    values = serializers.ListField(child=serializers.IntegerField(allow_null=True))


class LatencyOutput(serializers.Serializer[Any]):
    """How long the calls of a tool took."""

    server = serializers.CharField(allow_blank=True)
    tool = serializers.CharField()
    calls = serializers.IntegerField()
    failed = serializers.IntegerField()
    p50 = serializers.IntegerField(allow_null=True, help_text="Milliseconds, as the others.")
    p95 = serializers.IntegerField(allow_null=True)
    p99 = serializers.IntegerField(allow_null=True)


class RefusalsOutput(serializers.Serializer[Any]):
    """What one layer refused by one rule."""

    layer = serializers.CharField()
    rule = serializers.CharField(allow_blank=True)
    number = serializers.IntegerField()
    before = serializers.IntegerField()


class ReportOutput(serializers.Serializer[Any]):
    """The numbers of the reports page. Times are whole hours in UTC; whole minutes, if the unit is a minute."""

    since = serializers.DateTimeField(source="span.since")
    until = serializers.DateTimeField(source="span.until")
    pieces = serializers.ListField(
        child=serializers.DateTimeField(), help_text="Where each piece of a series begins."
    )
    unit = serializers.ChoiceField(
        UNITS, source="span.unit", help_text="Of the pieces, which begin in UTC; weeks on Mondays."
    )
    figures = serializers.SerializerMethodField()
    over_time = LineOutput(many=True, help_text="Calls that ended, by what was asked for.")
    latency = LineOutput(many=True, help_text="Milliseconds: p50, p95 and p99 of all calls.")
    tools = serializers.SerializerMethodField()
    refusals = RefusalsOutput(many=True)
    missing = serializers.IntegerField(
        help_text="So many of the newest entries are not counted yet, and these numbers may lack them."
    )

    @extend_schema_field(FigureOutput(many=True))
    def get_figures(self, report: AuditReport) -> list[dict[str, Any]]:
        return [
            {"name": name, "now": figure.now, "before": figure.before}
            for name, figure in report.figures.items()
        ]

    @extend_schema_field(LatencyOutput(many=True))
    def get_tools(self, report: AuditReport) -> list[dict[str, Any]]:
        return [
            {
                **{name: getattr(row, name) for name in ("server", "tool", "calls", "failed")},
                **dict(zip((name for name, _ in SHARES), row.shares, strict=True)),
            }
            for row in report.tools
        ]


_TIMES = [name for name in RANGES if name != "custom"]


class ReportViewSet(WorkspaceViewSet):
    """Calls, outcomes, latencies and refusals of a time, each with the period before."""

    model = AuditEntry  # type: ignore[assignment]  # holds values, not a foreign key
    scopes = Scopes(read="audit:read", write="audit:read")
    serializer_class = ReportOutput
    pagination_class = None  # type: ignore[assignment]  # one report
    parameters: ClassVar[Any] = {"list": ("q", "range", "by")}

    @extend_schema(
        summary="Read a report",
        tags=["audit"],
        responses=forced_singular_serializer(ReportOutput),  # type: ignore[no-untyped-call]  # has no types
        filters=False,
        operation_id="audit_reports_retrieve",
        parameters=[
            OpenApiParameter("q", str, description="Filters as they are typed on the page."),
            OpenApiParameter(
                "range", str, enum=_TIMES, description="7d if it is absent; else use `since:` in q."
            ),
            OpenApiParameter("by", str, enum=list(BY), description="What the series are of."),
        ],
    )
    def list(self, request: Request) -> Response:
        """Give the numbers of the reports page. Those of a filter are counted from entries."""
        asked = request.query_params
        by, chosen = asked.get("by", "outcome"), asked.get("range", "7d")
        faults: dict[str, Sequence[str]] = {
            name: [one_of(known)]
            for name, value, known in (("by", by, list(BY)), ("range", chosen, _TIMES))
            if value not in known
        }
        now = timezone.now()
        # A wrong one is a fault already; the filter would tell of it again.
        time = {} if "range" in faults else {"range": chosen}
        wanted = read_filter({"q": asked.get("q", ""), **time}, now=now)
        errors = [*wanted.errors, *([_("A report has no order.")] if wanted.sort != "time" else [])]
        if errors:
            faults["q"] = errors
        if faults:
            raise InvalidInput(fields=faults)
        rows = reports.entries_of(self.workspace.pk, actor=self.actor)
        narrowed = reports.matching(rows, replace(wanted, since=None, until=None), actor=self.actor)
        report = report_of(self.workspace.pk, narrowed, wanted, by=by, now=now)
        return Response(ReportOutput(report).data)


routes: list[tuple[str, type[WorkspaceViewSet]]] = [
    ("audit-entries", EntryViewSet),
    ("audit-calls", CallViewSet),
    ("activity", ActivityViewSet),
    ("audit-reports", ReportViewSet),
    ("audit-files", AuditFileViewSet),
    ("alert-rules", AlertRuleViewSet),
    *bell_routes,
    ("audit-streams", AuditStreamViewSet),
    ("audit-views", SavedViewViewSet),
    ("audit-schedules", ScheduleViewSet),
    ("audit-sent-files", SentFileViewSet),
    ("audit-sign-offs", SignOffViewSet),
    ("audit-settings", AuditSettingsViewSet),
    ("legal-holds", LegalHoldViewSet),
    ("audit-erasures", ErasureViewSet),
]
