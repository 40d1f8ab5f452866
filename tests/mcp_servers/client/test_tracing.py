"""The trace: every message and event, cut, paired, cheap, and never in anybody's way."""

from __future__ import annotations

import asyncio
import itertools
import json
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import anyio
import pytest
from mcp.shared.message import SessionMessage

from mcp_servers.client.connections import calls, runtime, tap, tracing
from mcp_servers.client.connections.failures import CallFailed
from mcp_servers.client.connections.flights import CallRef
from mcp_servers.client.connections.hooks import TraceRecord, hooks
from mcp_servers.client.connections.pool import pool
from mcp_servers.client.connections.tracing import ConnectionTrace, TraceBuffer
from mcp_servers.client.connections.turning_away import TurningAway
from mcp_servers.client.errors import ConnectionFailed
from mcp_servers.client.sdk import mcp_types
from mcp_servers.client.spec import ConnectionSpec
from mcp_servers.client.values import Protocol
from tests.fakes.mcp_server import RawServer, reply, reply_error, reply_result
from tests.fakes.sse_server import SseServer
from tests.mcp_servers.client.conftest import TRANSPORTS, Everywhere
from tests.mcp_servers.client.helpers import Person, program, send, spec_for, text_of, within
from tests.mcp_servers.factories import ZOO
from tests.patience import PATIENCE, wait_until
from workspaces.outbound import bounds
from workspaces.redaction import MASK, redact, remember_secret


class Traced:
    """What the hook was given."""

    def __init__(self) -> None:
        self.batches: list[Sequence[TraceRecord]] = []

    def __call__(self, batch: Sequence[TraceRecord]) -> None:
        self.batches.append(batch)

    @property
    def records(self) -> list[TraceRecord]:
        return [record for batch in self.batches for record in batch]

    async def settle(self, buffer: TraceBuffer = tracing.buffer) -> list[TraceRecord]:
        """All records, once nothing more is waiting."""
        await asyncio.sleep(tracing.FLUSH_SECONDS)
        async with asyncio.timeout(PATIENCE):
            while buffer._notes or buffer._timer is not None:
                await asyncio.sleep(0.02)
        return self.records


@pytest.fixture
def traced(monkeypatch: pytest.MonkeyPatch) -> Iterator[Traced]:
    """Takes what is noted from now on."""
    tracing.buffer._take()  # what connections of earlier tests noted at their end
    taken = Traced()
    monkeypatch.setattr(hooks, "traced", taken)
    monkeypatch.setattr(tracing, "FLUSH_SECONDS", 0.1)
    yield taken
    runtime.shutdown(2.0)


@pytest.mark.parametrize("era", [Protocol.LEGACY, Protocol.MODERN])
@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_each_message_is_noted_on_each_transport(
    everywhere: Everywhere, traced: Traced, transport: str, era: Protocol
) -> None:
    """Sent and received, with the call they belong to, the answer's method and how long it took."""
    spec = everywhere.spec(transport, protocol=era, principal="user:anna")
    call_id, user_id = uuid4(), uuid4()
    permit = calls.mint_permit(
        call_id=call_id,
        server_id=spec.server_id,
        tool_name="steps",
        arguments=b'{"count":2,"seconds":0.05}',
        user_id=user_id,
    )
    await calls.send_call(spec, permit, limits=within(PATIENCE), listener=Person())
    records = await traced.settle()
    mine = [record for record in records if record.call_id == call_id]
    assert {record.user_id for record in mine} == {user_id}
    (request,) = [record for record in mine if record.kind == "request"]
    (response,) = [record for record in mine if record.kind == "response"]
    progress = [record for record in mine if record.method == "notifications/progress"]
    assert (request.direction, request.method) == ("sent", "tools/call")
    assert request.body is not None
    assert request.body["params"]["arguments"] == {"count": 2, "seconds": 0.05}
    assert (response.direction, response.method) == ("received", "tools/call")
    assert response.rpc_id == request.rpc_id
    assert response.duration_ms is not None
    assert response.duration_ms >= 90
    assert len(progress) == 2
    for record in records:
        assert (record.workspace_id, record.server_id) == (spec.workspace_id, spec.server_id)
        assert record.principal == "user:anna"
    assert len({record.connection for record in records}) == 1
    events = [record.text for record in records if record.kind == "event"]
    assert events[0].startswith("Connecting")
    assert any(text.startswith("Connected, revision 20") for text in events)


