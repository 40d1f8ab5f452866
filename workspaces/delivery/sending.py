"""Sending what is due of an outbox side by side, so that whoever does not answer holds up nobody else.

Each destination gets a few messages at once, and each workspace a share of what is sent at once. Whoever is free is
sent the next message right away, while others have still to answer.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Hashable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar
from uuid import UUID

from django.db.models import F, Window
from django.db.models.functions import RowNumber

from workspaces.database import leave_database
from workspaces.delivery import outbox, webhooks
from workspaces.delivery.outbox import Delivery
from workspaces.scoping import WorkspaceQuerySet

logger = logging.getLogger(__name__)

SIDE_BY_SIDE: Final = 16
MOST_PER_WORKSPACE: Final = 8
"""Of them: one whose programs all hang leaves room for the others."""
_LOOK_SECONDS: Final = 1.0
"""After so long, messages that have become due meanwhile are looked for."""
_MOST_LOOKED_AT: Final = 128
_MOST_IN_LINE: Final = 8
"""Messages for one destination that are looked at in one go, for each that it is sent at once."""
_CRASHED: Final = "It could not be sent."

_Row = TypeVar("_Row", bound=Delivery)
Failure = webhooks.DeliveryRefused | None
Send = Callable[[webhooks.Client], Coroutine[Any, Any, Failure]]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryMethod(Generic[_Row]):
    """How messages of one kind are sent. Rows are read and written in `due`, `begin` and `note` alone."""

    due: Callable[[], WorkspaceQuerySet[_Row]]
    destination: tuple[str, ...]
    """Fields that tell where in its workspace a message goes."""
    begin: Callable[[_Row], Send | None]
    """What sends a claimed message; None: that is settled without."""
    note: Callable[[_Row, Failure], None]
    at_once: int = 1
    """To one destination."""


def send_due(way: DeliveryMethod[Any]) -> int:
    """Send what is due, for as long as one task goes on; returns how many were taken up."""
    with asyncio.Runner() as runner:
        client = runner.run(_opened())
        try:
            return _Round(way, runner, client).go_on()
        finally:
            runner.run(client.aclose())


def note(row: Delivery, failure: Failure, *, gives_up: bool = False) -> None:
    """Note in the outbox how an attempt went, and until when the other side asked to be left alone."""
    fault, pause = (failure.message, failure.retry_after) if failure else ("", None)
    outbox.note(row, fault, gives_up=gives_up, pause=pause)


async def _opened() -> webhooks.Client:
    return webhooks.client()


class _Round(Generic[_Row]):
    """One round of sending. The loop stands while rows are read and written, all on one thread."""

    def __init__(
        self, way: DeliveryMethod[_Row], runner: asyncio.Runner, client: webhooks.Client
    ) -> None:
        self._way = way
        self._runner = runner
        self._client = client
        self._until = time.monotonic() + outbox.ROUND_SECONDS
        self._tasks: dict[asyncio.Task[Failure], _Row] = {}
        self._in_line: list[_Row] = []
        self._look_at = 0.0
        self._taken = 0

    def go_on(self) -> int:
        while True:
            self._begin_some()
            if not self._tasks:
                return self._taken
            leave_database()
            for task in self._runner.run(_first_of(self._tasks)):
                self._note(self._tasks.pop(task), task)
                self._look_at = 0.0

    def _begin_some(self) -> None:
        for row in self._free():
            if not outbox.claim([row], most=1):
                continue
            self._taken += 1
            try:
                send = self._way.begin(row)
            except Exception as error:  # noqa: BLE001  one message keeps no other from being sent
                self._note_crash(row, error)
                continue
            if send is not None:
                task = self._runner.get_loop().create_task(send(self._client))
                self._tasks[task] = row

    def _free(self) -> Iterator[_Row]:
        """Messages that can be sent now, until there is no room, none is left or the time is up."""
        while time.monotonic() < self._until and len(self._tasks) < SIDE_BY_SIDE:
            row = self._next()
            if row is None:
                if time.monotonic() < self._look_at:
                    return
                self._look()
                row = self._next()
            if row is None:
                return
            yield row

    def _next(self) -> _Row | None:
        """Take the first one out of line whose destination and workspace have room."""
        places = Counter(self._place(row) for row in self._tasks.values())
        full = self._full()
        for number, row in enumerate(self._in_line):
            if places[self._place(row)] < self._way.at_once and row.workspace_id not in full:
                return self._in_line.pop(number)
        return None

    def _look(self) -> None:
        """Look for what is due. The first of each destination come before the second of any, and workspaces in turn."""
        self._look_at = time.monotonic() + _LOOK_SECONDS
        order = ["next_attempt_at", "pk"]
        place = [F("workspace_id"), *(F(name) for name in self._way.destination)]
        rows = self._way.due().annotate(
            place=Window(RowNumber(), partition_by=place, order_by=order),
            turn=Window(RowNumber(), partition_by=[F("workspace_id")], order_by=order),
        )
        near: Any = rows.filter(place__lte=_MOST_IN_LINE * self._way.at_once)
        near = near.exclude(workspace_id__in=self._full())
        self._in_line = list(near.order_by("place", "turn", *order)[:_MOST_LOOKED_AT])

    def _full(self) -> set[UUID]:
        """Workspaces that have their share."""
        busy = Counter(row.workspace_id for row in self._tasks.values())
        return {one for one, count in busy.items() if count >= MOST_PER_WORKSPACE}

    def _place(self, row: _Row) -> Hashable:
        return (row.workspace_id, *(getattr(row, name) for name in self._way.destination))

    def _note(self, row: _Row, task: asyncio.Task[Failure]) -> None:
        error = task.exception()
        if error is not None:
            self._note_crash(row, error)
            return
        try:
            self._way.note(row, task.result())
        except Exception:
            # It is sent again, with the same id; the others are noted all the same.
            logger.exception("delivery_not_noted", extra={"delivery": str(row.pk)})

    def _note_crash(self, row: _Row, error: BaseException) -> None:
        logger.error("delivery_crashed", extra={"delivery": str(row.pk)}, exc_info=error)
        outbox.note(row, _CRASHED)


async def _first_of(tasks: Iterable[asyncio.Task[Failure]]) -> set[asyncio.Task[Failure]]:
    done, _ = await asyncio.wait(tasks, timeout=_LOOK_SECONDS, return_when=asyncio.FIRST_COMPLETED)
    return done
