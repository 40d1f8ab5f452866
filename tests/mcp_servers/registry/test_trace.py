"""What goes over the connections, as far as each person may see it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, cast
from uuid import UUID

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone
from uuid_utils.compat import uuid7

from audit.actions import Action
from audit.models import AuditEntry
from mcp_servers.client.connections import runtime
from mcp_servers.client.connections.hooks import TraceRecord, hooks
from mcp_servers.client.connections.tracing import ConnectionTrace, buffer
from mcp_servers.gate import call_tool
from mcp_servers.models import ApprovalOverride, McpServer, TraceMessage
from mcp_servers.registry import services
from mcp_servers.registry.specs import connection_spec
from mcp_servers.registry.trace import download, reading, sink
from mcp_servers.registry.trace.reading import TraceFilter
from tests.factories import Tenant, TwoTenants
from tests.fakes.mcp_server import CountingServer
from tests.mcp_servers.factories import a_request, http_server, looked_at, tool_of
from tests.other_keys import having
from workspaces.errors import InvalidInput, PermissionDenied
from workspaces.redaction import MASK, remember_secret

pytestmark = pytest.mark.django_db
PRIVATE = "the-diagnosis-of-a-person"


@pytest.fixture
def server(tenant: Tenant) -> McpServer:
    return http_server(tenant, "https://example.org/mcp")


def a_record(server: McpServer, **fields: Any) -> TraceRecord:
    """One message of this server."""
    return TraceRecord(
        **{
            "workspace_id": server.workspace_id,
            "server_id": server.pk,
            "principal": "workspace",
            "connection": "c1",
            "at": datetime.now(UTC),
            "direction": "sent",
            "kind": "request",
            "method": "tools/call",
            "rpc_id": "7",
            "body": {
                "jsonrpc": "2.0",
                "id": 7,
                "method": "tools/call",
                "params": {"name": "search", "arguments": {"query": PRIVATE, "limit": 3}},
            },
            "size": 120,
            **fields,
        }
    )


def stored(server: McpServer, *records: TraceRecord) -> list[TraceMessage]:
    """These messages in rows, oldest first."""
    sink.store(records)
    rows = TraceMessage.objects.for_workspace(server.workspace_id).select_related("server")
    return list(rows.filter(server=server).order_by("pk"))


def outline(row: TraceMessage) -> Any:
    """What everybody may see who sees the trace."""
    return row.outline


def test_that_an_administrator_sees_what_happened_but_not_what_was_said(
    tenant: Tenant, server: McpServer
) -> None:
    """Names stay, values become kinds and sizes; the same for an answer, an error and a question."""
    call = uuid7()
    rows = stored(
        server,
        a_record(server, call_id=call, user_id=tenant.member.pk),
        a_record(
            server,
            direction="received",
            kind="response",
            call_id=call,
            body={
                "jsonrpc": "2.0",
                "id": 7,
                "result": {"content": [{"type": "text", "text": PRIVATE}]},
            },
        ),
        a_record(
            server,
            kind="error",
            text=PRIVATE,
            body={"id": 7, "error": {"code": -32602, "message": PRIVATE}},
        ),
        a_record(server, method="resources/read", body={"params": {"uri": f"file:///{PRIVATE}"}}),
        a_record(server, method="elicitation/create", body={"params": {"message": PRIVATE}}),
    )
    for row in rows:
        assert PRIVATE not in json.dumps(reading.as_json(row))
        assert row.body is not None
        assert PRIVATE not in str(row.body.sealed)
    assert outline(rows[0])["params"] == {
        "name": "search",
        "arguments": {"query": f"text of {len(PRIVATE)}", "limit": "number"},
    }
    assert outline(rows[2])["error"]["code"] == -32602


def test_that_what_a_server_says_about_itself_is_shown_whole(server: McpServer) -> None:
    """An administrator who looks for a fault needs it; hidden characters are written out."""
    (row,) = stored(
        server,
        a_record(
            server,
            method="notifications/message",
            kind="notification",
            text="warning: low\u202e disk",
            body={"method": "notifications/message", "params": {"data": "low disk"}},
        ),
    )
    assert outline(row)["params"] == {"data": "low disk"}
    assert row.text == "warning: low‹U+202E› disk"


def test_that_secrets_reach_no_row(tenant: Tenant, server: McpServer) -> None:
    """SEC-1072: by value, by name and by shape, in ids and methods too; an auditor does not see them either."""
    remember_secret("s3cret-of-the-server", workspace_id=tenant.workspace.pk)
    row, answer = stored(
        server,
        a_record(
            server,
            method="initialize",
            rpc_id="s3cret-of-the-server",
            text="connected with s3cret-of-the-server",
            body={
                "params": {"token": "abc", "note": "s3cret-of-the-server", "x": "sk-" + "a" * 20}
            },
        ),
        a_record(server, method="x/s3cret-of-the-server", rpc_id="sk-" + "a" * 20, body=None),
    )
    body = reading.open_body(row, actor=tenant.actor("auditor"))
    assert body == {"params": {"token": MASK, "note": MASK, "x": MASK}}
    assert "s3cret" not in json.dumps(reading.as_json(row))
    assert (row.rpc_id, answer.method, answer.rpc_id) == (MASK, f"x/{MASK}", MASK)


def test_who_may_read_what_was_sent(tenant: Tenant, server: McpServer) -> None:
    """Whoever made the call, and auditors; for these it is an entry of the log, and without it they read nothing."""
    (row,) = stored(server, a_record(server, user_id=tenant.member.pk, call_id=uuid7()))
    opened = AuditEntry.unscoped.filter(action=Action.BODY_OPENED)
    assert PRIVATE in str(reading.open_body(row, actor=tenant.actor("member")))
    assert not opened.exists()
    with pytest.raises(PermissionDenied):
        reading.open_body(row, actor=tenant.actor("admin"))
    assert PRIVATE in str(reading.open_body(row, actor=tenant.actor("auditor")))
    assert opened.get().details["trace_message"] == str(row.pk)


def test_who_may_see_a_trace(
    two_workspaces: TwoTenants, server_of: Callable[..., McpServer]
) -> None:
    """SEC-01: administrators and auditors of the workspace; of somebody's own server its owner alone."""
    a, b = two_workspaces.a, two_workspaces.b
    a.allow_personal_servers()
    shared, personal = server_of(a), server_of(a, owner=a.member)
    may = {
        (role, name): reading.may_see_trace(a.actor(role), row)
        for role in a.people
        for name, row in (("shared", shared), ("personal", personal))
    }
    assert {who for who, allowed in may.items() if allowed} == {
        ("owner", "shared"),
        ("admin", "shared"),
        ("auditor", "shared"),
        ("member", "personal"),
    }
    assert not any(reading.may_see_trace(b.actor(role), shared) for role in b.people)