async def test_questions_and_their_answers_are_noted(
    everywhere: Everywhere, traced: Traced
) -> None:
    """Both directions of what a server asks."""
    spec = everywhere.spec("streamable_http", protocol=Protocol.LEGACY)
    await text_of(send(spec, "ask_form", listener=Person(content={"size": "L"})))
    records = [one for one in await traced.settle() if one.method == "elicitation/create"]
    assert [(one.direction, one.kind) for one in records] == [
        ("received", "request"),
        ("sent", "response"),
    ]
    assert all(one.call_id is not None for one in records)


async def test_a_fallback_and_a_failure_are_told_in_words(traced: Traced) -> None:
    """What an administrator has to know of a connection that did not come about at once."""
    server = SseServer()
    try:
        await runtime.run(pool.list_tools(spec_for(server.url)))
        texts = [record.text for record in await traced.settle() if record.kind == "event"]
        assert texts[0] == "Connecting over streamable_http."
        assert "405" in texts[1]
        assert texts[2] == "Connecting over sse."
    finally:
        server.stop()
    traced.batches.clear()
    with pytest.raises(Exception, match="could not reach the server"):
        await runtime.run(pool.list_tools(spec_for("http://127.0.0.1:9999/mcp")))
    texts = [record.text for record in await traced.settle()]
    assert any("could not reach the server" in text for text in texts)
    assert any(text.startswith("Next attempt in ") for text in texts)


async def test_lists_are_noted_as_they_came(traced: Traced) -> None:
    """The SDK is shown less than the administrator."""
    tools = [{"name": "odd", "inputSchema": {"type": "object"}, "annotations": {"x": 1}}]
    server = RawServer(tools=tools)
    try:
        await runtime.run(pool.list_tools(spec_for(server.url)))
    finally:
        server.stop()
    (answer,) = [
        record
        for record in await traced.settle()
        if record.method == "tools/list" and record.kind == "response"
    ]
    assert answer.body is not None
    assert answer.body["result"]["tools"] == tools


async def test_lines_of_a_programs_error_stream_are_noted(tmp_path: Path, traced: Traced) -> None:
    """Of a flood, some; and the loop stays free."""
    spec = spec_for(program(ZOO, tmp_path / "home", "flood_stderr"), protocol=Protocol.LEGACY)
    await runtime.run(pool.list_tools(spec))
    lines = [record for record in await traced.settle() if record.method == "stderr"]
    assert lines[0].text == "line 0 of noise"
    assert 1 <= len(lines) <= 5 * tracing.MAX_LINES_A_SECOND


@pytest.mark.usefixtures("no_known_secrets")
async def test_no_half_of_a_secret_is_in_a_programs_long_line(
    tmp_path: Path, traced: Traced
) -> None:
    """SEC-1001: what is too long is cut behind its beginning, whether the rest of it has come or not."""
    secret = "s3cret-of.the-program-77"
    writer = tmp_path / "writer.py"
    writer.write_text(
        "import sys, time\n"
        "for line in ('é' * 2_043 + SECRET, 'x' * 5_000 + SECRET + '.' * 4_085):\n"
        "    sys.stderr.write(line)\n"
        "    sys.stderr.flush()\n"
        "    time.sleep(0.1)\n"
        "    sys.stderr.write('\\n')\n".replace("SECRET", repr(secret))
    )
    spec = spec_for(program(writer, tmp_path / "home"), protocol=Protocol.LEGACY)
    remember_secret(secret, workspace_id=spec.workspace_id)
    with pytest.raises(ConnectionFailed):
        await runtime.run(pool.list_tools(spec))
    lines = [one.text for one in await traced.settle() if one.method == "stderr"]
    assert lines == ["é" * 2_043 + MASK, "x" * 4_000]


