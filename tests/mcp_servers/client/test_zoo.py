"""Ugly servers over real sockets and pipes: whatever they do harms their own calls alone, and never the loop."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mcp_servers.client.connections import runtime
from mcp_servers.client.connections.calls import get_prompt
from mcp_servers.client.connections.failures import CallFailed
from mcp_servers.client.connections.hooks import hooks
from mcp_servers.client.connections.pool import pool
from mcp_servers.client.errors import ConnectionFailed, NetworkNotAllowed
from mcp_servers.client.sdk import mcp_types
from mcp_servers.client.spec import ConnectionSpec
from mcp_servers.client.transports import websocket
from mcp_servers.client.values import Protocol
from tests.fakes.mcp_server import INITIALIZED, Handler, RawServer, raw_tool, reply_result
from tests.fakes.sse_server import SseServer
from tests.loop_watch import LoopWatch
from tests.mcp_servers.client.conftest import Everywhere
from tests.mcp_servers.client.helpers import Person, program, send, spec_for, text_of, within
from tests.mcp_servers.factories import ZOO
from tests.patience import PATIENCE
from workspaces.errors import InvalidEndpoint
from workspaces.outbound import WEBSOCKET_SCHEMES, parse_endpoint

DONE = {"content": [{"type": "text", "text": "done"}]}


@pytest.fixture
async def watch() -> Any:
    """Watches the connections' loop, in a process without the garbage of other tests."""
    gc.collect()
    gc.freeze()
    watching = LoopWatch()
    task = asyncio.create_task(runtime.run(watching.run()))
    yield watching
    task.cancel()
    gc.unfreeze()


@pytest.fixture
def serve() -> Iterator[Any]:
    """Starts raw servers, and ends them."""
    made: list[RawServer] = []

    def start(handlers: dict[str, Handler], tools: list[Any] | None = None) -> RawServer:
        made.append(RawServer(handlers, tools))
        return made[-1]

    yield start
    for server in made:
        server.stop()


class Relay:
    """A TCP proxy that cuts silent connections, or freezes."""

    def __init__(self, port: int, *, idle_seconds: float = PATIENCE) -> None:
        self.target = port
        self.idle_seconds = idle_seconds
        self.is_frozen = False
        self.cut = 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._sockets: list[socket.socket] = [self._listener]
        threading.Thread(target=self._accept, daemon=True).start()

    def stop(self) -> None:
        for one in self._sockets:
            one.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
                server = socket.create_connection(("127.0.0.1", self.target))
            except OSError:
                return
            self._sockets += [client, server]
            quiet = {"since": time.monotonic()}
            for source, sink in ((client, server), (server, client)):
                threading.Thread(
                    target=self._carry, args=(source, sink, quiet), daemon=True
                ).start()

    def _carry(self, source: socket.socket, sink: socket.socket, quiet: dict[str, float]) -> None:
        with contextlib.suppress(OSError):  # the other direction may have ended already
            source.settimeout(0.05)
        while True:
            try:
                data = source.recv(65536)
            except TimeoutError:
                if source.fileno() < 0:
                    break
                if time.monotonic() - quiet["since"] > self.idle_seconds:
                    self.cut += 1
                    break
                continue
            except OSError:
                break
            if not data:
                break
            quiet["since"] = time.monotonic()
            while self.is_frozen:
                time.sleep(0.02)
            try:
                sink.sendall(data)
            except OSError:
                break
        for one in (source, sink):
            one.close()


def legacy(server: RawServer, **fields: Any) -> Any:
    return spec_for(server.url, protocol=Protocol.LEGACY, transport="streamable_http", **fields)


