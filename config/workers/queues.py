"""The queue of tasks: how many wait for a worker, and since when the oldest of them does."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from django.conf import settings

QUEUE: Final = "celery"
HANDED_OUT: Final = "trellis_handed_out"
"""The header of a task that says when it was handed out, in seconds of the clock. Celery has none."""
_SECONDS: Final = 1.0
"""Redis is next to us, or does not answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueBacklog:
    """Tasks that no worker has taken."""

    tasks: int
    since: datetime | None
    """When the oldest was handed out. None: none waits."""

    @property
    def seconds(self) -> float:
        """How long the oldest has waited."""
        return max(0.0, time.time() - self.since.timestamp()) if self.since else 0.0


def write_to_redis() -> None:
    """Try a write.

    Raises:
        redis.RedisError: it does not answer, or takes no writes.
    """
    import redis

    url = str(settings.TRELLIS.redis_url)
    with redis.Redis.from_url(url, socket_connect_timeout=2, socket_timeout=2) as client:
        client.set("trellis-write", "1", ex=10)


def publish_to_redis() -> None:
    """Try a nudge, as processes send them to each other. A user of Redis may write and yet not publish.

    Raises:
        redis.RedisError: it does not answer, or takes no nudges.
    """
    import redis

    url = str(settings.TRELLIS.redis_url)
    with redis.Redis.from_url(url, socket_connect_timeout=2, socket_timeout=2) as client:
        client.publish("trellis__group__look", "")


def read_queue() -> QueueBacklog:
    """Look once.

    Raises:
        redis.RedisError: it does not answer.
    """
    tasks, oldest = _of_redis() if settings.TRELLIS.redis_url is not None else _of_process()
    return QueueBacklog(tasks=tasks, since=_since(oldest) if tasks else None)


def _of_redis() -> tuple[int, Mapping[str, Any]]:
    import redis

    with redis.Redis.from_url(
        str(settings.TRELLIS.redis_url), socket_connect_timeout=_SECONDS, socket_timeout=_SECONDS
    ) as client:
        both = client.pipeline(transaction=False)
        both.llen(QUEUE)
        both.lindex(QUEUE, -1)  # tasks come in at the head
        tasks, oldest = both.execute()
    return int(tasks), json.loads(oldest) if oldest else {}


def _of_process() -> tuple[int, Mapping[str, Any]]:
    """Where a single process hands tasks out to its own worker."""
    from kombu.transport.memory import Channel

    found = Channel.queues.get(QUEUE)
    if found is None:
        return 0, {}
    with contextlib.suppress(IndexError):  # it has just been taken
        return int(found.qsize()), found.queue[0]
    return 0, {}


def _since(message: Mapping[str, Any]) -> datetime | None:
    seconds = message.get("headers", {}).get(HANDED_OUT)
    return datetime.fromtimestamp(seconds, UTC) if isinstance(seconds, int | float) else None