@pytest.mark.usefixtures("no_known_secrets")
async def test_no_half_of_a_secret_is_at_the_end_of_a_servers_error(
    raw: Any, traced: Traced
) -> None:
    """SEC-1003: words of an error of HTTP are not cut before they are masked."""
    secret = "s3cret-of.the-server-77"

    async def refuse(body: Any, scope: Any, send: Any) -> None:
        await reply_error(send, body, -32001, "." * 1_990 + secret, status=400)

    spec = spec_for(raw({"tools/list": refuse}).url, protocol=Protocol.LEGACY)
    remember_secret(secret, workspace_id=spec.workspace_id)
    with pytest.raises(ConnectionFailed):
        await runtime.run(pool.list_tools(spec))
    [error] = [one for one in await traced.settle() if one.kind == "error"]
    assert redact(error.body, workspace_id=spec.workspace_id)["error"]["message"].endswith(MASK)


async def test_log_messages_are_noted_when_wanted(everywhere: Everywhere, traced: Traced) -> None:
    """MCP, Logging: opted in by the level, in both eras."""
    for era, level in ((Protocol.LEGACY, "info"), (Protocol.MODERN, "info"), (Protocol.MODERN, "")):
        traced.batches.clear()
        spec = everywhere.spec("streamable_http", protocol=era, log_level=level)
        await text_of(send(spec, "say", {"text": "a line"}))
        found = [one for one in await traced.settle() if one.method == "notifications/message"]
        assert [one.text for one in found] == (["info: a line"] if level else [])


def log_notice(text: str) -> dict[str, Any]:
    return {
        "jsonrpc": "2.0",
        "method": "notifications/message",
        "params": {"level": "info", "data": text},
    }


async def test_what_is_said_during_a_call_is_of_the_call(traced: Traced) -> None:
    """On a stream of all, a log line may repeat what somebody put into their call."""

    async def log_and_wait(server: SseServer, body: dict[str, Any], answer: Any) -> None:
        await server.tell(log_notice("found: a secret"))
        if len([post for post in server.posts if post.get("method") == "tools/call"]) == 2:
            await server.tell(log_notice("found: one of two"))
        await reply(answer, 202)

    server = SseServer(on_post={"tools/call": log_and_wait})
    try:
        spec = spec_for(server.url, transport="sse", protocol=Protocol.LEGACY)
        await runtime.run(pool.list_tools(spec))
        people = [uuid4(), uuid4()]
        permits = [
            calls.mint_permit(
                call_id=uuid4(),
                server_id=spec.server_id,
                tool_name="echo",
                arguments=b"{}",
                user_id=user_id,
            )
            for user_id in people
        ]
        first = asyncio.create_task(calls.send_call(spec, permits[0], limits=within(5)))
        async with asyncio.timeout(PATIENCE):
            while not [one for one in traced.records if one.method == "notifications/message"]:
                await asyncio.sleep(0.02)
        second = asyncio.create_task(calls.send_call(spec, permits[1], limits=within(5)))
        await asyncio.gather(first, second, return_exceptions=True)
    finally:
        server.stop()
    records = [one for one in await traced.settle() if one.method == "notifications/message"]
    assert (records[0].call_id, records[0].user_id) == (permits[0].call_id, people[0])
    assert len(records) == 3
    for record in records[1:]:
        # Several could be meant: it is a call's, and nobody's to see.
        assert record.call_id in {permit.call_id for permit in permits}
        assert record.user_id is None


