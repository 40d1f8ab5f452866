"""`python -m bench.soak`, called by `manage.py soak`: people and tool servers for a long time, and what stays behind.

A server process of its own serves them. Memory, descriptors and threads are sampled, and a line is laid through the
samples: its slope and the slope's standard error say whether something grows.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import math
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import UUID

from bench.installation import forms_of, own_or_none, peer, prepare

if TYPE_CHECKING:
    from bench.ground import Ground
    from bench.serving import Seat, Server
    from bench.web_socket import WebSocket

WARM_SHARE = 0.3
"""Of the time at the beginning: caches fill, and the samples say nothing."""
LEAST_SAMPLES = 5
SURE = 3.0
"""So many standard errors from zero a slope has to be to count."""
FLAT = {"memory": 1024.0, "descriptors": 1.0, "threads": 1.0}
"""What may grow each minute: KiB of memory, of the others as many."""
_UNITS = {"memory": "KiB", "descriptors": "", "threads": ""}
_PAUSE = 0.5
_BETWEEN_CALLS = 0.05
_TURNS_A_PAGE = 10


@dataclass(frozen=True, slots=True)
class Slope:
    """Growth a minute, and how far that may be off."""

    each_minute: float
    error: float

    def grows(self, most: float) -> bool:
        """Whether it is surely more than that."""
        return self.each_minute - SURE * self.error > most


def slope_of(times: Sequence[float], values: Sequence[float]) -> Slope:
    """Lay a line through samples by least squares.

    Args:
        times: seconds.
    """
    count = len(times)
    middle, level = sum(times) / count, sum(values) / count
    spread = sum((at - middle) ** 2 for at in times)
    slope = sum((at - middle) * (value - level) for at, value in zip(times, values, strict=True))
    slope /= spread
    off = (value - level - slope * (at - middle) for at, value in zip(times, values, strict=True))
    error = math.sqrt(sum(one**2 for one in off) / max(1, count - 2) / spread)
    return Slope(slope * 60, error * 60)


@dataclass(slots=True)
class Samples:
    """What was seen of a process, and when."""

    times: list[float] = field(default_factory=list)
    values: dict[str, list[float]] = field(default_factory=lambda: {name: [] for name in FLAT})

    def take(self, server: Server) -> None:
        """Look once."""
        process = Path(f"/proc/{server.pid}")
        self.times.append(time.monotonic())
        self.values["memory"].append(server.resident_kib())
        self.values["descriptors"].append(len(list((process / "fd").iterdir())))
        self.values["threads"].append(len(list((process / "task").iterdir())))

    def slopes(self) -> dict[str, Slope]:
        """Of all that came after the warm-up."""
        first = int(len(self.times) * WARM_SHARE)
        return {
            name: slope_of(self.times[first:], values[first:])
            for name, values in self.values.items()
        }


class Soak:
    """People who write, read and write again, and a program that calls the tools of all servers over and over."""

    def __init__(self, ground: Ground, server: Server, until: float) -> None:
        self._ground = ground
        self._server = server
        self._until = until
        self.turns = 0
        self.calls = 0
        self.failed: Counter[str] = Counter()
        """Turns and calls that were answered with a failure, by which."""
        self.lost: Counter[str] = Counter()
        """Visits and calls that ended early, by what ended them."""

    async def program(self, token: str, tools: Sequence[UUID]) -> None:
        """The one that calls."""
        from httpx2 import HTTPError

        from bench.over_http import Caller

        caller = Caller(self._server, token, tools)
        while time.monotonic() < self._until:
            try:
                await caller.call(1)
            except HTTPError as error:
                self.lost[repr(error)] += 1
            await asyncio.sleep(_BETWEEN_CALLS)
        await caller.close()
        self.calls = caller.statuses.pop(200, 0)
        self.failed.update({f"call, {status}": count for status, count in caller.statuses.items()})

    async def person(self, first: Seat) -> None:
        """One of them, who comes back in a new page now and then: by turns for their long chat and for a new one."""
        from bench.serving import begin_chat
        from workspaces.database import in_database

        for page in itertools.count():
            if time.monotonic() >= self._until:
                break
            seat = first
            if page % 2:
                new = await in_database(begin_chat, self._ground, first.person)
                seat = replace(first, conversation_id=new)
            try:
                await self._visit(seat)
            except (OSError, EOFError, TimeoutError) as error:
                # As people do: they come back. The end says how often, and why.
                self.lost[repr(error)] += 1
                await asyncio.sleep(_PAUSE)

    async def _visit(self, seat: Seat) -> None:
        """Open a page, and write a few messages there."""
        socket = await seat.sit_down(self._server.port)
        try:
            for _ in range(_TURNS_A_PAGE):
                if time.monotonic() >= self._until:
                    break
                await self._ask(seat, socket)
                await asyncio.sleep(_PAUSE)
        finally:
            await socket.close()

    async def _ask(self, seat: Seat, socket: WebSocket) -> None:
        from uuid_utils.compat import uuid7

        ended = asyncio.Event()

        def listen(frame: str) -> None:
            if frame.startswith('{"type":"turn.changed"') and '"status":"failed"' in frame:
                error = json.loads(frame)["turn"]["error"] or {}
                self.failed[f"turn, {error.get('code')}"] += 1
                ended.set()
            elif frame.startswith('{"type":"turn.changed"') and '"status":"completed"' in frame:
                ended.set()

        socket.listener = listen
        send = {"type": "send", "client_id": str(uuid7()), "text": "20 50"}
        socket.say({**send, "conversation_id": seat.conversation_id})
        await asyncio.wait_for(ended.wait(), 60)
        self.turns += 1


async def _run(ground: Ground, *, seconds: float, people: int, interval: float) -> bool:
    from bench.over_http import token_of
    from bench.serving import make_seats, serving
    from workspaces.database import in_database

    seats = await in_database(make_seats, ground, people)
    token = await in_database(token_of, ground)
    tools = await in_database(_tools, ground)
    samples = Samples()
    with serving("config.asgi:application") as server:
        before = await in_database(_rows)
        soak = Soak(ground, server, time.monotonic() + seconds)
        work = asyncio.gather(soak.program(token, tools), *(soak.person(seat) for seat in seats))
        while not work.done():
            samples.take(server)
            with suppress(TimeoutError):
                await asyncio.wait_for(asyncio.shield(work), interval)
        await work
        after = await in_database(_rows)
    return _tell(soak, samples, {name: after[name] - before[name] for name in after})


def _tell(soak: Soak, samples: Samples, grown: dict[str, int]) -> bool:
    """Print what was seen; whether all stayed flat."""
    say = sys.stdout.write
    say(
        f"{soak.turns} turns, {soak.calls} calls, {soak.failed.total()} failed, {len(samples.times)} samples\n"
    )
    for reason, count in soak.failed.most_common():
        say(f"{count} failed: {reason}\n")
    for reason, count in soak.lost.most_common():
        say(f"{count} visits or calls ended early: {reason}\n")
    if len(samples.times) < LEAST_SAMPLES:
        say("Too few samples for a slope: run it longer.\n")
        return False
    is_flat = not soak.failed and not soak.lost
    for name, slope in samples.slopes().items():
        grows = slope.grows(FLAT[name])
        is_flat = is_flat and not grows
        unit = f" {_UNITS[name]}".rstrip()
        say(
            f"{name:<12} {samples.values[name][-1]:>9.0f}{unit} at the end,"
            f" {slope.each_minute:+.2f} ± {slope.error:.2f}{unit} a minute{'  GROWS' if grows else ''}\n"
        )
    say("rows a turn, with its share of the calls:\n")
    for name, rows in sorted(grown.items(), key=lambda pair: -pair[1]):
        if rows:
            say(f"  {name:<40} {rows / max(1, soak.turns):+.2f}\n")
    return is_flat


def _tools(ground: Ground) -> list[UUID]:
    from mcp_servers.models import McpTool

    tools = McpTool.objects.for_workspace(ground.tool.workspace_id)
    return list(tools.filter(is_enabled=True).values_list("pk", flat=True))


def _rows() -> dict[str, int]:
    """The rows of every table of ours."""
    from django.apps import apps
    from django.db import connection

    with connection.cursor() as cursor:
        counts = {}
        for model in apps.get_models():
            table = model._meta.db_table
            cursor.execute(f"SELECT count(*) FROM {connection.ops.quote_name(table)}")  # noqa: S608 - our tables
            counts[table] = int(cursor.fetchone()[0])
    return counts


def main(arguments: Sequence[str]) -> int:
    """Run it; 1 if something grew or failed."""
    parser = argparse.ArgumentParser(prog="manage.py soak")
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--servers", type=int, default=50)
    parser.add_argument("--people", type=int, default=20)
    parser.add_argument("--interval", type=float, default=5.0)
    options = parser.parse_args(arguments)
    with (
        tempfile.TemporaryDirectory(prefix="trellis-soak-") as folder,
        peer("model") as model_port,
        peer("tools") as tools_port,
        own_or_none() as database_url,
    ):
        prepare(folder, database_url)
        from bench.ground import add_servers, make_ground
        from mcp_servers.client.connections import runtime

        tools_url = f"http://127.0.0.1:{tools_port}/mcp"
        ground = make_ground(
            model_url=f"http://127.0.0.1:{model_port}/v1", tools_url=tools_url, gateway_url=None
        )
        add_servers(ground, options.servers - 2)  # the ground has two
        sys.stdout.write(
            f"{forms_of(database_url)}, {options.servers} servers, {options.people} people, {options.minutes:g} minutes\n"
        )
        is_flat = asyncio.run(
            _run(
                ground,
                seconds=options.minutes * 60,
                people=options.people,
                interval=options.interval,
            )
        )
        runtime.shutdown(2.0)
    return 0 if is_flat else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
