"""One event loop in one thread per process, where all connections live.

The MCP SDK binds a connection to the task and the loop that opened it, while our callers run on many loops: the ASGI
server's, one for each `async_to_sync`, none at all in a task thread. They all hand their coroutines to this loop. The
thread starts with the first use, so that a process which forks before has none.
"""

from __future__ import annotations

import asyncio
import atexit
import concurrent.futures
import contextlib
import logging
import os
import threading
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Final, Generic, TypeVar

from workspaces.database import leave_database
from workspaces.process import garbage
from workspaces.process.departures import CallerLeft, Departure
from workspaces.process.loop_threads import LoopThread
from workspaces.process.shutdown import ShuttingDown, is_shutting_down

logger = logging.getLogger(__name__)

T = TypeVar("T")

DRAIN_SECONDS: Final = 8.0
"""How long shutdown() waits for connections to close; below the ten seconds that process managers give."""


class Runtime(LoopThread):
    """A loop thread, and what has to be closed before it ends."""

    def __init__(self) -> None:
        self.closers: list[Callable[[], Awaitable[None]]] = []
        self.is_ending = False
        super().__init__("mcp-connections")

    def shutdown(self, drain_seconds: float) -> None:
        """Close what registered itself, cancel the rest, stop the thread."""
        self.is_ending = True

        async def drain() -> None:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(drain_seconds):
                    await asyncio.gather(
                        *(close() for close in self.closers), return_exceptions=True
                    )
            rest = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
            for task in rest:
                task.cancel()
            await asyncio.wait(rest, timeout=2.0) if rest else None
            await self.loop.shutdown_asyncgens()

        try:
            self.submit(drain()).result(drain_seconds + 4.0)
        except concurrent.futures.TimeoutError:
            logger.warning("connections did not close in time")
        self.stop()


_lock = threading.Lock()
_current: Runtime | None = None
_closers: list[Callable[[], Awaitable[None]]] = []
_has_ended = False
"""The process put its connections down at its end."""


def current() -> Runtime:
    """The process's runtime, started if need be."""
    global _current
    with _lock:
        # A forked child inherits the object but not the thread.
        if _current is None or _current.pid != os.getpid():
            garbage.settle()
            _current = Runtime()
            _current.closers.extend(_closers)
        return _current


def is_running() -> bool:
    """Whether the process has a runtime by now."""
    return _current is not None and _current.pid == os.getpid()


def expect_time() -> None:
    """Ask this before a connection is opened: nobody would close it any more in a process that has closed all.

    Raises:
        ShuttingDown: that is so.
    """
    if _has_ended and is_shutting_down():
        raise ShuttingDown


def on_shutdown(close: Callable[[], Awaitable[None]]) -> None:
    """Have a coroutine function awaited on the loop before the thread ends."""
    _closers.append(close)


async def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """Await a coroutine on the loop thread, from any loop. Cancelling the caller cancels it there."""
    runtime = current()
    if asyncio.get_running_loop() is runtime.loop:
        return await coroutine
    return await asyncio.wrap_future(runtime.submit(coroutine))


class Pending(Generic[T]):
    """A coroutine that runs on the loop thread, for a thread without a loop, which holds no connection meanwhile.

    Raises:
        RuntimeError: a transaction is open.
    """

    def __init__(
        self, coroutine: Coroutine[Any, Any, T], *, departure: Departure | None = None
    ) -> None:
        try:
            leave_database()
        except RuntimeError:
            coroutine.close()
            raise
        self._runtime = current()
        self._future = self._runtime.submit(coroutine)
        self._departure = departure
        if departure is not None:
            departure.then(self._future.cancel)

    def result(self, timeout_seconds: float | None = None) -> T:
        """What it gave, after a wait. It runs on after a timeout.

        Raises:
            TimeoutError: it has not finished yet.
            CallerLeft: nobody wants the result any more; it is cancelled.
            ShuttingDown: the process ends; it is cancelled.
        """
        try:
            return self._future.result(timeout_seconds)
        except concurrent.futures.CancelledError as error:
            if self._departure is not None and self._departure.has_happened:
                raise CallerLeft from error
            if self._runtime.is_ending:
                raise ShuttingDown from error
            raise

    def then(self, call: Callable[[], object]) -> None:
        """Have this called once it has finished, from the loop thread."""
        self._future.add_done_callback(lambda _: call())

    def cancel(self) -> None:
        """End it, unless it has finished."""
        self._future.cancel()


def run_sync(
    coroutine: Coroutine[Any, Any, T],
    timeout_seconds: float | None = None,
    *,
    departure: Departure | None = None,
) -> T:
    """Run a coroutine on the loop thread from a thread without a loop, which holds no connection meanwhile.

    Args:
        departure: of whoever alone wants the result.

    Raises:
        RuntimeError: a transaction is open.
        TimeoutError: it did not finish in time; it is cancelled.
        CallerLeft: nobody wants the result any more; it is cancelled.
        ShuttingDown: the process ends; it is cancelled.
    """
    pending = Pending(coroutine, departure=departure)
    try:
        return pending.result(timeout_seconds)
    except concurrent.futures.TimeoutError:
        pending.cancel()
        raise


def shutdown(drain_seconds: float = DRAIN_SECONDS) -> None:
    """Close all connections and stop the thread; harmless if nothing ran. The next use starts a new one."""
    global _current, _has_ended
    _has_ended = is_shutting_down()
    with _lock:
        runtime, _current = _current, None
    if runtime is not None and runtime.pid == os.getpid():
        runtime.shutdown(drain_seconds)


atexit.register(shutdown)