async def test_a_programs_line_during_a_call_is_of_the_call(traced: Traced) -> None:
    """Its words are a message's, which only the caller sees, and not an event's."""
    buffer = TraceBuffer()
    trace = ConnectionTrace(spec_of_nothing(), buffer)
    call = CallRef(call_id=uuid4(), user_id=uuid4())

    async def tell() -> None:
        trace.stderr_line("starting")
        trace.bystander = lambda: call
        trace.stderr_line("searching for a secret")

    await runtime.run(tell())
    before, during = await traced.settle(buffer)
    assert (before.kind, before.text, before.call_id) == ("event", "starting", None)
    assert (during.kind, during.text, during.method) == ("notification", "", "stderr")
    assert (during.call_id, during.user_id) == (call.call_id, call.user_id)
    assert during.body == {"line": "searching for a secret"}


@pytest.mark.parametrize(
    "value",
    [float("nan"), float("inf"), float("-inf"), 2**63, -(2**70), 10**5000],
    ids=["nan", "inf", "-inf", "2**63", "-2**70", "10**5000"],
)
def test_numbers_that_no_database_takes_are_kept_as_text(value: float) -> None:
    """SEC-76: one odd number must not cost a whole batch of the trace."""
    payload = {"params": {"data": [1, 1.5, True, None, value]}}
    body, _ = tracing.cut(payload, uuid4())
    *others, last = body["params"]["data"]
    assert others == [1, 1.5, True, None]
    assert isinstance(last, str)
    json.dumps(body, allow_nan=False)


async def test_an_endless_number_in_a_log_line_costs_nothing(traced: Traced) -> None:
    """SEC-76: neither its own record nor those beside it."""
    buffer = TraceBuffer()
    trace = ConnectionTrace(spec_of_nothing(), buffer)
    params = {"level": "info", "data": {"n": 10**5000}}

    async def tell() -> None:
        trace.event("beside it")
        trace.message(
            "received", "notification", {"params": params}, method="notifications/message"
        )

    await runtime.run(tell())
    records = await traced.settle(buffer)
    assert [one.text for one in records] == ["beside it", 'info: {"n": "a very long number"}']


def spec_of_nothing() -> ConnectionSpec:
    return spec_for("http://127.0.0.1:1234/mcp")


@pytest.mark.usefixtures("no_known_secrets")
def test_no_half_of_a_secret_stands_where_a_message_is_cut() -> None:
    """SEC-988: what is masked later would not know it."""
    workspace_id, secret = uuid4(), "s3cret-of.the-server-77"
    remember_secret(secret, workspace_id=workspace_id)
    for kept in range(tracing.MAX_BODY_BYTES - 30, tracing.MAX_BODY_BYTES, 5):
        body, _ = tracing.cut({"data": "." * kept + secret}, workspace_id)
        shown = redact(body, workspace_id=workspace_id)["data"]
        assert shown.startswith("." * (kept - 1))
        assert "s3" not in shown


@pytest.mark.usefixtures("no_known_secrets")
async def test_no_half_of_a_secret_stands_at_the_end_of_a_long_id(traced: Traced) -> None:
    """SEC-1072: nor of a method; both come from the server as they please it."""
    trace = ConnectionTrace(spec=spec_of_nothing(), buffer=tracing.buffer)
    remember_secret("s3cret-of.the-server-77", workspace_id=trace.spec.workspace_id)
    long = "." * 90 + "s3cret-of.the-server-77"
    trace.message("received", "response", {}, method=long, rpc_id=long)
    [record] = await traced.settle()
    assert [one[88:93] for one in (record.method, record.rpc_id)] == [f"..{MASK}"[:5]] * 2


@pytest.mark.usefixtures("no_known_secrets")
def test_no_half_of_a_secret_comes_into_a_message_that_masking_shortens() -> None:
    """SEC-988: such as a list of links with the same key in each. What is behind the cut comes before it then."""
    workspace_id, secret = uuid4(), "s3cret-of.the-server-" + "77-" * 30
    remember_secret(secret, workspace_id=workspace_id)
    for kept in range(0, len(secret), 10):
        body, _ = tracing.cut({"data": "." * kept + secret * 1500}, workspace_id)
        assert "s3" not in redact(body, workspace_id=workspace_id)["data"]


