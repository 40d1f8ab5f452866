"""Health: rows, status, patience, and no tool ever called."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from celery import current_app
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from mcp.server.caching import CacheHint

from audit.actions import Action
from audit.errors import AuditUnavailable
from audit.models import AuditEntry
from mcp_servers.client.connections import runtime
from mcp_servers.client.errors import AuthenticationRequired, ConnectionFailed
from mcp_servers.client.values import Outcome, ToolCallOutcome
from mcp_servers.gate.resolving import resolve_tool
from mcp_servers.models import HealthCheck, McpServer, McpTool, ServerState
from mcp_servers.pages.cards.servers import CHECKS_SHOWN, cards_of
from mcp_servers.registry import discovery, health, services, tasks
from mcp_servers.registry.services import ServerDraft, inspection
from tests.factories import Tenant
from tests.fakes.full_server import full_server
from tests.fakes.mcp_server import CountingServer, raw_tool
from tests.mcp_servers.factories import http_server, looked_at, stored_tool
from tests.mcp_servers.gate.refused_entries import refusing_entries
from workspaces.actors import Actor, Source
from workspaces.process import shutdown


@pytest.fixture
def server(tenant: Tenant) -> McpServer:
    return http_server(tenant, "https://example.org/mcp")


def fresh(server: McpServer) -> McpServer:
    return McpServer.objects.for_workspace(server.workspace_id).fetch(server.pk)


def actions(tenant: Tenant) -> list[str]:
    rows = AuditEntry.objects.for_workspace(tenant.workspace).filter(action__startswith="server.")
    return list(rows.order_by("pk").values_list("action", flat=True))


def test_a_check_reads_the_list_and_calls_nothing(tenant: Tenant, counting: CountingServer) -> None:
    """REL-38: status, latency, row; tools are never run."""
    server = looked_at(tenant, http_server(tenant, counting.url))
    health.ask_for_check(server)
    tasks.check_server(str(tenant.workspace.pk), str(server.pk))
    assert HealthCheck.objects.for_workspace(tenant.workspace).filter(is_ok=True).count() == 2
    assert fresh(server).state.latency_ms is not None
    assert counting.calls == []
    assert not any(b"tools/call" in body for body in counting.bodies)


def test_several_failures_turn_a_server_red(tenant: Tenant, server: McpServer) -> None:
    """REL-38: one lost packet alarms nobody; the log tells each change of status once."""
    health.note_reading(server, health.HealthReading(latency_ms=5))
    for count in range(1, health.FAILURES_BEFORE_RED):
        health.note_reading(server, health.HealthReading(error=ConnectionFailed("gone.")))
        assert (fresh(server).state.status, fresh(server).state.consecutive_failures) == (
            "connected",
            count,
        )
    health.note_reading(server, health.HealthReading(error=ConnectionFailed("gone.")))
    assert (fresh(server).state.status, fresh(server).state.status_reason) == ("error", "gone.")
    health.note_reading(server, health.HealthReading(error=ConnectionFailed("gone.")))
    health.note_reading(server, health.HealthReading(latency_ms=7))
    assert (fresh(server).state.status, fresh(server).state.consecutive_failures) == (
        "connected",
        0,
    )
    assert actions(tenant) == ["server.connected", "server.error", "server.connected"]


@pytest.mark.parametrize(
    "reading",
    [health.HealthReading(latency_ms=5), health.HealthReading(error=ConnectionFailed("gone."))],
)
def test_a_check_under_way_does_not_undo_a_disconnection(
    tenant: Tenant, server: McpServer, reading: health.HealthReading
) -> None:
    """REL-38: whoever disconnects a server has the last word; a look that they ask for brings it back."""
    health.note_reading(server, health.HealthReading(latency_ms=5))
    as_the_check_found_it = fresh(server)
    services.disconnect_server(server=server, actor=tenant.actor())
    stays_closed = fresh(server).state.next_check_at
    health.note_reading(as_the_check_found_it, reading)
    assert fresh(server).state.status == "disconnected"
    assert fresh(server).state.next_check_at == stays_closed
    health.note_reading(
        as_the_check_found_it, health.HealthReading(latency_ms=5), is_asked_for=True
    )
    assert fresh(server).state.status == "connected"


def test_a_disconnection_that_cannot_be_recorded_is_not_made(
    tenant: Tenant, server: McpServer
) -> None:
    """REL-2691: the state and the entry are written together."""
    health.note_reading(server, health.HealthReading(latency_ms=5))
    with refusing_entries(Action.SERVER_DISCONNECTED), pytest.raises(AuditUnavailable):
        services.disconnect_server(server=server, actor=tenant.actor())
    assert fresh(server).state.status == "connected"


def test_a_refused_sign_in_shows_at_once(tenant: Tenant, server: McpServer) -> None:
    """A typed state, never an empty list."""
    health.note_reading(server, health.HealthReading(latency_ms=5))
    health.note_reading(
        server, health.HealthReading(error=AuthenticationRequired("refused the credentials."))
    )
    assert fresh(server).state.status == "auth_required"


def test_checks_do_not_overlap(tenant: Tenant, server: McpServer) -> None:
    """REL-38: of two that begin at once, one does the work; switched-off servers are left alone."""
    assert health.claim(server.workspace_id, server.pk)
    assert not health.claim(server.workspace_id, server.pk)
    services.set_server_active(server=server, is_active=False, actor=tenant.actor())
    health.ask_for_check(server)
    assert not health.claim(server.workspace_id, server.pk)
    assert health.due_servers() == []


def test_checks_are_spread(tenant: Tenant, server: McpServer, settings: object) -> None:
    """REL-38: jitter; the next check of a failing server comes sooner."""
    pauses = set()
    for _ in range(20):
        health.note_reading(server, health.HealthReading(latency_ms=5))
        next_check = fresh(server).state.next_check_at
        assert next_check is not None
        pauses.add(round((next_check - timezone.now()).total_seconds(), 3))
    assert len(pauses) > 10
    assert all(50 < pause < 70 for pause in pauses)
    health.note_reading(server, health.HealthReading(error=ConnectionFailed("gone.")))
    next_check = fresh(server).state.next_check_at
    assert next_check is not None
    assert (next_check - timezone.now()).total_seconds() < 10


def test_every_due_server_gets_its_task(
    tenant: Tenant, server: McpServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REL-38: fanned out, so that a slow one delays none; and only when due."""
    sent: list[object] = []
    monkeypatch.setattr(
        current_app,
        "send_task",
        lambda name, args, **options: sent.append((name, args, options["expires"])),
    )
    tasks.check_all_servers()
    name = tasks.check_server.name
    assert sent == [(name, (str(tenant.workspace.pk), str(server.pk)), health.START_SECONDS)]
    tasks.check_all_servers()
    assert len(sent) == 1  # handed out, and not yet done
    health.note_reading(server, health.HealthReading(latency_ms=5))
    tasks.check_all_servers()
    assert len(sent) == 1


