"""The outbox: messages are stored with the change that they tell of, and sent after it is committed.

One process claims a message. After a failure it is sent again, with growing pauses, for about a day. A message can
arrive twice, because a process can die between sending and noting it. It then has the same id: that of its row.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import copy_context
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, TypeVar

from django.db import Error, models
from django.db.models import Count, F, Min, Q

from workspaces.database import database_now, leave_database
from workspaces.scoping import WorkspaceModel, WorkspaceQuerySet

logger = logging.getLogger(__name__)

PAUSES: Final = (5, 30, 120, 600, 1_800, 3_600, 10_800, 21_600, 43_200)
"""Seconds after the first, second, … attempt that failed."""
CLAIM_SECONDS: Final = 60
"""How long a process has for what it took; after that another may send it."""
ROUND_SECONDS: Final = 30.0
"""How long one task goes on to take messages; the next goes on from there."""

_LAST_WORD_SECONDS: Final = 10.0
"""For a claim that is just being kept when the work ends: it must not be claimed again after that."""


class Delivery(WorkspaceModel):
    """A message on its way. Its id is the message's, so that whoever gets it twice can tell."""

    class Status(models.TextChoices):
        WAITING = "waiting"
        DELIVERED = "delivered"
        GIVEN_UP = "given_up"

    status = models.CharField(max_length=10, choices=Status.choices, default=Status.WAITING)
    attempts = models.PositiveSmallIntegerField(default=0)
    next_attempt_at = models.DateTimeField()
    delivered_at = models.DateTimeField(null=True)
    last_error = models.CharField(max_length=200, blank=True)

    class Meta(WorkspaceModel.Meta):
        abstract = True


_Row = TypeVar("_Row", bound=Delivery)


@dataclass(frozen=True, slots=True)
class OutboxState:
    """How messages of one kind go."""

    waiting: int
    oldest: datetime | None
    """Since when the oldest one has been due; None: nothing waits."""
    given_up: int
    """In the last day."""
    fault: str
    """Of the newest one that is tried again or was given up."""


def state_of(rows: models.QuerySet[Any]) -> OutboxState:
    """Look at messages that are on their way, and at what was given up in the last day."""
    is_waiting = Q(status=Delivery.Status.WAITING)
    lost = Q(status=Delivery.Status.GIVEN_UP, updated_at__gte=database_now() - timedelta(days=1))
    found = rows.order_by().aggregate(
        waiting=Count("pk", filter=is_waiting),
        oldest=Min("created_at", filter=is_waiting),
        given_up=Count("pk", filter=lost),
    )
    faulty = rows.filter(is_waiting | lost).exclude(last_error="").order_by("-updated_at")
    fault = faulty.values_list("last_error", flat=True).first()
    return OutboxState(found["waiting"], found["oldest"], found["given_up"], fault or "")


def claim_rounds(claim_some: Callable[[], list[_Row]]) -> Iterator[list[_Row]]:
    """Claim again and again, for as long as one task goes on."""
    until = time.monotonic() + ROUND_SECONDS
    while time.monotonic() < until and (claimed := claim_some()):
        yield claimed


def due(model: type[_Row]) -> WorkspaceQuerySet[_Row]:
    """Messages whose time has come."""
    rows: Any = model.objects.across_workspaces().filter(
        status=Delivery.Status.WAITING, next_attempt_at__lte=database_now()
    )
    # A process died with each of their attempts: that comes to an end too.
    give_up(rows.filter(attempts__gt=len(PAUSES)))
    waiting: WorkspaceQuerySet[_Row] = rows
    return waiting


def claim(rows: Iterable[_Row], *, most: int) -> list[_Row]:
    """Take messages for this process: each by one conditional update, so that no two processes take the same."""
    until = database_now() + timedelta(seconds=CLAIM_SECONDS)
    claimed: list[_Row] = []
    for row in rows:
        mine = _same(row).filter(
            next_attempt_at=row.next_attempt_at, status=Delivery.Status.WAITING
        )
        if mine.update(next_attempt_at=until, attempts=F("attempts") + 1):
            row.attempts, row.next_attempt_at = row.attempts + 1, until
            claimed.append(row)
            if len(claimed) == most:
                break
    return claimed


