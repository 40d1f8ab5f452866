"""The chaos run itself: what hangs is named, and ends it."""

from __future__ import annotations

import asyncio
import contextlib
import faulthandler
import os
import random
import threading
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tests.chaos import people, run, trouble
from tests.chaos.installation import Seeded, give_up_after
from tests.patience import PATIENCE
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


def test_a_run_that_hangs_leaves_nothing_running(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Ours: its PostgreSQL and Redis went on."""
    gone: list[object] = []
    has_ended = threading.Event()

    def end(code: int) -> None:
        gone.append(code)
        faulthandler.cancel_dump_traceback_later()
        has_ended.set()

    monkeypatch.setattr(os, "_exit", end)
    with contextlib.ExitStack() as stack:
        stack.callback(gone.append, "PostgreSQL")
        give_up_after(0.0, stack)
        assert has_ended.wait(PATIENCE), "what hangs"
    assert gone == ["PostgreSQL", 1]
    assert "most recent call first" in capfd.readouterr().err


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
