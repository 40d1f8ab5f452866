"""What befalls the processes of a chaos run."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import signal
import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from tests.chaos.installation import Installation
from tests.chaos.people import PATIENCE, Account, Peace

SERVED_SECONDS = 120.0
"""For a server to answer after its start."""
HARM_SECONDS = 240.0
"""For a harm, which ends with what was hurt being there again."""
Harm = Callable[[], Awaitable[None]]


class Trouble:
    """Does one harm after another, each of which ends with what was hurt being there again."""

    def __init__(
        self,
        made: Installation,
        account: Account,
        peace: Peace,
        dice: random.Random,
        *,
        lease_seconds: float,
    ) -> None:
        self._made = made
        self._account = account
        self._peace = peace
        self._dice = dice
        self._lease_seconds = lease_seconds
        self._to_servers: list[Harm] = [
            *[self._kill_server] * 4,
            *[self._pause_server] * 2,
            self._pause_server_for_long,
            self._end_server,
        ]
        self._to_the_rest: list[Harm] = [
            self._kill_worker,
            self._restart_redis,
            self._flush_redis,
            self._terminate_backends,
            self._restart_postgresql,
        ]

    async def go_on(self, until: asyncio.Event) -> None:
        """To one of the servers, and to what all rest on at the same time."""
        await asyncio.gather(
            self._do(self._to_servers, 0.5, 2.5, until),
            self._do(self._to_the_rest, 2.0, 6.0, until),
        )

    async def _do(self, kinds: list[Harm], least: float, most: float, until: asyncio.Event) -> None:
        """Every kind comes up before one comes twice."""
        harms: list[Harm] = []
        while True:
            if not harms:
                harms = list(kinds)
                self._dice.shuffle(harms)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._dice.uniform(least, most)):
                    await until.wait()
            await self._peace.end()
            if until.is_set():
                return
            await self._harm(harms.pop())

    async def _harm(self, harm: Harm) -> None:
        name = harm.__name__.removeprefix("_")
        self._account.faults[name] += 1
        try:
            async with asyncio.timeout(HARM_SECONDS):
                await harm()
        except Exception as error:
            self._account.odd.append(f"{name} did not end well: {error!r}")

    def _server(self) -> str:
        return self._dice.choice(["server0", "server1"])

    async def _kill_server(self) -> None:
        name = self._server()
        self._made.kill(name)
        self._made.start(name)
        await self._served(name)

    async def _end_server(self) -> None:
        name = self._server()
        process = self._made.processes[name]
        process.terminate()
        if await asyncio.to_thread(partial(_wait, process, PATIENCE)) is None:
            self._account.odd.append(f"{name} did not end in time")
            self._made.kill(name)
        self._made.start(name)
        await self._served(name)

    async def _pause_server(self) -> None:
        await self._pause(self._dice.uniform(0.5, 3.0))

    async def _pause_server_for_long(self) -> None:
        await self._pause(self._lease_seconds * self._dice.uniform(1.1, 1.4))

    async def _pause(self, seconds: float) -> None:
        process = self._made.processes[self._server()]
        os.kill(process.pid, signal.SIGSTOP)
        try:
            await asyncio.sleep(seconds)
        finally:
            os.kill(process.pid, signal.SIGCONT)

    async def _kill_worker(self) -> None:
        self._made.kill("worker")
        self._made.start("worker")

    async def _restart_redis(self) -> None:
        self._made.services.stop_redis()
        await asyncio.sleep(self._dice.uniform(0.1, 3.0))
        self._made.services.start_redis()

    async def _flush_redis(self) -> None:
        await asyncio.to_thread(self._made.services.flush_redis)

    async def _terminate_backends(self) -> None:
        await asyncio.to_thread(self._made.services.terminate_backends)

    async def _restart_postgresql(self) -> None:
        await asyncio.to_thread(self._made.services.restart_postgresql)

    async def _served(self, name: str) -> None:
        port = self._made.ports[int(name[-1])]
        deadline = time.monotonic() + SERVED_SECONDS
        while time.monotonic() < deadline:
            if await asyncio.to_thread(self._made.status, port, "/healthz", 2.0) == 200:
                return
            await asyncio.sleep(0.2)
        raise TimeoutError(f"{name} does not serve")


def _wait(process: Any, seconds: float) -> int | None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if process.poll() is not None:
            return int(process.returncode)
        time.sleep(0.05)
    return None
