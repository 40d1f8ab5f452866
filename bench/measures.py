"""The measurements. Each gives the floor and the product, taken in the same run, in turn."""

from __future__ import annotations

import asyncio
import statistics
import sys
import time
from typing import Any

from mcp import Client, StdioServerParameters
from openai import AsyncOpenAI
from uuid_utils.compat import uuid7

from bench.capacity import RATE, streams_on_a_core
from bench.ground import PEERS, Ground
from bench.idle import memory_per_connection, memory_per_socket
from bench.over_http import first_token_of_many, rest_calls
from bench.results import Row, part
from bench.serving import serving
from bench.turn_cost import turns
from bench.turn_watch import Watch
from chat.services.conversations import create_conversation
from chat.services.turns import send_message
from mcp_servers.client.connections import runtime
from mcp_servers.client.values import ToolCallRequest
from mcp_servers.gate import call_tool
from mcp_servers.models import McpTool
from workspaces.database import in_database
from workspaces.delivery.announcements import serve_from

ROUNDS = 30
CALLS = 192
STREAMS = 10
TOKENS = 300
TOKENS_PER_SECOND = 100
SIDE_BY_SIDE = 32
BLOCK = 24


async def first_token(ground: Ground) -> list[Row]:
    """From the message's arrival to the first delta that leaves, over the bare client's first token."""
    client = AsyncOpenAI(base_url=ground.model_url, api_key="x", max_retries=0)
    bare, ours = [], []
    for round_number in range(ROUNDS + 3):
        start = time.perf_counter()
        stream = await client.chat.completions.create(
            model="m", messages=[{"role": "user", "content": "3 0"}], stream=True
        )
        async for chunk in stream:
            if chunk.choices and chunk.choices[0].delta.content:
                bare_seconds = time.perf_counter() - start
                break
        await stream.close()
        start, watch = await _send(ground, "3 0")
        await asyncio.wait_for(watch.ended.wait(), 30)
        watch.close()
        assert watch.first is not None
        if round_number >= 3:
            bare.append(bare_seconds)
            ours.append(watch.first - start)
    await client.close()
    return [
        Row(
            f"time to first token, {name}",
            part(bare, share) * 1000,
            part(ours, share) * 1000,
            "ms",
            target,
            is_difference=True,
        )
        for name, share, target in (("p50", 0.5, "≤ +10 ms"), ("p95", 0.95, "-"))
    ]


async def cpu_per_token(ground: Ground) -> Row:
    """CPU seconds of this process for 1000 streamed tokens, ten streams at once."""
    question = f"{TOKENS} {TOKENS_PER_SECOND}"
    client = AsyncOpenAI(base_url=ground.model_url, api_key="x", max_retries=0)

    async def bare() -> int:
        stream = await client.chat.completions.create(
            model="m", messages=[{"role": "user", "content": question}], stream=True
        )
        return len([c async for c in stream if c.choices and c.choices[0].delta.content])

    begin = time.process_time()
    tokens = sum(await asyncio.gather(*(bare() for _ in range(STREAMS))))
    floor = (time.process_time() - begin) / tokens * 1000
    await client.close()
    begin = time.process_time()
    sent = await asyncio.gather(*(_send(ground, question) for _ in range(STREAMS)))
    await asyncio.gather(*(asyncio.wait_for(watch.ended.wait(), 60) for _, watch in sent))
    product = (time.process_time() - begin) / (STREAMS * TOKENS) * 1000
    for _, watch in sent:
        watch.close()
    return Row("CPU of 1000 streamed tokens", floor, product, "s", "≤ 1 × the bare client")


async def tool_calls(ground: Ground) -> list[Row]:
    """One call after another, and many side by side: held SDK sessions against the gate."""
    rows = []
    async with Client(ground.tools_url) as session:
        await session.list_tools()
        rows += await _one_by_one("HTTP", session, ground, ground.tool)
        rows.append(await _at_once(session, ground))
    program = StdioServerParameters(command=sys.executable, args=[str(PEERS), "stdio"])
    async with Client(program) as session:
        await session.list_tools()
        rows += await _one_by_one("stdio", session, ground, ground.stdio_tool)
    if ground.gateway_url:
        rows.append(await _gateway(ground, ground.gateway_url))
    return rows


