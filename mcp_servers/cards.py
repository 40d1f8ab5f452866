"""How the servers page shows a server: rows into plain values. Reads only."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Final
from uuid import UUID

from django.utils import timezone

from mcp_servers import policy
from mcp_servers.models import HealthCheck, McpServer, McpTool, Transport
from mcp_servers.values import Effect, ToolAnnotations

if TYPE_CHECKING:
    from mcp_servers.models.tools import McpToolQuerySet

CHECKS_SHOWN: Final = 30

_EFFECT_LABELS: Final = {
    Effect.AUTO: "Runs by itself",
    Effect.CONFIRM: "Asks first",
    Effect.DENY: "Blocked",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Badge:
    """One word on a tool."""

    tone: str
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckBar:
    """One look at a server."""

    ok: bool
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolRow:
    """One tool."""

    id: UUID
    name: str
    title: str
    description: str
    is_enabled: bool
    approval_override: str
    default_label: str
    policy_label: str
    badges: tuple[Badge, ...]
    state: str
    """ok, changed, removed or excluded."""
    problem: str
    definition_hash: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """One server with its tools."""

    id: UUID
    name: str
    transport_label: str
    endpoint: str
    is_active: bool
    status: str
    reason: str
    protocol_revision: str
    server_version: str
    latency_ms: int | None
    checked_at: datetime | None
    credential: str
    checks: tuple[CheckBar, ...]
    uptime_percent: float | None
    tools: tuple[ToolRow, ...]
    enabled_count: int


def cards_of(servers: Iterable[McpServer], *, can_manage: bool) -> list[Card]:
    """A card for each server, in the given order, with three queries in all.

    Args:
        can_manage: whether the reader may know why a server failed in the words of its program.
    """
    listed = list(servers)
    if not listed:
        return []
    workspace_id = listed[0].workspace_id
    ids = [server.pk for server in listed]
    tools: McpToolQuerySet = McpTool.objects.for_workspace(workspace_id)
    tools_by_server: dict[UUID, list[McpTool]] = defaultdict(list)
    for tool in tools.filter(server__in=ids).select_related("server"):
        tools_by_server[tool.server_id].append(tool)
    checks_by_server: dict[UUID, list[HealthCheck]] = {
        server_id: list(
            HealthCheck.objects.for_workspace(workspace_id).filter(server=server_id)[:CHECKS_SHOWN]
        )
        for server_id in ids
    }
    return [
        _card(
            server, tools_by_server[server.pk], checks_by_server[server.pk], can_manage=can_manage
        )
        for server in listed
    ]


def badges_of(annotations: ToolAnnotations) -> tuple[Badge, ...]:
    """What a server says about a tool, as words for people."""
    found: list[Badge] = []
    if annotations.destructive is True:
        found.append(Badge(tone="bad", label="Destructive"))
    if annotations.read_only is True:
        found.append(Badge(tone="ok", label="Read-only"))
    elif annotations.destructive is not True:
        known = annotations.read_only is not None or annotations.destructive is not None
        found.append(
            Badge(tone="warn", label="Changes data" if known else "Says nothing about its effects")
        )
    if annotations.idempotent is True and annotations.read_only is not True:
        found.append(Badge(tone="info", label="Repeatable"))
    if annotations.open_world is True:
        found.append(Badge(tone="info", label="Reaches outside"))
    return tuple(found)


def _card(
    server: McpServer, tools: list[McpTool], checks: list[HealthCheck], *, can_manage: bool
) -> Card:
    rows = tuple(
        _row(tool) for tool in sorted(tools, key=lambda tool: (tool.is_removed, tool.name))
    )
    bars = tuple(_bar(check) for check in reversed(checks))
    return Card(
        id=server.pk,
        name=server.name,
        transport_label=Transport(server.transport).label,
        endpoint=server.target_label,
        is_active=server.is_active,
        status=server.status,
        reason=server.status_reason if can_manage else server.status_reason.partition("\n")[0],
        protocol_revision=server.protocol_revision,
        server_version=server.server_version,
        latency_ms=server.latency_ms,
        checked_at=server.last_checked_at,
        credential="workspace" if server.auth_config or server.headers or server.env else "",
        checks=bars,
        uptime_percent=round(100 * sum(bar.ok for bar in bars) / len(bars), 1) if bars else None,
        tools=rows,
        enabled_count=sum(row.is_enabled and row.state == "ok" for row in rows),
    )


def _row(tool: McpTool) -> ToolRow:
    # How the tool would run if it were switched on and accepted, which is what the choice is about.
    usable = replace(
        tool.facts(),
        is_server_active=True,
        is_enabled=True,
        is_removed=False,
        is_quarantined=False,
        problem="",
    )
    return ToolRow(
        id=tool.pk,
        name=tool.name,
        title=tool.title,
        description=tool.description,
        is_enabled=tool.is_enabled,
        approval_override=tool.approval_override,
        default_label=_EFFECT_LABELS[policy.decide(replace(usable, override=None)).effect],
        policy_label=_EFFECT_LABELS[policy.decide(usable).effect],
        badges=badges_of(tool.typed_annotations),
        state=_state(tool),
        problem=_problem(tool),
        definition_hash=tool.definition_hash,
    )


def _state(tool: McpTool) -> str:
    if tool.is_removed:
        return "removed"
    if tool.problem:
        return "excluded"
    return "changed" if tool.is_quarantined else "ok"


def _problem(tool: McpTool) -> str:
    if tool.problem and not tool.is_removed:
        return f"This tool is left out: {tool.problem}"
    if _state(tool) == "changed" and not tool.approved_hash:
        return "This tool is new. It rests until somebody accepts it."
    return ""


def _bar(check: HealthCheck) -> CheckBar:
    moment = timezone.localtime(check.checked_at).strftime("%H:%M")
    if check.is_ok:
        return CheckBar(ok=True, label=f"{moment}: answered in {check.latency_ms or 0} ms")
    first_line = check.error.partition("\n")[0]
    return CheckBar(ok=False, label=f"{moment}: {first_line}")
