"""The chaos run itself: what hangs is named, and ends it."""

from __future__ import annotations

import asyncio
import random
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tests.chaos import people, run, trouble
from tests.chaos.installation import Seeded
from tests.ports import free_port


async def test_a_run_whose_servers_are_gone_ends_and_says_who_waits_for_what(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Ours: it gave no result, or nothing but a traceback."""
    monkeypatch.setattr(people, "PATIENCE", 0.2)
    monkeypatch.setattr(people, "MOST_SECONDS_OF_PEACE", 0.2)
    seeded = Seeded(token="t", cookie="c", workspace="w", bud="b")
    gone = cast("Any", SimpleNamespace(ports=(free_port(), free_port()), seeded=seeded))
    account = people.Account()
    await run.live(gone, account, turns=1, seed=1, lease=1.0, seconds=60.0)
    assert account.stuck == ["no process answers POST /api/conversations/"]
    monkeypatch.setattr(people, "PATIENCE", 60.0)
    await run.live(gone, account, turns=1, seed=1, lease=1.0, seconds=1.0)
    assert account.stuck[1] == "after 1 s somebody waits for POST /api/conversations/"


async def test_a_harm_that_does_not_end_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours: what was hurt may not be there again, and the run goes on without it."""
    monkeypatch.setattr(trouble, "HARM_SECONDS", 0.05)
    account = people.Account()
    harming = trouble.Trouble(
        cast("Any", None), account, people.Peace(), random.Random(1), lease_seconds=1.0
    )

    async def restart_the_moon() -> None:
        await asyncio.Event().wait()

    await harming._harm(restart_the_moon)
    assert account.odd == ["restart_the_moon did not end well: TimeoutError()"]
