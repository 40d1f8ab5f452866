"""How connections come, stay, rest and go."""

from __future__ import annotations

import asyncio
import json
import math
import os
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.conf import settings
from django.test import override_settings

from mcp_servers.client.connections import calls, connection, runtime
from mcp_servers.client.connections.backoff import Backoff
from mcp_servers.client.connections.facts import ConnectionState
from mcp_servers.client.connections.failures import CallFailed
from mcp_servers.client.connections.pool import BREAKS_BEFORE_PAUSE, pool
from mcp_servers.client.connections.slots import FairSlots
from mcp_servers.client.errors import BackingOff, Busy, ConnectionFailed
from mcp_servers.client.transports import density, guard
from mcp_servers.client.values import Protocol
from tests.fakes.mcp_server import (
    INITIALIZED,
    CountingServer,
    RawServer,
    begin_session,
    reply,
)
from tests.mcp_servers.client.conftest import Everywhere
from tests.mcp_servers.client.helpers import (
    Person,
    program,
    send,
    spec_for,
    text_of,
    within,
)
from tests.mcp_servers.factories import ZOO
from tests.patience import PATIENCE

NOWHERE = "http://127.0.0.1:9999/mcp"


@pytest.fixture
def raw() -> Iterator[RawServer]:
    server = RawServer()
    yield server
    server.stop()


def live() -> list[Any]:
    return [one for one in pool._connections.values() if not one.is_over]


def bounded(everywhere: int, workspace: int) -> Any:
    """The settings with other bounds."""
    values = settings.TRELLIS.model_copy(
        update={"max_connections": everywhere, "max_connections_per_workspace": workspace}
    )
    return override_settings(TRELLIS=values)


async def test_the_pool_is_bounded_and_makes_room(counting: CountingServer) -> None:
    """REL-36: those idle for longest go first, whoever's they are; the bound of a workspace is its own."""
    here, there = uuid4(), uuid4()
    with bounded(4, 2):
        specs = [spec_for(counting.url, workspace_id=here) for _ in range(3)]
        for spec in specs:
            await send(spec, "echo", {"text": "x"})
        assert {one.spec.server_id for one in live()} == {spec.server_id for spec in specs[1:]}
        for _ in range(2):
            await send(spec_for(counting.url, workspace_id=there), "echo", {"text": "x"})
        assert len(live()) == 4
        await send(spec_for(counting.url), "echo", {"text": "x"})
        assert len(live()) == 4
        assert specs[1].key not in {one.spec.key for one in live()}


async def test_connections_in_use_are_not_taken_away(counting: CountingServer) -> None:
    """REL-37: when all are busy, the next one is refused at once, typed, with nothing sent."""
    workspace = uuid4()
    with bounded(10, 2):
        busy = [
            asyncio.create_task(
                send(spec_for(counting.url, workspace_id=workspace), "slow", {"seconds": 1.5})
            )
            for _ in range(2)
        ]
        async with asyncio.timeout(PATIENCE):
            while len(counting.calls) < 2:
                await asyncio.sleep(0.02)
        with pytest.raises(Busy):
            await send(spec_for(counting.url, workspace_id=workspace), "echo", {"text": "x"})
        assert counting.names() == ["slow", "slow"]
        await asyncio.gather(*busy)


async def test_a_replaced_connection_counts_once(counting: CountingServer) -> None:
    """REL-37: while it still carries a call; one more is no reason to refuse what there is room for."""
    workspace = uuid4()
    with bounded(10, 3):
        specs = [spec_for(counting.url, workspace_id=workspace) for _ in range(2)]
        busy = [asyncio.create_task(send(spec, "slow", {"seconds": 1.5})) for spec in specs]
        async with asyncio.timeout(PATIENCE):
            while len(counting.calls) < 2:
                await asyncio.sleep(0.02)
        assert await text_of(send(replace(specs[0], fingerprint="2"), "echo", {"text": "x"})) == "x"
        await asyncio.gather(*busy)


async def test_too_many_waiters_are_sent_away() -> None:
    """REL-37: the queue for a busy server is bounded as well."""
    slots = FairSlots(1, most_waiting=2)
    assert slots.try_take()
    waiting = [asyncio.create_task(slots.take("anna", wait_seconds=PATIENCE)) for _ in range(2)]
    await asyncio.sleep(0.05)
    with pytest.raises(Busy):
        await slots.take("ben", wait_seconds=PATIENCE)
    slots.give_back()
    await waiting[0]
    slots.give_back()
    await waiting[1]
    slots.give_back()
    assert slots.try_take()


