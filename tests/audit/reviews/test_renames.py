"""A server gets a new name: what goes on looking at it does so by that name."""

from __future__ import annotations

from typing import Any

import pytest
from django.utils import timezone

from audit.actions import Action, Outcome
from audit.alerts.conditions import measure
from audit.models import AlertRule, AuditEntry
from mcp_servers.models import McpServer
from mcp_servers.registry import services
from mcp_servers.registry.services import ServerDraft
from tests.audit.alerts.entries import write
from tests.audit.alerts.rules import make_rule
from tests.audit.exports.planned import a_schedule
from tests.factories import Tenant
from tests.mcp_servers.factories import http_server
from workspaces.words.typed_filters import with_value

pytestmark = pytest.mark.django_db
_C = AlertRule.Condition


def rename(tenant: Tenant, server: McpServer, name: str) -> None:
    services.update_server(server=server, draft=ServerDraft(name=name), actor=tenant.actor())


@pytest.fixture
def server(tenant: Tenant) -> McpServer:
    return http_server(tenant, "https://notes.example.org/mcp", name="Old notes")


@pytest.mark.parametrize(
    "fields",
    [
        {"server_name": "Old notes"},
        {"query": 'server:"Old notes" tool:add'},
        {"query": "server=Old+notes&tool=add"},
    ],
    ids=["by name", "typed", "address"],
)
def test_an_alert_rule_follows_a_server(
    tenant: Tenant, server: McpServer, fields: dict[str, Any]
) -> None:
    """REL-1300: it counts what happens under the new name, and the log has the change."""
    rule = make_rule(tenant, _C.TIMEOUT, **fields)
    rename(tenant, server, "Notes")
    rule.refresh_from_db()
    for name in ("Notes", "Old notes"):
        write(
            tenant,
            Action.TOOL_CALL_FINISHED,
            outcome=Outcome.TIMEOUT,
            server=name,
            tool="add",
        )
    assert measure(rule, timezone.now()) == 1
    changed = AuditEntry.objects.for_workspace(tenant.workspace).filter(
        action=Action.CONFIG_CHANGED.value, details__id=str(rule.pk), details__verb="changed"
    )
    assert changed.exists()


def test_a_schedule_follows_a_server_and_others_stay_as_they_are(
    tenant: Tenant, server: McpServer
) -> None:
    """REL-1300: only where the filter is that server, and nothing but its name changes."""
    mine = a_schedule(tenant, query="server=Old+notes&outcome=failed")
    typed = a_schedule(tenant, query='server:"Old notes"  outcome:failed "server:Old"')
    other = a_schedule(tenant, query='server:Old "Old notes"')
    rename(tenant, server, 'New "notes"')
    for row in (mine, typed, other):
        row.refresh_from_db()
    assert mine.query == "server=New+%22notes%22&outcome=failed"
    assert typed.query == 'server:"New \\"notes\\""  outcome:failed "server:Old"'
    assert other.query == 'server:Old "Old notes"'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("server:a tool:a", "server:b tool:a"),
        ('SERVER:"a" x', "SERVER:b x"),
        ("server:ab", "server:ab"),
        ('"server:a"', '"server:a"'),
        ("", ""),
    ],
)
def test_one_value_of_a_typed_filter_is_replaced(text: str, message: str) -> None:
    """REL-1300."""
    assert with_value(text, "server", "a", "b") == message
