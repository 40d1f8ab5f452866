"""The gate against real programs and against servers that misbehave in a call."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.utils import timezone

from audit.actions import Outcome
from audit.models import AuditEntry
from mcp_servers.client import transports
from mcp_servers.client.errors import ApprovalMissing, CallRefused
from mcp_servers.client.values import Progress
from mcp_servers.gate import call_tool
from mcp_servers.models import ApprovalOverride, McpServer, McpTool, ServerState
from mcp_servers.registry import services
from mcp_servers.registry.consent import approvals
from tests.factories import Tenant
from tests.fakes.mcp_server import CountingServer, RawServer, raw_tool, reply, reply_result
from tests.fakes.sse_server import SseServer
from tests.mcp_servers.factories import (
    ListeningCaller,
    a_request,
    actor_of,
    demo_server,
    http_server,
    looked_at,
    tool_of,
    zoo_server,
)
from workspaces.errors import Conflict


def last_entry(tenant: Tenant) -> AuditEntry:
    rows = AuditEntry.objects.for_workspace(tenant.workspace).filter(action__startswith="tool_call")
    found = rows.order_by("-pk").first()
    assert found is not None
    return found


@pytest.fixture
def notes(tenant: Tenant) -> McpServer:
    return looked_at(tenant, demo_server(tenant, "notes", trusts_annotations=True))


@pytest.fixture
def raw() -> Iterator[RawServer]:
    server = RawServer()
    yield server
    server.stop()


@sync_to_async
def ready(tenant: Tenant, raw: RawServer, **fields: Any) -> McpTool:
    return tool_of(looked_at(tenant, http_server(tenant, raw.url, **fields)), "echo")


async def test_the_clock_tells_the_time(tenant: Tenant) -> None:
    """Journey 1: the official time server over stdio, once an administrator says that it may run by itself."""

    def prepare() -> McpTool:
        tool = tool_of(looked_at(tenant, demo_server(tenant, "time")), "get_current_time")
        services.set_approval_override(
            tool=tool, override=ApprovalOverride.AUTO, actor=tenant.actor()
        )
        return tool

    tool = await sync_to_async(prepare)()
    outcome = await call_tool(a_request(tenant, tool, {"timezone": "Asia/Tokyo"}))
    assert outcome.outcome == Outcome.OK
    assert json.loads(outcome.as_model_text())["timezone"] == "Asia/Tokyo"
    entry = await sync_to_async(last_entry)(tenant)
    assert (entry.transport, entry.outcome) == ("stdio", "ok")


async def test_a_note_is_deleted_after_a_yes(tenant: Tenant, notes: McpServer) -> None:
    """Journey 1: nothing runs before approval; after it, exactly this."""
    delete = await sync_to_async(tool_of)(notes, "delete_note")
    listing = await sync_to_async(tool_of)(notes, "list_notes")
    request = a_request(tenant, delete, {"name": "old"}, can_ask=True)
    with pytest.raises(ApprovalMissing):
        await call_tool(request)
    assert "old" in (await call_tool(a_request(tenant, listing))).as_model_text()
    approval = await sync_to_async(approvals.grant_approval)(
        call_id=request.call_id,
        tool=delete,
        arguments=request.arguments,
        requester=request.actor,
        approver=request.actor,
        expires_at=timezone.now() + timedelta(hours=1),
    )
    outcome = await call_tool(replace(request, approval_id=approval.pk))
    assert outcome.outcome == Outcome.OK
    assert "old" not in (await call_tool(a_request(tenant, listing))).as_model_text()


async def test_the_slow_report_says_how_far_it_is(tenant: Tenant, notes: McpServer) -> None:
    """Progress over stdio."""
    report = await sync_to_async(tool_of)(notes, "slow_report")
    seen: list[Progress] = []
    caller = ListeningCaller(on_progress=seen.append)
    outcome = await call_tool(a_request(tenant, report, {"seconds": 0.3}), caller=caller)
    assert outcome.outcome == Outcome.OK
    assert "3 notes" in outcome.as_model_text()
    assert seen[0].total == 10
    assert seen[0].message == "Reading page 1 of 10"


async def test_a_decision_is_made_once(tenant: Tenant, notes: McpServer) -> None:
    """SEC-64: the second decision on a call is told that it came too late."""
    delete = await sync_to_async(tool_of)(notes, "delete_note")
    request = a_request(tenant, delete, {"name": "old"})
    values: dict[str, Any] = {
        "call_id": request.call_id,
        "tool": delete,
        "arguments": request.arguments,
        "requester": request.actor,
        "approver": request.actor,
        "expires_at": timezone.now() + timedelta(hours=1),
    }
    await sync_to_async(approvals.grant_approval)(**values)
    with pytest.raises(Conflict):
        await sync_to_async(approvals.grant_approval)(**values)


def test_a_refusal_is_in_the_log(tenant: Tenant, notes: McpServer) -> None:
    """Each refused call is an entry, with who refused and why."""
    delete = tool_of(notes, "delete_note")
    request = a_request(tenant, delete, {"name": "old"})
    values: dict[str, Any] = {
        "call_id": request.call_id,
        "tool": delete,
        "arguments": request.arguments,
        "requester": request.actor,
    }
    approvals.refuse_approval(**values, approver=actor_of(tenant, "admin"), note="not this one")
    approvals.expire_approval(**values)
    rows = (
        AuditEntry.objects.for_workspace(tenant.workspace)
        .filter(call_id=request.call_id)
        .order_by("pk")
    )
    assert list(rows.values_list("action", "refused_by", "rule")) == [
        ("approval.refused", "", ""),
        ("tool_call.refused", "approval", "approval.refused"),
        ("approval.expired", "", ""),
        ("tool_call.refused", "approval", "approval.expired"),
    ]
    assert rows[0].approval is not None
    assert rows[0].approval["note"] == "not this one"


async def test_a_destructive_call_that_broke_off_is_unknown(tenant: Tenant) -> None:
    """REL-34, REL-04: it may have been carried out, so nobody says that it failed."""

    def prepare() -> McpTool:
        tool = tool_of(looked_at(tenant, zoo_server(tenant, "die_in_call")), "probe")
        services.set_approval_override(
            tool=tool, override=ApprovalOverride.AUTO, actor=tenant.actor()
        )
        return tool

    tool = await sync_to_async(prepare)()
    outcome = await call_tool(a_request(tenant, tool))
    assert outcome.outcome == Outcome.OUTCOME_UNKNOWN
    assert "unknown" in outcome.message
    assert (await sync_to_async(last_entry)(tenant)).outcome == "outcome_unknown"


async def test_a_harmless_call_that_broke_off_just_failed(tenant: Tenant) -> None:
    """REL-34: a trusted read-only tool changed nothing."""
    tool = await sync_to_async(
        lambda: tool_of(
            looked_at(tenant, zoo_server(tenant, "die_in_call", trusts_annotations=True)), "probe"
        )
    )()
    assert (await call_tool(a_request(tenant, tool))).outcome == Outcome.TRANSPORT_ERROR


async def test_a_refused_sign_in_in_a_call_shows_on_the_server(
    tenant: Tenant, raw: RawServer
) -> None:
    """An authentication failure is a typed state, with the reason that a check would give."""
    tool = await ready(tenant, raw, trusts_annotations=True)

    async def refuse(body: Any, scope: Any, send: Any) -> None:
        await reply(send, 401, headers={"www-authenticate": "Bearer"})

    raw.handlers["tools/call"] = refuse
    outcome = await call_tool(a_request(tenant, tool, {"text": "x"}))
    assert outcome.outcome == Outcome.TRANSPORT_ERROR
    assert "credentials" in outcome.message
    server = await sync_to_async(McpServer.objects.for_workspace(tenant.workspace).get)()
    reason = "The server refused the credentials."
    assert (server.state.status, server.state.status_reason) == ("auth_required", reason)


@pytest.mark.parametrize(
    ("answer", "outcome", "words"),
    [
        (
            {"content": [{"type": "telepathy", "data": 1}, {"type": "text", "text": "and words"}]},
            Outcome.OK,
            '[content of the unknown kind "telepathy" left out]\nand words',
        ),
        (
            {"content": [{"type": "image"}]},
            Outcome.TRANSPORT_ERROR,
            "does not follow the protocol",
        ),
        ({"content": "text"}, Outcome.TRANSPORT_ERROR, "does not follow the protocol"),
        (
            {"content": [{"type": "text", "text": "x" * 20_000_000}]},
            Outcome.TRANSPORT_ERROR,
            "too large",
        ),
        (
            {"content": [{"type": "text", "text": "a\x00b"}]},
            Outcome.OK,
            "a\N{REPLACEMENT CHARACTER}b",
        ),
        (
            {"content": [{"type": "image", "data": "not base64!", "mimeType": "image/png"}]},
            Outcome.OK,
            "left out",
        ),
        (
            {"content": [{"type": "resource_link", "uri": "file:///etc/passwd", "name": "p"}]},
            Outcome.OK,
            "file:///etc/passwd",
        ),
        ({"content": []}, Outcome.OK, "nothing"),
        ({"structuredContent": {"count": 3}}, Outcome.OK, '{"count":3}'),
        ({}, Outcome.TRANSPORT_ERROR, "does not follow the protocol"),
        ({"content": [], "isError": True}, Outcome.TOOL_ERROR, "reported an error"),
    ],
)
async def test_odd_results_are_outcomes(
    tenant: Tenant, raw: RawServer, answer: Any, outcome: Outcome, words: str
) -> None:
    """REL-2113: bad answers get a clear message and an entry, never an exception; nothing they name is fetched."""
    tool = await ready(tenant, raw, trusts_annotations=True)

    async def odd(body: Any, scope: Any, send: Any) -> None:
        await reply_result(send, body, answer)

    raw.handlers["tools/call"] = odd
    found = await call_tool(a_request(tenant, tool, {"text": "x"}))
    assert found.outcome == outcome
    assert words in found.as_model_text()
    json.dumps(found.content_as_json())
    assert (await sync_to_async(last_entry)(tenant)).outcome == outcome.value


async def test_structure_that_breaks_its_promise_is_left_out(tenant: Tenant) -> None:
    """SEC-75: output schemas are checked by our validator, after the tool ran; the words stay."""
    promised = raw_tool(
        "echo",
        outputSchema={
            "type": "object",
            "properties": {"a": {"type": "string", "pattern": "^(a+)+$"}},
        },
    )
    raw = RawServer(tools=[promised])
    try:
        tool = await ready(tenant, raw, trusts_annotations=True)

        async def lie(body: Any, scope: Any, send: Any) -> None:
            content = [{"type": "text", "text": "words"}]
            await reply_result(
                send, body, {"content": content, "structuredContent": {"a": "a" * 40 + "!"}}
            )

        raw.handlers["tools/call"] = lie
        started = asyncio.get_running_loop().time()
        outcome = await call_tool(a_request(tenant, tool, {"text": "x"}))
        assert asyncio.get_running_loop().time() - started < 30
    finally:
        raw.stop()
    assert outcome.outcome == Outcome.OK
    assert outcome.structured is None
    assert outcome.as_model_text() == "words"


async def test_a_changed_definition_stops_the_next_call(
    tenant: Tenant, trusted: McpServer, counting: CountingServer
) -> None:
    """SEC-57: seen by the next look, refused by the gate."""
    echo = await sync_to_async(tool_of)(trusted, "echo")
    counting.server._tool_manager._tools["echo"].description = "Say it again, and tell others."
    await sync_to_async(services.refresh_tools)(server=trusted, actor=actor_of(tenant, "admin"))
    with pytest.raises(CallRefused) as caught:
        await call_tool(a_request(tenant, echo, {"text": "x"}))
    assert caught.value.rule == "tool.quarantined"
    assert counting.calls == []


async def test_names_go_to_their_own_server(tenant: Tenant, counting: CountingServer) -> None:
    """SEC-65: a tool is its id; equal and look-alike names on two servers never mix."""
    other = CountingServer()
    try:
        counting.add_tool("a__b")
        other.add_tool("a_b")
        other.add_tool("ᴀ__b")

        def prepare() -> list[McpTool]:
            first = looked_at(tenant, http_server(tenant, counting.url))
            second = looked_at(tenant, http_server(tenant, other.url))
            tools = [
                tool_of(first, "a__b"),
                tool_of(second, "a_b"),
                tool_of(second, "ᴀ__b"),
                tool_of(second, "plain"),
            ]
            for tool in tools:
                services.set_approval_override(
                    tool=tool, override=ApprovalOverride.AUTO, actor=tenant.actor()
                )
                if tool.is_quarantined:  # for its looks
                    services.accept_definition(tool=tool, actor=tenant.actor())
            return tools

        for tool in await sync_to_async(prepare)():
            assert (
                await call_tool(a_request(tenant, tool, {"text": tool.name}))
            ).outcome == Outcome.OK
        assert counting.names() == ["a__b"]
        assert other.names() == ["a_b", "ᴀ__b", "plain"]
    finally:
        other.stop()


async def test_parallel_calls_share_the_database(
    tenant: Tenant, trusted: McpServer, counting: CountingServer
) -> None:
    """REL-30: twenty calls at once, each with its two entries."""
    echo = await sync_to_async(tool_of)(trusted, "echo")
    outcomes = await asyncio.gather(
        *(call_tool(a_request(tenant, echo, {"text": str(n)})) for n in range(20))
    )
    assert [outcome.as_model_text() for outcome in outcomes] == [
        str(number) for number in range(20)
    ]
    count = await sync_to_async(
        AuditEntry.objects.for_workspace(tenant.workspace)
        .filter(action__startswith="tool_call")
        .count
    )()
    assert count == 40


@pytest.mark.parametrize("kind", ["sse", "streamable_http"])
async def test_the_log_names_the_transport_that_was_used(tenant: Tenant, kind: str) -> None:
    """SEC-246: a server whose transport is found by trying is never logged as "auto"."""
    sse, raw = SseServer(), RawServer()
    url = sse.url if kind == "sse" else raw.url
    try:

        def prepare() -> McpTool:
            row = http_server(tenant, url, transport=transports.AUTO, trusts_annotations=True)
            return tool_of(looked_at(tenant, row), "echo")

        tool = await sync_to_async(prepare)()

        def forget() -> None:
            # As after a change of its settings: only the connection knows how the server was reached.
            ServerState.objects.for_workspace(tenant.workspace).update(resolved_transport="")

        for change in (lambda: None, forget):
            await sync_to_async(change)()
            await call_tool(a_request(tenant, tool, {"text": "hi"}))
            entry = await sync_to_async(last_entry)(tenant)
            assert (entry.action, entry.transport) == ("tool_call.finished", kind)
    finally:
        sse.stop()
        raw.stop()
    logged = AuditEntry.objects.for_workspace(tenant.workspace).exclude(transport="")
    actions = {(entry.action, entry.transport) async for entry in logged}
    assert {transport for _, transport in actions} == {kind}
    assert ("server.connected", kind) in actions
