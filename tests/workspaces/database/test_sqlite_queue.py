"""Writers of one process on SQLite: each waits for the one before it, whatever becomes of that one."""

from __future__ import annotations

import gc
import time
from itertools import pairwise

import pytest
from django.db import DatabaseError, connection, transaction

from tests.patience import PATIENCE, wait_until
from tests.threads import Threads
from workspaces.database.sqlite import writer_queue
from workspaces.models import Workspace

pytestmark = [pytest.mark.sqlite, pytest.mark.django_db(transaction=True)]

WRITERS, HELD = 24, 0.02


def test_writers_take_turns_without_sleeping() -> None:
    """REL-30: as many as there are come through, and the next one begins when the one before has ended."""

    def write(number: int) -> tuple[float, float]:
        try:
            with transaction.atomic():
                begun = time.monotonic()
                Workspace.objects.create(name=str(number), slug=f"w{number}")
                time.sleep(HELD)
                return begun, time.monotonic()
        finally:
            connection.close()

    with Threads(WRITERS) as pool:
        held = sorted(pool.map(write, range(WRITERS)))
    assert Workspace.objects.count() == WRITERS
    gaps = sorted(begun - ended for (_, ended), (begun, _) in pairwise(held))
    # SQLite's own waiting sleeps for up to a tenth of a second, and most of them would.
    assert gaps[len(gaps) // 2] < 0.02, gaps


def test_nobody_is_overtaken_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """REL-2671: who has waited for a moment comes before whoever had the turn and wants it again."""
    monkeypatch.setattr(writer_queue, "OVERTAKEN_SECONDS", 0.0)
    queue = writer_queue.WriterQueue()
    with Threads(1) as pool:
        # Without its door, the queue is overtaken in three of a hundred rounds.
        for _ in range(200):
            assert queue.acquire(PATIENCE)
            waits = pool.submit(queue.acquire, PATIENCE)
            wait_until(queue.is_closed, pause=0)
            queue.release()
            assert not queue.acquire(0)
            assert waits.result()
            queue.release()


def _fail() -> None:
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        Workspace.objects.create(name="never", slug="never")
        _ = 1 / 0


def _break() -> None:
    with pytest.raises(DatabaseError), transaction.atomic():
        Workspace.objects.create(name="twice", slug="there")


def _close_within() -> None:
    with pytest.raises(DatabaseError), transaction.atomic():
        connection.close()
        Workspace.objects.exists()


def _end_within() -> None:
    transaction.atomic().__enter__()


@pytest.mark.parametrize("way", [_fail, _break, _close_within, _end_within])
def test_nobody_waits_for_a_writer_that_is_gone(way: object) -> None:
    """REL-30: one that fails, loses its connection, or whose thread ends gives its place back."""
    assert callable(way)
    Workspace.objects.create(name="there", slug="there")
    with Threads(1) as pool:
        pool.submit(way).result()
    gc.collect()
    begun = time.monotonic()
    with transaction.atomic():
        Workspace.objects.create(name="next", slug="next")
    assert time.monotonic() - begun < 15
