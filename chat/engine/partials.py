"""Keeping the beginnings of all answers that stream in this process: one statement each interval, however many there are.

The same round asks who follows them in other processes.
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from uuid import UUID

from chat.engine import steps
from chat.engine.leases import Lease
from chat.live.hub import followed_elsewhere
from chat.live.streaming_text import LiveText, TextSoFar
from workspaces.database import in_database

logger = logging.getLogger(__name__)


@dataclass(eq=False, slots=True)
class Streaming:
    """One answer that is being said."""

    lease: Lease
    message_id: UUID
    live: LiveText
    saved: TextSoFar = field(default_factory=lambda: TextSoFar("", ""))


class Partials:
    """The answers of one loop."""

    def __init__(self, seconds: Callable[[], float]) -> None:
        self._seconds = seconds
        self._streaming: set[Streaming] = set()
        self._task: asyncio.Task[None] | None = None

    def add(self, one: Streaming) -> None:
        """Save it now and then from now on."""
        self._streaming.add(one)
        if self._task is None or self._task.done():
            # In a context of its own: it works for all of them, not for the first.
            loop = asyncio.get_running_loop()
            self._task = loop.create_task(self._go(), context=contextvars.Context())

    def discard(self, one: Streaming) -> None:
        """It has ended."""
        self._streaming.discard(one)

    async def _go(self) -> None:
        while self._streaming:
            await asyncio.sleep(self._seconds())
            await self._save()
            await self._ask_who_follows()

    async def _save(self) -> None:
        current = [(one, one.live.so_far) for one in self._streaming]
        fresh = [(one, now) for one, now in current if now != one.saved]
        if not fresh:
            return
        texts = [steps.Partial(one.lease, one.message_id, *now) for one, now in fresh]
        try:
            kept = await in_database(steps.save_partials, texts)
        except Exception:  # noqa: BLE001
            # The database is away: the next round keeps more.
            logger.warning("partial_answers_not_saved", extra={"answers": len(texts)})
            return
        for one, now in fresh:
            if one.message_id in kept:
                one.live.mark_saved(now)
                one.saved = now

    async def _ask_who_follows(self) -> None:
        """After saving: who has come since the last round read from a row what the round before it had saved."""
        if not self._streaming:
            return
        streaming = list(self._streaming)
        followed = await followed_elsewhere({one.live.conversation_id for one in streaming})
        for one in streaming:
            one.live.go_across(is_followed=one.live.conversation_id in followed)


_partials: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, Partials] = (
    weakref.WeakKeyDictionary()
)


def partials(seconds: Callable[[], float]) -> Partials:
    """Those of the running loop."""
    return _partials.setdefault(asyncio.get_running_loop(), Partials(seconds))
