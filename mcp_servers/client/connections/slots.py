"""A bounded number of calls at a time on one server, shared fairly between the people who wait."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections import OrderedDict, deque
from typing import TYPE_CHECKING, Final

from django.utils.translation import gettext_noop as _

from mcp_servers.client.errors import Busy

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


class _Waiter:
    """One caller in the queue, on whatever loop it runs."""

    __slots__ = ("future", "loop")

    def __init__(self) -> None:
        self.loop: Final = asyncio.get_running_loop()
        self.future: Final[asyncio.Future[None]] = self.loop.create_future()


class FairSlots:
    """Like a semaphore, but a freed slot goes to the waiting group whose turn it is, not to the longest queue.

    Serves callers of any thread and any loop.
    """

    def __init__(self, limit: int, *, most_waiting: int = 1000) -> None:
        self.limit = limit
        self.most_waiting = most_waiting
        """Callers that may wait, of all groups together."""
        self._lock = threading.Lock()
        self._taken = 0
        self._waiting: OrderedDict[str, deque[_Waiter]] = OrderedDict()

    @property
    def waiting(self) -> int:
        """How many callers wait."""
        with self._lock:
            return sum(len(queue) for queue in self._waiting.values())

    def try_take(self) -> bool:
        """Take a slot if one is free and nobody waits for it. Whoever gets True gives it back."""
        with self._lock:
            if self._taken >= self.limit or self._waiting:
                return False
            self._taken += 1
            return True

    async def take(self, group: str, *, wait_seconds: float) -> None:
        """Wait for a slot. Whoever gets it gives it back.

        Args:
            group: who asks; groups take turns.

        Raises:
            Busy: none came free in time, or too many are waiting.
        """
        if self.try_take():
            return
        waiter = _Waiter()
        with self._lock:
            if sum(len(queue) for queue in self._waiting.values()) >= self.most_waiting:
                raise Busy(_("Too many calls are waiting for the server. Please try again later."))
            self._waiting.setdefault(group, deque()).append(waiter)
            self._hand_out()
        try:
            async with asyncio.timeout(wait_seconds):
                await waiter.future
        except BaseException as error:
            self._leave(group, waiter)
            if isinstance(error, TimeoutError):
                raise Busy(
                    _("The server is busy with other calls. Please try again in a moment.")
                ) from error
            raise

    def give_back(self) -> None:
        """Free a slot for the next."""
        with self._lock:
            self._taken -= 1
            self._hand_out()

    @contextlib.asynccontextmanager
    async def slot(self, group: str, *, wait_seconds: float) -> AsyncIterator[None]:
        """Hold a slot for the length of a block."""
        await self.take(group, wait_seconds=wait_seconds)
        try:
            yield
        finally:
            self.give_back()

    def _hand_out(self) -> None:
        while self._taken < self.limit and self._waiting:
            group, queue = self._waiting.popitem(last=False)
            waiter = queue.popleft()
            if queue:
                self._waiting[group] = queue  # behind the others
            self._taken += 1
            try:
                waiter.loop.call_soon_threadsafe(self._grant, waiter)
            except RuntimeError:  # its loop is closed
                self._taken -= 1

    def _grant(self, waiter: _Waiter) -> None:
        if waiter.future.done():
            self.give_back()  # it left while the slot was on its way
        else:
            waiter.future.set_result(None)

    def _leave(self, group: str, waiter: _Waiter) -> None:
        if waiter.future.done() and not waiter.future.cancelled():
            self.give_back()  # the slot came together with the end of the wait
            return
        waiter.future.cancel()
        with self._lock:
            queue = self._waiting.get(group)
            if queue is not None:
                with contextlib.suppress(ValueError):
                    queue.remove(waiter)
                if not queue:
                    del self._waiting[group]