async def test_attempts_end_until_somebody_asks(raw: RawServer) -> None:
    """REL-34: after so many failures in a row nothing is tried unasked; success resets the count."""
    spec = spec_for(NOWHERE, max_attempts=3, protocol=Protocol.LEGACY)
    for number in range(3):
        with pytest.raises(ConnectionFailed):
            await runtime.run(pool.list_tools(spec, at_once=True))
        assert pool.state_of(spec).failures == number + 1
    status = pool.state_of(spec)
    assert (status.state, status.next_attempt_seconds) == (ConnectionState.GIVEN_UP, None)
    assert math.isinf(calls.wait_seconds(spec))
    with pytest.raises(BackingOff) as caught:
        await send(spec, "echo")
    assert caught.value.retry_after_seconds is None
    assert "until the next check" in caught.value.message
    healed = replace(spec, target=spec_for(raw.url).target)
    await runtime.run(pool.list_tools(healed, at_once=True))
    assert pool.state_of(spec).failures == 0
    assert calls.wait_seconds(spec) == 0


def test_pauses_are_not_the_same_everywhere() -> None:
    """REL-34: 1, 2, 4, 8, 16 s, each a little longer or shorter, then an end."""
    state = Backoff()
    waits = []
    for _ in range(4):
        state = state.after_failure(0.0, max_attempts=5, factor=1.2)
        waits.append(round(state.wait_seconds(0.0), 2))
    assert waits == [1.2, 2.4, 4.8, 9.6]
    assert state.after_failure(0.0, max_attempts=5).has_given_up


async def test_a_refused_sign_in_does_not_use_up_the_attempts(raw: RawServer) -> None:
    """Waiting heals no missing sign-in; the person who signs in need not ask for another attempt."""

    async def refuse(body: Any, scope: Any, answer: Any) -> None:
        await reply(answer, 401)

    raw.handlers["*"] = refuse
    spec = spec_for(raw.url, max_attempts=2, transport="streamable_http")
    for _ in range(4):
        with pytest.raises(ConnectionFailed):
            await runtime.run(pool.list_tools(spec, at_once=True))
    assert pool.state_of(spec).state is ConnectionState.WAITING


async def test_a_server_that_breaks_off_each_time_is_paused(tmp_path: Path) -> None:
    """REL-34: the breaker is tripped by the line alone, after some breaks without an answer between."""
    spec = spec_for(program(ZOO, tmp_path / "home", "die_in_call"), protocol=Protocol.LEGACY)
    for _ in range(BREAKS_BEFORE_PAUSE):
        with pytest.raises(CallFailed):
            await send(spec, "probe")
    assert 0 < calls.wait_seconds(spec) <= 1.2
    with pytest.raises(BackingOff):
        await send(spec, "probe")


async def test_a_tools_own_errors_trip_nothing(counting: CountingServer) -> None:
    """REL-34: errors, refusals and timeouts of tools are no failures of the line."""
    spec = spec_for(counting.url)
    for _ in range(BREAKS_BEFORE_PAUSE + 1):
        await send(spec, "fail", {"text": "no"})
        with pytest.raises(TimeoutError):
            await send(spec, "slow", {"seconds": 5}, limits=within(0.1))
    assert calls.wait_seconds(spec) == 0


async def test_one_principals_failures_are_not_anothers(raw: RawServer) -> None:
    """SEC-10: pauses belong to workspace, server and principal, as connections do."""
    spec = spec_for(NOWHERE, principal="user:anna", protocol=Protocol.LEGACY)
    with pytest.raises(ConnectionFailed):
        await runtime.run(pool.list_tools(spec))
    other = replace(spec, principal="user:ben", target=spec_for(raw.url).target)
    foreign = replace(spec, workspace_id=uuid4(), target=spec_for(raw.url).target)
    for one in (other, foreign):
        assert calls.wait_seconds(one) == 0
        await runtime.run(pool.list_tools(one))
    assert calls.wait_seconds(spec) > 0
    assert {status.principal for status in pool.connections_of(spec.server_id)} == {
        "user:anna",
        "user:ben",
    }


