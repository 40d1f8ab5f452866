"""Many servers, many calls, and accidents all the time; afterwards everything is as it was before.

The short form runs with the other tests; `SOAK_SECONDS=3600` makes it last as long as one likes.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import random
import signal
import threading
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from mcp_servers.client.connections import calls, runtime
from mcp_servers.client.connections.failures import CallFailed
from mcp_servers.client.connections.pool import pool
from mcp_servers.client.errors import Busy, ConnectionFailed
from mcp_servers.client.spec import ConnectionSpec
from mcp_servers.client.values import Protocol
from tests.extent import IS_FULL
from tests.fakes.full_server import full_server
from tests.mcp_servers.client.helpers import Person, program, send, spec_for, within
from tests.mcp_servers.factories import ZOO

SERVERS = 50 if IS_FULL else 24
CALLS = 1000 if IS_FULL else 400
WORKERS = 16
SECONDS = float(os.environ.get("SOAK_SECONDS", "0"))
TYPED = (CallFailed, ConnectionFailed, Busy, TimeoutError)
POOLED = ("asyncio_", "AnyIO worker thread")
"""Names of the bounded pools that a loop keeps. They grow to their size whenever work happens to overlap."""


@dataclass(frozen=True, slots=True)
class Sight:
    """What a process holds."""

    descriptors: int
    threads: int
    tasks: int
    children: int
    memory_mb: float

    @classmethod
    async def now(cls) -> Sight:
        """Measured, once nothing is about to end any more."""

        async def tasks() -> int:
            return len(asyncio.all_tasks())

        await asyncio.sleep(1.0)
        gc.collect()
        listed = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
        threads = [Path(f"/proc/self/task/{one}/children") for one in os.listdir("/proc/self/task")]
        children = sum(len(one.read_text().split()) for one in threads if one.exists())
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return cls(
            descriptors=len(os.listdir("/proc/self/fd")),
            threads=sum(not one.name.startswith(POOLED) for one in threading.enumerate()),
            tasks=await runtime.run(tasks()),
            children=max(children, len(listed)),
            memory_mb=pages * os.sysconf("SC_PAGE_SIZE") / 2**20,
        )


def servers(port: int, home: Path) -> list[ConnectionSpec]:
    """A mix of every transport and both eras."""
    urls = {
        "streamable_http": f"http://127.0.0.1:{port}/mcp",
        "sse": f"http://127.0.0.1:{port}/sse",
        "websocket": f"ws://127.0.0.1:{port}/ws",
    }
    specs = []
    for number in range(SERVERS):
        # Pauses after accidents are short of attempts here, so that the accidents go on.
        fields: dict[str, Any] = {"max_attempts": 1000, "idle_seconds": 3.0}
        kind = [*urls, "stdio"][number % 4]
        if kind == "stdio":
            target: Any = program(ZOO, home / str(number), "probe")
            specs.append(spec_for(target, protocol=Protocol.LEGACY, **fields))
        else:
            era = Protocol.LEGACY if number % 3 else Protocol.MODERN
            specs.append(spec_for(urls[kind], transport=kind, protocol=era, **fields))
    return specs


async def one_call(spec: ConnectionSpec, chance: random.Random) -> str:
    """One call of some kind; how it ended."""
    limits = within(chance.choice([0.05, 5.0, 5.0, 5.0]), 10)
    if spec.is_stdio:
        work: Any = send(spec, "probe", limits=limits)
    else:
        work = chance.choice(
            [
                lambda: send(spec, "echo", {"text": "x" * chance.randint(1, 5000)}, limits=limits),
                lambda: send(
                    spec, "steps", {"count": 3, "seconds": 0.01}, limits=limits, listener=Person()
                ),
                lambda: calls.read_resource(spec, "memo://note", limits=limits),
                lambda: runtime.run(pool.list_offers(spec)),
            ]
        )()
    task = asyncio.ensure_future(work)
    if chance.random() < 0.03:
        asyncio.get_running_loop().call_later(chance.random() * 0.05, task.cancel)
    try:
        await task
    except asyncio.CancelledError:
        return "stopped"
    except TYPED as error:
        return type(error).__name__
    return "done"


async def accidents(chance: random.Random) -> None:
    """Kill a program, a connection's task or a server's connections, again and again."""

    async def strike() -> None:
        open_ones = [one for one in pool._connections.values() if not one.is_over]
        if not open_ones:
            return
        one = chance.choice(open_ones)
        stdio = one.transport.stdio
        if stdio is not None and stdio.pid is not None and chance.random() < 0.5:
            with contextlib.suppress(ProcessLookupError):
                os.kill(stdio.pid, signal.SIGKILL)
        elif chance.random() < 0.5:
            one.owner.cancel()
        else:
            await pool.drop(one.spec.server_id)

    while True:
        await asyncio.sleep(chance.random() * 0.3)
        await runtime.run(strike())


async def run(specs: list[ConnectionSpec], chance: random.Random, count: int) -> Counter[str]:
    """So many calls, side by side."""
    ends: Counter[str] = Counter()
    left = iter(range(count))

    async def work() -> None:
        for _ in left:
            ends[await one_call(chance.choice(specs), chance)] += 1

    async with asyncio.TaskGroup() as workers:
        for _ in range(WORKERS):
            workers.create_task(work())
    return ends


@pytest.mark.timeout(900 + 2 * int(SECONDS))
async def test_a_long_day_leaves_nothing(tmp_path: Path) -> None:
    """REL-44, REL-36: processes, sessions, tasks, descriptors and memory are back where they were."""
    chance = random.Random(4)
    with full_server() as (_, listening):
        specs = servers(listening.port, tmp_path)
        await run(specs, chance, SERVERS)
        await runtime.run(pool.close())
        before = await Sight.now()

        striking = asyncio.create_task(accidents(chance))
        started = time.monotonic()
        ends: Counter[str] = Counter()
        halves: list[Sight] = []
        for _ in range(2):
            ends += await run(specs, chance, CALLS // 2)
            while time.monotonic() - started < SECONDS / 2 * (len(halves) + 1):
                ends += await run(specs, chance, WORKERS * 10)
            halves.append(await Sight.now())
        striking.cancel()
        took = time.monotonic() - started
        await runtime.run(pool.close())
        after = await Sight.now()
    print(f"{sum(ends.values())} calls in {took:.1f} s: {dict(ends)}")
    for name, sight in (
        ("before", before),
        ("half", halves[0]),
        ("whole", halves[1]),
        ("after", after),
    ):
        print(f"{name}: {sight}")
    assert ends["done"] > CALLS / 2
    assert after.children <= before.children
    assert after.tasks <= before.tasks + 2
    assert after.descriptors <= before.descriptors + 8
    assert after.threads <= before.threads + 4
    assert after.memory_mb - halves[0].memory_mb < 40
