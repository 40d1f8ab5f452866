"""A turn, readable from top to bottom.

The rows say what comes next; each finished step and each result is committed before the next thing
begins. So a turn may stop at any line here, and go on in another process.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from uuid import UUID

from chat.engine import steps, turns, waiting
from chat.engine.asking import ask_model
from chat.engine.attachments import read_attachments
from chat.engine.calling import call_tools
from chat.engine.context import LimitReached, read_context
from chat.engine.leases import Lease
from chat.providers.errors import ProviderError
from chat.values import TurnStatus
from workspaces.database import in_database
from workspaces.errors import DomainError, PermissionDenied

logger = logging.getLogger(__name__)


async def run_turn(lease: Lease, work: turns.Work, *, leaves: Callable[[], bool]) -> None:
    """Work on a turn until it ends or waits for a person, beginning with `work`.

    Args:
        leaves: the process is going away: give the turn back instead of beginning with the next thing.

    Raises:
        LeaseLost: another process has it now.
        asyncio.CancelledError: it was stopped, or the process is going away; the caller settles which.
    """
    try:
        while True:
            following: turns.Work | None = None
            match work:
                case turns.ReadAttachments(ids):
                    await _read(lease, ids)
                case turns.AskModel(step, opened):
                    following = await ask_model(lease, step, opened)
                case turns.CallTools(call_ids):
                    following = await call_tools(lease, call_ids)
                case turns.WaitForPeople():
                    if await in_database(waiting.park, lease):
                        return
                case turns.Complete():
                    await in_database(turns.finish, lease, TurnStatus.COMPLETED)
                    return
                case turns.TurnEnded():
                    return
            if following is None:
                following = await in_database(turns.next_work, lease)
            work = following
            if leaves() and isinstance(work, turns.AskModel | turns.CallTools):
                await in_database(steps.store_answer, lease)
                await in_database(turns.release, lease)
                return
    except ProviderError as error:
        logger.info("turn_failed", extra={"code": error.code, **error.details})
        await _fail(lease, error, can_retry=error.can_retry)
    except (LimitReached, PermissionDenied) as error:
        await _fail(lease, error, can_retry=False)


async def _read(lease: Lease, attachment_ids: Sequence[UUID]) -> None:
    reader = await in_database(read_context, lease)
    await read_attachments(lease, attachment_ids, actor=reader.actor, bud=reader.bud)
    if reader.turn.comparison is not None:
        await in_database(turns.wake_compared, reader.turn)


async def _fail(lease: Lease, error: DomainError, *, can_retry: bool) -> None:
    await in_database(
        turns.finish,
        lease,
        TurnStatus.FAILED,
        error_code=error.code,
        error_message=error.message,
        can_retry=can_retry,
    )
