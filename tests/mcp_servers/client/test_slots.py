"""Places at a server: shared fairly, and waited for within bounds."""

from __future__ import annotations

import asyncio

import pytest

from mcp_servers.client.connections.slots import FairSlots
from mcp_servers.client.errors import Busy
from tests.patience import PATIENCE


async def test_slots_are_shared_fairly() -> None:
    """REL-37: limit 2, 50 callers of 3 people: shares nearly equal while they wait."""
    slots = FairSlots(2)
    order: list[str] = []

    async def use(group: str) -> None:
        async with slots.slot(group, wait_seconds=PATIENCE):
            order.append(group)
            await asyncio.sleep(0.001)

    callers = ["anna"] * 40 + ["ben"] * 5 + ["cleo"] * 5
    await asyncio.gather(*(use(group) for group in callers))
    assert {group: order[:20].count(group) for group in ("ben", "cleo")} == {"ben": 5, "cleo": 5}
    assert len(order) == 50


async def test_waiting_for_a_slot_ends() -> None:
    """REL-37: bounded and typed, and the slot is not lost."""
    slots = FairSlots(1)
    async with slots.slot("anna", wait_seconds=PATIENCE):
        with pytest.raises(Busy):
            async with slots.slot("ben", wait_seconds=0.05):
                pass
    await slots.take("cleo", wait_seconds=PATIENCE)
    slots.give_back()
    async with slots.slot("ben", wait_seconds=0.05):
        pass


async def test_a_slot_given_back_before_it_came_is_free_again() -> None:
    """REL-37: a caller that leaves the queue takes nothing with it, also when the slot is on its way."""
    slots = FairSlots(1)

    async def wait() -> None:
        async with slots.slot("ben", wait_seconds=PATIENCE):
            pass

    for gives_back_first in (False, True):
        await slots.take("anna", wait_seconds=PATIENCE)
        waiting = asyncio.create_task(wait())
        await asyncio.sleep(0.05)
        if gives_back_first:
            slots.give_back()
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        if not gives_back_first:
            slots.give_back()
        await asyncio.sleep(0.05)
        assert slots.try_take()
        slots.give_back()


async def test_slots_serve_every_loop() -> None:
    """REL-37: callers on different loops wait in one queue."""
    slots = FairSlots(1)
    done: list[int] = []

    def work(number: int) -> None:
        async def use() -> None:
            async with slots.slot(str(number), wait_seconds=PATIENCE):
                await asyncio.sleep(0.01)
                done.append(number)

        asyncio.run(use())

    await asyncio.gather(*(asyncio.to_thread(work, number) for number in range(6)))
    assert sorted(done) == list(range(6))
