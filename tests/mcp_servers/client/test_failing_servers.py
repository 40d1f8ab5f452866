"""Servers that fail, hang, die or answer oddly: each costs its own call, says why, and is left alone for a moment."""

from __future__ import annotations

import asyncio
import json
import re
import time
from dataclasses import replace
from typing import Any
from uuid import uuid4

import pytest

from mcp_servers.client.connections import runtime
from mcp_servers.client.connections.backoff import Backoff, delay_seconds
from mcp_servers.client.connections.failures import CallFailed, RpcError, connect_failure
from mcp_servers.client.connections.pool import pool
from mcp_servers.client.errors import (
    AuthenticationRequired,
    BackingOff,
    ConnectionFailed,
    NotAnMcpServer,
)
from mcp_servers.client.transports.stdio import OpenTransport
from mcp_servers.client.transports.targets import HttpSpec
from mcp_servers.client.values import Protocol
from mcp_servers.gate.operation import why_left_alone
from mcp_servers.models import McpServer
from tests.fakes.mcp_server import (
    CountingServer,
    begin_session,
    reply,
    reply_error,
    reply_result,
)
from tests.mcp_servers.client.helpers import send, spec_for, text_of, within
from tests.patience import PATIENCE
from workspaces.secret_memory import MASK, HeldSecrets, remember_secret


@pytest.mark.parametrize("kind", ["json", "events", "resumed events"])
async def test_an_answer_counts_for_no_other_call(raw: Any, kind: str) -> None:
    """SEC-1101: a server that confuses two calls of one connection ends neither with what is the other's."""
    both = asyncio.Barrier(2)
    ids: dict[str, int] = {}

    async def call_tool(body: Any, scope: Any, answer: Any) -> None:
        name = body["params"]["arguments"]["name"]
        ids[name] = body["id"]
        await both.wait()
        if name == "own":
            await reply_result(answer, body, {"content": [{"type": "text", "text": "own"}]})
        elif kind == "resumed events":
            await reply(answer, 200, b"retry: 0\nid: 7\ndata: \n\n", "text/event-stream")
        else:
            await mix_up(answer)

    async def mix_up(answer: Any) -> None:
        text = "the right one" if ids["own"] == ids["mixed"] else "the other's"
        result = {"content": [{"type": "text", "text": text}]}
        message = json.dumps({"jsonrpc": "2.0", "id": ids["own"], "result": result})
        if kind == "json":
            await reply(answer, 200, message.encode())
        else:
            await reply(answer, 200, f"data: {message}\n\n".encode(), "text/event-stream")

    async def resume(_body: Any, scope: Any, answer: Any) -> None:
        if b"last-event-id" not in dict(scope["headers"]):
            await reply(answer, 405)
            return
        await mix_up(answer)
        ids["own"] = ids["mixed"]  # the next time it is right

    server = raw({"tools/call": call_tool, "GET": resume})
    spec = spec_for(server.url, protocol=Protocol.LEGACY, transport="streamable_http")
    mixed, own = await asyncio.gather(
        *(text_of(send(spec, "echo", {"name": name})) for name in ("mixed", "own")),
        return_exceptions=True,
    )
    assert own == "own"
    if kind == "resumed events":
        assert mixed == "the right one"
    else:
        assert isinstance(mixed, CallFailed), mixed
        assert mixed.kind == ("unreadable" if kind == "json" else "broken")


async def test_a_lost_session_is_given_up_and_the_next_call_begins_another(raw: Any) -> None:
    """REL-34, REL-200: below the gate nothing is sent again."""
    lost = [True]

    async def call_tool(body: Any, scope: Any, send: Any) -> None:
        if lost.pop() if lost else False:
            await reply(send, 404)
        else:
            await reply_result(send, body, {"content": [{"type": "text", "text": "done"}]})

    server = raw({"initialize": begin_session, "tools/call": call_tool})
    spec = spec_for(server.url, protocol=Protocol.LEGACY)
    with pytest.raises(CallFailed) as caught:
        await send(spec, "echo")
    assert caught.value.kind == "session_lost"
    assert server.methods().count("tools/call") == 1
    assert await text_of(send(spec, "echo")) == "done"
    assert server.methods().count("initialize") == 2


