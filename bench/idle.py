"""What an open page costs that says nothing."""

from __future__ import annotations

import asyncio

from bench.ground import Ground
from bench.results import Row
from bench.serving import Seat, Server, make_seats, serving
from bench.web_socket import WebSocket
from workspaces.database import in_database

SOCKETS = 200
WARM = 20
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
