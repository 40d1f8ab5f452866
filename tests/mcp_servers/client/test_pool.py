"""Connections: shared, independent, and gone without a trace."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import re
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from uuid import uuid4

import mcp_types
import pytest

from mcp_servers.client.connections import calls, runtime
from mcp_servers.client.connections.backoff import Backoff, delay_seconds
from mcp_servers.client.connections.failures import CallFailed, RpcError
from mcp_servers.client.connections.listing import MAX_LIST_PAGES, MAX_TOOLS
from mcp_servers.client.connections.permits import PermitRefused
from mcp_servers.client.connections.pool import pool
from mcp_servers.client.errors import (
    AuthenticationRequired,
    BackingOff,
    ConnectionFailed,
    NotAnMcpServer,
)
from mcp_servers.client.inputs import CallLimits
from mcp_servers.client.spec import ConnectionSpec
from mcp_servers.client.transports.targets import HttpSpec
from mcp_servers.client.values import Protocol
from mcp_servers.gate.operation import why_left_alone
from mcp_servers.models import McpServer
from tests.fakes.mcp_server import (
    CountingServer,
    Handler,
    RawServer,
    begin_session,
    raw_tool,
    reply,
    reply_error,
    reply_result,
)
from tests.patience import PATIENCE
from workspaces import outbound
from workspaces.secret_memory import HeldSecrets

WORKSPACE = uuid4()
ERAS = [Protocol.LEGACY, Protocol.MODERN]


def spec_for(url: str, **fields: Any) -> ConnectionSpec:
    values: dict[str, Any] = {
        "workspace_id": WORKSPACE,
        "server_id": uuid4(),
        "principal": "workspace",
        "server_name": "fake",
        "target": HttpSpec(
            endpoint=outbound.parse_endpoint(url), headers=fields.pop("headers", {})
        ),
        "fingerprint": "1",
        **fields,
    }
    return ConnectionSpec(**values)


def within(seconds: float) -> CallLimits:
    return CallLimits(seconds=seconds, hard_seconds=seconds)


async def call(
    spec: ConnectionSpec,
    name: str,
    arguments: dict[str, Any] | None = None,
    timeout: float = PATIENCE,
) -> Any:
    permit = calls.mint_permit(
        call_id=uuid4(),
        server_id=spec.server_id,
        tool_name=name,
        arguments=json.dumps(arguments or {}).encode(),
    )
    return await calls.send_call(spec, permit, limits=within(timeout))


def text_of(result: object) -> str:
    assert isinstance(result, mcp_types.CallToolResult)
    (block,) = result.content
    assert isinstance(block, mcp_types.TextContent)
    return block.text


@pytest.fixture
def raw() -> Iterator[Any]:
    """Builds misbehaving servers, and ends them."""
    made: list[RawServer] = []

    def build(
        handlers: dict[str, Handler] | None = None, tools: list[Any] | None = None
    ) -> RawServer:
        made.append(RawServer(handlers, tools))
        return made[-1]

    yield build
    for server in made:
        server.stop()


@pytest.mark.parametrize("era", ERAS)
async def test_calls_share_a_connection_and_do_not_wait_for_each_other(
    counting: CountingServer, era: Protocol
) -> None:
    """REL-07: no lock around calls, in either era."""
    spec = spec_for(counting.url, protocol=era)
    await call(spec, "echo", {"text": "warm"})
    started = time.monotonic()
    await asyncio.gather(*(call(spec, "slow", {"seconds": 1}) for _ in range(12)))
    assert time.monotonic() - started < 8


@pytest.mark.parametrize("era", ERAS)
async def test_a_cancellation_harms_only_its_call(counting: CountingServer, era: Protocol) -> None:
    """REL-35: cancel 1 of 20; 19 finish."""
    spec = spec_for(counting.url, protocol=era)
    tasks = [asyncio.create_task(call(spec, "slow", {"seconds": 2 * PATIENCE})) for _ in range(20)]
    async with asyncio.timeout(PATIENCE):
        while len(counting.calls) < 20:
            await asyncio.sleep(0.02)
    tasks[7].cancel()
    await asyncio.wait(tasks[7:8], timeout=PATIENCE)
    counting.finish_slow()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert isinstance(results[7], asyncio.CancelledError)
    assert all(text_of(result) == "done" for number, result in enumerate(results) if number != 7)


@pytest.mark.parametrize("era", ERAS)
async def test_a_dead_owner_wakes_all_waiters(counting: CountingServer, era: Protocol) -> None:
    """REL-35: kill the owner; all get a typed error, and the next call has a new connection."""
    spec = spec_for(counting.url, protocol=era)
    tasks = [asyncio.create_task(call(spec, "slow", {"seconds": 30}, timeout=60)) for _ in range(5)]
    async with asyncio.timeout(PATIENCE):
        while len(counting.calls) < 5:
            await asyncio.sleep(0.02)
    connection = pool._connections[spec.key]
    runtime.current().loop.call_soon_threadsafe(connection.owner.cancel)
    results = await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), PATIENCE)
    assert all(isinstance(result, CallFailed) and result.kind == "broken" for result in results), (
        results
    )
    assert text_of(await call(spec, "echo", {"text": "again"})) == "again"


@pytest.mark.parametrize("era", ERAS)
async def test_a_timeout_is_told_to_the_server(counting: CountingServer, era: Protocol) -> None:
    """REL-34: the server learns that nobody waits any more."""
    spec = spec_for(counting.url, protocol=era)
    with pytest.raises(TimeoutError):
        await call(spec, "slow", {"seconds": 30}, timeout=0.3)
    async with asyncio.timeout(PATIENCE):
        while not counting.cancelled:
            await asyncio.sleep(0.02)
    assert text_of(await call(spec, "echo", {"text": "still here"})) == "still here"


async def test_a_permit_is_for_one_call(counting: CountingServer) -> None:
    """SEC-56: the connection itself refuses a second use and a foreign one."""
    spec = spec_for(counting.url)
    permit = calls.mint_permit(
        call_id=uuid4(), server_id=spec.server_id, tool_name="echo", arguments=b'{"text":"a"}'
    )
    await calls.send_call(spec, permit, limits=within(PATIENCE))
    with pytest.raises(PermitRefused):
        await calls.send_call(spec, permit, limits=within(PATIENCE))
    foreign = calls.mint_permit(
        call_id=uuid4(), server_id=uuid4(), tool_name="echo", arguments=b'{"text":"a"}'
    )
    with pytest.raises(PermitRefused):
        await calls.send_call(spec, foreign, limits=within(PATIENCE))
    assert counting.names() == ["echo"]


async def test_a_call_without_a_permit_finds_no_way_to_the_wire(counting: CountingServer) -> None:
    """SEC-56: however the session is reached, a tools/call that the gate did not allow is not sent."""
    spec = spec_for(counting.url)
    await call(spec, "echo", {"text": "allowed"})

    async def sneak() -> None:
        connection = await pool.connect(spec)
        await connection.request(lambda session: session.call_tool("echo", {"text": "sneaked"}))

    with pytest.raises(PermitRefused):
        await runtime.run(sneak())
    assert counting.names() == ["echo"]


async def test_principals_do_not_share_a_connection(counting: CountingServer) -> None:
    """SEC-10: one person's credentials never serve another."""
    first = spec_for(counting.url, headers={"X-Who": "anna"}, principal="user:anna")
    second = spec_for(
        counting.url, headers={"X-Who": "ben"}, principal="user:ben", server_id=first.server_id
    )
    await call(first, "echo", {"text": "1"})
    await call(second, "echo", {"text": "2"})
    assert {headers["x-who"] for headers in counting.headers} == {"anna", "ben"}
    assert len({key for key in pool._connections if key[1] == first.server_id}) == 2


