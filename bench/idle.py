"""What an open page and a held connection cost that say nothing."""

from __future__ import annotations

import asyncio
import gc
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

from mcp import Client

from bench.ground import Ground
from bench.results import Row
from bench.serving import Seat, Server, make_seats, serving
from bench.web_socket import WebSocket
from mcp_servers.client.connections import runtime
from mcp_servers.client.connections.pool import pool
from mcp_servers.registry.specs import connection_spec
from workspaces.database import in_database

SOCKETS = 200
WARM = 20
CONNECTIONS = 40
"""Opened before, so that what the first ones load is not counted."""
SETTLE_SECONDS = 2.0
AT_ONCE = 10


async def memory_per_socket(ground: Ground, server: Server) -> Row:
    """Resident memory of a socket that follows a conversation, over one of bare Channels."""
    seats = await in_database(make_seats, ground, WARM + SOCKETS)
    product = await _growth(server, seats)
    with serving("bench.bare_socket:application") as bare:
        floor = await _growth(bare, seats)
    return Row("memory of an idle, subscribed socket", floor, product, "KiB", "≤ 60 KiB")


async def memory_per_connection(ground: Ground) -> Row:
    """Memory of this process for a held connection to an MCP server, over a bare session of the SDK."""

    async def ours() -> None:
        spec = await in_database(lambda: connection_spec(ground.tool.server))
        principals = (f"user:{uuid4()}" for _ in range(WARM + CONNECTIONS))
        for number, principal in enumerate(principals):
            if number == WARM:
                before.append(await _settled())
            await runtime.run(pool.connect(replace(spec, principal=principal)))
        after.append(await _settled())

    async def bare() -> None:
        async with AsyncExitStack() as open_ones:
            for number in range(WARM + CONNECTIONS):
                if number == WARM:
                    before.append(await _settled())
                session = await open_ones.enter_async_context(Client(ground.tools_url))
                await session.list_tools()
            after.append(await _settled())

    before: list[int] = []
    after: list[int] = []
    await ours()
    await bare()
    product, floor = ((b - a) / CONNECTIONS for a, b in zip(before, after, strict=True))
    return Row("memory of one more connection to a server", floor, product, "KiB", "≤ 60 KiB")


async def _settled() -> int:
    """What this process alone holds, once it is quiet."""
    for _ in range(2):
        gc.collect()
        await asyncio.sleep(0.5)
    return await asyncio.to_thread(_private_kib)


def _private_kib() -> int:
    rollup = Path("/proc/self/smaps_rollup").read_text()
    return int(rollup.partition("Private_Dirty:")[2].split()[0])


async def _growth(server: Server, seats: list[Seat]) -> float:
    limit = asyncio.Semaphore(AT_ONCE)

    async def open_one(seat: Seat) -> WebSocket:
        async with limit:
            return await seat.sit_down(server.port)

    sockets = await asyncio.gather(*(open_one(seat) for seat in seats[:WARM]))
    await asyncio.sleep(SETTLE_SECONDS)
    before = server.resident_kib()
    sockets += await asyncio.gather(*(open_one(seat) for seat in seats[WARM:]))
    await asyncio.sleep(SETTLE_SECONDS)
    grown = server.resident_kib() - before
    assert not any(socket.is_closed for socket in sockets), "a socket was closed"
    await asyncio.gather(*(socket.close() for socket in sockets))
    return grown / (len(seats) - WARM)
