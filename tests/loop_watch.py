"""How long work holds a loop, apart from what a busy machine adds."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable

#: Rows in the document by which a machine's speed at this kind of work is measured.
_ROWS = 24_000

#: How long a quiet machine takes to count, and to read the document, in seconds. Slower ones get more time.
_COUNT_SECONDS, _READ_SECONDS = 0.012, 0.014


class LoopWatch:
    """The longest stretch that a loop's thread worked without letting the loop turn.

    In the thread's own CPU time, so that waiting for a processor does not count.
    """

    def __init__(self) -> None:
        self.worst_seconds = 0.0

    async def run(self) -> None:
        while True:
            before = time.thread_time()
            await asyncio.sleep(0.001)
            self.worst_seconds = max(self.worst_seconds, time.thread_time() - before)

    async def assert_lets_turn(
        self, work: Callable[[], Awaitable[object]], *, seconds: float = 0.1
    ) -> None:
        """Fail if the work holds the loop for longer each of three times.

        Work that is too large is so each time. A machine that does other things is slow now and then.
        """
        found = []
        for _ in range(3):
            self.worst_seconds = 0.0
            await work()
            found.append((self.worst_seconds, slowness()))
            if self.worst_seconds <= seconds * found[-1][1]:
                return
        raise AssertionError(
            f"held the loop for (seconds, on a machine so many times slower): {found}"
        )


def slowness() -> float:
    """How many times slower than a quiet machine this one is now, at counting or at making many small objects."""
    document = json.dumps([{"k": {"v": 1}}] * _ROWS)
    return max(
        1.0,
        _worst(lambda: sum(number * number for number in range(200_000))) / _COUNT_SECONDS,
        _worst(lambda: json.loads(document)) / _READ_SECONDS,
    )


def _worst(work: Callable[[], object]) -> float:
    """The slowest of five times, in the thread's own seconds."""
    taken = []
    for _ in range(5):
        started = time.thread_time()
        work()
        taken.append(time.thread_time() - started)
    return max(taken)