async def test_a_changed_server_gets_a_new_connection(counting: CountingServer) -> None:
    """What was opened with the old settings is not used for the new ones."""
    spec = spec_for(counting.url, headers={"X-Key": "old"})
    await call(spec, "echo", {"text": "1"})
    changed = spec_for(
        counting.url, headers={"X-Key": "new"}, server_id=spec.server_id, fingerprint="2"
    )
    counting.headers.clear()
    await call(changed, "echo", {"text": "2"})
    assert {headers["x-key"] for headers in counting.headers if "x-key" in headers} <= {
        "new",
        "old",
    }
    assert counting.headers[-1]["x-key"] in {"new", "old"}
    assert pool._connections[spec.key].spec.fingerprint == "2"


async def test_many_cycles_leave_nothing(counting: CountingServer) -> None:
    """REL-36: descriptors, tasks and threads stay constant over connects and closes."""

    async def tasks_on_the_loop() -> int:
        return len(asyncio.all_tasks())

    async def cycle(times: int) -> None:
        for _ in range(times):
            for era in ERAS:
                spec = spec_for(counting.url, protocol=era)
                await runtime.run(pool.list_tools(spec))
                await runtime.run(pool.drop(spec.server_id))

    await cycle(5)
    gc.collect()
    before = (
        len(os.listdir("/proc/self/fd")),
        threading.active_count(),
        await runtime.run(tasks_on_the_loop()),
    )
    await cycle(40)
    gc.collect()
    await asyncio.sleep(0.5)
    after = (
        len(os.listdir("/proc/self/fd")),
        threading.active_count(),
        await runtime.run(tasks_on_the_loop()),
    )
    assert all(now <= then + 4 for then, now in zip(before, after, strict=True)), (before, after)


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
        await call(spec, "echo")
    assert caught.value.kind == "session_lost"
    assert server.methods().count("tools/call") == 1
    assert text_of(await call(spec, "echo")) == "done"
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
        (
            200,
            b'{"jsonrpc": "2.0", "id": 1, "result": {"content": [{"type": "text", "text": "\\ud800"}]}}',
            "application/json",
            "unreadable",
        ),
        (200, b'{"jsonrpc": "2.0", "id": 99, "result": {}}', "application/json", "timeout"),
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
    with pytest.raises((CallFailed, TimeoutError)) as caught:
        await call(spec, "echo", timeout=1.5 if kind == "timeout" else PATIENCE)
    if isinstance(caught.value, CallFailed):
        if kind is not None:
            assert caught.value.kind == kind
        assert "oops" not in caught.value.message
        assert "who are you" not in caught.value.message
    else:
        assert kind == "timeout"
    del server.handlers["tools/call"]
    assert text_of(await call(spec, "echo", {"text": "x"})) == '{"text": "x"}'


