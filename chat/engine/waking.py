"""Having a turn worked on once its transaction is committed. The runner stands above whoever wakes it, so it says here how."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Protocol
from uuid import UUID

from django.db import transaction

from chat.engine.leases import Lease
from chat.models import Message, Turn


class Runner(Protocol):
    """Works on turns in this process; from any thread."""

    def wake(self, turn_id: UUID, workspace_id: UUID) -> None:
        """Take a turn that is ready, unless somebody else does."""

    def can_take(self) -> bool:
        """Whether another turn can be worked on here."""

    def start(self, lease: Lease, answer: Message | None) -> None:
        """Work on a turn that has been taken, and whose answer has been opened."""


_runners: list[Callable[[], Runner]] = []


def run_with(runner: Callable[[], Runner]) -> None:
    """Called once at start."""
    _runners[:] = [runner]


def wake(turn: Turn) -> None:
    """Have the turn taken, by this process or another, as soon as the transaction is committed."""
    transaction.on_commit(partial(_runner().wake, turn.pk, turn.workspace_id))


def can_take() -> bool:
    """Whether this process can work on a turn that begins now."""
    return _runner().can_take()


def start_taken(lease: Lease, answer: Message | None) -> None:
    """Have a turn that is taken with this transaction worked on as soon as it is committed."""
    transaction.on_commit(partial(_runner().start, lease, answer))


def _runner() -> Runner:
    (runner,) = _runners
    return runner()
