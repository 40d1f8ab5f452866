"""Whoever calls through the gate, and what they offer while the call runs."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Coroutine
from contextlib import AbstractContextManager
from enum import Enum
from typing import Any, Protocol

from django.db import transaction

from mcp_servers.client.canonical import clean_text
from mcp_servers.client.hidden_text import show_hidden
from mcp_servers.client.values import GateOutcome, Progress

_LONGEST_MESSAGE = 500


class Standing(Enum):
    """Whether a call is still its caller's, as far as this process knows without asking anybody."""

    OURS = "ours"
    UNSURE = "unsure"
    """This process may have been held up for so long that another was given the call."""
    LOST = "lost"


class Caller(Protocol):
    """The caller's side of a running call. Its methods run on the caller's event loop, but for the two transactions."""

    def progressed(self, progress: Progress) -> None:
        """The server told how far it is. Must not block."""

    async def checkpointed(self, checkpoint: str) -> None:
        """Keep this with the call, for going on from it; it is committed when this returns. Empty: forget it.

        The text is private to the gate, and may hold what a server entrusts to us: seal it.
        """

    async def held_up(self) -> None:
        """It may take a while until the call is let through: store what should not wait for that."""

    async def waiting(self, is_waiting: bool) -> None:
        """True: a person is being asked something more. False: everything has been answered."""

    def hands_over(self) -> bool:
        """The process is going away, and another will take the call up where it stands."""

    def standing(self) -> Standing:
        """Whether the call is still ours; costs nothing, and may be asked from any thread."""

    async def make_sure(self) -> None:
        """Ask whether the call is still ours, where that is not certain.

        Raises:
            CallTakenOver: it is another process's.
        """

    def letting_through(self) -> AbstractContextManager[None]:
        """The transaction that *requested* is written in, with what the caller stores of the call's beginning.

        In a thread with the database.

        Raises:
            CallTakenOver: it is another process's.
        """

    def ending(self, outcome: GateOutcome) -> AbstractContextManager[None]:
        """The transaction that *finished* is written in, with what the caller stores of the call's end.

        In a thread with the database. If it fails for a reason of the caller's own, *finished* is written alone.
        """


class SilentCaller:
    """A caller that offers nothing."""

    def progressed(self, progress: Progress) -> None:
        pass

    async def checkpointed(self, checkpoint: str) -> None:
        pass

    async def held_up(self) -> None:
        pass

    async def waiting(self, is_waiting: bool) -> None:
        pass

    def hands_over(self) -> bool:
        return False

    def standing(self) -> Standing:
        return Standing.OURS

    async def make_sure(self) -> None:
        pass

    def letting_through(self) -> AbstractContextManager[None]:
        return transaction.atomic()

    def ending(self, outcome: GateOutcome) -> AbstractContextManager[None]:
        return transaction.atomic()


class CallerOnItsLoop:
    """A caller that may be used from any event loop: what it does still runs on the caller's."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller
        self._loop = asyncio.get_running_loop()

    def progressed(self, progress: Progress) -> None:
        """Pass it on, with the server's words made fit to be shown. JSON has no infinite numbers, though servers send them."""
        if not math.isfinite(progress.progress):
            return
        text, total = progress.message, progress.total
        shown = Progress(
            progress=progress.progress,
            total=total if total is not None and math.isfinite(total) else None,
            message=show_hidden(clean_text(text))[:_LONGEST_MESSAGE] if text else None,
        )
        self._loop.call_soon_threadsafe(self._caller.progressed, shown)

    async def checkpointed(self, checkpoint: str) -> None:
        await self._there(self._caller.checkpointed(checkpoint))

    async def held_up(self) -> None:
        await self._there(self._caller.held_up())

    async def waiting(self, is_waiting: bool) -> None:
        await self._there(self._caller.waiting(is_waiting))

    def hands_over(self) -> bool:
        return self._caller.hands_over()

    def standing(self) -> Standing:
        return self._caller.standing()

    async def make_sure(self) -> None:
        await self._there(self._caller.make_sure())

    def letting_through(self) -> AbstractContextManager[None]:
        return self._caller.letting_through()

    def ending(self, outcome: GateOutcome) -> AbstractContextManager[None]:
        return self._caller.ending(outcome)

    async def _there(self, work: Coroutine[Any, Any, None]) -> None:
        if asyncio.get_running_loop() is self._loop:
            await work
        else:
            await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._loop))
