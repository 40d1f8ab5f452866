"""The overview for whoever keeps things running."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from audit.models import Alert, AlertDelivery, AlertRule, AuditStream
from audit.streams.services import StreamDraft, StreamStart, create_stream
from chat.models import Bud, Conversation, Message, ToolCall, Turn
from chat.values import ToolCallStatus
from mcp_servers.models import HealthCheck
from tests.factories import CANARY, Tenant, TwoTenants
from tests.mcp_servers.factories import http_server

pytestmark = pytest.mark.django_db

PATH = "/w/{}/audit/overview/"


def page(tenant: Tenant, role: str = "auditor") -> str:
    answer = tenant.client(role).get(PATH.format(tenant.workspace.slug))
    assert answer.status_code == 200
    return str(answer.content.decode())


def a_broken_server(tenant: Tenant, name: str = "garden") -> None:
    """It answered, then closed the connection, and now refuses what it is shown."""
    server = http_server(tenant, "https://tools.example.org/mcp", name=name)
    now = timezone.now()
    words = "The server closed the connection.", "The server refused the credentials."
    for minutes, error in ((30, ""), (20, words[0]), (10, words[1])):
        HealthCheck.objects.create(
            workspace=tenant.workspace,
            server=server,
            checked_at=now - timedelta(minutes=minutes),
            is_ok=error == "",
            error=error,
        )


def a_waiting_call(tenant: Tenant, *, hours: float) -> None:
    """A call that has waited for approval for so long."""
    bud = Bud.objects.create(workspace=tenant.workspace, slug=f"b{hours}", name="Helper")
    of = {"workspace": tenant.workspace}
    conversation = Conversation.objects.create(**of, bud=bud, owner=tenant.member)
    question, answer = (
        Message.objects.create(
            **of, conversation=conversation, role=role, text="?", order_key=number
        )
        for number, role in enumerate(("user", "assistant"), 1)
    )
    turn = Turn.objects.create(
        **of, conversation=conversation, user_message=question, asked_by=tenant.member
    )
    call = ToolCall.objects.create(
        **of,
        turn=turn,
        message=answer,
        position=0,
        function_name="mail__send",
        server_name="mail",
        tool_name="send",
        status=ToolCallStatus.WAITING_FOR_APPROVAL,
    )
    ToolCall.objects.for_workspace(tenant.workspace).filter(pk=call.pk).update(
        created_at=timezone.now() - timedelta(hours=hours)
    )


def test_a_quiet_workspace_needs_nothing(tenant: Tenant) -> None:
    """REL-644: empty states say so."""
    text = page(tenant)
    for words in (
        "Nothing. Servers answer",
        "No call waits.",
        "No alert so far.",
        "Seals of the log",
    ):
        assert words in text, words


def test_what_needs_somebody_stands_first(tenant: Tenant) -> None:
    """REL-644, REL-3142: each with a way to where something can be done about it."""
    a_broken_server(tenant)
    for hours in (0.5, 5, 30):
        a_waiting_call(tenant, hours=hours)
    rule = AlertRule.objects.create(
        workspace=tenant.workspace, name="Too slow", condition="timeout", threshold=1
    )
    now = timezone.now()
    Alert.objects.create(
        workspace=tenant.workspace, rule=rule, started_at=now, value=3, peak=3, told_at=now
    )
    AlertDelivery.objects.create(
        workspace=tenant.workspace,
        rule=rule,
        channel="email",
        target="ops@example.org",
        payload={},
        status=AlertDelivery.Status.GIVEN_UP,
        next_attempt_at=now,
        last_error="The mail server refused it.",
    )
    stream, _secret = create_stream(
        workspace_id=tenant.workspace.pk,
        actor=tenant.actor("owner"),
        kind=AuditStream.Kind.WEBHOOK.value,
        draft=StreamDraft(name="SIEM", target="https://siem.example.org/in"),
        start=StreamStart.NOW,
    )
    stream.state.failures = 3
    stream.state.save()
    text = page(tenant)
    first = text[text.index("needs-heading") : text.index("servers-heading")]
    for words in (
        "Alert: Too slow",
        "“garden” fails its health checks.",
        "The stream “SIEM” cannot send.",
        "1 call has waited for approval for more than a day.",
        "Messages of alerts: something failed.",
    ):
        assert words in first, words
    # What is wrong now, and not what it began with.
    assert "The server refused the credentials." in text
    assert "The server closed the connection." not in text
    assert "The mail server refused it." in text
    assert tenant.member.email in text


def test_only_those_who_read_the_log_open_it(tenant: Tenant) -> None:
    """REL-644, SEC-100: with the right to see the log, and only then."""
    path = PATH.format(tenant.workspace.slug)
    assert tenant.client("member").get(path).status_code == 403
    assert tenant.client("owner").get(path).status_code == 200
    assert (
        path in tenant.client("auditor").get(f"/w/{tenant.workspace.slug}/audit/").content.decode()
    )


def test_nothing_of_another_workspace_is_told(two_workspaces: TwoTenants) -> None:
    """SEC-01: neither servers nor calls, alerts or changes."""
    a, b = two_workspaces.a, two_workspaces.b
    a_broken_server(b, CANARY)
    a_waiting_call(b, hours=30)
    text = page(a)
    assert CANARY not in text
    assert "No call waits." in text


def test_it_takes_as_many_statements_however_much_there_is(tenant: Tenant) -> None:
    """REL-644: no statement for each server, call or entry."""

    def statements() -> int:
        with CaptureQueriesContext(connection) as asked:
            page(tenant)
        return len(asked)

    a_broken_server(tenant)
    a_waiting_call(tenant, hours=1)
    statements()
    few = statements()
    assert "“garden” fails its health checks." in page(tenant)
    for number in range(15):
        a_broken_server(tenant, f"server {number}")
        a_waiting_call(tenant, hours=number + 2)
    assert statements() <= few
    assert "16 servers fail their health checks." in page(tenant)
    assert "The 15 servers with the most failures are shown, of 16." in page(tenant)


@pytest.mark.parametrize(
    ("page", "checkpoints", "tails"), [("overview/", 1, 0), ("", 1, 1), ("reports/", 1, 1)]
)
def test_a_page_reads_the_newest_checkpoint_and_the_uncounted_entries_once(
    tenant: Tenant, page: str, checkpoints: int, tails: int
) -> None:
    """REL-2888: its parts each want to know, and up to 4,000 entries are counted."""
    with CaptureQueriesContext(connection) as asked:
        answer = tenant.client("auditor").get(f"/w/{tenant.workspace.slug}/audit/{page}")
    assert answer.status_code == 200
    statements = [one["sql"] for one in asked.captured_queries]
    assert sum('FROM "audit_auditcheckpoint"' in one for one in statements) == checkpoints
    tail = [one for one in statements if "UNION ALL" in one and '"refused_by" AS' in one]
    assert len(tail) == tails