async def test_a_server_error_of_its_own_is_told(raw: Any) -> None:
    """A JSON-RPC error is the server's answer, not a broken line."""

    async def refuse(body: Any, scope: Any, send: Any) -> None:
        await reply_error(send, body, -32602, "no such tool: echo")

    server = raw({"tools/call": refuse})
    with pytest.raises(RpcError) as caught:
        await call(spec_for(server.url, protocol=Protocol.LEGACY), "echo")
    assert (caught.value.rpc_code, caught.value.message) == (-32602, "no such tool: echo")


async def test_a_result_of_twenty_megabytes_is_too_large(raw: Any) -> None:
    """SEC-33: bounded while read; the connection lives on."""

    async def flood(body: Any, scope: Any, send: Any) -> None:
        await reply_result(send, body, {"content": [{"type": "text", "text": "x" * (20 * 2**20)}]})

    server = raw({"tools/call": flood})
    spec = spec_for(server.url, protocol=Protocol.LEGACY)
    with pytest.raises(CallFailed) as caught:
        await call(spec, "echo")
    assert caught.value.kind == "too_large"


async def test_a_server_that_dies_in_a_call_is_told_at_once(counting: CountingServer) -> None:
    """REL-34: crash mid-call; nothing is sent again."""
    spec = spec_for(counting.url)
    task = asyncio.create_task(call(spec, "slow", {"seconds": 30}, timeout=60))
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
    told = why_left_alone(McpServer(name="notes"), 4.2)
    assert told == "notes had just failed, so Trellis left it alone for 5 seconds."
    with pytest.raises(ConnectionFailed) as again:
        await runtime.run(pool.list_tools(spec, at_once=True))
    assert not isinstance(again.value, BackingOff)
    assert pool._backoffs[spec.key].failures == 2
    repaired = spec_for(
        server.url, server_id=spec.server_id, fingerprint="2", protocol=Protocol.LEGACY
    )
    await runtime.run(pool.list_tools(repaired))
    assert spec.key not in pool._backoffs


async def test_the_era_that_worked_is_remembered(raw: Any) -> None:
    """Negotiation asks once; the next connection of an older server starts with the handshake."""
    server = raw()
    spec = spec_for(server.url)
    listing = await runtime.run(pool.list_tools(spec))
    assert listing.facts.protocol_revision == "2025-11-25"
    assert server.methods().count("server/discover") == 1
    connection = pool._connections[spec.key]
    runtime.current().loop.call_soon_threadsafe(connection.stop)
    async with asyncio.timeout(PATIENCE):
        while not connection.owner.done():
            await asyncio.sleep(0.02)
    await runtime.run(pool.list_tools(spec))
    assert server.methods().count("server/discover") == 1
    assert server.methods().count("initialize") == 2


async def test_a_list_that_turns_in_a_circle_is_cut(raw: Any) -> None:
    """SEC-80: the same cursor for ever stops, with a warning and a usable rest."""

    async def circle(body: Any, scope: Any, send: Any) -> None:
        await reply_result(send, body, {"tools": [raw_tool("echo")], "nextCursor": "again"})

    server = raw({"tools/list": circle})
    listing = await runtime.run(pool.list_tools(spec_for(server.url, protocol=Protocol.LEGACY)))
    assert "circle" in listing.warning
    assert len(listing.tools) == 2


async def test_a_server_that_refuses_its_list_says_why(raw: Any) -> None:
    """REL-2033: its words, within bounds and without what people do not see, beside the failure."""

    async def refuse(body: Any, scope: Any, send: Any) -> None:
        await reply_error(send, body, -32603, "fetch\u200b failed" + "." * 1000)

    server = raw({"tools/list": refuse})
    with pytest.raises(ConnectionFailed) as caught:
        await runtime.run(pool.list_tools(spec_for(server.url, protocol=Protocol.LEGACY)))
    assert caught.value.message == "The server did not list its tools."
    assert caught.value.advice.startswith("It answered: fetch failed..")
    assert len(caught.value.advice) < 400


