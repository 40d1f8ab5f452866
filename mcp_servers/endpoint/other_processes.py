"""Calls under way in other processes of the installation: whoever takes one back finds it by the channel layer.

While a call runs, its process is in a group of the call. Nothing is kept: while Redis is away, or if a message is
lost, the call runs on until it ends by itself.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import logging
import math
import time
import weakref
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from typing import TYPE_CHECKING, Any, Final, cast

from channels.layers import get_channel_layer

from workspaces.delivery.announcements import has_other_processes, send_to_group

if TYPE_CHECKING:
    from workspaces.delivery.channel_layer import ChannelLayer

logger = logging.getLogger(__name__)

_LAYER_SECONDS: Final = 2.0
"""How long the channel layer may take for one thing."""
_AGAIN_SECONDS: Final = 5.0
"""After which what it could not do is tried again."""
_NOTE_SECONDS: Final = 600.0
"""How often the log says that the layer fails."""

_noted_at = -math.inf


class _GroupMember:
    """Of one loop: a channel that is in the groups of all calls there."""

    def __init__(self) -> None:
        self.hearers: dict[str, list[Callable[[], object]]] = {}
        self._channel = ""
        self._hearing: asyncio.Task[None] | None = None
        self._opening = asyncio.Lock()
        self._staying: set[asyncio.Task[None]] = set()

    def begin_stay(self, group: str, is_over: asyncio.Event) -> None:
        """Be in the group until then, as soon as the layer can be reached."""
        task = _start(self._stay_in(group, is_over))
        self._staying.add(task)
        task.add_done_callback(self._staying.discard)

    async def _stay_in(self, group: str, is_over: asyncio.Event) -> None:
        channel, is_in = "", False
        while not is_over.is_set():
            async with _forbearing():
                channel = await self._open()
                await _layer().group_add(group, channel)
                is_in = True
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(None if is_in else _AGAIN_SECONDS):
                    await is_over.wait()
        if channel and group not in self.hearers:
            async with _forbearing():
                await _layer().group_discard(group, channel)

    async def _open(self) -> str:
        async with self._opening:
            if self._hearing is None or self._hearing.done():
                self._channel = await _layer().new_channel()
                self._hearing = _start(self._hear(self._channel))
            return self._channel

    async def _hear(self, channel: str) -> None:
        while True:
            try:
                message = await _layer().receive(channel)
                for hear in list(self.hearers.get(message["group"], ())):
                    hear()
            except Exception as error:  # noqa: BLE001  whatever a layer raises, and others still wait
                _note(error)
                await asyncio.sleep(_AGAIN_SECONDS)


_members: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _GroupMember] = (
    weakref.WeakKeyDictionary()
)


@contextlib.contextmanager
def heard(group: str, hear: Callable[[], object]) -> Iterator[None]:
    """Have this called on the running loop when another process tells the group, as long as the block runs."""
    if not has_other_processes():
        yield
        return
    member, is_over = (
        _members.setdefault(asyncio.get_running_loop(), _GroupMember()),
        asyncio.Event(),
    )
    member.hearers.setdefault(group, []).append(hear)
    member.begin_stay(group, is_over)
    try:
        yield
    finally:
        member.hearers[group].remove(hear)
        if not member.hearers[group]:
            del member.hearers[group]
        is_over.set()


async def count_elsewhere(group: str) -> int | None:
    """How many other processes are in the group; None: nobody can tell."""
    if not has_other_processes():
        return 0
    counted: list[int] = []
    async with _forbearing():
        counted.append((await _layer().count_elsewhere([group])).get(group, 0))
    return counted[0] if counted else None


def tell(group: str) -> None:
    """Have the other processes in the group call what they hear it with."""
    send_to_group(group, {"type": "call.told", "group": group})


def _layer() -> ChannelLayer:
    return cast("ChannelLayer", get_channel_layer())


def _start(work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
    """In a context of its own: it works for all calls, or outlives the one that it began with."""
    return asyncio.get_running_loop().create_task(work, context=contextvars.Context())


@contextlib.asynccontextmanager
async def _forbearing() -> AsyncIterator[None]:
    try:
        async with asyncio.timeout(_LAYER_SECONDS):
            yield
    except Exception as error:  # noqa: BLE001  whatever a layer raises
        _note(error)


def _note(error: Exception) -> None:
    """Tell the log once of what goes wrong with each call while Redis is away."""
    global _noted_at
    if time.monotonic() < _noted_at + _NOTE_SECONDS:
        return
    _noted_at = time.monotonic()
    from redis import RedisError  # heavy, and many installations have no Redis

    is_away = isinstance(error, RedisError | OSError)
    logger.warning(
        "call_not_heard_elsewhere",
        extra={"reason": type(error).__name__},
        exc_info=None if is_away else error,
    )
