"""One page for whoever keeps things running: what needs somebody now, and how everything goes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from allauth.account.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.utils.timesince import timesince
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_safe

from audit.actions import Action
from audit.health import LogFinding
from audit.models import Alert, AlertDelivery, AuditEntry, AuditSeal, ReportSchedule
from audit.reports import facts, providers
from audit.reports.providers import Job
from audit.services import spool
from audit.streams.services import streams_of
from audit.streams.views import StreamRow, row_of
from audit.views.header import header_of
from audit.views.parts import call_url, described, found_by, shown_strip
from workspaces.delivery.outbox import state_of
from workspaces.pages.parts import workspace_of
from workspaces.roles import Permission
from workspaces.words.formats import whole

if TYPE_CHECKING:
    from workspaces.middleware import WorkspaceRequest

_SPAN: Final = timedelta(days=7)
_PIECES: Final = 56
"""Three hours each."""
_MOST: Final = 15
"""Of changes, incidents and past alerts."""
_MOST_WAITING: Final = 500
_NAMED: Final = 3
"""Servers that fail and are named one by one; of more, their number is told."""
_LATE: Final = timedelta(minutes=10)
"""Work that has been due for so long should have been done."""
_AGES: Final = ((timedelta(hours=1), "new"), (timedelta(days=1), "day"), (None, "old"))


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionItem:
    """One thing that somebody should look at, and where."""

    text: str
    url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Outage:
    """A time in which a server did not answer."""

    server: str
    since: datetime
    until: datetime | None
    reason: str


@require_safe
@login_required
def overview(request: WorkspaceRequest, workspace_slug: str) -> HttpResponse:
    """What needs somebody, incidents, approvals, the log, streams, alerts, changes and jobs."""
    workspace = workspace_of(request, Permission.VIEW_AUDIT)
    log_url = reverse("audit:entries", args=[workspace.slug])
    now = timezone.now()
    strips = providers.strips_of(workspace.pk, now - _SPAN, now, _PIECES)
    troubled = sorted((one for one in strips if one.incidents), key=lambda one: one.uptime or 0)
    outages = _outages(strips)
    waiting = providers.approvals_of(workspace.pk, _MOST_WAITING)
    ages = _ages(waiting, now)
    alerts = Alert.objects.for_workspace(workspace).select_related("rule")
    open_alerts = list(alerts.filter(ended_at=None)[:_MOST])
    log_state = facts.log_state(workspace.pk)
    header = header_of(request, log_state=log_state)
    streams = [
        row_of(one, is_held=header["is_restored"])
        for one in streams_of(workspace.pk).select_related("state")
    ]
    jobs = [*_own_jobs(workspace.pk, now, log_state), *providers.jobs_of(workspace.pk)]
    changes = (
        AuditEntry.objects.for_workspace(workspace)
        .filter(action=Action.CONFIG_CHANGED.value)
        .order_by("-id")[:_MOST]
    )
    context: dict[str, Any] = {
        **header,
        "section": "audit",
        "tab": "overview",
        "audit_url": log_url,
        "strips": [
            shown_strip(strip, found_by(log_url, server=strip.server, action="server.error"))
            for strip in troubled[:_MOST]
        ],
        "well": len(strips) - len(troubled),
        "troubled": len(troubled),
        "outages": outages[:_MOST],
        "ages": ages,
        "waiting": [(one, call_url(log_url, one.call_id)) for one in waiting[:_MOST]],
        "open_alerts": open_alerts,
        "past_alerts": alerts.exclude(ended_at=None)[:_MOST],
        "streams": streams,
        "log_state": log_state,
        "jobs": [(job, _is_late(job, now)) for job in jobs],
        "changes": [described(entry) for entry in changes],
        "changes_url": found_by(log_url, action=Action.CONFIG_CHANGED.value),
    }
    found = log_state.health.findings_of(workspace.pk)
    context["findings"] = _findings(found, workspace.pk, workspace.slug)
    down = [one.server for one in outages if one.until is None]
    context["needs"] = _needs(workspace.slug, context, down, ages["old"])
    return render(request, "audit/overview.html", context)


def _findings(found: Sequence[LogFinding], workspace_id: UUID, slug: str) -> list[AttentionItem]:
    """What the last verification found of the workspace's log, each with its entry where there is one."""
    places = [one.seq for one in found if one.seq is not None]
    seals = AuditSeal.objects.filter(chain_id=workspace_id, seq__in=places)
    ids = dict(seals.values_list("seq", "entry_id"))
    entries = AuditEntry.objects.for_workspace(workspace_id).filter(pk__in=ids.values())
    there = set(entries.values_list("pk", flat=True))

    def url_of(seq: int | None) -> str:
        entry_id = ids.get(seq) if seq is not None else None
        if entry_id in there:
            return reverse("audit:entry", args=[slug, entry_id])
        return f"{reverse('audit:overview', args=[slug])}#log-heading"

    return [
        AttentionItem(
            text=_("The log was not whole at place %(seq)s: %(text)s")
            % {"seq": "–" if one.seq is None else whole(one.seq), "text": one.text},
            url=url_of(one.seq),
        )
        for one in found
    ]