@pytest.mark.parametrize(
    ("status", "body", "content_type", "kind"),
    [
        (401, b"who are you", "text/plain", "auth_required"),
        (403, b"", "text/plain", "auth_required"),
        (429, b"slow down", "text/plain", "rate_limited"),
        (500, b"<html>oops</html>", "text/html", "http_status"),
        (503, b"", "text/plain", "http_status"),
        (200, b"<html>hello</html>", "text/html", "not_mcp"),
        (200, b"[1, 2]", "application/json", "not_mcp"),
        (200, b"{not json", "application/json", "unreadable"),
        (200, b'{"jsonrpc": "2.0", "id": 99, "result": {}}', "application/json", "unreadable"),
        (200, b'{"jsonrpc": "2.0", "id": 2, "result": {"content": 5}}', "application/json", None),
        (202, b"", "application/json", "broken"),
        (302, b"", "text/plain", "redirect"),
    ],
)
async def test_an_odd_answer_costs_its_call_alone(
    raw: Any, status: int, body: bytes, content_type: str, kind: str | None
) -> None:
    """REL-34: each failure has its kind, no text of the other side, and the connection lives on."""

    async def odd(request: Any, scope: Any, send: Any) -> None:
        await reply(
            send,
            status,
            body,
            content_type,
            {"location": "http://10.0.0.1/"} if status == 302 else {},
        )

    server = raw({"tools/call": odd})
    spec = spec_for(server.url, protocol=Protocol.LEGACY)
    with pytest.raises(CallFailed) as caught:
        await send(spec, "echo")
    if kind is not None:
        assert caught.value.kind == kind
    assert "oops" not in caught.value.message
    assert "who are you" not in caught.value.message
    del server.handlers["tools/call"]
    assert await text_of(send(spec, "echo", {"text": "x"})) == '{"text": "x"}'


async def test_a_server_error_of_its_own_is_told(raw: Any) -> None:
    """A JSON-RPC error is the server's answer, not a broken line."""

    async def refuse(body: Any, scope: Any, send: Any) -> None:
        await reply_error(send, body, -32602, "no such tool: echo")

    server = raw({"tools/call": refuse})
    with pytest.raises(RpcError) as caught:
        await send(spec_for(server.url, protocol=Protocol.LEGACY), "echo")
    assert (caught.value.rpc_code, caught.value.message) == (-32602, "no such tool: echo")


async def test_a_result_of_twenty_megabytes_is_too_large(raw: Any) -> None:
    """SEC-33: bounded while read; the connection lives on."""

    async def flood(body: Any, scope: Any, send: Any) -> None:
        await reply_result(send, body, {"content": [{"type": "text", "text": "x" * (20 * 2**20)}]})

    server = raw({"tools/call": flood})
    spec = spec_for(server.url, protocol=Protocol.LEGACY)
    with pytest.raises(CallFailed) as caught:
        await send(spec, "echo")
    assert caught.value.kind == "too_large"


async def test_a_server_that_dies_in_a_call_is_told_at_once(counting: CountingServer) -> None:
    """REL-34: crash mid-call; nothing is sent again."""
    spec = spec_for(counting.url)
    task = asyncio.create_task(send(spec, "slow", {"seconds": 30}, limits=within(60)))
    async with asyncio.timeout(PATIENCE):
        while "slow" not in counting.names():
            await asyncio.sleep(0.02)
    await asyncio.to_thread(counting.stop)
    with pytest.raises(CallFailed) as caught:
        await asyncio.wait_for(task, PATIENCE)
    # The fake's HTTP library may still get a bare 500 out while it dies.
    assert caught.value.kind in ("broken", "http_status")
    assert counting.names() == ["slow"]


