"""After a crash of the embedded form, the next start goes on with the turns of the process that died."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta
from uuid import UUID

import pytest

from chat.engine import dead_processes, leases, runner
from chat.models import Turn
from config.env import ROOT
from tests.chat.conftest import Chat
from workspaces.database import database_now
from workspaces.process import shutdown

pytestmark = pytest.mark.sqlite

_OTHER_PROCESS = """
import sys
import django
django.setup()
from chat.engine import dead_processes
dead_processes.show_alive()
from chat.live.hub import PROCESS_ID
print(PROCESS_ID, flush=True)
sys.stdin.read()
"""


@pytest.fixture
def other(chat: Chat) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Another process on the same data folder, and its id."""
    process = subprocess.Popen(
        [sys.executable, "-c", _OTHER_PROCESS],
        cwd=ROOT,
        env={**os.environ, "DJANGO_SETTINGS_MODULE": "config.settings"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    yield process, process.stdout.readline().strip()
    process.kill()
    process.wait()


def give_to(owner: str, chat: Chat) -> UUID:
    """A turn that another process has just taken."""
    shutdown.begin()
    try:
        turn = chat.send().turn
    finally:
        shutdown.cancel()
    Turn.objects.for_workspace(chat.tenant.workspace).filter(pk=turn.pk).update(
        status="running",
        attempt=1,
        lease_owner=owner,
        lease_token=1,
        lease_until=database_now() + leases.LEASE,
    )
    return turn.pk


def test_turns_of_a_dead_process_are_taken_at_once(
    chat: Chat, other: tuple[subprocess.Popen[str], str]
) -> None:
    """REL-264: while it lives nothing is taken from it; killed, its turn goes on without waiting for the lease."""
    process, owner = other
    chat.model.say("Here I am.")
    turn_id = give_to(owner, chat)
    assert dead_processes.free_turns_of_the_dead() == 0
    assert runner.recover() == 0

    process.send_signal(signal.SIGKILL)
    process.wait()
    before = database_now()
    runner.watch_for_orphans()
    chat.watching.turn("completed")
    turn = Turn.objects.for_workspace(chat.tenant.workspace).fetch(turn_id)
    assert turn.attempt == 2
    assert database_now() - before < leases.LEASE - timedelta(seconds=3)
    assert chat.answer() == "Here I am."


def test_a_process_that_shows_no_lock_keeps_its_lease(chat: Chat) -> None:
    """REL-264: nothing is known about it, so its lease has to run out."""
    give_to("018f0000-0000-7000-8000-000000000000", chat)
    assert dead_processes.free_turns_of_the_dead() == 0
    assert runner.recover() == 0
