"""The channel layer of many processes: Redis, asked also who listens."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Collection
from typing import Any, Final
from uuid import uuid4

from channels_redis.pubsub import (
    RedisPubSubChannelLayer,
    RedisPubSubLoopLayer,
    RedisSingleShardConnection,
)
from redis import RedisError
from redis.asyncio import ConnectionPool
from redis.asyncio.client import PubSub

from workspaces.delivery.announcements import deafness

logger = logging.getLogger(__name__)

AGAIN_SECONDS: Final = 1.0
"""After which what could not be received is tried again."""
_LOOK_SECONDS: Final = 0.1


class _PubSub(PubSub):
    """As its base, with one task that connects at a time: one reads here, while others subscribe.

    They all notice that a connection is gone. Each connected anew, and read what Redis answered to another.
    """

    connection: Any

    def __init__(self, pool: ConnectionPool) -> None:
        super().__init__(pool)
        self._connecting = asyncio.Lock()
        self._connector: asyncio.Task[Any] | None = None

    @contextlib.asynccontextmanager
    async def _alone(self) -> AsyncIterator[None]:
        task = asyncio.current_task()
        if self._connector is task:  # it subscribes again while it connects
            yield
            return
        async with self._connecting:
            self._connector = task
            try:
                yield
            finally:
                self._connector = None

    async def execute_command(self, *args: Any) -> None:
        async with self._alone():
            await super().execute_command(*args)

    async def parse_response(self, block: bool = True, timeout: float = 0) -> Any:
        async with self._alone():
            if self.connection is not None:
                await self.connection.connect()
        return await super().parse_response(block, timeout)

    async def _reconnect(self, conn: Any, *args: Any) -> None:
        is_done = self._connecting.locked() and self._connector is not asyncio.current_task()
        async with self._alone():
            if not (is_done and conn.is_connected):
                await super()._reconnect(conn, *args)


class _Connection(RedisSingleShardConnection):
    """As its base, which writes a traceback each second while Redis is away."""

    _redis: Any
    _pubsub: Any

    def _ensure_redis(self) -> None:
        is_new = self._redis is None
        super()._ensure_redis()
        if is_new:
            self._pubsub = _PubSub(self._redis.connection_pool)

    async def _do_receiving(self) -> None:
        while True:
            try:
                await self._receive_next()
            except (RedisError, OSError) as error:
                deafness.note(error)
                await asyncio.sleep(AGAIN_SECONDS)
            except Exception:
                logger.exception("nudge_not_understood")
                await asyncio.sleep(AGAIN_SECONDS)

    async def _receive_next(self) -> None:
        if self._pubsub is None or not self._pubsub.subscribed:
            await asyncio.sleep(_LOOK_SECONDS)
            return
        message = await self._pubsub.get_message(
            ignore_subscribe_messages=True, timeout=_LOOK_SECONDS
        )
        deafness.is_over()
        self._receive_message(message)


class ChannelLayer(RedisPubSubChannelLayer):
    """As its base, which knows its own members only."""

    def _get_layer(self) -> RedisPubSubLoopLayer:
        here: RedisPubSubLoopLayer = super()._get_layer()
        if not isinstance(here._shards[0], _Connection):  # it has just been made
            here._shards = [_Connection(shard.host, here) for shard in here._shards]
        return here

    async def new_channel(self, prefix: str = "specific.") -> str:
        """A channel of this process; unlike its base, it keeps nothing of one that could not be opened.

        Raises:
            redis.RedisError: Redis cannot be asked.
        """
        here: RedisPubSubLoopLayer = self._get_layer()
        channel = f"{here.prefix}{prefix}{uuid4().hex}"
        try:
            await here._subscribe_to_channel(channel)
        except BaseException:
            here.channels.pop(channel, None)
            raise
        return channel

    async def count_elsewhere(self, groups: Collection[str]) -> dict[str, int]:
        """How many other processes are in each of these groups: one command, however many are asked for.

        A group that somebody here is just joining or leaving may be counted wrongly once.

        Raises:
            redis.RedisError: Redis cannot be asked.
        """
        here: RedisPubSubLoopLayer = self._get_layer()
        names = {here._get_group_channel_name(group): group for group in groups}
        [shard] = here._shards
        async with shard._lock:
            shard._ensure_redis()
        counted = await shard._redis.pubsub_numsub(*names)
        ours = [other._shards[0]._subscribed_to for other in list(self._layers.values())]
        return {
            names[name]: max(0, count - sum(name in joined for joined in ours))
            for name, count in ((raw.decode(), count) for raw, count in counted)
        }