def test_a_task_for_a_foreign_or_missing_server_does_nothing(
    tenant: Tenant, server: McpServer
) -> None:
    """SEC-09: workspace and id must belong together."""
    from uuid import uuid4

    tasks.check_server(str(uuid4()), str(server.pk))
    tasks.check_server(str(tenant.workspace.pk), str(uuid4()))
    assert HealthCheck.objects.for_workspace(tenant.workspace).count() == 0


def test_old_checks_go(tenant: Tenant, server: McpServer) -> None:
    """Rows are bounded by age."""
    for days in (1, 30):
        HealthCheck.objects.create(
            workspace_id=server.workspace_id,
            server=server,
            checked_at=timezone.now() - timedelta(days=days),
            is_ok=True,
        )
    assert health.trim() == 1
    assert HealthCheck.objects.for_workspace(tenant.workspace).count() == 1


def test_what_a_program_wrote_is_redacted(tenant: Tenant, server: McpServer) -> None:
    """SEC-94: a secret in the error stream does not reach the row."""
    from workspaces.redaction import remember_secret

    remember_secret("hunter2-long-secret", workspace_id=tenant.workspace.pk)
    reading = health.HealthReading(
        error=ConnectionFailed("gone."), details="token=hunter2-long-secret refused"
    )
    health.note_reading(server, reading, is_asked_for=True)
    assert "hunter2" not in fresh(server).state.status_reason
    assert "refused" in fresh(server).state.status_reason


