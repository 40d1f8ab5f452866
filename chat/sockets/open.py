"""The sockets of this process: how many a person has, and where they go when it ends."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Collection
from typing import Protocol
from uuid import UUID

from django.conf import settings

from chat.wire.events import CloseCode


class OpenSocket(Protocol):
    """What is asked of a socket."""

    @property
    def conversation_ids(self) -> Collection[UUID]:
        """The conversations that its page follows."""

    async def close(self, code: int) -> None: ...


sockets: set[OpenSocket] = set()
"""Used on the loop that serves them."""


_places: Counter[UUID] = Counter()
"""By person; taken before anything is read for a socket, and used on the loop too."""


def take_place(person_id: UUID) -> bool:
    """Whether this person may have one more socket here; then it counts until the place is given back."""
    if _places[person_id] >= settings.TRELLIS.sockets_per_person:
        return False
    _places[person_id] += 1
    return True


def give_place_back(person_id: UUID) -> None:
    """Their socket has ended."""
    _places[person_id] -= 1
    if _places[person_id] <= 0:
        del _places[person_id]


async def close_sockets(*, seconds: float, but: Collection[UUID] = ()) -> None:
    """Send pages to another process, over so many seconds, that they do not all come at once.

    Args:
        but: conversations whose followers may stay.
    """
    leaving = [one for one in sockets if not set(but) & set(one.conversation_ids)]

    async def close(socket: OpenSocket) -> None:
        await asyncio.sleep(random.uniform(0, seconds))  # noqa: S311 - no secret
        await socket.close(CloseCode.SERVICE_RESTART)

    await asyncio.gather(*(close(one) for one in leaving), return_exceptions=True)
