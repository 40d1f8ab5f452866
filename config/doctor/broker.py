"""What the doctor sees of Redis."""

from __future__ import annotations

from typing import Final

from django.conf import settings

from config.doctor.findings import DoctorFinding, failed, look, ok
from config.installation.versions import redis_version
from config.workers.queues import publish_to_redis, write_to_redis
from config.workers.redis_faults import find_redis_fault

OLDEST_REDIS: Final = (6, 2)
REDIS_ROOM: Final = 0.9
"""The part of Redis' memory that may be in use."""


def check_redis(part: str) -> DoctorFinding:
    """Look whether Redis answers, takes writes and nudges, and keeps what it is given."""
    if settings.TRELLIS.redis_url is None:
        return ok(part, "not used: one process does everything")
    import redis

    try:
        found = redis_version()
    except redis.RedisError as error:
        return _refuses(part, error)
    if tuple(int(number) for number in found.split(".")[:2]) < OLDEST_REDIS:
        return failed(part, f"Redis {found} is too old", "Use Redis 6.2 or newer.")
    try:
        write_to_redis()
        publish_to_redis()
    except redis.RedisError as error:
        return _refuses(part, error)
    return _judge_memory(part, found)


def _refuses(part: str, error: Exception) -> DoctorFinding:
    fault = find_redis_fault(error)
    return failed(
        part,
        fault.text,
        f"{fault.advice} Until then pages are slower to follow and background tasks wait.",
    )


def _judge_memory(part: str, version: str) -> DoctorFinding:
    import redis

    url = str(settings.TRELLIS.redis_url)
    with redis.Redis.from_url(url, socket_connect_timeout=2, socket_timeout=2) as client:
        memory = client.info("memory")
    # Hosted ones may keep these to themselves.
    most, used = int(memory.get("maxmemory", 0)), int(memory.get("used_memory", 0))
    policy = str(memory.get("maxmemory_policy", ""))
    if most and policy.startswith("allkeys-"):
        return look(
            part,
            f"Redis {version} throws away background tasks when its memory is full (maxmemory-policy {policy})",
            "Set maxmemory-policy to noeviction or volatile-lru. The queue of tasks then stays.",
        )
    if most and used > most * REDIS_ROOM:
        return look(
            part,
            f"Redis {version} uses {used / most:.0%} of the memory that it may",
            "Raise maxmemory, or look why tasks pile up. Without room background tasks wait.",
        )
    return ok(part, f"Redis {version}")
