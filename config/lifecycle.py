"""What begins and ends with a server process, under any ASGI server.

Servers that send lifespan events are served by them. Daphne sends none, so there the hooks hang on its reactor.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from workspaces import announcements, leaving

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class StopHook:
    """One part's way of putting its work down."""

    run: Callable[[], Awaitable[None]]
    seconds: float
    """How long it may take; then it is cut off."""


class Lifecycle:
    """Starts once with the serving loop, stops once before it ends."""

    def __init__(
        self, *, start_hooks: Sequence[Callable[[], None]] = (), stop_hooks: Sequence[StopHook] = ()
    ) -> None:
        self._start_hooks = start_hooks
        self._stop_hooks = stop_hooks
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
        leaving.leave()
        for hook in self._stop_hooks:
            try:
                async with asyncio.timeout(hook.seconds):
                    await hook.run()
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

        def begin() -> None:
            loop.create_task(self.start())

        def end() -> Any:
            return Deferred.fromFuture(asyncio.ensure_future(self.stop(), loop=loop))

        reactor.callWhenRunning(begin)
        reactor.addSystemEventTrigger("before", "shutdown", end)

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
