"""`python -m bench.log_cost [calls]`: what the log adds to a call through the gate.

The same calls with the log as it is, and with its writing replaced by nothing in this process alone, turn by turn in
blocks, so that whatever else the machine does falls on both. No such switch exists in the product.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from statistics import median, quantiles
from time import perf_counter
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from bench.database import own_database
from bench.installation import peer, prepare

if TYPE_CHECKING:
    from bench.ground import Ground

BLOCK = 20


def main() -> int:
    """Measure, and print one line for each way and one for the difference."""
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

        ground = make_ground(
            model_url="http://127.0.0.1:9/v1",
            tools_url=f"http://127.0.0.1:{tools_port}/mcp",
            gateway_url=None,
        )
        times = asyncio.run(_measure(ground, count))
        runtime.shutdown(2.0)
    for name, taken in times.items():
        sys.stdout.write(f"{name}: p50 {_p50(taken):.2f} ms, p95 {_p95(taken):.2f} ms\n")
    on, off = times["with the log"], times["without"]
    sys.stdout.write(
        f"added: p50 {_p50(on) - _p50(off):.2f} ms, p95 {_p95(on) - _p95(off):.2f} ms\n"
    )
    return 0


def _p50(taken: list[float]) -> float:
    return median(taken) * 1000


def _p95(taken: list[float]) -> float:
    return quantiles(taken, n=20)[-1] * 1000


async def _measure(ground: Ground, count: int) -> dict[str, list[float]]:
    times: dict[str, list[float]] = {"with the log": [], "without": []}
    await _calls(ground, BLOCK)  # the connection and the caches
    for _ in range(count // BLOCK):
        times["with the log"] += await _calls(ground, BLOCK)
        with _no_log():
            times["without"] += await _calls(ground, BLOCK)
    return times


async def _calls(ground: Ground, count: int) -> list[float]:
    from uuid_utils.compat import uuid7

    from mcp_servers.client.values import Outcome, ToolCallRequest
    from mcp_servers.gate import call_tool

    taken = []
    for number in range(count):
        request = ToolCallRequest(
            call_id=uuid7(),
            workspace_id=ground.tool.workspace_id,
            tool_id=ground.tool.pk,
            arguments={"text": f"call {number}"},
            actor=ground.actor,
        )
        began = perf_counter()
        outcome = await call_tool(request)
        taken.append(perf_counter() - began)
        assert outcome.outcome is Outcome.OK, outcome
    return taken


@contextmanager
def _no_log() -> Iterator[None]:
    """The gate of this process writes nothing."""

    def nothing(draft: Any) -> None:
        return None

    with patch("mcp_servers.gate.operation.record", nothing):
        yield


if __name__ == "__main__":
    sys.exit(main())
