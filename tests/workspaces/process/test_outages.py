"""Something that is away fills no log."""

from __future__ import annotations

import asyncio
import logging
import time
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from django.db import OperationalError
from redis.asyncio import Connection

from chat.sockets import rounds
from tests.own_redis import own_redis, start_redis
from tests.patience import PATIENCE
from workspaces.delivery import channel_layer
from workspaces.delivery.announcements import deafness
from workspaces.delivery.channel_layer import ChannelLayer
from workspaces.process import outages
from workspaces.process.outages import LastingOutage


def test_an_outage_is_a_line_when_it_begins_and_one_when_it_ends(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REL-2232: what works for a moment in between, such as reading from a full Redis, does not end it."""
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now)
    outage = LastingOutage(logging.getLogger(__name__), begins="away", ends="back")
    outage.is_over()
    for _ in range(5):
        outage.note(OSError())
        outage.is_over()
    assert caplog.messages == ["away"]
    now += outages.TELL_SECONDS
    outage.note(OSError())
    assert caplog.messages == ["away", "away"]
    now += outages.QUIET_SECONDS
    outage.is_over()
    outage.is_over()
    outage.note(OSError())
    assert caplog.messages == ["away", "away", "back", "away"]


async def test_who_listens_while_redis_is_away_says_it_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REL-2232: the library wrote a traceback each second, and nothing once Redis was back.

    SEC-1051: meanwhile each round of open pages looks at their sessions.
    """
    monkeypatch.setattr(deafness, "_told_at", None)  # a test before may have left it
    monkeypatch.setattr(channel_layer, "AGAIN_SECONDS", 0.02, raising=False)
    monkeypatch.setattr(outages, "QUIET_SECONDS", 0.0)

    async def has_lines(count: int) -> None:
        async with asyncio.timeout(PATIENCE):
            while len(caplog.messages) < count:
                await asyncio.sleep(0.02)

    with own_redis(tmp_path) as url:
        layer = ChannelLayer(hosts=[url], prefix="trellis")
        channel = await layer.new_channel()
        await layer.group_add("group", channel)
    await has_lines(1)
    assert rounds.rights_of_round(1) is rounds.RightsCheck.ALL
    await asyncio.sleep(0.2)  # some ten tries; none of them is to be seen
    process = start_redis(urlsplit(url).port or 0, tmp_path)
    try:
        await has_lines(2)
        await layer.group_send("group", {"type": "hello"})
        async with asyncio.timeout(PATIENCE):
            assert await layer.receive(channel) == {"type": "hello"}
        assert caplog.messages == ["nudges_not_received", "nudges_received_again"]
        assert rounds.rights_of_round(1) is rounds.RightsCheck.MEMBERSHIPS
        assert not any(record.exc_info for record in caplog.records)
        await layer.flush()
    finally:
        process.kill()
        process.wait()


async def test_one_alone_connects_to_redis_anew(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REL-2993: who listens and who joins a group share a connection. Each read what the other was answered."""
    monkeypatch.setattr(channel_layer, "AGAIN_SECONDS", PATIENCE)
    begun, goes_on = asyncio.Event(), asyncio.Event()
    begin = Connection.on_connect_check_health

    async def begin_late(connection: Connection, **options: bool) -> None:
        begun.set()
        await goes_on.wait()
        await begin(connection, **options)

    with own_redis(tmp_path) as url:
        layer = ChannelLayer(hosts=[url], prefix="trellis")
        channel = await layer.new_channel()
        [shard] = layer._get_layer()._shards
        shard._receive_task.cancel()  # the test listens itself
        await shard._pubsub.connection.disconnect()
        monkeypatch.setattr(Connection, "on_connect_check_health", begin_late)
        joining = asyncio.create_task(layer.group_add("group", channel))
        async with asyncio.timeout(PATIENCE):
            await begun.wait()
            listening = asyncio.create_task(shard._receive_next())
            for _ in range(5):
                await asyncio.sleep(0)
            goes_on.set()
            await joining
            await listening
            await layer.group_send("group", {"type": "hello"})
            while layer._get_layer().channels[channel].empty():
                await shard._receive_next()
        assert await layer.receive(channel) == {"type": "hello"}
        await layer.flush()


@pytest.mark.django_db(transaction=True)
async def test_pages_that_nobody_looks_after_while_postgresql_is_away_are_one_line(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REL-2238: each process wrote two tracebacks in each of its rounds."""
    monkeypatch.setattr(outages, "QUIET_SECONDS", 0.0)
    is_away = True

    def look(*_: object) -> list[object]:
        if is_away:
            raise OperationalError("connection refused")
        return []

    monkeypatch.setattr(rounds, "look", look)
    pages = rounds.Rounds()
    for _ in range(3):
        assert await pages._look([], rounds.RightsCheck.ALL) == []
    is_away = False
    await pages._look([], rounds.RightsCheck.ALL)
    assert caplog.messages == ["pages_not_looked_after", "pages_looked_after_again"]
    assert not any(record.exc_info for record in caplog.records)
