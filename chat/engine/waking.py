"""Waking a turn once its transaction is committed. The runner stands above whoever wakes it, so it says here how."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from uuid import UUID

from django.db import transaction

from chat.models import Turn

Wake = Callable[[UUID, UUID], None]
"""Takes the ids of a turn and of its workspace."""
_wakers: list[Wake] = []


def wake_with(wake: Wake) -> None:
    """Called once at start."""
    _wakers[:] = [wake]


def wake(turn: Turn) -> None:
    """Have the turn taken, by this process or another, as soon as the transaction is committed."""
    (runner_wake,) = _wakers
    transaction.on_commit(partial(runner_wake, turn.pk, turn.workspace_id))
