"""The shared cache."""

from __future__ import annotations

from contextvars import Context
from typing import Any

import pytest
from django.core.cache import cache, caches


def _use_once() -> Any:
    cache.set("seen", 1)
    return caches["default"], cache.get("seen")


@pytest.mark.redis
def test_requests_share_the_connections_to_redis() -> None:
    """REL-901: Django makes a cache for each of them, as each has a context of its own."""
    first, value = Context().run(_use_once)
    redis = first._cache.get_client()
    before = redis.info("stats")["total_connections_received"]
    seen = {id(first)}
    others = [Context().run(_use_once) for _ in range(20)]
    seen |= {id(one) for one, _ in others}
    assert len(seen) == 21
    assert {value, *(found for _, found in others)} == {1}
    # Others may connect meanwhile, but not so often.
    assert redis.info("stats")["total_connections_received"] - before < 10
