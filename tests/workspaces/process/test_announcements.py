"""Nudges from processes that serve no pages, such as workers."""

from __future__ import annotations

import asyncio
from uuid import uuid4

import pytest
import redis
from channels.layers import get_channel_layer
from django.conf import settings

from tests.patience import PATIENCE
from workspaces.delivery.announcements import send_to_group

pytestmark = pytest.mark.redis


def _connections() -> int:
    with redis.Redis.from_url(settings.TRELLIS.redis_url or "") as client:
        return int(client.info("stats")["total_connections_received"])


async def test_a_process_that_serves_nobody_keeps_its_connection_to_redis() -> None:
    """REL-904: a worker tells of each server that it checked."""
    layer = get_channel_layer()
    assert layer is not None
    group, channel = f"told.{uuid4().hex}", await layer.new_channel()
    await layer.group_add(group, channel)

    async def tell(number: int) -> None:
        await asyncio.to_thread(send_to_group, group, {"type": "told", "number": number})

    await tell(0)
    before = await asyncio.to_thread(_connections)
    for number in range(1, 21):
        await tell(number)
    # Others may connect meanwhile, but not so often.
    assert await asyncio.to_thread(_connections) - before < 10
    async with asyncio.timeout(PATIENCE):
        listed = [(await layer.receive(channel))["number"] for _ in range(21)]
    assert listed == list(range(21))
    await layer.group_discard(group, channel)


async def test_who_runs_a_loop_tells_without_waiting() -> None:
    """REL-904: nothing blocks the loop."""
    layer = get_channel_layer()
    assert layer is not None
    group, channel = f"told.{uuid4().hex}", await layer.new_channel()
    await layer.group_add(group, channel)
    send_to_group(group, {"type": "told"})
    async with asyncio.timeout(PATIENCE):
        assert (await layer.receive(channel))["type"] == "told"
    await layer.group_discard(group, channel)