def note(row: Delivery, fault: str, *, gives_up: bool = False, pause: float | None = None) -> None:
    """Note how an attempt went.

    Args:
        fault: what went wrong, in words that tell nothing of a network; "" if it was delivered.
        gives_up: whether this attempt was the last one.
        pause: seconds that the other side asked for before the next one.
    """
    now = database_now()
    row.last_error = fault[:200]
    if not fault:
        row.status, row.delivered_at = Delivery.Status.DELIVERED, now
    elif gives_up or row.attempts > len(PAUSES):
        row.status = Delivery.Status.GIVEN_UP
    else:
        seconds = max(PAUSES[row.attempts - 1], pause or 0.0)
        row.next_attempt_at = now + timedelta(seconds=seconds)
    noted = _same(row)
    if fault:
        # Given up meanwhile, or delivered by another process: that stands.
        noted = noted.filter(status=Delivery.Status.WAITING)
    noted.update(
        status=row.status,
        attempts=row.attempts,
        next_attempt_at=row.next_attempt_at,
        delivered_at=row.delivered_at,
        last_error=row.last_error,
    )


def put_off(row: Delivery, until: datetime) -> None:
    """Try a claimed message later. Nothing was sent, so this was no attempt."""
    noted = _same(row).filter(status=Delivery.Status.WAITING)
    noted.update(next_attempt_at=until, attempts=F("attempts") - 1)


def give_up(rows: WorkspaceQuerySet[Any]) -> None:
    """Send nothing more of what waits among these rows."""
    rows.filter(status=Delivery.Status.WAITING).update(status=Delivery.Status.GIVEN_UP)


def trim(model: type[Delivery], *, days: int, waiting: Q | None = None) -> int:
    """Forget messages of so many days ago, except those that wait.

    Args:
        waiting: which of those that wait are kept, if not all.
    """
    rows: Any = model.objects.across_workspaces()
    old = rows.filter(created_at__lt=database_now() - timedelta(days=days))
    kept = Q(status=Delivery.Status.WAITING)
    count: int = old.exclude(kept & waiting if waiting is not None else kept).delete()[0]
    return count


def unclaimed(now: datetime, of: str = "") -> Q:
    """Rows with a `claimed_until` that no process works on.

    Args:
        of: the way to that row, as `state__`.
    """
    return Q(**{f"{of}claimed_until": None}) | Q(**{f"{of}claimed_until__lt": now})


def claim_until(rows: models.QuerySet[Any], *, seconds: float, **changes: object) -> bool:
    """Claim the one row with a `claimed_until` among these, by one statement, so that one process gets it."""
    now = database_now()
    until = now + timedelta(seconds=seconds)
    return rows.filter(unclaimed(now)).update(claimed_until=until, **changes) == 1


@contextmanager
def claim_kept(rows: models.QuerySet[Any], *, seconds: float) -> Iterator[None]:
    """Keep a claim while the work goes on, however long that takes: no other process may begin it, too.

    Args:
        rows: the one row that was claimed.
        seconds: for how long, should this process die.
    """
    ended = threading.Event()

    def keep() -> None:
        while not ended.wait(seconds / 3):
            try:
                until = database_now() + timedelta(seconds=seconds)
                rows.filter(claimed_until__isnull=False).update(claimed_until=until)
            except Error:
                logger.warning("claim_not_kept", exc_info=True)
            finally:
                leave_database()

    keeper = threading.Thread(target=copy_context().run, args=(keep,), name="claim", daemon=True)
    keeper.start()
    try:
        yield
    finally:
        ended.set()
        keeper.join(_LAST_WORD_SECONDS)


def _same(row: Delivery) -> WorkspaceQuerySet[Any]:
    rows: WorkspaceQuerySet[Any] = type(row).objects.for_workspace(row.workspace_id)
    return rows.filter(pk=row.pk)
