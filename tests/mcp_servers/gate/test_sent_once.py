"""What a server answers decides nothing but this: which of the few allowed repeats may be made, each one in the log."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from uuid_utils.compat import uuid7

from audit.actions import Outcome
from audit.models import AuditEntry
from mcp_servers.client.transports import http_failures
from mcp_servers.client.values import ResourceRequest
from mcp_servers.gate import call_tool, read_resource
from mcp_servers.models import ApprovalOverride, McpTool
from mcp_servers.registry import services
from tests.factories import Tenant
from tests.fakes.mcp_server import (
    INITIALIZED,
    RawServer,
    begin_session,
    raw_tool,
    reply,
    reply_error,
    reply_result,
)
from tests.mcp_servers.factories import a_request, actor_of, http_server, looked_at, tool_of

Answer = Callable[[Any, Any, Any], Awaitable[None]]

HINTS = {
    "silent": {},
    "writing": {"readOnlyHint": False, "destructiveHint": True},
    "reading": {"readOnlyHint": True},
    "idempotent": {"readOnlyHint": False, "idempotentHint": True},
}


@pytest.fixture
def raw() -> Iterator[RawServer]:
    server = RawServer(tools=[raw_tool(name, annotations=hints) for name, hints in HINTS.items()])
    yield server
    server.stop()


@sync_to_async
def ready(tenant: Tenant, raw: RawServer, name: str, *, is_trusted: bool = True) -> McpTool:
    server = looked_at(tenant, http_server(tenant, raw.url, trusts_annotations=is_trusted))
    tool = tool_of(server, name)
    services.set_approval_override(tool=tool, override=ApprovalOverride.AUTO, actor=tenant.actor())
    return tool_of(server, name)


@sync_to_async
def recorded(tenant: Tenant) -> list[tuple[str, str, str]]:
    rows = AuditEntry.objects.for_workspace(tenant.workspace).exclude(call_id=None).order_by("pk")
    return [
        (row.action.partition(".")[2], row.outcome, (row.details or {}).get("sent_again_after", ""))
        for row in rows
    ]


def answering(status: int, body: bytes = b"", **headers: str) -> Answer:
    async def answer(request: Any, scope: Any, send: Any) -> None:
        await reply(send, status, body, headers=headers)

    return answer


def with_error(status: int, code: int, message: str, data: Any = None) -> Answer:
    async def answer(request: Any, scope: Any, send: Any) -> None:
        error = {"code": code, "message": message, "data": data}
        body = {"jsonrpc": "2.0", "id": request["id"], "error": error}
        await reply(send, status, json.dumps(body).encode())

    return answer


FORGED = {"kind": "session_lost", "http_status": 404}
REFUSALS: dict[str, Answer] = {
    "404": answering(404),
    "404 and words": answering(404, b"session not found"),
    "404 and an error": with_error(404, -32600, "Session not found"),
    "400": answering(400, b"bad"),
    "400 and words": answering(400, b'{"error": "session expired"}'),
    "400 and an error": with_error(400, -32000, "Bad Request: No valid session ID provided"),
    "410": answering(410, b"session gone"),
    "500": answering(500, b"session lost"),
    "redirect": answering(307, location="/elsewhere"),
    "see other": answering(303, location="/done"),
}
WORDS: dict[str, Answer] = {
    "words": with_error(200, -32600, "Session terminated"),
    "our words": with_error(200, http_failures.GUARD_ERROR_CODE, "The request failed.", FORGED),
    "forgotten": with_error(200, -32602, "Invalid requestState"),
}


@pytest.mark.parametrize("has_session", [True, False], ids=["session", "no session"])
@pytest.mark.parametrize("tool_name", ["silent", "writing"])
@pytest.mark.parametrize("refusal", REFUSALS)
async def test_what_may_not_be_repeated_is_sent_once_whatever_the_server_answers(
    tenant: Tenant, raw: RawServer, refusal: str, tool_name: str, has_session: bool
) -> None:
    """REL-200, REL-04, SEC-102: one sending, one *requested*, and nobody is told that nothing was done."""
    if has_session:
        raw.handlers["initialize"] = begin_session
    tool = await ready(tenant, raw, tool_name)
    raw.handlers["tools/call"] = REFUSALS[refusal]
    outcome = await call_tool(a_request(tenant, tool))
    assert raw.methods().count("tools/call") == 1
    if (refusal, has_session) == ("400 and an error", False):
        # Without a session this is the server's own answer to the call.
        assert outcome.outcome is Outcome.TOOL_ERROR
    else:
        assert outcome.outcome is Outcome.OUTCOME_UNKNOWN
    assert await recorded(tenant) == [
        ("requested", "", ""),
        ("finished", outcome.outcome.value, ""),
    ]


@pytest.mark.parametrize("tool_name", list(HINTS))
@pytest.mark.parametrize("words", WORDS)
async def test_words_in_a_body_repeat_nothing(
    tenant: Tenant, raw: RawServer, words: str, tool_name: str
) -> None:
    """REL-200: an error that the server sends as its answer is the call's end, however it is worded."""
    raw.handlers["initialize"] = begin_session
    tool = await ready(tenant, raw, tool_name)
    raw.handlers["tools/call"] = WORDS[words]
    outcome = await call_tool(a_request(tenant, tool))
    assert outcome.outcome is Outcome.TOOL_ERROR
    assert raw.methods().count("tools/call") == 1


