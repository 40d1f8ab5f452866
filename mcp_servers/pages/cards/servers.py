"""One server as the servers page shows it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from django.db.models import Count, F, OuterRef, Q, Subquery
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from mcp_servers.client import transports
from mcp_servers.client.hidden_text import show_hidden
from mcp_servers.client.values import Protocol
from mcp_servers.models import (
    AuthType,
    HealthCheck,
    McpPrompt,
    McpResource,
    McpServer,
    McpTool,
    OAuthGrant,
    ServerScope,
    ServerStatus,
    hosting,
)
from mcp_servers.oauth.grants import uses_own_accounts
from mcp_servers.pages.cards.connections import missing_sign_ins
from mcp_servers.pages.cards.tools import ToolRow, tool_row
from mcp_servers.registry.catalogue.platform_source import moved_to
from mcp_servers.registry.discovery import listed_for
from mcp_servers.registry.rights import may_manage, may_sign_in
from mcp_servers.registry.services.connections import connections_of
from mcp_servers.registry.services.credentials import unfilled_values
from mcp_servers.registry.services.inspection import advice_and_words
from mcp_servers.registry.specs import target_label
from mcp_servers.registry.trace.reading import may_see_trace
from workspaces.words.formats import clock

if TYPE_CHECKING:
    from mcp_servers.client.connections.facts import ConnectionStatus
    from mcp_servers.models.tools import McpToolQuerySet
    from mcp_servers.registry.catalogue.file_format import KnownServer
    from workspaces.actors import Actor

CHECKS_SHOWN: Final = 30

_NEWEST: Final = Protocol.MODERN.value
_SCOPES: Final = {
    ServerScope.GLOBAL.value: gettext_lazy("Platform"),
    ServerScope.PERSONAL.value: gettext_lazy("Personal"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckBar:
    """One look at a server."""

    ok: bool
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """One server with its tools."""

    id: UUID
    name: str
    scope_label: str
    is_personal: bool
    is_program: bool
    is_required: bool
    is_blocked: bool
    transport_label: str
    endpoint: str
    moved: KnownServer | None
    """What the catalogue says of it, for whoever manages it, if its provider has moved it to another address."""
    unfilled: tuple[str, ...]
    """Headers and the like that seem to lack their value, for whoever manages it."""
    hosted_by: str
    """The provider that runs it, if one does."""
    hosted_page: str
    """The provider's page on it, below the page of the servers."""
    is_active: bool
    status: str
    reason: str
    advice: str
    """What to do about it, for those who manage it."""
    output: str
    """What the program wrote to its error stream, for those who manage it."""
    suggests_sessions: bool
    """A tool wanted to ask back, which this server can do only in the older revisions."""
    protocol_label: str
    server_version: str
    latency_ms: int | None
    checked_at: datetime | None
    next_attempt_at: datetime | None
    connections: int
    """Open ones of this process."""
    in_flight: int
    checks: tuple[CheckBar, ...]
    uptime_percent: float | None
    is_row: bool
    """Its tools and checks are not read: it stands among many, and opens."""
    tools: tuple[ToolRow, ...]
    tool_count: int
    enabled_count: int
    waiting_count: int
    """Tools that somebody has to look at."""
    resource_count: int
    prompt_count: int
    can_manage: bool
    can_see_trace: bool
    uses_sign_in: bool
    is_shared_account: bool
    """Where people sign in: one account for everybody, which an administrator connects."""
    needs_sign_in: bool
    """The reader's calls would have no account to be made with."""
    can_sign_in: bool
    needs_credentials: bool
    """Nobody can sign in: it wants others than those in its settings."""
    can_enter_credentials: bool
    """The reader's settings of it have a field for them; of the platform's servers its file has them."""
    people_connected: int | None
    """For whoever manages it, where each person signs in."""


@dataclass(frozen=True, slots=True)
class _Tools:
    """What a card says of a server's tools."""

    rows: tuple[ToolRow, ...] = ()
    total: int = 0
    enabled: int = 0
    waiting: int = 0


