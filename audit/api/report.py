"""The numbers of the reports page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

from django.utils import timezone
from django.utils.translation import gettext as _
from drf_spectacular.utils import OpenApiParameter, extend_schema_field
from rest_framework import serializers
from rest_framework.response import Response

from audit import reports
from audit.filters import RANGES, read_filter
from audit.models import AuditEntry
from audit.reports.report import BY, SHARES, AuditReport, report_of
from audit.rollups.pieces import UNITS
from workspaces.api import Scopes, WorkspaceViewSet, one_document
from workspaces.api.filtering import one_of
from workspaces.errors import InvalidInput

if TYPE_CHECKING:
    from rest_framework.request import Request


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
    pagination_class = None  # one report
    parameters: ClassVar[Any] = {"list": ("q", "range", "by")}

    @one_document(
        ReportOutput,
        "audit_reports_retrieve",
        summary="Read a report",
        tags=["audit"],
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
