"""As many rows as there may be: two who make the last one at one moment do not make one too many."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from threading import Barrier
from types import ModuleType
from typing import Any

import pytest
from django.db import connection

from audit.alerts import services as alerts
from audit.models import AlertRule, AuditStream, ReportSchedule, SavedView
from audit.reviews import saved_views, schedules
from audit.streams import services as streams
from chat.models import Bud, Folder, Pin, WebhookEndpoint
from chat.services import folders, pins
from chat.webhooks import services as webhooks
from mcp_servers.models import McpServer
from mcp_servers.registry.services import ServerDraft, servers
from tests.factories import Tenant
from tests.locks import beside
from tests.patience import PATIENCE
from tests.threads import Threads
from workspaces.database import database_now
from workspaces.errors import Conflict, DomainError, InvalidInput
from workspaces.lists import list_views
from workspaces.models import SavedListView

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.both_engines]


def a_stream(tenant: Tenant, name: str) -> None:
    streams.create_stream(
        workspace_id=tenant.workspace.pk,
        actor=tenant.actor("owner"),
        kind="webhook",
        draft=streams.StreamDraft(name=name, target="https://sink.example.org/"),
        start=streams.StreamStart.NOW,
    )


def an_alert_rule(tenant: Tenant, name: str) -> None:
    draft = alerts.AlertRuleDraft(name=name, condition="timeout", threshold=5, window_minutes=15)
    alerts.create_rule(workspace_id=tenant.workspace.pk, actor=tenant.actor("owner"), draft=draft)


def a_webhook(tenant: Tenant, name: str) -> None:
    webhooks.create_webhook(
        workspace_id=tenant.workspace.pk,
        actor=tenant.actor("owner"),
        url=f"https://{name}.example.org/",
        events=["turn.finished"],
    )


def a_view_of_the_log(tenant: Tenant, name: str) -> None:
    saved_views.save_view(
        workspace_id=tenant.workspace.pk,
        actor=tenant.actor("auditor"),
        page="log",
        name=name,
        query="q=a",
        is_shared=False,
    )


def a_view_of_a_list(tenant: Tenant, name: str, *, is_shared: bool = False) -> None:
    list_views.save_list_view(
        workspace_id=tenant.workspace.pk,
        actor=tenant.actor("admin"),
        of_list="chat.bud",
        name=name,
        query="q=a",
        is_shared=is_shared,
    )


def a_shared_view_of_a_list(tenant: Tenant, name: str) -> None:
    a_view_of_a_list(tenant, name, is_shared=True)


def a_folder(tenant: Tenant, name: str) -> None:
    folders.create_folder(
        workspace_id=tenant.workspace.pk,
        owner=tenant.member,
        actor=tenant.actor("member"),
        name=name,
    )


def a_pin(tenant: Tenant, name: str) -> None:
    pins.set_bud_pin(
        workspace=tenant.workspace,
        owner=tenant.member,
        actor=tenant.actor("member"),
        bud_id=Bud.objects.for_workspace(tenant.workspace).get(slug=name).pk,
        is_pinned=True,
    )


def a_personal_server(tenant: Tenant, name: str) -> None:
    servers.add_personal_server(
        workspace=tenant.workspace,
        draft=ServerDraft(
            name=name, transport="streamable_http", url=f"https://{name}.example.org/mcp"
        ),
        actor=tenant.actor("member"),
    )


def a_schedule(tenant: Tenant, name: str) -> None:
    draft = schedules.ScheduleDraft(
        name=name,
        query="",
        format="csv",
        cadence="weekly",
        delivery="mail",
        recipients=[str(tenant.auditor.pk)],
    )
    schedules.create_schedule(
        workspace_id=tenant.workspace.pk,
        actor=tenant.actor("auditor"),
        draft=draft,
        now=database_now(),
    )


Make = Callable[[Tenant, str], None]
CAPS: list[tuple[Make, ModuleType, str, Any]] = [
    (a_stream, streams, "MOST_STREAMS", AuditStream),
    (an_alert_rule, alerts, "MOST_RULES", AlertRule),
    (a_webhook, webhooks, "MOST_ENDPOINTS", WebhookEndpoint),
    (a_view_of_the_log, saved_views, "MOST", SavedView),
    (a_view_of_a_list, list_views, "MOST", SavedListView),
    (a_shared_view_of_a_list, list_views, "MOST", SavedListView),
    (a_folder, folders, "MOST_FOLDERS", Folder),
    (a_pin, pins, "MOST_PINS", Pin),
    (a_personal_server, servers, "MAX_PERSONAL_SERVERS", McpServer),
    (a_schedule, schedules, "MOST", ReportSchedule),
]


@pytest.mark.parametrize(
    ("make", "module", "cap", "model"), CAPS, ids=[make.__name__ for make, *_ in CAPS]
)
def test_two_at_once_do_not_pass_the_cap(
    tenant: Tenant,
    monkeypatch: pytest.MonkeyPatch,
    make: Make,
    module: ModuleType,
    cap: str,
    model: Any,
) -> None:
    """REL-1645: the second one waits for the first, and reads that there is no room."""
    tenant.allow_personal_servers()
    for slug in ("one", "two"):
        Bud.objects.create(workspace=tenant.workspace, slug=slug, name=slug)
    monkeypatch.setattr(module, cap, 1)
    outcomes = at_once(lambda: make(tenant, "one"), lambda: make(tenant, "two"))
    assert isinstance(outcomes, Conflict | InvalidInput)
    assert "1" in outcomes.message
    assert model.objects.for_workspace(tenant.workspace).count() == 1


def at_once(first: Callable[[], None], second: Callable[[], None]) -> BaseException | None:
    """On two connections; gives what the one raised that came too late."""
    if connection.vendor == "postgresql":
        return beside(first, second)
    both = Barrier(2)

    def after_the_other(make: Callable[[], None]) -> None:
        both.wait(PATIENCE)
        make()

    with Threads(2) as threads:
        asked: list[Future[None]] = [
            threads.submit(after_the_other, make) for make in (first, second)
        ]
        listed = [one.exception(PATIENCE) for one in asked]
    late = [one for one in listed if one is not None]
    assert len(late) == 1
    assert isinstance(late[0], DomainError)
    return late[0]