def test_a_servers_own_word_on_its_lists_brings_a_check_forward(tenant: Tenant) -> None:
    """SEC-58, REL-38: when it runs out the server is due, once, however far away its regular check is."""
    server = http_server(tenant, "https://example.org/mcp")
    rows = ServerState.objects.for_workspace(tenant.workspace).filter(pk=server.pk)
    later = timezone.now() + timedelta(hours=1)
    rows.update(next_check_at=later, lists_stale_at=later)
    assert (server.workspace_id, server.pk) not in health.due_servers()
    rows.update(lists_stale_at=timezone.now() - timedelta(seconds=1))
    assert (server.workspace_id, server.pk) in health.due_servers()
    assert health.claim(server.workspace_id, server.pk)
    assert not health.claim(server.workspace_id, server.pk)


@pytest.mark.parametrize(
    ("ttl_ms", "seconds"), [(0, None), (1, 60), (120_000, 120)], ids=["none", "short", "longer"]
)
def test_a_server_is_looked_at_no_more_often_than_about_once_a_minute(
    tenant: Tenant, ttl_ms: int, seconds: int | None
) -> None:
    """REL-2561: SDKs send a time of zero by themselves. It asks nobody to look again, and a short one not at once."""
    lists: Any = dict.fromkeys(
        ("tools/list", "resources/list", "resources/templates/list", "prompts/list"),
        CacheHint(ttl_ms=ttl_ms),
    )
    with full_server(cache_hints=lists) as (_, listening):
        server = looked_at(tenant, http_server(tenant, f"{listening.origin}/mcp"))
    assert server.state.protocol_revision == "2026-07-28"
    read_at, stale_at = server.state.tools_listed_at, server.state.lists_stale_at
    assert read_at is not None
    assert stale_at == (read_at + timedelta(seconds=seconds) if seconds else None)


def test_that_the_end_of_a_process_is_no_failure_of_a_server(tenant: Tenant) -> None:
    """REL-3134: a check that it cuts off says nothing of the server."""
    server = http_server(tenant, "https://far.example.org/mcp")
    shutdown.begin()
    try:
        runtime.shutdown(0.1)
        services.check_server(server=server)
    finally:
        shutdown.cancel()
    server.state.refresh_from_db()
    assert server.state.consecutive_failures == 0
    assert not HealthCheck.objects.for_workspace(tenant.workspace).exists()


def test_that_a_call_changes_the_row_and_not_the_object_that_calls_share(
    tenant: Tenant, server: McpServer
) -> None:
    """What another process has learned meanwhile stays."""
    asked_back = ToolCallOutcome(outcome=Outcome.TOOL_ERROR, details={"kind": "asks_back"})
    states = ServerState.objects.for_workspace(tenant.workspace).filter(pk=server.pk)
    states.update(server_info={"name": "learned meanwhile"})
    health.note_call(server, asked_back)
    assert server.state.server_info == {}
    assert fresh(server).state.server_info == {"name": "learned meanwhile", "asks_back": True}
    services.delete_server(server=fresh(server), actor=tenant.actor())
    health.note_call(server, asked_back)


def test_a_check_and_an_edit_undo_nothing_of_each_other(tenant: Tenant) -> None:
    """REL-340: they write different rows, whoever read first and whoever saves last."""
    server = http_server(tenant, "https://example.org/mcp")
    edited = fresh(server)
    health.note_reading(server, health.HealthReading(latency_ms=5))
    draft = ServerDraft(name="renamed")
    services.update_server(server=edited, draft=draft, actor=tenant.actor())
    assert (fresh(server).name, fresh(server).state.status) == ("renamed", "connected")


