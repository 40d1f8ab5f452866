"""Who follows a conversation in other processes."""

from __future__ import annotations

import asyncio

import pytest
from channels.layers import get_channel_layer
from django.conf import settings
from pytest_django.fixtures import Settings
from uuid_utils.compat import uuid7

from chat.live.hub import conversation_group, followed_elsewhere
from tests.patience import PATIENCE
from workspaces.delivery.channel_layer import ChannelLayer

pytestmark = pytest.mark.redis


async def test_only_followers_in_other_processes_count() -> None:
    """REL-1453: a page of this process is told by it, without Redis."""
    here, there = (
        get_channel_layer(),
        ChannelLayer(hosts=[settings.TRELLIS.redis_url], prefix="trellis"),
    )
    assert here is not None
    ours, theirs, both, nobodys = (uuid7() for _ in range(4))
    for layer, followed in ((here, (ours, both)), (there, (theirs, both))):
        channel = await layer.new_channel()
        for conversation in followed:
            await layer.group_add(conversation_group(conversation), channel)
    asked = [ours, theirs, both, nobodys]
    assert await followed_elsewhere(asked) == {theirs, both}
    await there.flush()
    async with asyncio.timeout(PATIENCE):
        while await followed_elsewhere(
            asked
        ):  # Redis learns a moment later that a connection is gone
            await asyncio.sleep(0.02)
    await here.flush()


async def test_a_layer_that_cannot_tell_counts_as_followed(settings: Settings) -> None:
    """REL-1453: nothing is withheld while Redis is away."""
    settings.CHANNEL_LAYERS = {
        "default": {
            **settings.CHANNEL_LAYERS["default"],
            "CONFIG": {"hosts": ["redis://127.0.0.1:9"]},
        }
    }
    conversation = uuid7()
    assert await followed_elsewhere([conversation]) == {conversation}