async def test_a_large_message_is_cut(traced: Traced) -> None:
    """At most about 64 KiB of each is kept, with a mark where something is missing; its size is told."""
    text = "x" * (2 * 2**20)

    async def flood(body: Any, scope: Any, answer: Any) -> None:
        await reply_result(answer, body, {"content": [{"type": "text", "text": text}]})

    server = RawServer({"tools/call": flood})
    try:
        await send(spec_for(server.url), "echo")
    finally:
        server.stop()
    (answer,) = [
        one
        for one in await traced.settle()
        if one.method == "tools/call" and one.kind == "response"
    ]
    assert len(json.dumps(answer.body)) < 80 * 1024
    assert "more characters" in json.dumps(answer.body)
    assert answer.size >= 2 * 2**20


async def test_many_parts_are_cut_too(traced: Traced) -> None:
    """A message of a million parts is not walked through."""
    value = {"result": {"content": [{"type": "text", "text": str(n)} for n in range(300_000)]}}
    started = time.process_time()
    body, _ = tracing.cut(value, uuid4())
    assert time.process_time() - started < 1
    assert "more left out" in json.dumps(body)


async def test_noting_costs_a_call_next_to_nothing(traced: Traced) -> None:
    """Ours: a note is a few function calls. A thread of its own writes it."""
    trace = ConnectionTrace(spec_of_nothing(), TraceBuffer())
    payload = {"id": 1, "method": "tools/call", "params": {"name": "echo", "arguments": {"a": 1}}}
    seen: list[str] = []

    async def count() -> None:
        def note(_frame: object, event: str, _argument: object) -> None:
            seen.append(event)

        sys.setprofile(note)
        try:
            trace.message("sent", "request", payload, method="tools/call", rpc_id="1")
        finally:
            sys.setprofile(None)

    trace.message("sent", "request", payload, method="tools/call", rpc_id="1")  # its thread begins
    await runtime.run(count())
    calls = sum(event in ("call", "c_call") for event in seen)
    assert calls < 60, calls


async def test_of_a_flood_of_requests_some_are_taken() -> None:
    """SEC-997: whatever their ids. The others have an error, one by one; the answer behind them comes all the same."""
    trace = ConnectionTrace(spec_of_nothing(), TraceBuffer())
    shown = tap.Tap(trace, sole_flight=lambda: None, bystander=lambda: None, on_end=lambda: None)

    async def take() -> tuple[list[Any], list[Any], int]:
        sender, receiver = anyio.create_memory_object_stream[Any](602)
        write, written = anyio.create_memory_object_stream[Any](0)
        for number in range(600):
            ping = mcp_types.JSONRPCRequest(jsonrpc="2.0", id=f"q{number}", method="ping")
            sender.send_nowait(SessionMessage(ping))
        read = tap.TapRead(receiver, shown, TurningAway(write))
        taken = [(await read.receive()).message.id for _ in range(tap.REQUESTS_AT_ONCE)]
        answer = mcp_types.JSONRPCResponse(jsonrpc="2.0", id=1, result={})
        sender.send_nowait(SessionMessage(answer))
        while (number := (await read.receive()).message.id) != 1:
            taken.append(number)
        tasks = sum("TurningAway" in repr(one) for one in asyncio.all_tasks())
        errors = [(await written.receive()).message for _ in range(600 - len(taken))]
        return taken, errors, tasks

    taken, errors, tasks = await runtime.run(take())
    assert tap.REQUESTS_AT_ONCE <= len(taken) <= tap.REQUESTS_AT_ONCE + 5 * tap.REQUESTS_PER_SECOND
    assert tasks == 1
    assert {one.error.code for one in errors} == {-32000}
    assert sorted([*taken, *(one.id for one in errors)]) == sorted(f"q{n}" for n in range(600))


