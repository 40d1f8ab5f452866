"""The reports page: numbers, charts and lists over a time, each with a way into the log."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode
from uuid import UUID

from allauth.account.decorators import login_required
from django.http import HttpResponse, HttpResponseBadRequest
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET

from audit import exports, reports
from audit.actions import Action, Outcome, layer_name
from audit.filters import ENDED, FAILED, REFUSED, EntryFilter, read_filter
from audit.models import SavedView
from audit.reports import facts, providers
from audit.reports.charts import TimeAxis, unit_in_words
from audit.reports.figures import FIGURES, MORE_IS_BAD, as_time, change_of, value_of
from audit.reports.report import BY, MOST_TOOLS, AuditReport, Figure, ReportSeries, report_of
from audit.rollups import ERROR
from audit.rollups.reading import TimeRange, one_tail
from audit.views.files import give_report
from audit.views.filtering import filter_context
from audit.views.header import header_of, saved_views, schedule_url
from audit.views.parts import described, shown_strip
from workspaces.pages.parts import workspace_of
from workspaces.roles import Permission, has_permission
from workspaces.words.formats import current_zone, percent

if TYPE_CHECKING:
    from workspaces.middleware import WorkspaceRequest

_USUAL_RANGE = "7d"
_NO_FILTER = frozenset({"range", "since", "until", "sort", "order", "show"})
_STRIP_PIECES = 60
_DRILL = {
    "calls": {"outcome": "ended"},
    "failed": {"outcome": "failed"},
    "refused": {"action": "tool_call.refused"},
    "slow": {"action": "tool_call.finished", "sort": "duration"},
    "asked": {"action": "approval.requested"},
    "granted": {"action": "approval.granted"},
    "denied": {"action": "approval.refused"},
    "expired": {"action": "approval.expired"},
    "changes": {"action": "config.changed"},
}


@require_GET
@login_required
@one_tail()
def reports_page(request: WorkspaceRequest, workspace_slug: str) -> HttpResponse:
    """What happened in a time, in numbers, charts and lists."""
    workspace = workspace_of(request)
    rows = reports.entries_of(workspace.pk, actor=request.actor)
    now = timezone.now()
    wanted = _filter_of(request.GET.dict(), now)
    can_search = reports.may_search(request.actor)
    by = request.GET.get("by", "outcome")
    by = by if by in BY else "outcome"
    narrowed = reports.matching(rows, replace(wanted, since=None, until=None), actor=request.actor)
    report = report_of(workspace.pk, narrowed, wanted, by=by, now=now, zone=current_zone())
    span = report.span
    page_url = reverse("audit:reports", args=[workspace_slug])
    log = _Log(reverse("audit:entries", args=[workspace_slug]), span, wanted)
    around = _around(workspace.pk, span, log.url)
    context: dict[str, Any] = {
        "section": "audit",
        "tab": "reports",
        "audit_url": log.url,
        "query": wanted.as_query(by=by if by != "outcome" else ""),
        "is_narrowed": wanted.is_narrowed,
        "kept": [] if by == "outcome" else [("by", by)],
        "can_search": can_search,
        "words_unread": bool(wanted.words) and not can_search,
        "by": by,
        "span": span,
        "missing": report.missing,
        "drawn_by": unit_in_words(span.unit, span.zone),
        "is_empty": not any(figure.now for figure in report.figures.values()),
        "figures": [_figure(report, log, one) for one in FIGURES],
        "by_links": [
            (
                gettext(label),
                name == by,
                f"{page_url}?{wanted.as_query(by=name if name != 'outcome' else '')}#over-time",
            )
            for name, (label, _) in BY.items()
        ],
        "over_time": _chart(report.pieces, report.over_time, span, is_stacked=True),
        "latency": _chart(report.pieces, report.latency, span, is_stacked=False),
        "error": percent(ERROR, 1),
        "slowest": [described(entry) for entry in facts.slowest_calls(narrowed, span)],
        "tools": [
            {"row": row, "url": log.to(tool=row.tool, server=row.server)}
            for row in report.tools[:MOST_TOOLS]
        ],
        "tools_left_out": max(0, len(report.tools) - MOST_TOOLS),
        "refusals": [
            {
                "row": row,
                "change": change_of(Figure(now=row.number, before=row.before), is_bad=True),
                "layer": gettext(layer_name(row.layer)),
                "url": log.to(refused_by=row.layer, rule=row.rule),
            }
            for row in report.refusals
        ],
        "approvals": _approvals(report, log),
        "never_used": facts.never_used(workspace.pk, report.used) if not wanted.is_narrowed else [],
        "changes": facts.definition_changes(narrowed, span),
        "changes_url": log.to(action=Action.CONFIG_CHANGED.value),
        **around,
        "may_limit": has_permission(
            request.actor, Permission.MANAGE_MEMBERS, workspace_id=workspace.pk
        ),
        **filter_context(wanted, workspace.pk, page_url, usual=_USUAL_RANGE, has_order=False),
        **header_of(request, _query_of_log(span, wanted), log_state=around["log_state"]),
        "report_file": f"{reverse('audit:report-file', args=[workspace_slug])}?"
        + wanted.as_query(by=by if by != "outcome" else ""),
        "schedule_url": schedule_url(request, f"{wanted.as_query()}&format={exports.PDF}"),
        "views": saved_views(request, SavedView.Page.REPORTS),
        "view_page": "reports",
    }
    return render(request, "audit/reports.html", context)


@require_GET
@login_required
def report_file(request: WorkspaceRequest, workspace_slug: str) -> HttpResponse:
    """The report as a PDF file; that it was taken is recorded first."""
    workspace = workspace_of(request)
    now = timezone.now()
    wanted = _filter_of(request.GET.dict(), now)
    if wanted.errors:  # without the wrong condition the file would say more than was asked for
        return HttpResponseBadRequest(" ".join(wanted.errors), content_type="text/plain")
    by = request.GET.get("by", "outcome")
    chosen = by if by in BY else "outcome"
    return give_report(
        workspace, wanted, by=chosen, actor=request.actor, now=now, zone=current_zone()
    )


def _filter_of(given: dict[str, str], now: datetime) -> EntryFilter:
    """Read the filters of a report, which has no order."""
    kept = {name: value for name, value in given.items() if name not in {"sort", "order", "show"}}
    wanted = read_filter({"range": _USUAL_RANGE} | kept, now=now)
    if wanted.sort == "time":
        return wanted
    message = gettext("Leave sort: out. A report has no order.")
    typed = {**wanted.typed, "sort": ""}
    return replace(wanted, sort="time", typed=typed, errors=(*wanted.errors, message))


class _Log:
    """Ways into the log, with the report's time and filters.

    Args:
        wanted: the filters; None: the time alone.
    """

    def __init__(self, url: str, span: TimeRange, wanted: EntryFilter | None) -> None:
        self.url = url
        typed = wanted.typed if wanted is not None else {}
        self._query = {
            **{name: value for name, value in typed.items() if name not in _NO_FILTER},
            "range": "custom",
            "since": f"{span.since:%Y-%m-%dT%H:%M}",
            "until": f"{span.until:%Y-%m-%dT%H:%M}",
        }

    def to(self, **more: str) -> str:
        """Give the address of the entries behind a number; nothing where the filters leave none of their kind."""
        narrowed = _within(self._query.get("outcome", ""), more)
        chosen = self._query.get("action", "")
        if narrowed is None or chosen not in {"", narrowed.get("action", chosen)}:
            return ""
        query = {name: value for name, value in {**self._query, **narrowed}.items() if value}
        return f"{self.url}?{urlencode(query)}"


def _within(chosen: str, more: dict[str, str]) -> dict[str, str] | None:
    """Narrow calls that ended or failed to the outcome that the report is filtered by; None: they have another one."""
    wanted = more.get("outcome", "")
    if not wanted or chosen in {"", ENDED, wanted}:
        return more
    if wanted == FAILED and chosen in {Outcome.OK.value, Outcome.CANCELLED.value, REFUSED}:
        return None
    # Other things than calls of tools have these outcomes, too.
    action = Action.TOOL_CALL_REFUSED if chosen == REFUSED else Action.TOOL_CALL_FINISHED
    return {**more, "outcome": chosen, "action": action.value}


def _query_of_log(span: TimeRange, wanted: EntryFilter) -> str:
    return _Log("", span, wanted).to().removeprefix("?")


def _around(workspace_id: UUID, span: TimeRange, log_url: str) -> dict[str, Any]:
    """What is of the whole workspace, whatever the filters."""
    log = _Log(log_url, span, None)
    usage = sorted(
        providers.usage_of(workspace_id, span.since, span.until), key=lambda row: -row.turns
    )
    strips = providers.strips_of(workspace_id, span.since, span.until, _STRIP_PIECES)
    return {
        "strips": [
            shown_strip(strip, log.to(server=strip.server, action="server.error"))
            for strip in strips
        ],
        "usage": usage,
        "usage_cost": sum((row.cost for row in usage if row.cost is not None), start=0),
        "has_unknown_cost": any(row.cost is None for row in usage),
        "quotas": providers.quotas_of(workspace_id),
        "spending": providers.spending_of(workspace_id),
        "access": facts.access_review(workspace_id),
        "log_state": facts.log_state(workspace_id),
    }


def _figure(report: AuditReport, log: _Log, shown: tuple[str, str, str, str]) -> dict[str, Any]:
    name, label, definition, drill = shown
    figure = report.figures[name]
    url = log.to(**_DRILL[drill]) if drill else ""
    return {
        "name": name,
        "label": gettext(label),
        "definition": gettext(definition) % {"error": percent(ERROR, 1)},
        "value": value_of(name, figure),
        "change": change_of(figure, is_bad=name in MORE_IS_BAD),
        "url": url,
    }


def _approvals(report: AuditReport, log: _Log) -> list[dict[str, Any]]:
    rows = (
        ("asked", _("Asked for")),
        ("granted", _("Given")),
        ("denied", _("Refused")),
        ("expired", _("Ran out")),
    )
    return [
        {
            "label": label,
            "number": report.figures[name].now,
            "change": change_of(report.figures[name], is_bad=False),
            "url": log.to(**_DRILL[name]),
        }
        for name, label in rows
    ] + [
        {
            "label": label,
            "number": as_time(report.figures[name].now),
            "change": change_of(report.figures[name], is_bad=True),
            "url": "",
        }
        for name, label in (
            ("wait_p50", _("Half were answered within")),
            ("wait_p95", _("95% were answered within")),
        )
    ]


def _chart(
    pieces: Sequence[datetime], lines: Sequence[ReportSeries], span: TimeRange, *, is_stacked: bool
) -> dict[str, Any] | None:
    if not any(value for line in lines for value in line.values):
        return None
    return {
        **TimeAxis(starts=pieces, unit=span.unit, zone=span.zone).as_json(),
        "stacked": is_stacked,
        "series": [
            {"key": line.kind, "label": line.label, "values": list(line.values)} for line in lines
        ],
    }
