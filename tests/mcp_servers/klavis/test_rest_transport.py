"""Hosted servers over their provider's API: the same session, the same gate, the same failures."""

from __future__ import annotations

import asyncio
import threading
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any, cast

import pytest
from asgiref.sync import async_to_sync
from django.db.models import F
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCNotification, JSONRPCRequest

from audit.models import AuditEntry
from mcp_servers.client.errors import ApprovalMissing
from mcp_servers.client.values import Effect, TextPart, ToolCallOutcome
from mcp_servers.gate import call_tool
from mcp_servers.klavis import instance_changes, rest_transport
from mcp_servers.klavis.models import KlavisInstance
from mcp_servers.klavis.rest_transport import open_klavis_rest
from mcp_servers.klavis.targets import RestSpec
from mcp_servers.models import McpServer, McpTool
from mcp_servers.registry import services
from mcp_servers.registry.services.actions import set_action_rule
from mcp_servers.registry.specs import connection_spec
from tests.factories import Tenant
from tests.fakes.klavis import FakeKlavis
from tests.mcp_servers.factories import a_request, looked_at, tool_of
from tests.patience import PATIENCE
from workspaces import outbound

if TYPE_CHECKING:
    import httpx2


@pytest.fixture
def over_rest(tenant: Tenant, installed: KlavisInstance, provider: FakeKlavis) -> McpServer:
    """Gmail, reached over the API alone, and trusted."""
    instance_changes.set_uses_rest(instance=installed, uses_rest=True, actor=tenant.actor("admin"))
    server = McpServer.objects.for_workspace(tenant.workspace).get()
    draft = services.ServerDraft(trusts_annotations=True)
    services.update_server(server=server, draft=draft, actor=tenant.actor("admin"))
    server = looked_at(tenant, server)
    # Listed in another form, they are other definitions than those that were accepted before.
    McpTool.objects.for_workspace(tenant.workspace).update(
        approval_override="auto", approved_hash=F("definition_hash")
    )
    provider.calls.clear()
    return server


def call(tenant: Tenant, server: McpServer, name: str, **arguments: object) -> ToolCallOutcome:
    return async_to_sync(call_tool)(a_request(tenant, tool_of(server, name), arguments))


def text_of(outcome: ToolCallOutcome) -> str:
    return "".join(part.text for part in outcome.content if isinstance(part, TextPart))


def test_tools_are_listed_and_called_over_rest(
    tenant: Tenant, over_rest: McpServer, provider: FakeKlavis
) -> None:
    """Ours: the provider speaks with the server, and the log has both ends of the call."""
    assert over_rest.state.resolved_transport == "klavis_rest"
    provider.requests.clear()
    outcome = call(tenant, over_rest, "search", query="invoice")
    assert (outcome.outcome, text_of(outcome)) == ("ok", "found invoice")
    assert provider.by_rest == ["search"]
    entries = AuditEntry.objects.for_workspace(tenant.workspace).filter(tool_name="search")
    assert {entry.action for entry in entries} >= {"tool_call.requested", "tool_call.finished"}


def test_the_gate_stands_before_it(
    tenant: Tenant, over_rest: McpServer, provider: FakeKlavis
) -> None:
    """Ours: a call that nobody approved is not sent."""
    McpTool.objects.for_workspace(tenant.workspace).update(approval_override="confirm")
    with pytest.raises(ApprovalMissing):
        call(tenant, over_rest, "search", query="x")
    assert not provider.by_rest


def test_a_tools_own_error_is_its_result(
    tenant: Tenant, over_rest: McpServer, provider: FakeKlavis
) -> None:
    """Ours: said by the tool, or by the provider that could not run it."""
    outcome = call(tenant, over_rest, "fail", text="no mailbox")
    assert (outcome.outcome, text_of(outcome)) == ("tool_error", "no mailbox")
    outcome = call(tenant, over_rest, "get_category_actions", category_names=["x"])
    assert (outcome.outcome, text_of(outcome)) == ("tool_error", "no such tool")


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (401, b"{}", "auth_required"),
        (404, b"{}", "http_status"),
        (422, b"{}", "http_status"),
        (429, b"{}", "rate_limited"),
        (500, b"{}", "http_status"),
        (200, b"not json", "unreadable"),
        (200, b'["list"]', "unreadable"),
        (200, b"[" * 200_000, "unreadable"),
    ],
)
def test_failures_are_those_of_every_transport(
    tenant: Tenant,
    over_rest: McpServer,
    provider: FakeKlavis,
    status: int,
    body: bytes,
    kind: str,
) -> None:
    """Ours: an outcome in plain words, sent once."""
    provider.fail("POST", "/mcp-server/call-tool", status=status, body=body, times=9)
    provider.requests.clear()
    outcome = call(tenant, over_rest, "search", query="x")
    assert outcome.outcome in ("transport_error", "outcome_unknown")
    assert outcome.details["kind"] in (kind, "too_large")
    assert provider.paths("POST").count("/mcp-server/call-tool") == 1
    assert "hosted" not in outcome.message


