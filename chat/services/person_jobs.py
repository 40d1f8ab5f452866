"""Long work for one person at a time, such as reading their import: its row says how far it is.

A process takes a row on for a while, works on it for some seconds, and lets it go. So everybody gets their turn, and any
process goes on where another one stopped. Such rows have `owner`, `status`, `alive_until` and `updated_at`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from django.db.models import Exists, OuterRef, Q

from workspaces.database import database_now
from workspaces.models import Membership
from workspaces.words.formats import written_for

RUN_SECONDS: Final = 12.0
"""Less than between two runs: other tasks wait for the same workers."""
LEASE: Final = timedelta(seconds=180)
FORGOTTEN_DAYS: Final = 30
"""After that, what is told of such work may be forgotten."""
_MOST_LOOKED_AT: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class JobKind:
    """A kind of work."""

    model: Any
    open: Sequence[str]
    """Statuses of rows that are still to be worked on."""
    running: str
    related: Sequence[str] = ("owner", "workspace")
    turn_seconds: float = RUN_SECONDS
    """For one row, if others wait."""


def work(kind: JobKind, go_on: Callable[[Any, float], int], *, seconds: float = RUN_SECONDS) -> int:
    """Work on rows of all people in turn, until nothing is due or the time is up; gives what `go_on` counted.

    Args:
        go_on: works on one row until a moment of the monotonic clock, and lets it go or ends it.
    """
    until = time.monotonic() + seconds
    done = 0
    while time.monotonic() < until and (row := _take_on(kind)) is not None:
        with written_for(row.owner):
            done += go_on(row, min(until, time.monotonic() + kind.turn_seconds))
    return done


def _take_on(kind: JobKind) -> Any:
    """A row that nobody works on, of somebody who is a member and may use the chat; None: there is none."""
    now = database_now()
    members = Membership.objects.across_workspaces().filter(
        workspace_id=OuterRef("workspace_id"),
        user_id=OuterRef("owner_id"),
        user__is_active=True,
        suspended_at=None,
        workspace__is_active=True,
    )
    is_free = Q(alive_until=None) | Q(alive_until__lt=now)
    rows = kind.model.objects.across_workspaces().filter(
        is_free, Exists(members), status__in=kind.open
    )
    for row in rows.select_related(*kind.related).order_by("updated_at")[:_MOST_LOOKED_AT]:
        mine = kind.model.objects.for_workspace(row.workspace_id).filter(pk=row.pk)
        lease = now + LEASE
        # Whoever moves the time works on it.
        if mine.filter(alive_until=row.alive_until, status__in=kind.open).update(
            alive_until=lease, status=kind.running
        ):
            row.alive_until, row.status = lease, kind.running
            return row
    return None


def held_row(kind: JobKind, row: Any) -> Any:
    """Query the row, locked for the caller's transaction, if it is still this process's."""
    rows = kind.model.objects.for_workspace(row.workspace_id).select_for_update(of=("self",))
    return rows.filter(pk=row.pk, alive_until=row.alive_until, status=kind.running)


def renewed() -> datetime:
    """Until when whoever works on a row is taken to be alive from now on."""
    return database_now() + LEASE