def test_a_check_that_goes_well_leaves_what_the_gate_keeps(tenant: Tenant) -> None:
    """REL-340: the next call need not read its tool anew; after a change of status it does."""
    server = http_server(tenant, "https://example.org/mcp")
    tool = stored_tool(server, "echo")
    health.note_reading(server, health.HealthReading(latency_ms=5))
    kept = resolve_tool(tenant.workspace.pk, tool.pk)
    health.note_reading(server, health.HealthReading(latency_ms=7))
    assert resolve_tool(tenant.workspace.pk, tool.pk) is kept
    lost = health.HealthReading(error=ConnectionFailed("gone."))
    health.note_reading(server, lost, is_asked_for=True)
    assert resolve_tool(tenant.workspace.pk, tool.pk) is not kept


@pytest.mark.postgresql
@pytest.mark.django_db(transaction=True)
def test_a_check_does_not_wait_for_whoever_edits_the_server(tenant: Tenant) -> None:
    """REL-340: while an edit holds the server's row, what a check found is stored."""
    server = http_server(tenant, "https://example.org/mcp")
    rows = McpServer.objects.for_workspace(tenant.workspace)

    def look() -> None:
        try:
            health.note_reading(server, health.HealthReading(latency_ms=5))
            actor = Actor.system(source=Source.TASK, workspace_id=server.workspace_id)
            discovery.store_tools(server=server, raw_tools=[raw_tool("echo")], actor=actor)
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as pool, transaction.atomic():
        rows.select_for_update(of=("self",), no_key=True).get(pk=server.pk)
        pool.submit(look).result(timeout=60)
    assert fresh(server).state.status == "connected"
    assert McpTool.objects.for_workspace(tenant.workspace).filter(server=server).count() == 1


def test_that_a_page_of_many_servers_costs_no_more_queries(tenant: Tenant) -> None:
    """Each card has its own last looks, newest at the end."""
    counts = []
    servers: list[McpServer] = []
    for number in range(3):
        server = http_server(tenant, f"https://{number}.example.org/mcp")
        servers.append(server)
        for past in range((0, 2, CHECKS_SHOWN + 5)[number]):
            HealthCheck.objects.create(
                workspace=tenant.workspace,
                server=server,
                checked_at=timezone.now() - timedelta(minutes=past),
                is_ok=past == 0,
                latency_ms=number,
            )
        with CaptureQueriesContext(connection) as captured:
            cards = cards_of(servers, actor=tenant.actor())
        counts.append(len(captured))
    assert len(set(counts)) == 1
    assert [len(card.checks) for card in cards] == [0, 2, CHECKS_SHOWN]
    assert [bar.ok for bar in cards[2].checks] == [False] * (CHECKS_SHOWN - 1) + [True]


@pytest.mark.parametrize("of", ["everybody", "one person"])
def test_a_server_that_is_deleted_during_its_check_is_no_error(
    tenant: Tenant, counting: CountingServer, monkeypatch: pytest.MonkeyPatch, of: str
) -> None:
    """REL-1550: the task that checked it ends, and the log of the process has no traceback."""
    server = http_server(tenant, counting.url)
    read = inspection._list_offers

    def read_and_delete(*given: Any, **more: Any) -> Any:
        listing = read(*given, **more)
        stored = McpServer.objects.for_workspace(tenant.workspace).get(pk=server.pk)
        services.delete_server(server=stored, actor=tenant.actor("admin"))
        return listing

    monkeypatch.setattr(inspection, "_list_offers", read_and_delete)
    if of == "everybody":
        tasks.check_server(str(tenant.workspace.pk), str(server.pk))
    else:
        tasks.look_as_person(
            str(tenant.workspace.pk), str(server.pk), str(tenant.people["admin"].pk)
        )
    assert not McpServer.objects.for_workspace(tenant.workspace).exists()
