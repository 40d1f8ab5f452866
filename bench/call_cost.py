"""`python -m bench.call_cost [calls]`: CPU of this process for a tool call: over a held SDK session, and through the gate.

Both sides are taken in turn, in blocks. CPU moves less with what else runs than the clock does.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
import time
from contextlib import nullcontext
from typing import TYPE_CHECKING

from bench.database import own_database
from bench.run import peer, prepare

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from bench.ground import Ground

BLOCK = 25
SIDE_BY_SIDE = 32


def main() -> int:
    """Measure, and print one line for each way to call."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 400
    url = os.environ.get("TEST_DATABASE_URL")
    with (
        tempfile.TemporaryDirectory(prefix="trellis-bench-") as folder,
        peer("tools") as tools_port,
        own_database(url) if url else nullcontext() as database_url,
    ):
        prepare(folder, database_url)
        from bench.ground import make_ground
        from mcp_servers.client.connections import runtime
        from workspaces import garbage

        ground = make_ground(
            model_url="http://127.0.0.1:9/v1",
            tools_url=f"http://127.0.0.1:{tools_port}/mcp",
            gateway_url=None,
        )
        garbage.tame()
        for line in asyncio.run(_measure(ground, count)):
            sys.stdout.write(f"{line}\n")
        runtime.shutdown(2.0)
    return 0


async def _measure(ground: Ground, count: int) -> list[str]:
    from mcp.client import Client

    from bench.measures import bare_calls, gate_calls, side_by_side

    cpu = {"session": 0.0, "gate": 0.0}
    clock = {"session": 0.0, "gate": 0.0}
    async with Client(ground.tools_url) as session:
        ways: dict[str, Callable[[], Awaitable[object]]] = {
            "session": lambda: bare_calls(session, BLOCK),
            "gate": lambda: gate_calls(ground, ground.tool, BLOCK),
        }
        for is_warm in (False, *[True] * (count // BLOCK)):
            for name, call in ways.items():
                began, used = time.perf_counter(), time.process_time()
                await call()
                if is_warm:
                    clock[name] += time.perf_counter() - began
                    cpu[name] += time.process_time() - used
    each = 1000 / (count // BLOCK * BLOCK)
    calls = count // SIDE_BY_SIDE
    began, used = time.perf_counter(), time.process_time()
    await side_by_side(lambda: gate_calls(ground, ground.tool, calls))
    together = time.perf_counter() - began
    together_cpu = (time.process_time() - used) / (calls * SIDE_BY_SIDE) * 1000
    return [
        *(
            f"{name}: CPU {cpu[name] * each:.2f} ms, mean {clock[name] * each:.2f} ms"
            for name in cpu
        ),
        f"gate over session: CPU {cpu['gate'] / cpu['session']:.1f} ×, mean {clock['gate'] / clock['session']:.1f} ×",
        f"{SIDE_BY_SIDE} at once: {calls * SIDE_BY_SIDE / together:.0f} calls a second, CPU {together_cpu:.2f} ms",
    ]


if __name__ == "__main__":
    sys.exit(main())