@pytest.fixture
def server_of() -> Callable[..., McpServer]:
    def make(tenant: Tenant, owner: Any = None) -> McpServer:
        return McpServer.objects.create(
            workspace=tenant.workspace,
            name=f"server {uuid7()}",
            url="https://example.org/",
            scope="personal" if owner else "workspace",
            owner=owner,
        )

    return make


def test_that_a_trace_keeps_its_bounds(server: McpServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """In rows and in age, in small deletions, and also between two runs of the task."""
    monkeypatch.setattr(sink, "MAX_ROWS", 50)
    monkeypatch.setattr(sink, "_TRIM_AFTER", 100)
    for _ in range(3):
        sink.store([a_record(server, method=f"m{number}") for number in range(40)])
    rows = TraceMessage.objects.for_workspace(server.workspace_id)
    assert rows.count() == 50
    old = timezone.now() - timedelta(hours=25)
    rows.filter(pk__in=list(rows.order_by("pk").values_list("pk", flat=True)[:20])).update(at=old)
    assert sink.trim() == 20
    assert rows.count() == 30


def test_that_messages_of_no_server_are_dropped(tenant: Tenant, server: McpServer) -> None:
    """SEC-01: of one that was never saved, or that names another workspace."""
    assert sink.store([a_record(server, server_id=uuid7())]) == 0
    assert sink.store([a_record(server, workspace_id=uuid7())]) == 0


def test_that_a_trace_is_filtered(tenant: Tenant, server: McpServer) -> None:
    """By direction, method, id, call, errors and words; what is no filter is refused."""
    call = uuid7()
    stored(
        server,
        a_record(server, call_id=call),
        a_record(server, direction="received", kind="error", rpc_id="8"),
        a_record(server, direction="event", kind="event", method="", body=None, text="Fell back."),
    )
    rows = reading.messages_of(server, actor=tenant.actor())

    def found(**values: str) -> int:
        return reading.matching(rows, TraceFilter.read(values)).count()

    assert found() == 3
    assert found(direction="event") == found(text="fell") == found(errors="on") == 1
    assert found(method="tools/") == 2
    assert found(rpc_id="8") == found(call_id=str(call)) == 1
    for wrong in ({"direction": "up"}, {"call_id": "x"}):
        with pytest.raises(InvalidInput):
            TraceFilter.read(wrong)


def test_that_a_download_has_the_rights_of_whoever_takes_it(
    tenant: Tenant, server: McpServer
) -> None:
    """Line by line; the bodies of others only for an auditor, and that it was taken is in the log."""
    stored(
        server,
        a_record(server, user_id=tenant.admin.pk),
        a_record(server, user_id=tenant.member.pk),
    )

    def lines(role: str) -> list[dict[str, Any]]:
        actor = tenant.actor(role)
        download.record_download(server, wanted=TraceFilter(), actor=actor)
        rows = reading.messages_of(server, actor=actor)
        text = b"".join(download.stream(rows, lambda: actor)).decode()
        return [json.loads(line) for line in text.splitlines()]

    assert ["body" in line for line in lines("admin")] == [True, False]
    assert ["body" in line for line in lines("auditor")] == [True, True]
    assert AuditEntry.unscoped.filter(action=Action.EXPORT_CREATED).count() == 2
    with having():  # REL-2095: one that cannot be read ends no file
        bodies = [line["body"] for line in lines("auditor")]
    assert (
        bodies == ["This cannot be read, because the encryption key that protected it is gone."] * 2
    )


@pytest.mark.django_db(transaction=True)
async def test_the_whole_way_from_a_real_call(
    tenant: Tenant, counting: CountingServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A call through the gate is in the trace, request and answer tied together, with whose call it was."""
    monkeypatch.setattr(hooks, "traced", sink.keep_batch)

    def look() -> Any:
        return tool_of(looked_at(tenant, http_server(tenant, counting.url)), "echo")

    tool = await asyncio.to_thread(look)
    request = a_request(tenant, tool, {"text": PRIVATE}, can_ask=False)
    await McpServer.objects.for_workspace(tenant.workspace).aupdate(trusts_annotations=True)
    tool.approval_override = ApprovalOverride.AUTO
    await asyncio.to_thread(tool.save)
    await call_tool(request)
    await runtime.run(buffer.close())

    def seen() -> list[TraceMessage]:
        rows = TraceMessage.objects.for_workspace(tenant.workspace).filter(call_id=request.call_id)
        return list(rows.order_by("pk"))

    sent, answered = await asyncio.to_thread(seen)
    assert (sent.direction, sent.kind, sent.method) == ("sent", "request", "tools/call")
    assert (answered.direction, answered.kind) == ("received", "response")
    assert answered.duration_ms is not None
    assert {sent.user_id, answered.user_id} == {UUID(str(tenant.member.pk))}
    assert PRIVATE not in str(sent.outline)
    (partner,) = await asyncio.to_thread(reading.partners_of, sent)
    assert partner.pk == answered.pk


@pytest.mark.parametrize(
    "number", [float("nan"), float("inf"), -(10**30), 10**5000], ids=["nan", "inf", "30", "5000"]
)
def test_that_a_number_no_database_takes_costs_nothing(server: McpServer, number: float) -> None:
    """A server that logs what is not JSON must not empty the trace, neither its own nor others'."""
    body = {"params": {"level": "info", "data": {"list": [number]}, "code": number}}
    rows = stored(
        server,
        a_record(server),
        a_record(
            server,
            direction="received",
            kind="notification",
            method="notifications/message",
            body=body,
        ),
        a_record(server, size=2**40, duration_ms=2**40),
    )
    assert len(rows) == 3
    row = TraceMessage.objects.for_workspace(server.workspace_id).get(pk=rows[1].pk)
    assert json.loads(json.dumps(row.outline, allow_nan=False))["params"]["level"] == "info"


def test_that_a_row_which_is_refused_costs_one_row(
    tenant: Tenant, server: McpServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the reason, other messages and other servers' messages are kept."""
    other = http_server(tenant, "https://other.example.org/mcp")
    make = sink._row

    def spoiled(record: TraceRecord) -> TraceMessage:
        if record.method == "unreadable":
            raise RecursionError
        row = make(record)
        if record.method == "refused":
            row.direction = None  # type: ignore[assignment]  # a column that takes no NULL
        return row

    monkeypatch.setattr(sink, "_row", spoiled)
    kept = sink.store(
        [
            a_record(server),
            a_record(server, method="refused"),
            a_record(server, method="unreadable"),
            a_record(other),
            a_record(server),
        ]
    )
    assert kept == 3
    rows = TraceMessage.objects.for_workspace(tenant.workspace)
    assert (rows.filter(server=server).count(), rows.filter(server=other).count()) == (2, 1)


def test_regular_checks_have_a_budget_of_their_own(
    server: McpServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REL-220: however many there are, what people did stays; and the other way round."""
    monkeypatch.setattr(sink, "MAX_ROWS", 5)
    monkeypatch.setattr(sink, "MAX_CHECK_ROWS", 3)
    sink.store([a_record(server, method="mine") for _ in range(4)])
    sink.store([a_record(server, method="check", is_check=True) for _ in range(20)])
    sink.trim_server(server.pk)
    rows = TraceMessage.objects.for_workspace(server.workspace_id).filter(server=server)
    assert (rows.filter(is_check=False).count(), rows.filter(is_check=True).count()) == (4, 3)
    sink.store([a_record(server, method="mine") for _ in range(20)])
    sink.trim_server(server.pk)
    assert (rows.filter(is_check=False).count(), rows.filter(is_check=True).count()) == (5, 3)


def test_the_page_hides_regular_checks_and_lists_the_methods(
    tenant: Tenant, server: McpServer
) -> None:
    """REL-220: a switch shows them, on the page and over REST; the methods that occur can be picked."""
    stored(
        server,
        a_record(server, method="tools/call"),
        a_record(server, method="tools/list", is_check=True),
    )
    client = tenant.client("admin", headers={"X-Workspace": tenant.workspace.slug})
    page = reverse("mcp_servers:trace", args=[tenant.workspace.slug, server.pk])
    text = client.get(page).content.decode()
    assert '<option value="tools/list" >tools/list</option>' in text
    assert text.count('class="trace-row"') == 1
    assert client.get(f"{page}?checks=on").content.decode().count('class="trace-row"') == 2
    picked = client.get(f"{page}?method=tools/list&checks=on").content.decode()
    assert '<option value="tools/list" selected>' in picked
    assert picked.count('class="trace-row"') == 1

    def methods(query: str) -> list[str]:
        return [row["method"] for row in client.get(f"/api/trace/?{query}").json()["results"]]

    assert methods("") == ["tools/call"]
    assert methods("checks=true") == ["tools/list", "tools/call"]


def test_the_page_begins_with_calls(tenant: Tenant, server: McpServer) -> None:
    """REL-720: lists that went well are behind a switch, and found by their method."""
    stored(
        server,
        a_record(server, method="tools/call"),
        a_record(server, method="tools/list"),
        a_record(server, method="prompts/list", kind="error"),
    )
    client = tenant.client("admin", headers={"X-Workspace": tenant.workspace.slug})
    page = reverse("mcp_servers:trace", args=[tenant.workspace.slug, server.pk])
    shown = {
        query: client.get(f"{page}{query}").content.decode().count('class="trace-row"')
        for query in ("", "?lists=on", "?method=tools/list")
    }
    assert shown == {"": 2, "?lists=on": 3, "?method=tools/list": 1}


@pytest.mark.django_db(transaction=True)
def test_a_regular_check_is_marked_and_a_persons_look_is_not(
    tenant: Tenant, counting: CountingServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REL-220: a check writes its own row and the server's state, and no row that people edit or servers offer."""
    monkeypatch.setattr(hooks, "traced", sink.keep_batch)
    row = http_server(tenant, counting.url)
    services.check_server(server=row)
    runtime.run_sync(buffer.close(), 10)
    rows = TraceMessage.objects.for_workspace(tenant.workspace).filter(server=row)
    assert rows.exists()
    assert not rows.filter(is_check=False).exists()
    looked_at(tenant, row)
    runtime.run_sync(buffer.close(), 10)
    assert rows.filter(is_check=False, method="tools/list").exists()

    with CaptureQueriesContext(connection) as done:
        services.check_server(server=row)
    written = {
        query["sql"].split('"')[1]
        for query in done.captured_queries
        if query["sql"].startswith(("INSERT", "UPDATE", "DELETE"))
    }
    assert written == {"mcp_servers_healthcheck", "mcp_servers_serverstate"}


def test_a_check_that_fails_is_seen(
    tenant: Tenant, server: McpServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REL-220: an error is hidden by nothing, nor is what somebody does meanwhile."""
    monkeypatch.setattr(hooks, "traced", sink.keep_batch)
    notes: list[Any] = []
    trace = ConnectionTrace(connection_spec(server), buffer=cast("Any", _Notes(notes)))
    trace.is_check = True
    trace.message("sent", "request", {}, method="tools/list")
    trace.message("received", "error", {"error": {}}, method="tools/list")
    trace.message("received", "response", {}, method="tools/call", is_check=False)
    assert [note.is_check for note in notes] == [True, False, False]


class _Notes:
    """A buffer that keeps what it is given."""

    def __init__(self, notes: list[Any]) -> None:
        self._notes = notes

    def add(self, note: Any) -> None:
        self._notes.append(note)