def cards_of(servers: Iterable[McpServer], *, actor: Actor, as_rows: bool = False) -> list[Card]:
    """A card for each server, in the given order, with few queries in all.

    Args:
        as_rows: count tools instead of reading them, and leave out checks.
        actor: who reads; only who manages a server is told why it failed in the words of its program, and of the
            tools that other people's accounts were shown.
    """
    listed = list(servers)
    if not listed:
        return []
    workspace_id = listed[0].workspace_id
    ids = [server.pk for server in listed]
    hosting.prepare(listed)
    tools = _tool_counts(workspace_id, ids, actor) if as_rows else _tools(workspace_id, ids, actor)
    resources, prompts = (_counts(model, workspace_id, ids) for model in (McpResource, McpPrompt))
    checks = {} if as_rows else _newest_checks(workspace_id, ids)
    needy = missing_sign_ins(listed, actor.user_id)
    people = _people(workspace_id, listed)
    return [
        _card(
            server,
            tools.get(server.pk, _Tools()),
            checks.get(server.pk, []),
            actor=actor,
            is_row=as_rows,
            resource_count=resources.get(server.pk, 0),
            prompt_count=prompts.get(server.pk, 0),
            needs_sign_in=server.pk in needy,
            people=people.get(server.pk, 0),
        )
        for server in listed
    ]


def _tools(workspace_id: UUID, ids: list[UUID], actor: Actor) -> dict[UUID, _Tools]:
    by_server: dict[UUID, list[McpTool]] = defaultdict(list)
    for tool in _listed(workspace_id, ids, actor).select_related("server"):
        by_server[tool.server_id].append(tool)
    found = {}
    for server_id, tools in by_server.items():
        tools.sort(key=lambda tool: (tool.is_removed, tool.name))
        rows = tuple(tool_row(tool) for tool in tools)
        found[server_id] = _Tools(
            rows=rows,
            total=len(rows),
            enabled=sum(row.is_enabled and row.state == "ok" for row in rows),
            waiting=sum(row.state in ("new", "changed") for row in rows),
        )
    return found


def _tool_counts(workspace_id: UUID, ids: list[UUID], actor: Actor) -> dict[UUID, _Tools]:
    is_sound = Q(removed_at=None, problem="")
    is_accepted = Q(approved_hash=F("definition_hash"))
    counted = (
        _listed(workspace_id, ids, actor)
        .order_by()
        .values_list("server_id")
        .annotate(
            total=Count("pk"),
            enabled=Count("pk", filter=is_sound & is_accepted & Q(is_enabled=True)),
            waiting=Count("pk", filter=is_sound & ~is_accepted),
        )
    )
    return {server_id: _Tools((), *counts) for server_id, *counts in counted}


def _listed(workspace_id: UUID, ids: list[UUID], actor: Actor) -> McpToolQuerySet:
    tools: McpToolQuerySet = McpTool.objects.for_workspace(workspace_id)
    return tools.filter(listed_for(actor, workspace_id), server__in=ids)


def _newest_checks(workspace_id: UUID, ids: list[UUID]) -> dict[UUID, list[HealthCheck]]:
    """The last looks at each server, newest first.

    Two queries, however many servers; each reads from the index only what is shown, of weeks of looks.
    """
    checks = HealthCheck.objects.for_workspace(workspace_id)
    of_one = checks.filter(server=OuterRef("pk")).order_by("-checked_at").values("checked_at")
    oldest_shown = (
        McpServer.objects.for_workspace(workspace_id)
        .filter(pk__in=ids)
        .order_by()
        .values_list("pk", Subquery(of_one[CHECKS_SHOWN - 1 : CHECKS_SHOWN]))
    )
    shown = Q()
    for server_id, since in oldest_shown:
        shown |= Q(server=server_id, checked_at__gte=since) if since else Q(server=server_id)
    by_server: dict[UUID, list[HealthCheck]] = {server_id: [] for server_id in ids}
    newest: Iterable[HealthCheck] = checks.filter(shown).order_by("-checked_at")
    for check in newest:
        by_server[check.server_id].append(check)
    return {server_id: rows[:CHECKS_SHOWN] for server_id, rows in by_server.items()}


def _counts(model: type[Any], workspace_id: UUID, ids: list[UUID]) -> dict[UUID, int]:
    rows = model.objects.for_workspace(workspace_id).offered().filter(server__in=ids).order_by()
    return dict(rows.values_list("server_id").annotate(Count("pk")))


def _people(workspace_id: UUID, servers: list[McpServer]) -> dict[UUID, int]:
    """How many people are connected to each of those where each person signs in."""
    ids = [server.pk for server in servers if uses_own_accounts(server)]
    if not ids:
        return {}
    grants = OAuthGrant.objects.for_workspace(workspace_id).filter(
        server__in=ids, user__isnull=False, lost_reason=""
    )
    return dict(grants.order_by().values_list("server_id").annotate(Count("pk")))