@pytest.mark.parametrize(
    ("status", "body", "error", "words"),
    [
        (401, b"", AuthenticationRequired, "asks for a sign-in or a key, and none is entered"),
        (200, b"<html>Welcome</html>", NotAnMcpServer, "not with MCP"),
        (404, b"", NotAnMcpServer, "HTTP 404"),
        (500, b"", ConnectionFailed, "HTTP 500"),
        (301, b"", NotAnMcpServer, "redirects"),
    ],
)
async def test_a_connection_that_fails_says_why(
    raw: Any, status: int, body: bytes, error: type[ConnectionFailed], words: str
) -> None:
    """Bad servers get a clear message: HTML, 401, 404, 500, a redirect."""

    async def answer(request: Any, scope: Any, send: Any) -> None:
        await reply(
            send,
            status,
            body,
            "text/html",
            {"location": "https://elsewhere.example/"} if status == 301 else {},
        )

    server = raw({"*": answer})
    with pytest.raises(error) as caught:
        await runtime.run(pool.list_tools(spec_for(server.url)))
    assert words in caught.value.message
    assert type(caught.value) is error


async def test_a_server_that_refuses_the_first_step_is_heard(raw: Any) -> None:
    """REL-2935: it may say 400, as ports for TLS do, and still has a reason of its own."""

    async def refuse(request: Any, scope: Any, send: Any) -> None:
        await reply_error(send, request, -32600, "Server already initialized", 400)

    spec = spec_for(raw({"*": refuse}).url, transport="streamable_http")
    with pytest.raises(NotAnMcpServer) as caught:
        await runtime.run(pool.list_tools(spec))
    assert caught.value.advice == "It answered: Server already initialized"


async def test_credentials_that_are_refused_are_told_from_none(raw: Any) -> None:
    """REL-1609: what is to be done differs."""

    async def refuse(request: Any, scope: Any, send: Any) -> None:
        await reply(send, 401, b"", "text/html", {})

    plain = spec_for(raw({"*": refuse}).url)
    assert isinstance(plain.target, HttpSpec)
    keyed = replace(plain, target=replace(plain.target, headers={"X-Key": "wrong"}))
    in_address = replace(plain, secrets=HeldSecrets())
    assert in_address.secrets is not None
    in_address.secrets.add("key-of-the-address", workspace_id=plain.workspace_id)
    listed = []
    for spec in (plain, keyed, in_address):
        with pytest.raises(AuthenticationRequired) as caught:
            await runtime.run(pool.list_tools(replace(spec, server_id=uuid4()), at_once=True))
        listed.append(caught.value.message)
    assert "none is entered" in listed[0]
    assert listed[1] == listed[2] == "The server refused the credentials."


@pytest.mark.parametrize(
    ("is_draft", "advice"),
    [
        (True, "Choose how to sign in under “Authentication”."),
        (False, "Choose how to sign in under “Authentication” in its settings."),
    ],
)
async def test_a_server_that_is_only_tried_has_no_settings(
    raw: Any, is_draft: bool, advice: str
) -> None:
    """REL-3293: the form that adds it has the same field."""

    async def refuse(request: Any, scope: Any, send: Any) -> None:
        await reply(send, 401, b"", "text/html", {})

    spec = replace(spec_for(raw({"*": refuse}).url), is_draft=is_draft)
    with pytest.raises(AuthenticationRequired) as caught:
        await runtime.run(pool.list_tools(spec))
    assert caught.value.advice == advice


async def test_why_credentials_are_refused_is_heard(raw: Any) -> None:
    """REL-3162: whoever manages the server reads it; what it repeats of the key is masked."""
    challenge = (
        'Bearer error="invalid_token", error_description="The key far-too-old-1f2e3d has expired"'
    )

    async def refuse(request: Any, scope: Any, send: Any) -> None:
        await reply(send, 401, b"", "text/html", {"www-authenticate": challenge})

    plain = spec_for(raw({"*": refuse}).url)
    assert isinstance(plain.target, HttpSpec)
    remember_secret("far-too-old-1f2e3d", workspace_id=plain.workspace_id)
    keyed = replace(plain, target=replace(plain.target, headers={"X-Key": "far-too-old-1f2e3d"}))
    with pytest.raises(AuthenticationRequired) as caught:
        await runtime.run(pool.list_tools(keyed))
    assert caught.value.advice == f"It answered: The key {MASK} has expired"


