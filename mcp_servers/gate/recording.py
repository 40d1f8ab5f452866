"""Writing *requested* in time and *finished* in any case.

What cannot be committed within COMMIT_SECONDS is refused: nothing is sent, however the commit ends. What has
happened and cannot be committed goes to the spool, and its result to nobody.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Any, Final, NoReturn, TypeVar

from django.db import DatabaseError

from audit.errors import AuditUnavailable
from audit.services import EntryDraft
from audit.services.spool import spool
from mcp_servers.client.errors import OutcomeNotRecorded
from workspaces.database import in_database

logger = logging.getLogger(__name__)

T = TypeVar("T")

COMMIT_SECONDS: Final = 2.0
_ENTRY_ATTEMPTS: Final = 3
_ENTRY_PAUSE_SECONDS: Final = 0.3


class CommitClock:
    """Counts from when a thread begins to commit; the waiting side reads it, and tells the thread when that took too long."""

    def __init__(self) -> None:
        self._began: float | None = None
        self._is_late = False

    def begin(self) -> None:
        """In the thread: from now on the time counts. What came before has its own limits."""
        self._began = time.monotonic()

    def check(self) -> None:
        """In the thread, just before the commit.

        Raises:
            AuditUnavailable: nobody waits any more.
        """
        if self._is_late:
            raise AuditUnavailable

    def seconds_left(self) -> float:
        """At most so long nobody has to look at it again; 0 from when the time is up."""
        if self._began is None:
            return COMMIT_SECONDS
        left = max(0.0, self._began + COMMIT_SECONDS - time.monotonic())
        self._is_late = not left
        return left


async def completed(work: Awaitable[T]) -> tuple[T, bool]:
    """Await something to its end, however often the caller is cancelled; whether that happened.

    What has begun to be written has to be known as written or not, or a stopped call would stay open in the log.
    """
    task = asyncio.ensure_future(work)
    was_cancelled = False
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            if task.cancelled():
                raise
            was_cancelled = True
        except Exception:  # noqa: BLE001  result() below raises it
            break
    return task.result(), was_cancelled


async def completed_in_time(work: Awaitable[T], clock: CommitClock) -> tuple[T, bool]:
    """As completed(), for as long as the clock allows.

    Raises:
        AuditUnavailable: the commit takes too long. It may still succeed; a refusal that is entered later closes it.
    """
    task = asyncio.ensure_future(work)
    was_cancelled = False
    # The thread wakes nobody when it begins: whoever looks in time sees when it will be too late.
    while not task.done() and (left := clock.seconds_left()):
        try:
            await asyncio.wait({task}, timeout=left)
        except asyncio.CancelledError:
            was_cancelled = True
    if task.done():
        return task.result(), was_cancelled
    task.add_done_callback(_forget)
    raise AuditUnavailable


def _forget(task: asyncio.Future[Any]) -> None:
    """Nobody waits for its result or its error any more."""
    if not task.cancelled():
        task.exception()


async def keep_refusal(draft: EntryDraft, error: AuditUnavailable) -> NoReturn:
    """Keep for later that a call was refused because the log could not be written.

    Raises:
        AuditUnavailable: always.
    """
    await completed(asyncio.to_thread(spool, draft))
    raise error


async def record_end(write: Callable[[bool], object], spare: Callable[[], EntryDraft]) -> None:
    """Write how something ended; tried again for a moment, then kept in the spool.

    Args:
        write: in a thread with the database; told whether it is tried again, for a commit that seemed to fail may
            have succeeded.
        spare: what is kept if the database does not take it.

    Raises:
        OutcomeNotRecorded: it is not in the database, so nobody is given the result.
    """
    for attempt in range(1, _ENTRY_ATTEMPTS + 1):
        try:
            await in_database(write, attempt > 1)
        except (AuditUnavailable, DatabaseError) as error:
            if attempt == _ENTRY_ATTEMPTS:
                logger.exception("the end of a call could not be recorded")
                await asyncio.to_thread(spool, spare())
                raise OutcomeNotRecorded from error
            await asyncio.sleep(_ENTRY_PAUSE_SECONDS * attempt)
        else:
            return
