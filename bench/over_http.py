"""A server process as its callers see it: tools over REST, and ten people who write while forty pages are open."""

from __future__ import annotations

import asyncio
import os
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from functools import partial
from itertools import cycle
from pathlib import Path
from uuid import UUID

import httpx2
from django.utils import timezone
from mcp import Client
from openai import AsyncOpenAI
from uuid_utils.compat import uuid7

from bench.ground import Ground
from bench.results import Row, part
from bench.serving import Seat, Server, make_seats
from bench.web_socket import WebSocket
from workspaces.database import in_database
from workspaces.people.tokens import issue_token

CALLS = 192
SIDE_BY_SIDE = 32
BLOCK = 24
PEOPLE, PAGES = 10, 40
WITHIN_SECONDS = 1.5
ROUNDS = 5
_WARM = 10


class Caller:
    """A program with a token, which calls tools over REST, each in its turn."""

    def __init__(self, server: Server, token: str, tools: Sequence[UUID]) -> None:
        self._addresses = cycle(
            f"http://127.0.0.1:{server.port}/api/tools/{tool}/test/" for tool in tools
        )
        limits = httpx2.Limits(max_connections=SIDE_BY_SIDE)
        self._client = httpx2.AsyncClient(
            headers={"Authorization": f"Bearer {token}", "Host": "localhost:8000"},
            limits=limits,
            timeout=30,
        )
        self.statuses: Counter[int] = Counter()

    async def call(self, count: int) -> None:
        """Call so often, one after another."""
        for _ in range(count):
            body = {"arguments": {"text": "hello"}, "confirm": False}
            answer = await self._client.post(next(self._addresses), json=body)
            self.statuses[answer.status_code] += 1

    async def close(self) -> None:
        """Close its connections."""
        await self._client.aclose()


async def rest_calls(ground: Ground, server: Server) -> list[Row]:
    """Calls over REST, authenticated, gated and logged, beside a held session of the SDK."""
    token = await in_database(token_of, ground)
    caller = Caller(server, token, [ground.tool.pk])
    bare, ours = [], []
    cpu = {"bare": 0.0, "ours": 0.0}
    async with Client(ground.tools_url) as session:

        async def bare_calls(count: int) -> None:
            for _ in range(count):
                await session.call_tool("echo", {"text": "hello"})

        await session.list_tools()
        await bare_calls(_WARM)
        await caller.call(_WARM)
        for _ in range(CALLS // BLOCK):
            began = time.process_time()
            bare += [await _timed(bare_calls, 1) for _ in range(BLOCK)]
            cpu["bare"] += time.process_time() - began
            began = _cpu_of(server)
            ours += [await _timed(caller.call, 1) for _ in range(BLOCK)]
            cpu["ours"] += _cpu_of(server) - began
        each = CALLS // SIDE_BY_SIDE
        bare_seconds = await _at_once(bare_calls, each)
        seconds = await _at_once(caller.call, each)
    await caller.close()
    refused = sum(caller.statuses.values()) - caller.statuses[200]
    assert not refused, f"answers other than 200: {caller.statuses}"
    named = "tool call over REST, policy and two entries"
    return [
        Row(f"{named}, p50", part(bare, 0.5), part(ours, 0.5), "ms", "≤ 2.5 ×"),
        Row(f"{named}, p95", part(bare, 0.95), part(ours, 0.95), "ms", "-"),
        Row(
            "CPU of a tool call over REST, of the server",
            cpu["bare"] / len(bare) * 1000,
            cpu["ours"] / len(ours) * 1000,
            "ms",
            "≤ 2.5 ×",
        ),
        Row(
            f"calls a second over REST, {SIDE_BY_SIDE} at once, all answered",
            CALLS / bare_seconds,
            CALLS / seconds,
            "/s",
            "≥ 120 /s",
        ),
    ]


async def first_token_of_many(ground: Ground, server: Server) -> list[Row]:
    """From the page's message to its first delta, while others write and more pages are open that say nothing."""
    seats = await in_database(make_seats, ground, PEOPLE + PAGES)
    sockets = [await seat.sit_down(server.port) for seat in seats]
    client = AsyncOpenAI(base_url=ground.model_url, api_key="x", max_retries=0)
    bare, ours = [], []
    for round_number in range(ROUNDS + 1):
        floor = await asyncio.gather(
            *(_later(place, partial(_bare_token, client)) for place in range(PEOPLE))
        )
        times = await asyncio.gather(
            *(
                _later(place, partial(_token, *pair))
                for place, pair in enumerate(zip(seats[:PEOPLE], sockets, strict=False))
            )
        )
        if round_number:
            bare += floor
            ours += times
    await client.close()
    await asyncio.gather(*(socket.close() for socket in sockets))
    named = f"first token, {PEOPLE} people within {WITHIN_SECONDS} s and {PAGES} more pages"
    return [
        Row(f"{named}, {name}", part(bare, share), part(ours, share), "ms", target, True)
        for name, share, target in (("p50", 0.5, "as for one, +20 %"), ("p95", 0.95, "-"))
    ]


def token_of(ground: Ground) -> str:
    """A token that may call tools."""
    _, token = issue_token(
        workspace=ground.bud.workspace,
        user=ground.user,
        name="bench",
        scopes=["servers:read", "servers:write"],
        expires_at=timezone.now() + timedelta(days=1),
        actor=ground.actor,
    )
    return token


async def _later(place: int, work: Callable[[], Awaitable[float]]) -> float:
    await asyncio.sleep(place * WITHIN_SECONDS / PEOPLE)
    return await work()


async def _bare_token(client: AsyncOpenAI) -> float:
    began = time.perf_counter()
    stream = await client.chat.completions.create(
        model="m", messages=[{"role": "user", "content": "3 0"}], stream=True
    )
    async for chunk in stream:
        if chunk.choices and chunk.choices[0].delta.content:
            break
    await stream.close()
    return (time.perf_counter() - began) * 1000


async def _token(seat: Seat, socket: WebSocket) -> float:
    first: asyncio.Future[float] = asyncio.get_running_loop().create_future()
    ended = asyncio.Event()

    def listen(text: str) -> None:
        if text.startswith('{"type":"text.delta"') and not first.done():
            first.set_result(time.perf_counter())
        elif '"status":"completed"' in text or '"status":"failed"' in text:
            ended.set()

    socket.listener = listen
    began = time.perf_counter()
    socket.say(
        {
            "type": "send",
            "conversation_id": seat.conversation_id,
            "client_id": str(uuid7()),
            "text": "3 0",
        }
    )
    at = await asyncio.wait_for(first, 30)
    await asyncio.wait_for(ended.wait(), 30)
    return (at - began) * 1000


async def _timed(calls: Callable[[int], Awaitable[None]], count: int) -> float:
    began = time.perf_counter()
    await calls(count)
    return (time.perf_counter() - began) * 1000


async def _at_once(calls: Callable[[int], Awaitable[None]], each: int) -> float:
    began = time.perf_counter()
    await asyncio.gather(*(calls(each) for _ in range(SIDE_BY_SIDE)))
    return time.perf_counter() - began


def _cpu_of(server: Server) -> float:
    """Seconds that a process has computed so far."""
    fields = Path(f"/proc/{server.pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
