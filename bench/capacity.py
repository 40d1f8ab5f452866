"""How many answers one core relays at reading speed: a search that doubles, then bisects."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable

from uuid_utils.compat import uuid7

from bench.ground import Ground
from bench.results import Row
from bench.serving import Server, make_seats
from bench.web_socket import WebSocket
from workspaces.database import in_database

RATE = 20
"""Tokens a second of each stream."""
MOST_DELAY_MS = 100.0
"""From the model's writing to the page, p99."""
MOST_SECONDS = 60.0
FIRST_LEVEL, MOST_STREAMS = 16, 512
TRIES = 2
WINDOW_SECONDS = 2.0
_CALM_SECONDS = 0.7
_BETWEEN_STARTS = 0.03
_LEAST_HEARD = 0.9


async def search(
    passes: Callable[[int], Awaitable[bool]],
    *,
    first: int,
    most: int,
    has_time: Callable[[], bool],
) -> int:
    """The highest level that passes, to about a tenth: doubled until one fails, then bisected; two tries a level.

    Args:
        has_time: false ends the search with what is known by then.
    """

    async def stands(level: int) -> bool:
        for _ in range(TRIES):
            if not has_time():
                return False
            if await passes(level):
                return True
        return False

    good, bad, level = 0, most + 1, first
    while bad - good > max(1, good // 10) and has_time():
        if await stands(level):
            good = level
        else:
            bad = level
        level = min(good * 2, most) if bad > most else (good + bad) // 2
        if good == most:
            break
    return good


class _Stream:
    """A page that listens to one long answer."""

    def __init__(self, socket: WebSocket, turn_id: str) -> None:
        self.socket = socket
        self.turn_id = turn_id
        self.delays: list[float] | None = None
        socket.listener = self._hear

    def _hear(self, text: str) -> None:
        if self.delays is None or not text.startswith('{"type":"text.delta"'):
            return
        now = time.monotonic()
        self.delays += [(now - float(stamp)) * 1000 for stamp in json.loads(text)["text"].split()]


class Crowd:
    """Streams that go on while the level is changed."""

    def __init__(self, ground: Ground, server: Server) -> None:
        self._ground = ground
        self._server = server
        self._streams: list[_Stream] = []
        self.p99_ms = 0.0

    async def stands(self, count: int) -> bool:
        """Whether so many streams at once are listener in time."""
        await self._be(count)
        await asyncio.sleep(_CALM_SECONDS)
        for stream in self._streams:
            stream.delays = []
        await asyncio.sleep(WINDOW_SECONDS)
        delays = sorted(delay for stream in self._streams for delay in stream.delays or ())
        for stream in self._streams:
            stream.delays = None
        if len(delays) < _LEAST_HEARD * count * RATE * WINDOW_SECONDS:
            return False
        self.p99_ms = delays[int(len(delays) * 0.99)]
        return self.p99_ms < MOST_DELAY_MS

    async def go_home(self) -> None:
        """End all of them."""
        await self._be(0)

    async def _be(self, count: int) -> None:
        while len(self._streams) > count:
            stream = self._streams.pop()
            stream.socket.say({"type": "stop", "turn_id": stream.turn_id})
            await asyncio.sleep(_BETWEEN_STARTS)
            await stream.socket.close()
        wanted = count - len(self._streams)
        if wanted > 0:
            seats = await in_database(make_seats, self._ground, wanted)
            for seat in seats:
                socket = await seat.sit_down(self._server.port)
                send = {
                    "type": "send",
                    "conversation_id": seat.conversation_id,
                    "client_id": str(uuid7()),
                    # As long as the search lasts, and each word says when it was written.
                    "text": f"{int(RATE * MOST_SECONDS * 2)} {RATE} stamped",
                }
                accepted = await socket.ask(send, "accepted")
                self._streams.append(_Stream(socket, accepted["turn_id"]))
                await asyncio.sleep(_BETWEEN_STARTS)


async def streams_on_a_core(ground: Ground, server: Server, *, floor: float) -> Row:
    """Concurrent streams of a server on one core.

    Args:
        floor: how many the bare client could read with a core, by its CPU for each token.
    """
    crowd = Crowd(ground, server)
    deadline = time.monotonic() + MOST_SECONDS
    found = await search(
        crowd.stands,
        first=FIRST_LEVEL,
        most=MOST_STREAMS,
        has_time=lambda: time.monotonic() < deadline,
    )
    await crowd.go_home()
    return Row(
        f"streams of {RATE} tokens/s on a core, p99 < {MOST_DELAY_MS:.0f} ms",
        floor,
        found,
        "",
        "≥ 225",
    )
