"""The clock of one request: it starts anew with each sign of progress, and stands still while a person thinks."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from types import TracebackType

    from mcp_servers.client.inputs import CallLimits


class Deadline:
    """Cancels the block it surrounds when its time is up, and turns that into a TimeoutError.

    The SDK's own timeout counts the time that people take to answer, and does not know of progress.
    """

    def __init__(self, limits: CallLimits) -> None:
        self._limits = limits
        self._loop = asyncio.get_running_loop()
        self._hard_at = self._loop.time() + limits.hard_seconds
        self._timer = asyncio.timeout_at(self._soonest())
        self._pauses = 0
        self._left = (0.0, 0.0)

    async def __aenter__(self) -> Self:
        await self._timer.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._timer.__aexit__(kind, error, traceback)

    def progressed(self) -> None:
        """Something was heard of the request: count from now, up to the hard limit."""
        if not self._pauses:
            self._set(self._soonest())

    @contextlib.contextmanager
    def standing_still(self) -> Iterator[None]:
        """Stop the clock for the length of a block; blocks may overlap."""
        if not self._pauses:
            now = self._loop.time()
            self._left = ((self._timer.when() or now) - now, self._hard_at - now)
            self._set(None)
        self._pauses += 1
        try:
            yield
        finally:
            self._pauses -= 1
            if not self._pauses:
                now, (left, hard_left) = self._loop.time(), self._left
                self._hard_at = now + hard_left
                self._set(now + left)

    def _soonest(self) -> float:
        return min(self._loop.time() + self._limits.seconds, self._hard_at)

    def _set(self, when: float | None) -> None:
        # After its end, or once it has gone off, the timer takes no other time, and needs none.
        with contextlib.suppress(RuntimeError):
            self._timer.reschedule(when)
