"""Calls under way in other processes of the installation: whoever takes one back finds it by the channel layer.

While a call runs, its process is in a group of the call. Nothing is kept: where Redis is away, or a message is lost,
the call runs on until it ends by itself.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import logging
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


class _GroupMember:
    """Of one loop: a channel that is in the groups of all calls there."""

    def __init__(self) -> None:
        self.hearers: dict[str, list[Callable[[], object]]] = {}
        self._channel = ""
        self._hearing: asyncio.Task[None] | None = None
        self._opening = asyncio.Lock()
        self._staying: set[asyncio.Task[None]] = set()

    def begin_stay(self, group: str, is_over: asyncio.Event) -> None:
        """Be in the group until then."""
        task = _start(self._stay_in(group, is_over))
        self._staying.add(task)
        task.add_done_callback(self._staying.discard)

    async def _stay_in(self, group: str, is_over: asyncio.Event) -> None:
        channel = ""
        async with _forbearing():
            channel = await self._open()
            await _layer().group_add(group, channel)
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
            message = await _layer().receive(channel)
            for hear in list(self.hearers.get(message["group"], ())):
                hear()


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


async def count_elsewhere(group: str) -> int:
    """How many other processes are in the group; 0, if nobody can tell."""
    counted: dict[str, int] = {}
    if has_other_processes():
        async with _forbearing():
            counted = await _layer().count_elsewhere([group])
    return counted.get(group, 0)


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
    except Exception:
        logger.warning("call_not_heard_elsewhere", exc_info=True)