def _card(
    server: McpServer,
    tools: _Tools,
    checks: list[HealthCheck],
    *,
    actor: Actor,
    is_row: bool,
    resource_count: int,
    prompt_count: int,
    needs_sign_in: bool,
    people: int,
) -> Card:
    can_manage = may_manage(actor, server)
    uses_sign_in = server.auth_type == AuthType.OAUTH
    is_shared = uses_sign_in and not uses_own_accounts(server)
    is_shared = is_shared or (bool(server.hosted_by) and server.owner_id is None)
    bars = tuple(_bar(check) for check in reversed(checks))
    connections = connections_of(server)
    known, state = server.global_server, server.state
    reason, _line, details = state.status_reason.partition("\n")
    advice, words = advice_and_words(details)
    return Card(
        id=server.pk,
        name=server.name,
        scope_label=str(_SCOPES.get(server.scope, "")),
        is_personal=server.owner_id is not None,
        is_program=server.transport == transports.STDIO,
        is_required=known is not None and known.is_required,
        is_blocked=server.is_blocked,
        transport_label=_transport(server),
        endpoint=target_label(server),
        moved=moved_to(server.url) if can_manage and server.url else None,
        unfilled=unfilled_values(server) if can_manage else (),
        hosted_by=hosting.provider_of(server),
        hosted_page=_hosted_page(server),
        is_active=server.is_active,
        status=status_of(server, needs_sign_in=needs_sign_in),
        reason=reason,
        advice=advice if can_manage else "",
        output=words if can_manage else "",
        suggests_sessions=bool(state.server_info.get("asks_back"))
        and server.protocol != Protocol.LEGACY
        and server.scope != ServerScope.GLOBAL,
        protocol_label=_protocol(server),
        server_version=show_hidden(state.server_version),
        latency_ms=state.latency_ms,
        checked_at=state.last_checked_at,
        next_attempt_at=state.next_check_at if state.consecutive_failures else None,
        connections=sum(one.state in ("connected", "closing") for one in connections),
        in_flight=_in_flight(connections),
        checks=bars,
        uptime_percent=round(100 * sum(bar.ok for bar in bars) / len(bars), 1) if bars else None,
        is_row=is_row,
        tools=tools.rows,
        tool_count=tools.total,
        enabled_count=tools.enabled,
        waiting_count=tools.waiting,
        resource_count=resource_count,
        prompt_count=prompt_count,
        can_manage=can_manage,
        can_see_trace=may_see_trace(actor, server),
        uses_sign_in=uses_sign_in,
        is_shared_account=is_shared,
        needs_sign_in=needs_sign_in,
        can_sign_in=server.is_active and may_sign_in(actor, server),
        needs_credentials=state.status == ServerStatus.AUTH_REQUIRED
        and not server.waits_for_people,
        can_enter_credentials=can_manage
        and server.is_active
        and server.scope != ServerScope.GLOBAL,
        people_connected=people
        if uses_own_accounts(server) and server.owner_id is None and can_manage
        else None,
    )


def _hosted_page(server: McpServer) -> str:
    host = hosting.host_of(server)
    return host.page_of(server) if host is not None else ""


def status_of(server: McpServer, *, needs_sign_in: bool) -> str:
    """How the server is for the reader: where each person signs in, one may be connected and another not."""
    if needs_sign_in:
        return ServerStatus.AUTH_REQUIRED
    if uses_own_accounts(server) and server.state.status == ServerStatus.AUTH_REQUIRED:
        return ServerStatus.CONNECTED
    return server.state.status


def _transport(server: McpServer) -> str:
    """What was chosen, and what the choice came to."""
    found = server.state.resolved_transport
    if server.transport != transports.AUTO or found not in dict(transports.choices()):
        return transports.label_of(server.transport)
    if found == transports.SSE:
        return _("%(transport)s, after Streamable HTTP did not work") % {
            "transport": transports.label_of(found)
        }
    return transports.label_of(found)


def _protocol(server: McpServer) -> str:
    """The revision that is spoken, and its era."""
    revision = server.state.protocol_revision
    if not revision:
        return ""
    pattern = (
        _("%(revision)s, stateless") if revision >= _NEWEST else _("%(revision)s, with sessions")
    )
    return pattern % {"revision": revision}


def _in_flight(connections: list[ConnectionStatus]) -> int:
    return sum(one.in_flight for one in connections)


def _bar(check: HealthCheck) -> CheckBar:
    moment = clock(check.checked_at)
    if check.is_ok:
        if check.latency_ms is None:
            return CheckBar(ok=True, label=_("%(time)s: answered") % {"time": moment})
        known = {"time": moment, "latency": check.latency_ms}
        return CheckBar(ok=True, label=_("%(time)s: answered in %(latency)s ms") % known)
    first_line = check.error.partition("\n")[0]
    return CheckBar(ok=False, label=f"{moment}: {first_line}")
