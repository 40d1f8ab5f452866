"""The channel layer of many processes: Redis, asked also who listens."""

from __future__ import annotations

from collections.abc import Collection
from uuid import uuid4

from channels_redis.pubsub import RedisPubSubChannelLayer, RedisPubSubLoopLayer


class ChannelLayer(RedisPubSubChannelLayer):
    """As its base, which knows its own members only."""

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
