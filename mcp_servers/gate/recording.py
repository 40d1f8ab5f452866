"""Writing *requested* in time and *finished* in any case.

What cannot be committed within COMMIT_SECONDS is refused: nothing is sent, however the commit ends. What has
happened and cannot be committed goes to the spool, and its result to nobody.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any, Final, NoReturn, TypeVar

from django.db import DatabaseError

from audit.errors import AuditUnavailable
from audit.services import EntryDraft
from audit.spool import spool
from mcp_servers.client.errors import OutcomeNotRecorded
from workspaces.database import in_database

logger = logging.getLogger(__name__)

T = TypeVar("T")

COMMIT_SECONDS: Final = 2.0
_ENTRY_ATTEMPTS: Final = 3
_ENTRY_PAUSE_SECONDS: Final = 0.3


class CommitClock:
    """Tells the waiting side when a thread begins to commit, and the thread when that took too long."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._began = asyncio.Event()
        self._is_late = False

    def begin(self) -> None:
        """In the thread: from now on the time counts. What came before has its own limits."""
        self._loop.call_soon_threadsafe(self._began.set)

    def check(self) -> None:
        """In the thread, just before the commit.

        Raises:
            AuditUnavailable: nobody waits any more.
        """
        if self._is_late:
            raise AuditUnavailable

    async def run_out(self) -> None:
        """Wait until the time is up."""
        await self._began.wait()
        await asyncio.sleep(COMMIT_SECONDS)
        self._is_late = True


async def completed(work: Coroutine[Any, Any, T]) -> tuple[T, bool]:
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


async def completed_in_time(work: Coroutine[Any, Any, T], clock: CommitClock) -> tuple[T, bool]:
    """As completed(), for as long as the clock allows.

    Raises:
        AuditUnavailable: the commit takes too long. It may still succeed; a refusal that is entered later closes it.
    """
    task = asyncio.ensure_future(work)
    limit = asyncio.ensure_future(clock.run_out())
    was_cancelled = False
    try:
        while not task.done() and not limit.done():
            try:
                await asyncio.wait({task, limit}, return_when=asyncio.FIRST_COMPLETED)
            except asyncio.CancelledError:
                was_cancelled = True
    finally:
        limit.cancel()
    if task.done():
        return task.result(), was_cancelled
    task.add_done_callback(_forget)
    raise AuditUnavailable


def _forget(task: asyncio.Task[Any]) -> None:
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