@pytest.mark.parametrize("revision", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
async def test_each_older_revision_is_spoken(serve: Any, revision: str) -> None:
    """MCP, Lifecycle: a server that knows one revision alone is spoken to in that."""

    async def old(body: Any, scope: Any, answer: Any) -> None:
        await reply_result(answer, body, {**INITIALIZED, "protocolVersion": revision})

    spec = spec_for(serve({"initialize": old}).url)
    listing = await runtime.run(pool.list_offers(spec))
    assert listing.facts.protocol_revision == revision
    assert await text_of(send(spec, "echo", {"a": 1})) == '{"a": 1}'


async def test_an_unknown_revision_is_refused_in_words(serve: Any) -> None:
    """REL-34: a version change that nobody here knows is no crash."""

    async def strange(body: Any, scope: Any, answer: Any) -> None:
        await reply_result(answer, body, {**INITIALIZED, "protocolVersion": "1999-01-01"})

    for era in (Protocol.LEGACY, Protocol.AUTO):
        with pytest.raises(ConnectionFailed):
            await runtime.run(
                pool.list_tools(spec_for(serve({"initialize": strange}).url, protocol=era))
            )


async def test_a_prompts_content_of_an_unknown_kind_is_named(serve: Any) -> None:
    """REL-2113: its other messages are there."""

    async def prompt(request: Any, scope: Any, answer: Any) -> None:
        contents = ({"type": "hologram"}, {"type": "text", "text": "words"})
        messages = [{"role": "user", "content": one} for one in contents]
        await reply_result(answer, request, {"messages": messages})

    spec = legacy(serve({"prompts/get": prompt}))
    asked = await runtime.run(get_prompt(spec, "greet", {}, limits=within(PATIENCE)))
    assert isinstance(asked, mcp_types.GetPromptResult)
    contents = [message.content for message in asked.messages]
    assert [one.text for one in contents if isinstance(one, mcp_types.TextContent)] == [
        '[content of the unknown kind "hologram" left out]',
        "words",
    ]


@pytest.mark.parametrize(
    "body",
    [
        {"content": [{"type": "text", "text": "x" * (9 * 2**20)}]},
        {"content": [{"type": "text", "text": "x"}] * 24_000},
        {"content": [], "structuredContent": {"rows": [{"k": {"v": 1}}] * 24_000}},
        {"content": [{"type": "text", "text": "x"}] * 400_000},
        {"content": [], "structuredContent": {"rows": [[]] * 3_000_000}},
    ],
    ids=["one text", "many parts", "many rows", "too many parts", "millions of lists"],
)
async def test_large_results_do_not_hold_up_the_loop(
    serve: Any, watch: LoopWatch, body: dict[str, Any]
) -> None:
    """REL-43: below a tenth of a second of work at a time, or refused unread."""

    async def large(request: Any, scope: Any, answer: Any) -> None:
        await reply_result(answer, request, body)

    spec = legacy(serve({"tools/call": large}))
    await runtime.run(pool.list_tools(spec))

    async def call() -> None:
        result = await asyncio.gather(
            send(spec, "echo", limits=within(PATIENCE)), return_exceptions=True
        )
        if isinstance(result[0], BaseException):
            assert isinstance(result[0], CallFailed)
            assert result[0].kind == "too_large"

    await watch.assert_lets_turn(call)


async def test_thousands_of_tools_and_huge_schemas(serve: Any, watch: LoopWatch) -> None:
    """REL-43, SEC-80: 5,000 tools, and a schema of many megabytes."""
    huge = {"type": "object", "description": "x" * (4 * 2**20), "pattern": "(a+)+$" * 1000}
    for tools in (
        [raw_tool(f"tool_{number}") for number in range(5000)],
        [raw_tool("huge", inputSchema=huge, outputSchema=huge), raw_tool("small")],
    ):
        spec = legacy(serve({}, tools))

        async def look(spec: ConnectionSpec = spec) -> None:
            listing = await runtime.run(pool.list_offers(spec))
            assert len(listing.tools) in (2000, 2)

        await watch.assert_lets_turn(look)
        assert await text_of(send(spec, "small", {"a": 1})) == '{"a": 1}'


async def test_a_flood_of_notifications(watch: LoopWatch) -> None:
    """REL-34, REL-43: thousands of them before an answer; the answer comes, and nothing piles up."""
    listed: list[Any] = []
    hooks_before, hooks.tools_changed = hooks.tools_changed, listed.append

    async def flood(server: SseServer, body: dict[str, Any], answer: Any) -> None:
        from tests.fakes.mcp_server import reply

        await reply(answer, 202)
        for _ in range(3000):
            await server.tell({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
        await server.tell({"jsonrpc": "2.0", "method": "notifications/nobody/knows"})
        await server.tell({"jsonrpc": "2.0", "id": body["id"], "result": DONE})

    server = SseServer(on_post={"tools/call": flood})
    try:
        spec = spec_for(server.url, transport="sse", protocol=Protocol.LEGACY)
        await runtime.run(pool.list_tools(spec))

        async def call() -> None:
            listed.clear()
            assert await text_of(send(spec, "echo")) == "done"
            assert 1 <= len(listed) <= 20

        await watch.assert_lets_turn(call)
    finally:
        hooks.tools_changed = hooks_before
        server.stop()


async def test_a_flood_of_progress_is_all_told_or_harmless(serve: Any) -> None:
    """Thousands of steps of one call reach the listener in order, and the call ends well."""

    async def flood(server: SseServer, body: dict[str, Any], answer: Any) -> None:
        from tests.fakes.mcp_server import reply

        await reply(answer, 202)
        token = body["params"]["_meta"]["progressToken"]
        for step in range(2000):
            params = {"progressToken": token, "progress": step}
            note = {"jsonrpc": "2.0", "method": "notifications/progress", "params": params}
            await server.tell(note)
        await server.tell({"jsonrpc": "2.0", "id": body["id"], "result": DONE})

    server = SseServer(on_post={"tools/call": flood})
    try:
        person = Person()
        spec = spec_for(server.url, transport="sse", protocol=Protocol.LEGACY)
        assert await text_of(send(spec, "echo", listener=person)) == "done"
        assert [one.progress for one in person.progress] == sorted(
            one.progress for one in person.progress
        )
    finally:
        server.stop()


async def test_doubled_and_foreign_answers(tmp_path: Path) -> None:
    """REL-34: the first answer counts; a second one, and one for another's id, change nothing."""

    async def double(server: SseServer, body: dict[str, Any], answer: Any) -> None:
        from tests.fakes.mcp_server import reply

        await reply(answer, 202)
        await server.tell({"jsonrpc": "2.0", "id": body["id"] + 1, "result": {"content": []}})
        await server.tell({"jsonrpc": "2.0", "id": body["id"], "result": DONE})
        await server.tell({"jsonrpc": "2.0", "id": body["id"], "result": {"content": []}})

    server = SseServer(on_post={"tools/call": double})
    try:
        spec = spec_for(server.url, transport="sse", protocol=Protocol.LEGACY)
        for _ in range(3):
            assert await text_of(send(spec, "echo")) == "done"
    finally:
        server.stop()


async def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    """REL-34, SEC-42: invalid UTF-8 on a pipe is noise, and costs nothing but a count."""
    spec = spec_for(program(ZOO, tmp_path / "home", "greeting"), protocol=Protocol.LEGACY)
    seen = json.loads(await text_of(send(spec, "probe")))
    assert seen["session"]
    stdio = pool._connections[spec.key].transport.stderr
    assert stdio is not None
    assert stdio.stray_lines >= 2


@pytest.mark.parametrize("transport", ["sse", "websocket"])
async def test_silent_work_goes_through_a_proxy_that_cuts_silence(
    everywhere: Everywhere, monkeypatch: pytest.MonkeyPatch, transport: str
) -> None:
    """REL-20: a call much longer than the proxy's patience, without a reconnect."""
    monkeypatch.setattr("mcp_servers.client.connections.connection.KEEPALIVE_SECONDS", 0.4)
    monkeypatch.setattr(websocket, "PING_SECONDS", 0.4)
    relay = Relay(everywhere.port, idle_seconds=1.2)
    try:
        everywhere.port = relay.port
        spec = everywhere.spec(transport, protocol=Protocol.LEGACY)
        await text_of(send(spec, "echo", {"text": "warm"}))
        connection = pool._connections[spec.key]
        assert await text_of(send(spec, "silent", {"seconds": 4})) == "done"
        assert pool._connections[spec.key] is connection
    finally:
        relay.stop()


async def test_sockets_are_kept_alive_by_the_kernel(serve: Any) -> None:
    """REL-20, REL-34: a peer that went away without a word is found out, whatever is waited for."""
    seen: list[int] = []
    connect = socket.socket.setsockopt

    def note(self: socket.socket, level: int, option: int, *value: Any) -> None:
        if (level, option) == (socket.SOL_SOCKET, socket.SO_KEEPALIVE):
            seen.append(value[0])
        connect(self, level, option, *value)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket.socket, "setsockopt", note, raising=False)
        await runtime.run(pool.list_tools(legacy(serve({}))))
    assert 1 in seen


@pytest.mark.parametrize("transport", ["streamable_http", "sse", "websocket"])
async def test_a_half_open_line_ends_in_time(
    everywhere: Everywhere, monkeypatch: pytest.MonkeyPatch, transport: str
) -> None:
    """REL-34: nothing goes through any more, and nobody says so: calls end by their limits, looks are typed."""
    monkeypatch.setattr(websocket, "PING_SECONDS", 0.4)
    relay = Relay(everywhere.port)
    try:
        everywhere.port = relay.port
        spec = everywhere.spec(transport, protocol=Protocol.LEGACY, connect_seconds=1.0)
        await text_of(send(spec, "echo", {"text": "warm"}))
        relay.is_frozen = True
        started = time.monotonic()
        with pytest.raises((TimeoutError, CallFailed)):
            await send(spec, "echo", {"text": "lost"}, limits=within(1.5))
        assert time.monotonic() - started < 30
        with pytest.raises(ConnectionFailed):
            await runtime.run(pool.ping(spec, at_once=True))
        relay.is_frozen = False
        async with asyncio.timeout(PATIENCE):
            while True:
                try:
                    assert await text_of(send(spec, "echo", {"text": "back"})) == "back"
                    break
                except (ConnectionFailed, CallFailed, TimeoutError):
                    await asyncio.sleep(0.2)
    finally:
        relay.stop()


@pytest.mark.parametrize(
    "url",
    [
        "http://user:password@example.com/mcp",
        "https://token@example.com/mcp",
        "http://example.com:80@evil.example/mcp",
        "wss://user:password@example.com/mcp",
    ],
)
def test_no_credential_is_taken_in_a_url(url: str) -> None:
    """SEC-17: user information in a server's URL is refused, whatever the transport."""
    with pytest.raises(InvalidEndpoint):
        parse_endpoint(url)
    with pytest.raises(InvalidEndpoint):
        parse_endpoint(url, schemes=WEBSOCKET_SCHEMES)


@pytest.mark.parametrize("transport", ["auto", "streamable_http", "sse", "websocket"])
async def test_a_failed_connection_tells_a_class_and_no_more(transport: str) -> None:
    """SEC-34: a closed port and an unknown name look alike, and so do all networks that are not allowed; a banner is
    not repeated.
    """
    scheme = "ws" if transport == "websocket" else "http"
    for kind, hosts in (
        (ConnectionFailed, ("127.0.0.1:9999", "no-such-name.invalid")),
        (NetworkNotAllowed, ("10.1.2.3:8080", "169.254.169.254", "192.168.1.1:9999")),
    ):
        classes = set()
        for host in hosts:
            spec = spec_for(f"{scheme}://{host}/mcp", transport=transport, connect_seconds=3.0)
            with pytest.raises(ConnectionFailed) as caught:
                await runtime.run(pool.list_tools(spec))
            classes.add((type(caught.value), caught.value.message))
        assert len(classes) == 1, classes
        assert {type_ for type_, _ in classes} == {kind}

    def greet() -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = listener.accept()
                client.sendall(b"SSH-2.0-OpenSSH_9.2p1 secret-host\r\n")
                client.close()

    listener = socket.create_server(("127.0.0.1", 0))
    threading.Thread(target=greet, daemon=True).start()
    try:
        url = f"{scheme}://127.0.0.1:{listener.getsockname()[1]}/mcp"
        with pytest.raises(ConnectionFailed) as caught:
            await runtime.run(pool.list_tools(spec_for(url, transport=transport)))
        assert "SSH" not in caught.value.message
        assert "SSH" not in str(caught.value.details)
    finally:
        listener.close()