def _outages(strips: Sequence[providers.UptimeStrip]) -> list[Outage]:
    """Those that last first, then the newest."""
    found = [
        Outage(server=strip.server, since=one.since, until=one.until, reason=one.reason)
        for strip in strips
        for one in strip.incidents
    ]
    return sorted(found, key=lambda one: (one.until is None, one.since), reverse=True)


def _ages(waiting: Sequence[providers.WaitingCall], now: datetime) -> dict[str, int]:
    ages = {name: 0 for _limit, name in _AGES}
    for one in waiting:
        age = now - one.since
        ages[next(name for limit, name in _AGES if limit is None or age < limit)] += 1
    return ages


def _own_jobs(workspace_id: UUID, now: datetime, log_state: facts.LogState) -> list[Job]:
    """The log's own work: seals, counters, messages of alerts, scheduled files, and what waits beside the database."""
    health = log_state.health
    since = now - timedelta(seconds=health.oldest_pending_seconds) if log_state.waiting else None
    mails = state_of(AlertDelivery.objects.for_workspace(workspace_id))
    schedules = ReportSchedule.objects.for_workspace(workspace_id).filter(is_active=True)
    due = schedules.filter(next_run_at__lt=now).order_by("next_run_at")
    faults = list(schedules.filter(last_ok=False).values_list("last_result", flat=True))
    return [
        Job(name=_("Seals of the log"), waiting=log_state.waiting, oldest=since),
        Job(name=_("Counters of reports"), waiting=log_state.uncounted),
        Job(
            name=_("Messages of alerts"),
            waiting=mails.waiting,
            oldest=mails.oldest,
            failed=mails.given_up,
            note=mails.fault,
        ),
        Job(
            name=_("Scheduled exports"),
            waiting=due.count(),
            oldest=due.values_list("next_run_at", flat=True).first(),
            failed=len(faults),
            note=next(iter(faults), ""),
        ),
        Job(
            name=_("Log entries kept beside the database"),
            waiting=spool.spool_size().files,
            note=_("They are entered once the database can be reached."),
        ),
    ]


def _is_late(job: Job, now: datetime) -> bool:
    return job.oldest is not None and now - job.oldest > _LATE


def _needs(
    slug: str, context: Mapping[str, Any], down: Sequence[str], late_calls: int
) -> list[AttentionItem]:
    """What is not as it should be, the most pressing first."""
    here = reverse("audit:overview", args=[slug])
    alerts_url, streams_url = (
        reverse(name, args=[slug]) for name in ("audit:alerts", "audit:streams")
    )
    waiting = ngettext(
        "%(count)s call has waited for approval for more than a day.",
        "%(count)s calls have waited for approval for more than a day.",
        late_calls,
    ) % {"count": late_calls}
    return [
        *context["findings"],
        *(
            AttentionItem(text=_("Alert: %(name)s") % {"name": alert.rule.name}, url=alerts_url)
            for alert in context["open_alerts"]
        ),
        *(AttentionItem(text=text, url=f"{here}#servers") for text in _down_in_words(down)),
        *(
            AttentionItem(text=_stream_in_words(row), url=streams_url)
            for row in context["streams"]
            if row.tone == "bad"
        ),
        *([AttentionItem(text=waiting, url=f"{here}#approvals")] if late_calls else []),
        *(
            AttentionItem(text=_job_in_words(job), url=f"{here}#jobs")
            for job, is_late in context["jobs"]
            if job.failed or is_late
        ),
    ]


def _stream_in_words(row: StreamRow) -> str:
    sentence = _("The stream “%(name)s” cannot send.") % {"name": row.stream.name}
    if row.state.failing_since is None:
        return sentence
    failed = _("It has failed for %(time)s.") % {"time": timesince(row.state.failing_since)}
    return f"{sentence} {failed}"


def _down_in_words(names: Sequence[str]) -> list[str]:
    if len(names) > _NAMED:
        return [_("%(count)s servers fail their health checks.") % {"count": len(names)}]
    return [_("“%(name)s” fails its health checks.") % {"name": name} for name in names]


def _job_in_words(job: Job) -> str:
    message = _("%(name)s: something failed.") if job.failed else _("%(name)s: work is late.")
    return message % {"name": job.name}