async def test_a_hang_in_initialize_or_list_ends(raw: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """REL-34: every step has its deadline."""

    async def hang(request: Any, scope: Any, send: Any) -> None:
        await asyncio.sleep(30)

    monkeypatch.setattr("mcp_servers.client.connections.listing.LIST_SECONDS", 0.5)
    for handlers in ({"initialize": hang, "server/discover": hang}, {"tools/list": hang}):
        spec = spec_for(raw(handlers).url, connect_seconds=1.0)
        started = time.monotonic()
        with pytest.raises(ConnectionFailed):
            await runtime.run(pool.list_tools(spec))
        assert time.monotonic() - started < 20


async def test_a_server_that_says_that_it_timed_out_is_not_asked_without_end(raw: Any) -> None:
    """REL-2571: its own word ends the attempt. Some servers use that code for a session that they do not know."""

    async def refuse(body: Any, scope: Any, send: Any) -> None:
        await reply_error(send, body, -32001, "Session not found")

    server = raw({"server/discover": refuse})
    spec = spec_for(server.url, protocol=Protocol.MODERN, connect_seconds=1.0)
    with pytest.raises(ConnectionFailed):
        await runtime.run(pool.list_tools(spec))
    assert server.methods() == ["server/discover"]


@pytest.mark.parametrize(
    ("seconds", "advice"),
    [
        (5, "It had 5 seconds. If it only starts slowly, give it more"),
        (60, "It had 60 seconds, which is the most."),
    ],
)
def test_nobody_is_sent_to_settings_that_give_no_more_time(seconds: float, advice: str) -> None:
    """REL-2576: nor to install what is no program of this machine."""
    spec = spec_for("http://127.0.0.1:9999/mcp", connect_seconds=seconds)
    failure = connect_failure(TimeoutError(), spec=spec, transport=OpenTransport(lambda _: None))
    assert failure.advice.startswith(advice)
    assert "install" not in failure.advice


def test_the_pauses_double_up_to_sixteen_seconds() -> None:
    """REL-34: 1, 2, 4, 8, 16 s."""
    assert [delay_seconds(number) for number in range(8)] == [0, 1, 2, 4, 8, 16, 16, 16]
    state = Backoff()
    for _ in range(3):
        state = state.after_failure(100.0)
    assert state.wait_seconds(101.0) == 3.0
    assert state.wait_seconds(200.0) == 0.0


async def test_a_server_that_failed_is_left_alone_for_a_moment(raw: Any) -> None:
    """REL-34, REL-1905: callers in between get an answer at once, in words that stay true; a success resets the count."""
    server = raw()
    spec = spec_for("http://127.0.0.1:9999/mcp", protocol=Protocol.LEGACY)
    with pytest.raises(ConnectionFailed):
        await runtime.run(pool.list_tools(spec))
    with pytest.raises(BackingOff) as caught:
        await runtime.run(pool.list_tools(spec))
    assert caught.value.retry_after_seconds is not None
    assert 0 < caught.value.retry_after_seconds <= 1.2
    assert re.search(r"left it alone for [12] seconds?\.$", caught.value.message)
    reason = why_left_alone(McpServer(name="notes"), 4.2)
    assert reason == "notes had just failed, so Trellis left it alone for 5 seconds."
    with pytest.raises(ConnectionFailed) as again:
        await runtime.run(pool.list_tools(spec, at_once=True))
    assert not isinstance(again.value, BackingOff)
    assert pool._backoffs[spec.key].failures == 2
    same = {"workspace_id": spec.workspace_id, "server_id": spec.server_id}
    repaired = spec_for(server.url, **same, fingerprint="2", protocol=Protocol.LEGACY)
    await runtime.run(pool.list_tools(repaired))
    assert spec.key not in pool._backoffs