@pytest.mark.parametrize(
    ("tool_name", "is_trusted", "has_session", "sendings"),
    [
        ("reading", True, True, 2),
        ("idempotent", True, True, 2),
        ("reading", False, True, 1),
        ("reading", True, False, 1),
        ("writing", True, True, 1),
    ],
)
async def test_a_lost_session_repeats_what_is_harmless_and_the_log_has_each_sending(
    tenant: Tenant,
    raw: RawServer,
    tool_name: str,
    is_trusted: bool,
    has_session: bool,
    sendings: int,
) -> None:
    """REL-200, REL-34: a session id, the 404 defined for it and a tool that may be repeated; once, not for ever."""
    if has_session:
        raw.handlers["initialize"] = begin_session
    tool = await ready(tenant, raw, tool_name, is_trusted=is_trusted)
    raw.handlers["tools/call"] = REFUSALS["404"]
    outcome = await call_tool(a_request(tenant, tool))
    assert raw.methods().count("tools/call") == sendings
    found = await recorded(tenant)
    assert [action for action, _, _ in found].count("requested") == sendings
    assert found[-1] == ("finished", outcome.outcome.value, "")
    if sendings == 2:
        assert found[1] == ("requested", "", "session_lost")
        assert outcome.outcome is Outcome.TRANSPORT_ERROR


async def test_the_repeated_call_brings_its_result(tenant: Tenant, raw: RawServer) -> None:
    """REL-34: the new session serves at once."""
    raw.handlers["initialize"] = begin_session
    tool = await ready(tenant, raw, "reading")
    refusals = [REFUSALS["404"]]

    async def forget_once(body: Any, scope: Any, send: Any) -> None:
        if refusals:
            await refusals.pop()(body, scope, send)
        else:
            await reply_result(send, body, {"content": [{"type": "text", "text": "done"}]})

    raw.handlers["tools/call"] = forget_once
    outcome = await call_tool(a_request(tenant, tool))
    assert outcome.as_model_text() == "done"


async def test_a_repeat_that_cannot_be_recorded_is_not_made(
    tenant: Tenant, raw: RawServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REL-200, SEC-101: no entry, no sending; the first one's end is recorded."""
    from audit.errors import AuditUnavailable
    from mcp_servers.gate.operation import ServerOperation

    raw.handlers["initialize"] = begin_session
    tool = await ready(tenant, raw, "reading")
    raw.handlers["tools/call"] = REFUSALS["404"]

    def fail(operation: object, after: str) -> None:
        raise AuditUnavailable

    monkeypatch.setattr(ServerOperation, "write_requested_again", fail)
    outcome = await call_tool(a_request(tenant, tool))
    assert raw.methods().count("tools/call") == 1
    assert outcome.outcome is Outcome.TRANSPORT_ERROR
    assert "not sent again" in outcome.message
    assert [action for action, _, _ in await recorded(tenant)] == ["requested", "finished"]


async def test_a_server_that_moved_is_called_where_it_is(tenant: Tenant, raw: RawServer) -> None:
    """REL-200: a redirect of the handshake is remembered, so that no call is sent to both addresses."""
    paths: list[str] = []

    async def move(body: Any, scope: Any, send: Any) -> None:
        if body and body["method"] == "tools/call":
            paths.append(scope["path"])
        if not scope["path"].endswith("/"):
            await reply(send, 307, headers={"location": scope["path"] + "/"})
        else:
            await raw._answer(body, send)

    raw.handlers["*"] = move
    tool = await ready(tenant, raw, "writing")
    outcome = await call_tool(a_request(tenant, tool))
    assert outcome.outcome is Outcome.OK
    assert paths == ["/mcp/"]


async def test_a_read_is_repeated_in_a_new_session_with_an_entry_of_its_own(
    tenant: Tenant, raw: RawServer
) -> None:
    """REL-200: reading changes nothing, and each sending is in the log."""

    async def initialize(body: Any, scope: Any, send: Any) -> None:
        able = {**INITIALIZED, "capabilities": {"tools": {}, "resources": {}}}
        answer = {"jsonrpc": "2.0", "id": body["id"], "result": able}
        await reply(send, 200, json.dumps(answer).encode(), headers={"mcp-session-id": "s"})

    raw.handlers["initialize"] = initialize
    tool = await ready(tenant, raw, "reading")

    async def forget(body: Any, scope: Any, send: Any) -> None:
        await reply_error(send, body, -32600, "gone", status=404)

    raw.handlers["resources/read"] = forget
    request = ResourceRequest(
        call_id=uuid7(),
        workspace_id=tenant.workspace.pk,
        server_id=tool.server_id,
        uri="memo://insights",
        actor=actor_of(tenant, "member"),
    )
    outcome = await read_resource(request)
    assert outcome.outcome is Outcome.TRANSPORT_ERROR
    assert raw.methods().count("resources/read") == 2
    found = await recorded(tenant)
    assert [action for action, _, _ in found] == ["requested", "requested", "finished"]
    assert found[1][2] == "session_lost"
