"""What begins and ends with a server process, under any ASGI server.

Servers that send lifespan events are served by them. Daphne sends none, so there the hooks hang on its reactor.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
import threading
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from config.telemetry.log_writing import write_the_rest
from workspaces.delivery import announcements
from workspaces.process import shutdown

logger = logging.getLogger(__name__)

_LAST_WORDS_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class StopHook:
    """One part's way of putting its work down."""

    run: Callable[[], Awaitable[None]]
    seconds: float
    """How long it may take; then it is cut off."""


class Lifecycle:
    """Starts once with the serving loop, stops once before it ends."""

    def __init__(
        self,
        *,
        start_hooks: Sequence[Callable[[], None]] = (),
        stop_hooks: Sequence[StopHook] = (),
        most_seconds: float = 10.0,
    ) -> None:
        self._start_hooks = start_hooks
        self._stop_hooks = stop_hooks
        self._most_seconds = most_seconds
        self._is_started = False
        self._is_stopped = False

    async def start(self) -> None:
        """Called on the loop that serves connections."""
        if not self._is_started:
            self._is_started = True
            announcements.serve_from(asyncio.get_running_loop())
            for hook in self._start_hooks:
                hook()

    async def stop(self) -> None:
        """Answer "not ready", then let each part put its work down; a part that fails does not keep the others."""
        if self._is_stopped:
            return
        self._is_stopped = True
        shutdown.begin()
        for hook in self._stop_hooks:
            try:
                async with asyncio.timeout(hook.seconds):
                    await hook.run()
            except TimeoutError:
                logger.warning("a part did not stop in time", extra={"part": hook.run.__qualname__})
            except Exception:
                logger.warning(
                    "a part did not stop cleanly",
                    extra={"part": hook.run.__qualname__},
                    exc_info=True,
                )

    def attach_to_daphne(self) -> None:
        """Hang the hooks on Daphne's reactor, if this process is Daphne."""
        reactor: Any = sys.modules.get("twisted.internet.reactor")
        if reactor is None or not hasattr(reactor, "_asyncioEventloop"):
            return
        from twisted.internet.defer import Deferred

        loop: asyncio.AbstractEventLoop = reactor._asyncioEventloop
        endings: list[asyncio.Task[None]] = []

        async def end_in_good_order() -> None:
            try:
                await self.stop()
            finally:
                reactor.stop()

        def told_to_end() -> None:
            if endings:
                return
            self._limit_ending()
            endings.append(loop.create_task(end_in_good_order()))

        def begin() -> None:
            loop.create_task(self.start())
            # Daphne cuts off everybody it serves as soon as its reactor stops, so that comes last.
            if threading.current_thread() is threading.main_thread():
                for number in (signal.SIGTERM, signal.SIGINT):
                    signal.signal(number, lambda *_: loop.call_soon_threadsafe(told_to_end))

        def end() -> Any:
            return Deferred.fromFuture(asyncio.ensure_future(self.stop(), loop=loop))

        reactor.callWhenRunning(begin)
        reactor.addSystemEventTrigger("before", "shutdown", end)

    def _limit_ending(self) -> None:
        """Whatever does not end is left: by then the turns have been given back, and supervisors kill soon."""

        def end_now() -> None:
            logger.warning("process_cut_off")
            write_the_rest(_LAST_WORDS_SECONDS)
            os._exit(0)

        timer = threading.Timer(self._most_seconds, end_now)
        timer.daemon = True
        timer.start()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Serve the lifespan protocol."""
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                await self.start()
                await send({"type": "lifespan.startup.complete"})
            elif message["type"] == "lifespan.shutdown":
                await self.stop()
                await send({"type": "lifespan.shutdown.complete"})
                return
