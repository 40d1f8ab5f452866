"""Calls under way while the channel layer fails."""

from __future__ import annotations

import asyncio
import math
from typing import Any, cast
from uuid import uuid4

import pytest
from channels.layers import get_channel_layer
from pytest_django.fixtures import Settings

from mcp_servers.endpoint import cancelling, other_processes
from mcp_servers.endpoint.callers import EndpointCaller
from tests.patience import PATIENCE
from workspaces.actors import Actor, ActorKind, Source
from workspaces.delivery.channel_layer import ChannelLayer


@pytest.fixture(autouse=True)
def nothing_is_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(other_processes, "_noted_at", -math.inf)


@pytest.fixture
def away(settings: Settings) -> None:
    """Redis is."""
    settings.CHANNEL_LAYERS = {
        "default": {
            "BACKEND": "workspaces.delivery.channel_layer.ChannelLayer",
            "CONFIG": {"hosts": ["redis://127.0.0.1:9"]},
        }
    }


async def test_calls_leave_nothing_while_redis_is_away(
    away: None, caplog: pytest.LogCaptureFixture
) -> None:
    """REL-2191: neither in memory nor in the log, which has one line for all."""
    for number in range(3):
        with other_processes.heard(f"call.{number}", lambda: None):
            assert await other_processes.count_elsewhere(f"call.{number}") is None
        member = other_processes._members[asyncio.get_running_loop()]
        await asyncio.wait(member._staying)
    here = cast("ChannelLayer", get_channel_layer())._get_layer()
    assert (here.channels, here.groups) == ({}, {})
    (line,) = [one for one in caplog.records if one.msg == "call_not_heard_elsewhere"]
    assert not line.exc_info


async def test_nothing_is_stopped_while_nobody_can_tell_which_is_meant(away: None) -> None:
    """REL-2191: another process may have a call with that id, of another window of the same person."""
    actor = Actor(kind=ActorKind.USER, label="x", source=Source.GATEWAY, token_id=uuid4())
    caller = EndpointCaller(
        actor=actor,
        user_id=uuid4(),
        workspace_id=uuid4(),
        workspace_name="x",
        reads_only=False,
    )
    may_end = asyncio.Event()
    call = asyncio.ensure_future(cancelling.run(caller, 7, may_end.wait()))
    await asyncio.sleep(0)
    await cancelling.cancel(caller, 7)
    may_end.set()
    assert await call


class FailingLayer:
    """The first time, each thing goes wrong."""

    def __init__(self) -> None:
        self.messages: asyncio.Queue[Any] = asyncio.Queue()
        self._failed: set[str] = set()

    async def new_channel(self) -> str:
        self._fail("new_channel")
        return "ours"

    async def group_add(self, group: str, channel: str) -> None:
        self._fail("group_add")
        self.messages.put_nowait({"group": group})

    async def group_discard(self, group: str, channel: str) -> None:
        self._fail("group_discard")

    async def receive(self, channel: str) -> Any:
        self._fail("receive")
        return await self.messages.get()

    def _fail(self, what: str) -> None:
        if what not in self._failed:
            self._failed.add(what)
            raise ConnectionError


async def test_a_call_is_heard_once_redis_is_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """REL-2191: also one that began before."""
    layer, heard = FailingLayer(), asyncio.Event()
    monkeypatch.setattr(other_processes, "has_other_processes", lambda: True)
    monkeypatch.setattr(other_processes, "_layer", lambda: layer)
    monkeypatch.setattr(other_processes, "_AGAIN_SECONDS", 0.01)
    async with asyncio.timeout(PATIENCE):
        with other_processes.heard("call", heard.set):
            await heard.wait()
