"""`python -m bench.turn_cost [turns]`: what a turn costs: the time to its first token and to its end, and CPU of this process.

Once for answers of five tokens, and once for turns that call a tool and then answer. The floor is the same by hand: the
bare `openai` client, and a held session of the SDK.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial
from statistics import median
from typing import TYPE_CHECKING, Any

from bench.database import own_database
from bench.installation import peer, prepare
from bench.results import Row

if TYPE_CHECKING:
    from mcp import Client
    from openai import AsyncOpenAI

    from bench.ground import Ground

WARM_UP = 5
BLOCK = 5
TEXT, CALLING = "5 0", "call"


_TOOL: Any = {
    "type": "function",
    "function": {
        "name": "echo",
        "description": "Say it again.",
        "parameters": {"type": "object", "properties": {"text": {"type": "string"}}},
    },
}


@dataclass(slots=True)
class Cost:
    """What turns of one kind cost, in milliseconds."""

    first: list[float] = field(default_factory=list)
    whole: list[float] = field(default_factory=list)
    cpu: float = 0.0


def main() -> int:
    """Measure, and print one line for each kind of turn."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 60
    url = os.environ.get("TEST_DATABASE_URL")
    with (
        tempfile.TemporaryDirectory(prefix="trellis-bench-") as folder,
        peer("model") as model_port,
        peer("tools") as tools_port,
        own_database(url) if url else nullcontext() as database_url,
    ):
        prepare(folder, database_url)
        from bench.ground import make_ground
        from mcp_servers.client.connections import runtime
        from workspaces.process import garbage

        ground = make_ground(
            model_url=f"http://127.0.0.1:{model_port}/v1",
            tools_url=f"http://127.0.0.1:{tools_port}/mcp",
            gateway_url=None,
        )
        garbage.tame()
        for row in asyncio.run(turns(ground, count)):
            sys.stdout.write(f"{row.as_text()}\n")
        runtime.shutdown(2.0)
    return 0


async def turns(ground: Ground, count: int = 40) -> list[Row]:
    """Rows for both kinds of turns; the floor and the product are taken in turn, in blocks."""
    from mcp import Client
    from openai import AsyncOpenAI

    from workspaces.delivery.announcements import serve_from

    # As in a serving process: else each announcement goes to Redis over a connection of its own.
    serve_from(asyncio.get_running_loop())
    client = AsyncOpenAI(base_url=ground.model_url, api_key="x", max_retries=0)
    rows: list[Row] = []
    async with Client(ground.tools_url) as session:
        for text, name, most in (
            (TEXT, "a turn of five tokens", "≤ 15 ms; PostgreSQL ≤ 30 ms"),
            (CALLING, "a turn with a tool call", "≤ 60 ms; PostgreSQL ≤ 120 ms"),
        ):
            bare, ours = Cost(), Cost()
            for number in range(WARM_UP // BLOCK + count // BLOCK):
                is_warm = number >= WARM_UP // BLOCK
                await _block(bare if is_warm else Cost(), partial(_bare, client, session, text))
                await _block(ours if is_warm else Cost(), partial(_turn, ground, text))
            done = count // BLOCK * BLOCK
            rows += [
                Row(f"CPU of {name}", bare.cpu / done, ours.cpu / done, "ms", most),
                Row(f"{name}, p50", median(bare.whole), median(ours.whole), "ms", "-"),
            ]
    await client.close()
    return rows


async def _block(cost: Cost, once: Callable[[], Awaitable[tuple[float, float]]]) -> None:
    used = time.process_time()
    for _ in range(BLOCK):
        first, whole = await once()
        cost.first.append(first * 1000)
        cost.whole.append(whole * 1000)
    cost.cpu += (time.process_time() - used) * 1000


async def _bare(client: AsyncOpenAI, session: Client, text: str) -> tuple[float, float]:
    start = time.perf_counter()
    first = await _ask(client, text)
    if text == CALLING:
        await session.call_tool("echo", {"text": "hello"})
        await _ask(client, TEXT)
    return first - start, time.perf_counter() - start


async def _ask(client: AsyncOpenAI, text: str) -> float:
    first = None
    stream = await client.chat.completions.create(
        model="m", messages=[{"role": "user", "content": text}], tools=[_TOOL], stream=True
    )
    async for _ in stream:
        first = first or time.perf_counter()
    return first or time.perf_counter()


async def _turn(ground: Ground, text: str) -> tuple[float, float]:
    from bench.turn_watch import Watch
    from chat.models import Bud, Conversation
    from chat.services.conversations import create_conversation
    from chat.services.turns import send_message
    from workspaces.database import in_database

    def begin() -> Conversation:
        servers = {"servers": [str(ground.tool.server_id)]}
        buds = Bud.objects.for_workspace(ground.bud.workspace_id).filter(pk=ground.bud.pk)
        if ground.bud.mcp_config != servers:
            buds.update(mcp_config=servers)
            ground.bud.mcp_config = servers
        bud = buds.select_related("provider").get()
        return create_conversation(bud=bud, owner=ground.user, actor=ground.actor)

    watch = Watch(await in_database(begin))
    start = time.perf_counter()
    await in_database(
        send_message,
        conversation=watch.conversation,
        client_id="1",
        text=text,
        actor=ground.actor,
    )
    await asyncio.wait_for(watch.ended.wait(), 60)
    watch.close()
    return (watch.first or start) - start, time.perf_counter() - start


if __name__ == "__main__":
    sys.exit(main())