async def test_a_flood_of_requests_is_one_event(
    traced: Traced, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SEC-1002: and not each time when one of it was taken, which would push all else out of the trace."""
    hundredths = itertools.count()
    clock = SimpleNamespace(monotonic=lambda: next(hundredths) / 100)
    monkeypatch.setattr(bounds, "time", clock)
    buffer = TraceBuffer()
    trace = ConnectionTrace(spec_of_nothing(), buffer)
    shown = tap.Tap(trace, sole_flight=lambda: None, bystander=lambda: None, on_end=lambda: None)
    ping = SessionMessage(mcp_types.JSONRPCRequest(jsonrpc="2.0", id="q", method="ping"))

    async def flood() -> int:
        return sum(shown.takes(ping) for _ in range(1_000))

    assert 200 <= await runtime.run(flood()) <= 400
    [event] = await traced.settle(buffer)
    assert "asks too much at once" in event.text


async def test_what_is_too_much_is_lost_and_counted(traced: Traced) -> None:
    """A stuck hook costs notes, never memory or a call."""
    is_taken, stuck = threading.Event(), threading.Event()

    def slowly(batch: Sequence[TraceRecord]) -> None:
        is_taken.set()
        stuck.wait(PATIENCE)
        traced.batches.append(batch)

    hooks.traced = slowly
    buffer = TraceBuffer()
    trace = ConnectionTrace(spec_of_nothing(), buffer)

    async def flood() -> None:
        trace.event("the first")
        assert await asyncio.to_thread(is_taken.wait, PATIENCE)
        for number in range(tracing.MAX_WAITING + 100):
            trace.event(f"event {number}")

    await runtime.run(flood())
    assert buffer.lost == 100
    assert len(buffer._notes) == tracing.MAX_WAITING
    stuck.set()
    records = await traced.settle(buffer)
    assert records[-1].text == f"event {tracing.MAX_WAITING + 99}"
    assert records[1].text == "event 100"


def test_the_last_messages_are_kept_where_a_program_does_not_end_in_time(
    tmp_path: Path, traced: Traced, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REL-3184: a process that ended cut the trace off before what a call had sent."""
    monkeypatch.setattr(tracing, "FLUSH_SECONDS", PATIENCE)
    spec = spec_for(program(ZOO, tmp_path / "home", "hang_in_call"), protocol=Protocol.LEGACY)
    pending = runtime.current().submit(send(spec, "probe"))
    wait_until(lambda: [one for one in pool.connections_of(spec.server_id) if one.in_flight])
    runtime.shutdown(0.1)
    assert ("sent", "tools/call") in [(one.direction, one.method) for one in traced.records]
    with pytest.raises((CallFailed, CancelledError)):
        pending.result(PATIENCE)


def test_a_process_that_ends_does_not_complain_of_what_nobody_gets_any_more(
    traced: Traced,
) -> None:
    """Python ends its threads first: the last words of a command were a traceback."""
    buffer = TraceBuffer()
    trace = ConnectionTrace(spec_of_nothing(), buffer)

    async def end() -> None:
        ended = ThreadPoolExecutor(1)
        ended.shutdown()
        asyncio.get_running_loop().set_default_executor(ended)
        for close in (buffer._flush, buffer.close):
            trace.event("the last")
            if (closing := close()) is not None:
                await closing

    asyncio.run(end())
    assert buffer.lost == 2


async def test_a_hook_that_fails_harms_nothing(traced: Traced) -> None:
    """The trace is the least important of all."""

    def fail(batch: Sequence[TraceRecord]) -> None:
        raise RuntimeError("the database is gone")

    hooks.traced = fail
    server = RawServer()
    try:
        spec = spec_for(server.url)
        before = tracing.buffer.lost
        await send(spec, "echo")
        async with asyncio.timeout(PATIENCE):
            while tracing.buffer.lost <= before:
                await asyncio.sleep(0.02)
        await send(spec, "echo")
    finally:
        server.stop()
