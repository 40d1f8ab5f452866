"""The one road through the gate: admit, commit *requested*, carry out, commit *finished*."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial

from django.conf import settings
from django.utils.translation import override

from audit.actions import Outcome, RefusedBy
from audit.errors import AuditUnavailable
from mcp_servers.client.errors import Busy, CallTakenOver, InputMissing
from mcp_servers.gate.operation import NotYet, Operation, Out
from mcp_servers.gate.outcomes import since
from mcp_servers.gate.recording import (
    CommitClock,
    completed,
    completed_in_time,
    keep_refusal,
    record_end,
)
from workspaces.database import in_database, start_in_database
from workspaces.words.formats import written_for


async def pass_through(
    operation: Operation[Out],
    carry_out: Callable[[], Awaitable[Out]],
    *,
    readmit: Callable[[], Awaitable[None]] | None = None,
) -> Out:
    """Take an operation that has begun through the gate.

    What the log and the model read of it is in the platform's language, whoever asks.

    Args:
        readmit: instead of the admission, for one that goes on from a checkpoint: *requested* stands already.

    Raises:
        AuditUnavailable: it could not be recorded; nothing was done, or nothing is given away.
        And whatever the operation's admission refuses.
    """
    with override(settings.LANGUAGE_CODE), written_for(None):
        return await _take_through(operation, carry_out, readmit)


async def _take_through(
    operation: Operation[Out],
    carry_out: Callable[[], Awaitable[Out]],
    readmit: Callable[[], Awaitable[None]] | None,
) -> Out:
    try:
        if readmit is not None:
            await readmit()
        elif (known := await _admit(operation)) is not None:
            return known
        started = time.monotonic()
        try:
            outcome = await carry_out()
        except (InputMissing, CallTakenOver):
            raise
        except asyncio.CancelledError:
            if operation.has_checkpoint and operation.caller.hands_over():
                raise  # another process goes on from there
            # Stop cancels this task, and the ledger still has to learn how it ended.
            await completed(_record_stopped(operation, since(started), only_if_open=True))
            await completed(operation.withdraw())
            raise
        _, was_cancelled = await completed(_record_end(operation, outcome))
        if operation.has_asked:
            await completed(operation.withdraw())
        if was_cancelled or operation.was_cancelled:
            raise asyncio.CancelledError
        return outcome
    finally:
        operation.give_slot_back()


async def _admit(operation: Operation[Out]) -> Out | None:
    """Let it through: afterwards *requested* is committed, and a slot is held. Gives the outcome if that is known."""
    met: set[type[Exception]] = set()
    try:
        while True:
            try:
                clock = CommitClock()
                work = start_in_database(_prepare_and_commit, operation, clock)
                known, was_cancelled = await completed_in_time(work, clock)
                if not operation.is_committed and not was_cancelled:
                    await operation.caller.held_up()
                    await take_slot(operation)
                    clock = CommitClock()
                    commit = start_in_database(operation.commit_requested, clock)
                    _, was_cancelled = await completed_in_time(commit, clock)
                break
            except (CallTakenOver, NotYet) as obstacle:
                await operation.make_way(obstacle, is_again=type(obstacle) in met)
                met.add(type(obstacle))
    except AuditUnavailable as error:
        await keep_refusal(operation.draft_unrecorded(), error)
    if was_cancelled:
        if operation.is_committed and known is None:
            await completed(_record_stopped(operation, None))
        raise asyncio.CancelledError
    return known


def _prepare_and_commit(operation: Operation[Out], clock: CommitClock) -> Out | None:
    """In one crossing, as long as nobody has to wait for a slot."""
    operation.admit()
    known = operation.find_known()
    if known is not None:
        operation.commit_requested(clock, is_sent=False)
        operation.write_finished(known)
    elif operation.slot is None or operation.slot.try_take():
        operation.commit_requested(clock)
    return known


async def take_slot(operation: Operation[Out]) -> None:
    """Wait for a slot; a refusal if there is none in time."""
    started = time.monotonic()
    try:
        await operation.take_slot()
    except Busy as error:
        await in_database(operation.refuse, error, RefusedBy.BUSY, "server.busy")
    operation.queue_ms = since(started)


async def _record_stopped(
    operation: Operation[Out], took_ms: int | None, *, only_if_open: bool = False
) -> None:
    when = " before it was sent" if took_ms is None else ""
    stopped = operation.ended(Outcome.CANCELLED, f"The {operation.word} was stopped{when}.")
    stopped = replace(stopped, duration_ms=took_ms or 0)
    operation.is_stopped = True
    await _record_end(operation, stopped, only_if_open=only_if_open)


async def _record_end(
    operation: Operation[Out], outcome: Out, *, only_if_open: bool = False
) -> None:
    """Write *finished*; tried again for a moment, because it has happened and the ledger must learn of it.

    Args:
        only_if_open: another process may have recorded the end already.

    Raises:
        OutcomeNotRecorded: it could not be written.
    """
    await record_end(
        lambda is_again: operation.write_end(outcome, is_again=is_again, only_if_open=only_if_open),
        spare=partial(operation.draft_finished, outcome),
    )
