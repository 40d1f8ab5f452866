"""What the gate tells a turn while one of its calls runs."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager
from uuid import UUID

from django.db import transaction

from chat.engine import calls, steps, turns, waiting
from chat.engine.leases import Lease, renew
from chat.live.hub import hub
from chat.wire.events import ToolCallProgress
from mcp_servers.client.values import GateOutcome, Progress, ToolCallOutcome
from mcp_servers.gate.caller import SilentCaller, Standing
from workspaces.database import in_database


class AttachmentCaller(SilentCaller):
    """The same for a resource that is read: it has no checkpoints, and nobody watches its progress."""

    def __init__(self, lease: Lease, attachment_id: UUID) -> None:
        self._lease = lease
        self._attachment_id = attachment_id

    async def waiting(self, is_waiting: bool) -> None:
        await in_database(waiting.wait_for_reading, self._lease, self._attachment_id, is_waiting)

    def hands_over(self) -> bool:
        return self._lease.clock.is_handed_over

    def standing(self) -> Standing:
        return self._lease.standing()

    async def make_sure(self) -> None:
        await in_database(renew, self._lease)


class TurnCaller:
    """The gate's `Caller` for one call of a turn: progress to the watchers, checkpoints and waits to the rows."""

    def __init__(self, lease: Lease, call_id: UUID) -> None:
        self._lease = lease
        self._call_id = call_id
        self.shares_commits = False
        """The call's beginning and end are stored by the commits of the gate."""
        self.has_begun = False
        """The call is stored as running."""
        self.has_ended = False
        """Its end is stored."""
        self.following: turns.Work | None = None
        """What is known to follow its end."""
        self._started = time.monotonic()
        self._waits_since: float | None = None
        self._waited = 0.0
        self._order = asyncio.Lock()

    @property
    def is_waiting(self) -> bool:
        """Whether a person is being asked while the request stays open."""
        return self._waits_since is not None

    @property
    def work_ms(self) -> int:
        """Milliseconds since the call began, without the time that people took."""
        now = time.monotonic()
        waits = now - self._waits_since if self._waits_since is not None else 0.0
        return int((now - self._started - self._waited - waits) * 1000)

    def progressed(self, progress: Progress) -> None:
        event = ToolCallProgress(
            self._lease.conversation_id,
            self._call_id,
            progress.progress,
            progress.total,
            progress.message,
        )
        hub.publish(self._lease.conversation_id, [event])

    async def checkpointed(self, checkpoint: str) -> None:
        await self._begin()
        await in_database(waiting.keep_checkpoint, self._lease, self._call_id, checkpoint)

    async def waiting(self, is_waiting: bool) -> None:
        """Told again for each further question, and once when none is open any more."""
        await self._begin()
        async with self._order:
            if is_waiting:
                if self._waits_since is None:
                    self._waits_since = time.monotonic()
                await in_database(waiting.wait_in_place, self._lease, self._call_id)
                return
            if self._waits_since is not None:
                self._waited += time.monotonic() - self._waits_since
                self._waits_since = None
            await in_database(waiting.go_on_in_place, self._lease, self._call_id)

    async def held_up(self) -> None:
        await in_database(steps.store_answer, self._lease)

    async def _begin(self) -> None:
        """Before the call waits for anybody, it runs."""
        if self.shares_commits and not self.has_begun:
            await in_database(steps.store_answer, self._lease)
            await in_database(calls.start_call, self._lease, self._call_id)
            self.has_begun = True

    @contextmanager
    def letting_through(self) -> Iterator[None]:
        if not self.shares_commits or self.has_begun:
            with transaction.atomic():
                yield
            return
        unstored = self._lease.carried.unstored
        with (
            steps.answering_and_calling(self._lease, unstored)
            if unstored is not None
            else calls.starting_call(self._lease, self._call_id)
        ):
            yield
        self.has_begun = True

    @contextmanager
    def ending(self, outcome: GateOutcome) -> Iterator[None]:
        if not self.shares_commits:
            with transaction.atomic():
                yield
            return
        assert isinstance(outcome, ToolCallOutcome)
        following = calls.ending_call(self._lease, self._call_id, outcome, work_ms=self.work_ms)
        with following as work:
            yield
        self.has_ended, self.following = True, work

    def hands_over(self) -> bool:
        """The turn is not stopped, but taken up by another process."""
        return self._lease.clock.is_handed_over

    def standing(self) -> Standing:
        return self._lease.standing()

    async def make_sure(self) -> None:
        await in_database(renew, self._lease)