def test_a_call_that_takes_too_long_ends(
    tenant: Tenant, over_rest: McpServer, provider: FakeKlavis
) -> None:
    """Ours: at its own deadline, and the connection lives on."""
    held = provider.fail("POST", "/mcp-server/call-tool", hold=threading.Event())
    assert held.hold is not None
    try:
        request = a_request(
            tenant, tool_of(over_rest, "search"), {"query": "x"}, timeout_seconds=0.3
        )
        outcome = async_to_sync(call_tool)(request)
        assert outcome.outcome in ("timeout", "outcome_unknown")
    finally:
        held.hold.set()
    assert text_of(call(tenant, over_rest, "search", query="y")) == "found y"


def test_a_call_can_be_stopped(tenant: Tenant, over_rest: McpServer, provider: FakeKlavis) -> None:
    """Ours: the request is given up at once."""
    held = provider.fail("POST", "/mcp-server/call-tool", hold=threading.Event())
    assert held.hold is not None
    request = a_request(tenant, tool_of(over_rest, "search"), {"query": "x"})

    async def stop() -> None:
        task = asyncio.ensure_future(call_tool(request))
        while "/mcp-server/call-tool" not in provider.paths("POST"):
            assert not task.done()
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    try:
        async_to_sync(stop)()
    finally:
        held.hold.set()
    finished = AuditEntry.objects.for_workspace(tenant.workspace).get(
        action="tool_call.finished", call_id=request.call_id
    )
    assert finished.outcome in ("cancelled", "outcome_unknown")


def test_switching_the_way_makes_a_new_connection(
    tenant: Tenant, over_rest: McpServer, installed: KlavisInstance, provider: FakeKlavis
) -> None:
    """Ours: and back again, without the API."""
    before = connection_spec(over_rest).fingerprint
    instance_changes.set_uses_rest(instance=installed, uses_rest=False, actor=tenant.actor("admin"))
    over_rest.refresh_from_db()
    assert connection_spec(over_rest).fingerprint != before
    provider.requests.clear()
    assert text_of(call(tenant, over_rest, "search", query="direct")) == "found direct"
    assert not provider.paths("POST")


def test_an_action_that_is_run_by_name_asks(
    tenant: Tenant, over_rest: McpServer, provider: FakeKlavis
) -> None:
    """Ours: of a trusted server whose tool calls itself read-only and is set to run by itself."""
    named = {"server_name": "gmail", "category_name": "messages", "action_name": "send"}
    with pytest.raises(ApprovalMissing) as caught:
        call(tenant, over_rest, "execute_action", **named)
    assert "gmail / messages / send" in caught.value.decision.reason
    assert not provider.by_rest
    set_action_rule(
        server=over_rest,
        service="gmail",
        category="messages",
        action="send",
        effect=Effect.AUTO,
        actor=tenant.actor("admin"),
    )
    call(tenant, over_rest, "execute_action", **named)
    assert provider.by_rest == ["execute_action"]
    with pytest.raises(ApprovalMissing):
        call(tenant, over_rest, "execute_action", **{**named, "action_name": "delete"})


class _Endpoint:
    """In the HTTP client's place: keeps every request waiting, or fails in an unforeseen way."""

    def __init__(self, failure: Exception | None = None) -> None:
        self.failure = failure
        self.asked = asyncio.Semaphore(0)

    async def post(self, *_: object, **__: object) -> None:
        self.asked.release()
        if self.failure is not None:
            raise self.failure
        await asyncio.Event().wait()


def _bridge(endpoint: _Endpoint) -> AbstractAsyncContextManager[tuple[Any, Any]]:
    target = RestSpec(
        endpoint=outbound.parse_endpoint("https://klavis.example.org"), server_url="https://x/"
    )
    return open_klavis_rest(cast("httpx2.AsyncClient", endpoint), target)


def _message(method: str, number: int | None = None, **params: Any) -> SessionMessage:
    kind = JSONRPCNotification if number is None else JSONRPCRequest
    values = {"jsonrpc": "2.0", "method": method, "params": params}
    return SessionMessage(
        kind.model_validate(values if number is None else {**values, "id": number})
    )


async def test_a_full_house_can_be_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours: a request that waits for its turn holds up no word that another one is given up."""
    monkeypatch.setattr(rest_transport, "MAX_REQUESTS", 1)
    endpoint = _Endpoint()
    async with asyncio.timeout(PATIENCE), _bridge(endpoint) as (_, write):
        await write.send(_message("tools/list", 1))
        await endpoint.asked.acquire()
        await write.send(_message("tools/list", 2))
        await write.send(_message("notifications/cancelled", requestId=1))
        await endpoint.asked.acquire()  # the second has its turn


async def test_what_nobody_foresaw_ends_one_request_alone() -> None:
    """Ours: the connection serves the others."""
    async with (
        asyncio.timeout(PATIENCE),
        _bridge(_Endpoint(RuntimeError("closed"))) as (read, write),
    ):
        await write.send(_message("tools/list", 1))
        failed = await read.receive()
        assert failed.message.error.data["kind"] == "broken"
        await write.send(_message("ping", 2))
        assert (await read.receive()).message.result == {}
