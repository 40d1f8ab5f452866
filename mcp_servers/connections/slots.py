"""A bounded number of calls at a time on one server, shared fairly between the people who wait."""

from __future__ import annotations

import asyncio
import contextlib
from collections import OrderedDict, deque
from typing import TYPE_CHECKING

from mcp_servers.errors import Busy

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


class FairSlots:
    """Like a semaphore, but a freed slot goes to the waiting group whose turn it is, not to the longest queue.

    Used on one event loop only.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._taken = 0
        self._waiting: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()

    @contextlib.asynccontextmanager
    async def slot(self, group: str, *, wait_seconds: float) -> AsyncIterator[None]:
        """Hold a slot.

        Args:
            group: who asks; groups take turns.

        Raises:
            Busy: none came free in time.
        """
        await self._acquire(group, wait_seconds)
        try:
            yield
        finally:
            self._release()

    async def _acquire(self, group: str, wait_seconds: float) -> None:
        if self._taken < self.limit and not self._waiting:
            self._taken += 1
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(group, deque()).append(future)
        self._hand_out()
        try:
            async with asyncio.timeout(wait_seconds):
                await future
        except BaseException as error:
            if future.done() and not future.cancelled():
                self._release()  # the slot came together with the end of the wait
            else:
                self._forget(group, future)
            if isinstance(error, TimeoutError):
                raise Busy(
                    "The server is busy with other calls. Please try again in a moment."
                ) from error
            raise

    def _release(self) -> None:
        self._taken -= 1
        self._hand_out()

    def _hand_out(self) -> None:
        while self._taken < self.limit and self._waiting:
            group, queue = self._waiting.popitem(last=False)
            future = queue.popleft()
            if queue:
                self._waiting[group] = queue  # behind the others
            if not future.done():
                self._taken += 1
                future.set_result(None)

    def _forget(self, group: str, future: asyncio.Future[None]) -> None:
        queue = self._waiting.get(group)
        if queue is None:
            return
        with contextlib.suppress(ValueError):
            queue.remove(future)
        if not queue:
            del self._waiting[group]
