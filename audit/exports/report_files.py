"""A report as a document to print: the numbers of the reports page, gathered for a time and filters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, tzinfo
from typing import TYPE_CHECKING, Final
from uuid import UUID

from django.utils.translation import gettext, gettext_noop
from django.utils.translation import gettext as _

from audit.actions import layer_name
from audit.exports.formats import FORMATS
from audit.exports.pdf import MEDIA_TYPE, Document, PdfChart, PdfFigure, PdfTable, as_pdf
from audit.filters import EntryFilter
from audit.reports import facts, providers
from audit.reports.charts import TimeAxis, unit_in_words
from audit.reports.entries import entries_of
from audit.reports.figures import FIGURES, MORE_IS_BAD, as_time, change_of, value_of
from audit.reports.filter_words import names_in, set_filters
from audit.reports.report import BY, AuditReport, report_of
from audit.reports.searching import matching
from workspaces.words.formats import decimal, moment_in, whole

if TYPE_CHECKING:
    from audit.models import AuditEntry
    from audit.rollups.reading import TimeRange
    from workspaces.actors import Actor
    from workspaces.models import Workspace
    from workspaces.scoping import WorkspaceQuerySet

PDF: Final = "pdf"
SCHEDULED: Final[Mapping[str, tuple[str, str]]] = {
    PDF: (gettext_noop("PDF, the report to print"), MEDIA_TYPE),
    **{name: (one.label, one.media_type) for name, one in FORMATS.items()},
}
"""Extension → label and media type of what may be sent again and again."""
_NO_FILTER = frozenset({"range", "since", "until", "sort", "order", "show"})


def filter_lines(wanted: EntryFilter, workspace_id: UUID) -> list[tuple[str, str]]:
    """Give the filters that are set as name and value, in words; their time stands elsewhere."""
    return [
        (one.label, one.value)
        for one in set_filters(wanted, names_in(wanted, workspace_id), usual=wanted.range)
        if one.name not in _NO_FILTER
    ]


def report_pdf(
    workspace: Workspace,
    wanted: EntryFilter,
    *,
    actor: Actor,
    now: datetime,
    by: str = "outcome",
    zone: tzinfo = UTC,
) -> bytes:
    """Count a report and give it as a PDF file.

    Args:
        zone: in which times are written, and in which days begin at midnight.

    Raises:
        PermissionDenied: the actor may not see the log.
    """
    return as_pdf(report_document(workspace, wanted, actor=actor, now=now, by=by, zone=zone))


def report_document(
    workspace: Workspace,
    wanted: EntryFilter,
    *,
    actor: Actor,
    now: datetime,
    by: str = "outcome",
    zone: tzinfo = UTC,
) -> Document:
    """Count a report and say what its PDF file holds.

    Raises:
        PermissionDenied: the actor may not see the log.
    """
    rows = matching(
        entries_of(workspace.pk, actor=actor),
        replace(wanted, since=None, until=None),
        actor=actor,
    )
    report = report_of(workspace.pk, rows, wanted, by=by, now=now, zone=zone)
    return Document(
        title=_("Audit report"),
        workspace=workspace.name,
        period=_period(report, zone),
        filters=filter_lines(wanted, workspace.pk),
        made_by=actor.label,
        made_at=now,
        zone=zone,
        figures=_figures(report),
        charts=_charts(report, by),
        tables=[
            _most_used(report),
            _slowest(rows, report.span, zone),
            _refusals(report),
            _approvals(report),
            _definitions(rows, report.span, zone),
            _models(workspace.pk, report.span),
        ],
    )


def _period(report: AuditReport, zone: tzinfo) -> str:
    span = report.span
    pattern = _("%(since)s to %(until)s, time zone %(zone)s, whole hours")
    if span.unit == "minute":
        pattern = _("%(since)s to %(until)s, time zone %(zone)s, whole minutes")
    period = pattern % {
        "since": moment_in(span.since, zone),
        "until": moment_in(span.until, zone),
        "zone": zone,
    }
    if report.missing:
        pattern = _("%(number)s of the newest entries are not counted yet")
        period = f"{period}; {pattern % {'number': whole(report.missing)}}"
    return period


def _figures(report: AuditReport) -> list[PdfFigure]:
    return [
        PdfFigure(
            label=gettext(label),
            value=value_of(name, report.figures[name]),
            change=change_of(report.figures[name], is_bad=name in MORE_IS_BAD)["words"],
        )
        for name, label, _definition, _drill in FIGURES
    ]


def _charts(report: AuditReport, by: str) -> list[PdfChart]:
    span = report.span
    drawn_by = unit_in_words(span.unit, span.zone)
    labels = TimeAxis(starts=report.pieces, unit=span.unit, zone=span.zone).labels
    return [
        PdfChart(
            title=_("Tool calls over time, by %(what)s (%(drawn_by)s)")
            % {"what": gettext(BY[by][0]).lower(), "drawn_by": drawn_by},
            labels=labels,
            series=report.over_time,
            is_stacked=True,
        ),
        PdfChart(
            title=_("How long calls took (%(drawn_by)s)") % {"drawn_by": drawn_by},
            labels=labels,
            series=report.latency,
            is_stacked=False,
            unit="ms",
        ),
    ]


def _most_used(report: AuditReport) -> PdfTable:
    return PdfTable(
        title=_("Most used tools"),
        head=(_("Tool"), _("Server"), _("Calls"), _("Failed"), "p50", "p95", "p99"),
        rows=[
            (
                row.tool,
                row.server,
                whole(row.calls),
                whole(row.failed),
                *map(as_time, row.shares),
            )
            for row in report.tools
        ],
        widths=(5, 4, 2, 2, 2, 2, 2),
        right=frozenset(range(2, 7)),
        empty=_("No tool was called."),
    )


def _slowest(rows: WorkspaceQuerySet[AuditEntry], span: TimeRange, zone: tzinfo) -> PdfTable:
    return PdfTable(
        title=_("Slowest calls"),
        head=(_("Tool"), _("Server"), _when(zone), _("Took")),
        rows=[
            (
                entry.tool_name,
                entry.server_name,
                moment_in(entry.created_at, zone),
                as_time(entry.duration_ms),
            )
            for entry in facts.slowest_calls(rows, span)
        ],
        widths=(4, 4, 3, 2),
        right=frozenset({3}),
        empty=_("No call was answered."),
    )


def _refusals(report: AuditReport) -> PdfTable:
    return PdfTable(
        title=_("Refusals by reason"),
        head=(_("Reason"), _("Rule"), _("Refused"), _("Before")),
        rows=[
            (
                gettext(layer_name(row.layer)),
                row.rule or "–",
                whole(row.number),
                whole(row.before),
            )
            for row in report.refusals
        ],
        widths=(3, 5, 2, 2),
        right=frozenset({2, 3}),
        empty=_("Nothing was refused."),
    )


def _approvals(report: AuditReport) -> PdfTable:
    numbers = (
        ("asked", _("Asked for")),
        ("granted", _("Given")),
        ("denied", _("Refused")),
        ("expired", _("Ran out")),
    )
    times = (
        ("wait_p50", _("Half were answered within")),
        ("wait_p95", _("95% were answered within")),
    )
    return PdfTable(
        title=_("Approvals and their waits"),
        head=(_("Approvals"), _("In this time"), _("Before")),
        rows=[
            *(
                (
                    label,
                    whole(report.figures[name].now or 0),
                    whole(report.figures[name].before or 0),
                )
                for name, label in numbers
            ),
            *(
                (label, as_time(report.figures[name].now), as_time(report.figures[name].before))
                for name, label in times
            ),
        ],
        widths=(5, 2, 2),
        right=frozenset({1, 2}),
    )


def _definitions(rows: WorkspaceQuerySet[AuditEntry], span: TimeRange, zone: tzinfo) -> PdfTable:
    definitions = facts.definition_changes(rows, span)
    return PdfTable(
        title=_("Definitions of tools, changed or accepted"),
        head=(_("Tool"), _("What"), _("Who"), _when(zone)),
        rows=[
            (
                change.tool,
                change.what,
                change.entry.actor_label,
                moment_in(change.entry.created_at, zone),
            )
            for change in definitions.newest
        ],
        widths=(4, 2, 5, 3),
        left_out=definitions.left_out,
        empty=_("No definition changed in this time."),
    )


def _models(workspace_id: UUID, span: TimeRange) -> PdfTable:
    usage = providers.usage_of(workspace_id, span.since, span.until)
    return PdfTable(
        title=_("Models and cost, whole workspace"),
        head=(_("Model"), _("Turns"), _("Tokens"), _("Cost")),
        rows=[
            (
                row.model or _("no model"),
                whole(row.turns),
                f"{whole(row.prompt_tokens)} + {whole(row.completion_tokens)}",
                _("unknown") if row.cost is None else decimal(row.cost, 4),
            )
            for row in sorted(usage, key=lambda row: -row.turns)
        ],
        widths=(5, 2, 4, 3),
        right=frozenset({1, 2, 3}),
        empty=_("No model was used."),
    )


def _when(zone: tzinfo) -> str:
    return _("When (%(zone)s)") % {"zone": zone}
