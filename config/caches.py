"""The shared cache. It holds nothing that is missed: while Redis is away nothing is found in it, and the product goes on."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from django.core.cache.backends.redis import RedisCache, RedisCacheClient
from django.utils.functional import cached_property
from redis.exceptions import RedisError

from config.workers.redis_faults import find_redis_fault
from workspaces.process.outages import LastingOutage

_WRITES = frozenset({"add", "set", "touch", "incr", "set_many"})
_outage = LastingOutage(logging.getLogger(__name__), begins="cache_away", ends="cache_back")


class ForgetfulRedisCache(RedisCache):
    """Redis, or nothing: counters of rate limits and kept results are not worth an error page."""

    @cached_property
    def _cache(self) -> RedisCacheClient:
        # Django makes a cache for each request and each context. With connections of its own, each would connect anew.
        servers, options = self._servers, self._options  # type: ignore[attr-defined]  # Django's stubs leave them out
        return _client(tuple(servers), tuple(sorted(options.items())))

    def add(self, *args: Any, **kwargs: Any) -> bool:
        return bool(_or(True, super().add, *args, **kwargs))

    def get(self, key: Any, default: Any = None, version: Any = None) -> Any:
        return _or(default, super().get, key, default, version)

    def set(self, *args: Any, **kwargs: Any) -> None:
        _or(None, super().set, *args, **kwargs)

    def touch(self, *args: Any, **kwargs: Any) -> bool:
        return bool(_or(False, super().touch, *args, **kwargs))

    def delete(self, *args: Any, **kwargs: Any) -> bool:
        return bool(_or(False, super().delete, *args, **kwargs))

    def get_many(self, keys: Iterable[Any], version: Any = None) -> dict[Any, Any]:
        return dict(_or({}, super().get_many, keys, version))

    def has_key(self, *args: Any, **kwargs: Any) -> bool:
        return bool(_or(False, super().has_key, *args, **kwargs))

    def incr(self, key: Any, delta: int = 1, version: Any = None) -> int:
        return int(_or(delta, super().incr, key, delta, version))

    def set_many(self, data: Mapping[Any, Any], *args: Any, **kwargs: Any) -> list[Any]:
        return list(_or(list(data), super().set_many, data, *args, **kwargs))

    def delete_many(self, *args: Any, **kwargs: Any) -> None:
        _or(None, super().delete_many, *args, **kwargs)


@functools.cache
def _client(servers: tuple[str, ...], options: tuple[tuple[str, Any], ...]) -> RedisCacheClient:
    """The process's own. Its pool of connections serves all threads, and begins anew in a forked process."""
    client = RedisCacheClient(list(servers), **dict(options))
    # Django makes one for each operation, with a table of all that Redis can answer.
    client._client = functools.cache(client._client)  # type: ignore[attr-defined]  # the stubs leave it out
    return client


def _or(instead: Any, do: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    try:
        found = do(*args, **kwargs)
    except (RedisError, OSError) as error:
        _outage.note(error, fault=find_redis_fault(error).text)
        return instead
    if do.__name__ in _WRITES:  # a full Redis still reads
        _outage.is_over()
    return found