async def test_a_look_leaves_no_connection_behind(
    raw: RawServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REL-36: a sign of life closes what was opened for it, and nothing else."""
    monkeypatch.setattr("mcp_servers.client.connections.connection.SOON_SECONDS", 0.2)
    spec = spec_for(raw.url, protocol=Protocol.LEGACY)
    raw.handlers["ping"] = pong
    await runtime.run(pool.ping(spec))
    assert pool.state_of(spec).state is ConnectionState.CONNECTED
    async with asyncio.timeout(PATIENCE):
        while pool.state_of(spec).state is not ConnectionState.CLOSED:
            await asyncio.sleep(0.02)
    await send(spec, "echo")
    await runtime.run(pool.ping(spec))
    await asyncio.sleep(0.6)
    assert pool.state_of(spec).state is ConnectionState.CONNECTED


async def pong(body: Any, scope: Any, answer: Any) -> None:
    from tests.fakes.mcp_server import reply_result

    await reply_result(answer, body, {})


async def test_warming_up_never_fails(counting: CountingServer) -> None:
    """Those that can be opened are, in the background; the others are left to whoever needs them."""
    good = [spec_for(counting.url) for _ in range(5)]
    bad = [spec_for(NOWHERE) for _ in range(3)]
    assert await runtime.run(pool.warm_up([*good, *bad])) == 5
    assert all(pool.state_of(spec).state is ConnectionState.CONNECTED for spec in good)


async def test_progress_keeps_a_call_going_up_to_its_hard_limit(everywhere: Everywhere) -> None:
    """A call lives as long as it tells how far it is, and no longer than it may at all."""

    async def goes_on_over(transport: str) -> None:
        spec = everywhere.spec(transport)
        await text_of(send(spec, "echo", {"text": "warm"}))
        person = Person()
        steps = {"count": 6, "seconds": 0.3}
        done = send(spec, "steps", steps, limits=within(1.4, PATIENCE), listener=person)
        assert await text_of(done) == "done"
        assert [one.message for one in person.progress] == [f"step {n}" for n in range(6)]
        started = time.monotonic()
        with pytest.raises(TimeoutError):
            await send(spec, "steps", {"count": 60, "seconds": 0.2}, limits=within(0.9, 1.4))
        assert 1.2 < time.monotonic() - started < 8

    await asyncio.gather(*map(goes_on_over, ("streamable_http", "stdio", "sse", "websocket")))


async def test_shutting_down_takes_a_stated_time(everywhere: Everywhere) -> None:
    """REL-36: calls get a moment, then everything closes, whatever it is doing."""
    specs = [everywhere.spec(transport) for transport in ("streamable_http", "stdio", "sse")]
    for spec in specs:
        await text_of(send(spec, "echo", {"text": "x"}))
    pid = pool.state_of(specs[1]).process_id
    assert pid is not None
    running = asyncio.create_task(send(specs[0], "silent", {"seconds": 60}))
    await asyncio.sleep(0.3)
    started = time.monotonic()
    await asyncio.to_thread(runtime.shutdown, 1.5)
    assert time.monotonic() - started < 30
    results = await asyncio.gather(running, return_exceptions=True)
    assert isinstance(results[0], BaseException)
    assert not os.path.exists(f"/proc/{pid}")


async def test_a_retired_connection_finishes_what_it_carries(everywhere: Everywhere) -> None:
    """REL-35: a changed server's old calls end well, whatever is asked of the new connection meanwhile."""
    spec = everywhere.spec("streamable_http", protocol=Protocol.LEGACY)
    running = asyncio.create_task(send(spec, "silent", {"seconds": 1.0}))
    await asyncio.sleep(0.4)
    changed = replace(spec, fingerprint="2")
    await asyncio.gather(*(runtime.run(pool.list_offers(changed)) for _ in range(3)))
    assert await text_of(running) == "done"


async def test_a_look_heals_a_lost_session(raw: RawServer) -> None:
    """REL-34: a check does not fail because the server was restarted since the last one."""
    from tests.fakes.mcp_server import begin_session, reply_error

    raw.handlers["initialize"] = begin_session
    spec = spec_for(raw.url, protocol=Protocol.LEGACY, transport="streamable_http")
    await runtime.run(pool.list_tools(spec))
    lost = {"left": 1}

    async def forget(body: Any, scope: Any, answer: Any) -> None:
        if lost["left"]:
            lost["left"] -= 1
            await reply_error(answer, body, -32600, "Session not found", status=404)
        else:
            await pong(body, scope, answer)

    raw.handlers["ping"] = forget
    await runtime.run(pool.ping(spec))
    assert raw.methods().count("initialize") == 2


async def test_an_error_is_a_sign_of_life(raw: RawServer) -> None:
    """A server that knows no ping is there all the same; one that refuses the credentials is not."""
    spec = spec_for(raw.url, protocol=Protocol.LEGACY, transport="streamable_http")
    await runtime.run(pool.ping(spec))

    async def refuse(body: Any, scope: Any, answer: Any) -> None:
        await reply(answer, 401)

    raw.handlers["ping"] = refuse
    with pytest.raises(ConnectionFailed):
        await runtime.run(pool.ping(spec))


@pytest.mark.parametrize("bound", ["the request's", "the owner's"])
async def test_a_server_that_does_not_take_its_leave_is_left(
    raw: RawServer, monkeypatch: pytest.MonkeyPatch, bound: str
) -> None:
    """REL-36: a DELETE without an answer keeps no task, socket or client beyond its time."""
    monkeypatch.setattr(guard, "DELETE_SECONDS", 0.3 if bound == "the request's" else 60.0)
    monkeypatch.setattr(connection, "CLOSING_SECONDS", 60.0 if bound == "the request's" else 0.3)
    asked = []

    async def initialize(body: Any, scope: Any, answer: Any) -> None:
        result = {"jsonrpc": "2.0", "id": body["id"], "result": INITIALIZED}
        await reply(answer, 200, json.dumps(result).encode(), headers={"mcp-session-id": "one"})

    async def never(body: Any, scope: Any, answer: Any) -> None:
        asked.append(scope["method"])
        await asyncio.sleep(60)

    raw.handlers = {"initialize": initialize, "DELETE": never}
    spec = spec_for(raw.url, protocol=Protocol.LEGACY)
    await runtime.run(pool.list_tools(spec))
    owner = pool._connections[spec.key].owner
    started = time.monotonic()
    await runtime.run(pool.drop(spec.server_id))
    assert asked == ["DELETE"]
    assert owner.done()
    assert time.monotonic() - started < 30


class EndingStreams:
    """Event streams that end at once, and say that nobody need wait before they come back."""

    def __init__(self) -> None:
        self.asked = 0

    async def end(self, body: Any, scope: Any, answer: Any) -> None:
        self.asked += 1
        event = b"retry: 0\nid: %d\ndata: \n\n" % self.asked
        await reply(answer, 200, event, "text/event-stream")


async def test_a_server_that_ends_its_stream_again_and_again_is_asked_now_and_then(
    raw: RawServer,
) -> None:
    """SEC-685: it says that nobody need wait before they come back; the loop of all connections has better things to do."""
    streams = EndingStreams()
    raw.handlers = {"initialize": begin_session, "GET": streams.end}
    spec = spec_for(raw.url, protocol=Protocol.LEGACY, transport="streamable_http")
    await runtime.run(pool.list_tools(spec))
    await asyncio.sleep(3)
    begun = streams.asked
    await asyncio.sleep(3)
    assert begun <= guard.STREAMS_AT_ONCE + 4 * guard.STREAMS_PER_SECOND
    # It is asked all the same: a server may end its streams to save them.
    assert 1 <= streams.asked - begun <= 4 * guard.STREAMS_PER_SECOND


async def test_an_answer_that_is_put_off_again_and_again_is_asked_for_now_and_then(
    raw: RawServer,
) -> None:
    """SEC-685: the same for the stream of one call."""
    streams = EndingStreams()
    raw.handlers = {"tools/call": streams.end, "GET": streams.end}
    spec = spec_for(raw.url, protocol=Protocol.LEGACY, transport="streamable_http")
    with pytest.raises(TimeoutError):
        await send(spec, "echo", {"text": "hi"}, limits=within(3.0))
    assert 2 <= streams.asked <= guard.STREAMS_AT_ONCE + 6 * guard.STREAMS_PER_SECOND


async def test_an_answer_on_a_stream_that_was_resumed_has_the_same_bounds(
    raw: RawServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SEC-901: what comes there is read like any other answer; half a character costs nothing, a crowd of parts the call."""
    monkeypatch.setattr(density, "MAX_PARTS", 500)
    results: list[Any] = [
        {"content": [{"type": "text", "text": "cut \ud83d"}]},
        {"content": [], "structuredContent": {"many": [1] * 1000}},
    ]

    async def put_off(body: Any, scope: Any, answer: Any) -> None:
        await reply(answer, 200, b"retry: 0\nid: %d\ndata: \n\n" % body["id"], "text/event-stream")

    async def resume(body: Any, scope: Any, answer: Any) -> None:
        request_id = int(dict(scope["headers"])[b"last-event-id"])
        message = {"jsonrpc": "2.0", "id": request_id, "result": results[0]}
        await reply(answer, 200, f"data: {json.dumps(message)}\n\n".encode(), "text/event-stream")

    raw.handlers = {"tools/call": put_off, "GET": resume}
    spec = spec_for(raw.url, protocol=Protocol.LEGACY, transport="streamable_http")
    assert await text_of(send(spec, "echo")) == "cut \ufffd"
    results.pop(0)
    with pytest.raises(CallFailed):
        await send(spec, "echo")
