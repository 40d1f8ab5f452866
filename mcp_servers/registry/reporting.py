"""What the log's reports ask of servers: how they were, which tools there are, how much of a quota is used."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final
from uuid import UUID

from django.db.models import Count, Min
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from audit.reports.providers import (
    Incident,
    Job,
    KnownTool,
    Quota,
    ReportSource,
    UptimeStrip,
    register_rules,
    register_source,
)
from mcp_servers.client.decisions import CALL_RULE
from mcp_servers.models import CallCount, HealthCheck, McpServer, McpTool
from mcp_servers.registry.consent.policy import SENTENCES

REFUSALS: Final = {
    "actor.forbidden": gettext_noop("This person may not use tools here."),
    "approval.arguments_changed": gettext_noop(
        "The arguments were not those that had been approved."
    ),
    "approval.definition_changed": gettext_noop("The tool had changed since it was approved."),
    "approval.expired": gettext_noop("Nobody decided in time."),
    "approval.withdrawn": gettext_noop("It was stopped before it was made."),
    "approval.other_call": gettext_noop("The approval was for another call."),
    "approval.other_person": gettext_noop("The approval was somebody else's."),
    "approval.outdated": gettext_noop("The approval was for another version of the tool."),
    "approval.refused": gettext_noop("The person declined."),
    "approval.second_person": gettext_noop(
        "A call rule asked for a second person, and nobody else had said yes."
    ),
    "approval.unknown": gettext_noop("There was no such approval."),
    "approval.used": gettext_noop("The approval had been used already."),
    "approval.used_or_expired": gettext_noop("The approval had been used already, or had expired."),
    "arguments.not_json": gettext_noop("The arguments could not be read."),
    "arguments.schema": gettext_noop("The arguments were not what the tool takes."),
    "arguments.too_large": gettext_noop("The arguments were larger than Trellis sends."),
    "arguments.unfit": gettext_noop(
        "The arguments could not be sent the way this tool wants them."
    ),
    "audit.unavailable": gettext_noop(
        "The call could not be entered into the log, so it was not made."
    ),
    "builtin.not_offered": gettext_noop("The assistant was not offered this tool."),
    "checkpoint.unreadable": gettext_noop("Where the call had stopped could not be read."),
    "prompt.arguments": gettext_noop("The prompt's arguments were not what it takes."),
    "prompt.not_found": gettext_noop("The server offered no such prompt."),
    "resource.uri": gettext_noop("The address was of no resource that the server offered."),
    "resource.disabled": gettext_noop("An administrator had switched the resource off."),
    "server.backing_off": gettext_noop(
        "The server had failed, and was being left alone for a while."
    ),
    "server.busy": gettext_noop(
        "The server had as many calls as it may have, and the wait was too long."
    ),
    "server.calls_per_day": gettext_noop("The server's calls for the day were used up."),
    "server.misconfigured": gettext_noop("The server's settings could not be used."),
    "server.not_found": gettext_noop("There was no such server."),
    "server.sign_in_missing": gettext_noop("Nobody had signed in to the server yet."),
    "tester.forbidden": gettext_noop("Only those who manage a server may try its tools."),
    "tool.changed_since_offer": gettext_noop(
        "The tool had changed since the assistant was told of it."
    ),
    "tool.not_offered": gettext_noop("Other MCP clients are not offered the tool."),
    "tool.not_found": gettext_noop("There was no such tool."),
}
"""What the gate's own rules say to those who read the log."""
MOST_CHECKS = 200_000
MOST_INCIDENTS = 20


def tell_reports() -> None:
    """Register with the log's reports."""
    register_source(ReportSource(uptime=strips, tools=tools, quotas=quotas, jobs=jobs))
    # The sentence of the card speaks to the person who was asked; the log is read by others.
    register_rules(
        {
            **REFUSALS,
            **SENTENCES,
            "user.always": _("They chose to always allow this tool."),
            "user.ask": _("They chose to be asked each time."),
            f"{CALL_RULE}*": _("A call rule of the workspace decided."),
        }
    )


def strips(
    workspace_id: UUID, since: datetime, until: datetime, pieces: int
) -> Sequence[UptimeStrip]:
    """Give how the workspace's shared servers answered their checks. A personal server is its owner's affair."""
    servers = McpServer.objects.for_workspace(workspace_id).filter(owner=None).order_by("name")
    names = {server.pk: server.name for server in servers}
    checks = (
        HealthCheck.objects.for_workspace(workspace_id)
        .filter(server_id__in=names, checked_at__gte=since, checked_at__lt=until)
        .order_by("checked_at")
        .values_list("server_id", "checked_at", "is_ok", "error")[:MOST_CHECKS]
    )
    length = (until - since) / pieces
    counts: dict[UUID, list[list[int]]] = {pk: [[0, 0] for _ in range(pieces)] for pk in names}
    incidents: dict[UUID, list[Incident]] = {pk: [] for pk in names}
    broken: dict[UUID, tuple[datetime, str]] = {}
    newest: dict[UUID, str] = {}
    for server_id, moment, is_ok, error in checks:
        piece = counts[server_id][min(int((moment - since) / length), pieces - 1)]
        piece[0] += 1
        piece[1] += is_ok
        if not is_ok:
            broken.setdefault(server_id, (moment, error[:200]))
            newest[server_id] = error[:200]
        elif server_id in broken:
            began, reason = broken.pop(server_id)
            incidents[server_id].append(Incident(since=began, until=moment, reason=reason))
    for server_id, (began, _reason) in broken.items():
        # What began it may be over: one that was away refuses the key now that it is back.
        open_one = Incident(since=began, until=None, reason=newest[server_id])
        incidents[server_id].append(open_one)
    return [
        UptimeStrip(
            server=name,
            pieces=[ok / number if number else None for number, ok in counts[pk]],
            incidents=incidents[pk][::-1][:MOST_INCIDENTS],
        )
        for pk, name in names.items()
        if any(number for number, _ in counts[pk])
    ]


def tools(workspace_id: UUID) -> Sequence[KnownTool]:
    """Give the tools of the workspace's shared servers that may be called."""
    rows = McpTool.objects.for_workspace(workspace_id).callable().filter(server__owner=None)
    return [
        KnownTool(server=server, name=name)
        for server, name in rows.values_list("server__name", "name")
    ]


def quotas(workspace_id: UUID) -> Sequence[Quota]:
    """Give today's use of each server that has a daily quota."""
    used = dict(
        CallCount.objects.for_workspace(workspace_id)
        .filter(day=timezone.now().astimezone(UTC).date())
        .values_list("server_id", "used")
    )
    servers = McpServer.objects.for_workspace(workspace_id).filter(owner=None).order_by("name")
    limits = ((server, server.config.calls_per_day) for server in servers)
    return [
        Quota(server=server.name, used=used.get(server.pk, 0), limit=limit)
        for server, limit in limits
        if limit is not None
    ]


def jobs(workspace_id: UUID) -> Sequence[Job]:
    """Give the checks of servers that should have been made by now."""
    late = McpServer.objects.for_workspace(workspace_id).filter(
        is_active=True, state__next_check_at__lt=timezone.now()
    )
    found = late.order_by().aggregate(number=Count("pk"), oldest=Min("state__next_check_at"))
    return [Job(name=_("Checks of servers"), waiting=found["number"], oldest=found["oldest"])]
