"""Telling a person that the model has not begun to answer, while they wait."""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from django.db import DatabaseError
from django.utils.translation import gettext_noop as _

from chat.engine.leases import LeaseLost
from chat.providers.base import ProviderSpec
from chat.providers.limits import TellWait

logger = logging.getLogger(__name__)

QUIET_SECONDS: Final = 10.0
"""Nobody wonders before."""


class Silence:
    """Begins when a request is sent, and ends with the first piece of its answer."""

    def __init__(self, spec: ProviderSpec, tell: TellWait) -> None:
        """Args:
        tell: told why nothing comes, and with "" once something does.
        """
        self._spec = spec
        self._tell = tell
        self._timer: asyncio.TimerHandle | None = None
        self._telling: asyncio.Task[None] | None = None
        self._is_told = False
        self.lasts = False

    def begin(self) -> None:
        """The request has been sent."""
        self.lasts = True
        self._timer = asyncio.get_running_loop().call_later(QUIET_SECONDS, self._tell_later)

    def end(self) -> None:
        """Something has come, or the request waits for its turn. Waits for nothing: the answer goes on meanwhile."""
        self.lasts = False
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._is_told and self._telling is not None:
            self._is_told = False
            self._telling = asyncio.create_task(self._take_back(self._telling))

    async def settle(self) -> None:
        """Write nothing any more: what is said of the turn from now on, others say."""
        self.end()
        if self._telling is not None:
            await asyncio.shield(self._telling)

    def _tell_later(self) -> None:
        self._is_told = True
        self._telling = asyncio.create_task(self._tell_quietly(_silence_in_words(self._spec)))

    async def _take_back(self, telling: asyncio.Task[None]) -> None:
        await telling
        await self._tell_quietly("")

    async def _tell_quietly(self, reason: str) -> None:
        try:
            await self._tell(reason)
        except LeaseLost:
            pass  # the turn's task hears of it by itself
        except DatabaseError:
            logger.warning("silence_not_told", exc_info=True)


def _silence_in_words(spec: ProviderSpec) -> str:
    if spec.has_fallback:
        pattern = _(
            "“%(name)s” has not begun to answer. If it stays silent, another provider answers."
        )
    else:
        pattern = _("“%(name)s” has not begun to answer yet. You can keep waiting, or stop.")
    return pattern % {"name": spec.name}
