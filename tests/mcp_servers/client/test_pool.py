"""Connections: shared, independent, and gone without a trace."""

from __future__ import annotations

import asyncio
import gc
import os
import threading
import time
from typing import Any
from uuid import uuid4

import pytest

from mcp_servers.client.connections import calls, runtime
from mcp_servers.client.connections.failures import CallFailed
from mcp_servers.client.connections.permits import PermitRefused
from mcp_servers.client.connections.pool import pool
from mcp_servers.client.values import Protocol
from tests.fakes.mcp_server import (
    CountingServer,
)
from tests.mcp_servers.client.helpers import send, spec_for, text_in, text_of, within
from tests.patience import PATIENCE

ERAS = [Protocol.LEGACY, Protocol.MODERN]


@pytest.mark.parametrize("era", ERAS)
async def test_calls_share_a_connection_and_do_not_wait_for_each_other(
    counting: CountingServer, era: Protocol
) -> None:
    """REL-07: no lock around calls, in either era."""
    spec = spec_for(counting.url, protocol=era)
    await send(spec, "echo", {"text": "warm"})
    started = time.monotonic()
    await asyncio.gather(*(send(spec, "slow", {"seconds": 1}) for _ in range(12)))
    assert time.monotonic() - started < 8


@pytest.mark.parametrize("era", ERAS)
async def test_a_cancellation_harms_only_its_call(counting: CountingServer, era: Protocol) -> None:
    """REL-35: cancel 1 of 20; 19 finish."""
    spec = spec_for(counting.url, protocol=era)
    tasks = [asyncio.create_task(send(spec, "slow", {"seconds": 2 * PATIENCE})) for _ in range(20)]
    async with asyncio.timeout(PATIENCE):
        while len(counting.calls) < 20:
            await asyncio.sleep(0.02)
    tasks[7].cancel()
    await asyncio.wait(tasks[7:8], timeout=PATIENCE)
    counting.finish_slow()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert isinstance(results[7], asyncio.CancelledError)
    assert all(text_in(result) == "done" for number, result in enumerate(results) if number != 7)


@pytest.mark.parametrize("era", ERAS)
async def test_a_dead_owner_wakes_all_waiters(counting: CountingServer, era: Protocol) -> None:
    """REL-35: kill the owner; all get a typed error, and the next call has a new connection."""
    spec = spec_for(counting.url, protocol=era)
    tasks = [
        asyncio.create_task(send(spec, "slow", {"seconds": 30}, limits=within(60)))
        for _ in range(5)
    ]
    async with asyncio.timeout(PATIENCE):
        while len(counting.calls) < 5:
            await asyncio.sleep(0.02)
    connection = pool._connections[spec.key]
    runtime.current().loop.call_soon_threadsafe(connection.owner.cancel)
    results = await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), PATIENCE)
    assert all(isinstance(result, CallFailed) and result.kind == "broken" for result in results), (
        results
    )
    assert await text_of(send(spec, "echo", {"text": "again"})) == "again"


@pytest.mark.parametrize("era", ERAS)
async def test_a_timeout_is_told_to_the_server(counting: CountingServer, era: Protocol) -> None:
    """REL-34: the server learns that nobody waits any more."""
    spec = spec_for(counting.url, protocol=era)
    with pytest.raises(TimeoutError):
        await send(spec, "slow", {"seconds": 30}, limits=within(0.3))
    async with asyncio.timeout(PATIENCE):
        while not counting.cancelled:
            await asyncio.sleep(0.02)
    assert await text_of(send(spec, "echo", {"text": "still here"})) == "still here"


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
    await send(spec, "echo", {"text": "allowed"})

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
    await send(first, "echo", {"text": "1"})
    await send(second, "echo", {"text": "2"})
    assert {headers["x-who"] for headers in counting.headers} == {"anna", "ben"}
    assert len({key for key in pool._connections if key[1] == first.server_id}) == 2


async def test_a_changed_server_gets_a_new_connection(counting: CountingServer) -> None:
    """What was opened with the old settings is not used for the new ones."""
    spec = spec_for(counting.url, headers={"X-Key": "old"})
    await send(spec, "echo", {"text": "1"})
    now = {"headers": {"X-Key": "new"}, "fingerprint": "2"}
    changed = spec_for(
        counting.url, workspace_id=spec.workspace_id, server_id=spec.server_id, **now
    )
    counting.headers.clear()
    await send(changed, "echo", {"text": "2"})
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


async def test_a_runtime_that_was_shut_down_starts_anew(counting: CountingServer) -> None:
    """The thread is there when it is needed, and only then."""
    spec = spec_for(counting.url)
    await send(spec, "echo", {"text": "1"})
    await asyncio.to_thread(runtime.shutdown)
    assert not any(thread.name == "mcp-connections" for thread in threading.enumerate())
    assert await text_of(send(spec, "echo", {"text": "2"})) == "2"


async def test_a_connection_that_closes_as_idle_costs_no_call(counting: CountingServer) -> None:
    """REL-34: however short the idle time, a call finds a connection or opens one."""
    spec = spec_for(counting.url, idle_seconds=0.0)
    for number in range(10):
        assert await text_of(send(spec, "echo", {"text": str(number)})) == str(number)
        await asyncio.sleep(0.495 + 0.001 * number)
    assert counting.names() == ["echo"] * 10