async def _one_by_one(road: str, session: Client, ground: Ground, tool: McpTool) -> list[Row]:
    await bare_calls(session, 10)
    await gate_calls(ground, tool, 10)
    bare, ours = [], []
    for _ in range(CALLS):
        bare.append(await _timed(bare_calls(session, 1)) * 1000)
        ours.append(await _timed(gate_calls(ground, tool, 1)) * 1000)
    named = f"tool call over {road}, policy and two entries"
    target = "≤ +4 ms, ≤ 3 ×"
    p95 = round(CALLS * 0.95)
    return [
        Row(f"{named}, p50", statistics.median(bare), statistics.median(ours), "ms", target),
        Row(f"{named}, p95", sorted(bare)[p95], sorted(ours)[p95], "ms", "-"),
    ]


async def _at_once(session: Client, ground: Ground) -> Row:
    each = CALLS // SIDE_BY_SIDE
    bare = await _timed(side_by_side(lambda: bare_calls(session, each)))
    ours = await _timed(side_by_side(lambda: gate_calls(ground, ground.tool, each)))
    count = SIDE_BY_SIDE * each
    return Row(
        f"calls a second, {SIDE_BY_SIDE} at once", count / bare, count / ours, "/s", "≥ 250 /s"
    )


async def cpu_of_a_call(ground: Ground) -> Row:
    """CPU of this process for a call, in blocks by turns: it moves less with what else runs than the clock does."""
    used = {"bare": 0.0, "ours": 0.0}
    async with Client(ground.tools_url) as session:
        for _ in range(CALLS // BLOCK):
            for name, calls in (
                ("bare", bare_calls(session, BLOCK)),
                ("ours", gate_calls(ground, ground.tool, BLOCK)),
            ):
                began = time.process_time()
                await calls
                used[name] += time.process_time() - began
    bare, ours = (used[name] / (CALLS // BLOCK * BLOCK) * 1000 for name in ("bare", "ours"))
    return Row("CPU of a tool call over HTTP", bare, ours, "ms", "≤ 2 ×")


async def _gateway(ground: Ground, url: str) -> Row:
    """Another gateway, which keeps no log, before the same tool server; as many at once."""
    each = CALLS // SIDE_BY_SIDE
    async with Client(url) as session:
        await session.list_tools()
        await bare_calls(session, 10)
        theirs = await _timed(side_by_side(lambda: bare_calls(session, each)))
        ours = await _timed(side_by_side(lambda: gate_calls(ground, ground.tool, each)))
    count = SIDE_BY_SIDE * each
    return Row(
        f"calls a second beside another gateway's, {SIDE_BY_SIDE} at once",
        count / theirs,
        count / ours,
        "/s",
        "≥ 2 ×",
    )


async def _send(ground: Ground, question: str) -> tuple[float, Watch]:
    conversation = await in_database(
        create_conversation, bud=ground.bud, owner=ground.user, actor=ground.actor
    )
    watch = Watch(conversation)
    start = time.perf_counter()
    await in_database(
        send_message,
        conversation=conversation,
        client_id=str(uuid7()),
        text=question,
        actor=ground.actor,
    )
    return start, watch


async def bare_calls(session: Client, count: int) -> None:
    """Over a session of the SDK that is held open."""
    for _ in range(count):
        await session.call_tool("echo", {"text": "hello"})


async def gate_calls(ground: Ground, tool: McpTool, count: int) -> None:
    """Through the gate, with policy and two entries."""
    for _ in range(count):
        request = ToolCallRequest(
            call_id=uuid7(),
            workspace_id=tool.workspace_id,
            tool_id=tool.pk,
            arguments={"text": "hello"},
            actor=ground.actor,
        )
        outcome = await runtime.run(call_tool(request))
        assert not outcome.is_error, outcome.message


async def side_by_side(work: Any) -> None:
    """As many at once."""
    await asyncio.gather(*(work() for _ in range(SIDE_BY_SIDE)))


async def _timed(work: Any) -> float:
    start = time.perf_counter()
    await work
    return time.perf_counter() - start


async def measure_all(ground: Ground) -> list[Row]:
    """Every measure, once; announcements are sent as in a serving process."""
    serve_from(asyncio.get_running_loop())
    rows = await first_token(ground)
    cpu = await cpu_per_token(ground)
    rows += [*await turns(ground), cpu, *await tool_calls(ground), await cpu_of_a_call(ground)]
    rows.append(await memory_per_connection(ground))
    with serving("config.asgi:application") as server:
        rows += await rest_calls(ground, server)
        rows += await first_token_of_many(ground, server)
        rows.append(await memory_per_socket(ground, server))
        # One core, wholly busy with what the bare client spends on each token.
        floor = 1000 / cpu.floor / RATE
        rows.append(await streams_on_a_core(ground, server, floor=floor))
    return rows