async def test_a_list_without_end_is_cut(raw: Any) -> None:
    """SEC-80: pages and items are bounded."""
    count = 0

    async def endless(body: Any, scope: Any, send: Any) -> None:
        nonlocal count
        count += 1
        await reply_result(send, body, {"tools": [raw_tool(f"t{count}")], "nextCursor": str(count)})

    server = raw({"tools/list": endless})
    listing = await runtime.run(pool.list_tools(spec_for(server.url, protocol=Protocol.LEGACY)))
    assert count == MAX_LIST_PAGES
    assert "pages" in listing.warning

    many = raw(tools=[raw_tool(f"t{number}") for number in range(MAX_TOOLS + 500)])
    listing = await runtime.run(pool.list_tools(spec_for(many.url, protocol=Protocol.LEGACY)))
    assert len(listing.tools) == MAX_TOOLS
    assert str(MAX_TOOLS) in listing.warning


async def test_all_pages_are_read(raw: Any) -> None:
    """Pagination is followed."""

    async def pages(body: Any, scope: Any, send: Any) -> None:
        cursor = int((body.get("params") or {}).get("cursor") or 0)
        result = {"tools": [raw_tool(f"t{cursor}")]}
        await reply_result(
            send, body, {**result, "nextCursor": str(cursor + 1)} if cursor < 4 else result
        )

    listing = await runtime.run(
        pool.list_tools(spec_for(raw({"tools/list": pages}).url, protocol=Protocol.LEGACY))
    )
    assert [tool["name"] for tool in listing.tools] == ["t0", "t1", "t2", "t3", "t4"]
    assert listing.warning == ""


async def test_one_odd_tool_does_not_hide_the_others(raw: Any) -> None:
    """Design, 7: the SDK alone would fail the whole list."""
    odd = [
        raw_tool("bad_hint", annotations={"readOnlyHint": "yes"}),
        {"name": "no_schema"},
        {"inputSchema": {}},
        "not even an object",
        raw_tool("good"),
    ]
    listing = await runtime.run(
        pool.list_tools(spec_for(raw(tools=odd).url, protocol=Protocol.LEGACY))
    )
    seen: list[Any] = list(listing.tools)
    assert [tool.get("name") if isinstance(tool, dict) else tool for tool in seen] == [
        *("bad_hint", "no_schema", None, "not even an object", "good"),
    ]


async def test_a_runtime_that_was_shut_down_starts_anew(counting: CountingServer) -> None:
    """The thread is there when it is needed, and only then."""
    spec = spec_for(counting.url)
    await call(spec, "echo", {"text": "1"})
    await asyncio.to_thread(runtime.shutdown)
    assert not any(thread.name == "mcp-connections" for thread in threading.enumerate())
    assert text_of(await call(spec, "echo", {"text": "2"})) == "2"


async def test_a_list_changed_storm_is_one_message_a_second(
    counting: CountingServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REL-34: one list per second at most."""
    from mcp_servers.client.connections.hooks import hooks

    listed: list[Any] = []
    monkeypatch.setattr(hooks, "tools_changed", listed.append)
    spec = spec_for(counting.url)

    async def storm() -> None:
        for _ in range(200):
            pool._news.hear(spec, mcp_types.ToolListChangedNotification())

    began = time.monotonic()
    await runtime.run(storm())
    async with asyncio.timeout(PATIENCE):
        while not listed:
            await asyncio.sleep(0.02)
    assert len(listed) <= 1 + (time.monotonic() - began)
    assert set(listed) == {spec.server_id}


async def test_a_server_that_says_its_tools_changed_is_heard(
    counting: CountingServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SEC-58: the notification of the session-based revisions reaches the hook."""
    from mcp_servers.client.connections.hooks import hooks

    listed: list[Any] = []
    monkeypatch.setattr(hooks, "tools_changed", listed.append)
    spec = spec_for(counting.url, protocol=Protocol.LEGACY)
    await call(spec, "echo", {"text": "warm"})
    async with asyncio.timeout(PATIENCE):
        while not listed:  # the stream for the server's own messages opens beside the first call
            await call(spec, "announce")
            await asyncio.sleep(0.02)
    assert set(listed) == {spec.server_id}


async def test_a_connection_that_closes_as_idle_costs_no_call(counting: CountingServer) -> None:
    """REL-34: however short the idle time, a call finds a connection or opens one."""
    spec = spec_for(counting.url, idle_seconds=0.0)
    for number in range(10):
        assert text_of(await call(spec, "echo", {"text": str(number)})) == str(number)
        await asyncio.sleep(0.495 + 0.001 * number)
    assert counting.names() == ["echo"] * 10
