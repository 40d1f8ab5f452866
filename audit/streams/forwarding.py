"""Sending what is sealed: streams side by side, each in order, within a bounded time.

The cursor moves only after the sink's yes. A process that dies between the two sends the batch again; sinks tell by `uid`.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from typing import Final
from uuid import UUID

from audit.models import PLATFORM_CHAIN, AuditStream, StreamState
from audit.streams import claims
from audit.streams.building import sink_of
from audit.streams.events import StreamedEntry, event_for_test
from audit.streams.reading import Batch, chains_to_send, current_heads, cursors_of, next_batch
from audit.streams.sinks import SEND_SECONDS, Sink, SinkReceipt
from workspaces.database import database_now, is_unavailable, leave_database, wait_for
from workspaces.delivery.webhooks import DeliveryRefused
from workspaces.errors import DomainError

logger = logging.getLogger(__name__)

ROUND_SECONDS: Final = 20.0
"""How long one task goes on to take batches; the next goes on from there."""
MOST_STREAMS: Final = 32
_LOOK_SECONDS: Final = 5.0
"""After so long, streams that have something to send by now are looked for."""
_CRASHED: Final = "It could not be sent."


@dataclass(slots=True, eq=False)
class _Sending:
    stream: AuditStream
    claim: UUID
    sink: Sink
    chains: list[UUID] = field(default_factory=list)
    batch: Batch | None = None


def send_due(*, seconds: float = ROUND_SECONDS) -> int:
    """Send for every stream that is due; returns how many entries were confirmed."""
    until = time.monotonic() + seconds
    wanted = _waiting(MOST_STREAMS)
    if not wanted:
        return 0
    with asyncio.Runner() as runner:
        return _send_all(runner, wanted, until)


def _waiting(most: int) -> list[AuditStream]:
    """Streams that are due and have something to send: others must not keep them from their turn."""
    waiting = (s for s in claims.due_streams() if chains_to_send(current_heads(s), cursors_of(s)))
    return list(islice(waiting, most))


def send_test(stream: AuditStream) -> str:
    """Send one event that tells of nothing and wait for the answer; what went wrong, or ""."""
    try:
        sink = sink_of(stream)
    except DomainError as error:
        return error.message

    async def send() -> str:
        try:
            await _send(sink, [event_for_test(stream.workspace_id or PLATFORM_CHAIN)])
        except DeliveryRefused as error:
            return error.message
        finally:
            await sink.aclose()
        return ""

    answer = wait_for(send)
    if not answer:
        # It answers: what waits need not wait out its pause.
        StreamState.objects.filter(stream=stream).update(next_attempt_at=database_now())
    return answer


def _send_all(runner: asyncio.Runner, streams: Iterable[AuditStream], until: float) -> int:
    """Rows are read and written here, on one thread; meanwhile the loop stands, and sockets wait."""
    tasks: dict[asyncio.Task[SinkReceipt], _Sending] = {}
    confirmed = 0
    looked_at = time.monotonic()
    try:
        _take_on(runner, tasks, streams)
        while tasks:
            leave_database()
            for task in runner.run(_first_of(tasks)):
                one = tasks.pop(task)
                with _letting_go(runner, tasks, one):
                    if _note(one, task):
                        confirmed += len(one.batch.events) if one.batch else 0
                        if time.monotonic() < until:
                            _go_on(runner, tasks, one)
            now = time.monotonic()
            if looked_at + _LOOK_SECONDS < now < until:
                # While some sinks do not answer, others have more to be sent.
                looked_at = now
                _take_on(runner, tasks, _waiting(MOST_STREAMS - len(tasks)))
    finally:
        for one in tasks.values():
            _let_go(runner, one)
    return confirmed


def _take_on(
    runner: asyncio.Runner,
    tasks: dict[asyncio.Task[SinkReceipt], _Sending],
    streams: Iterable[AuditStream],
) -> None:
    for stream in streams:
        if (one := _take(stream)) is not None:
            with _letting_go(runner, tasks, one):
                _go_on(runner, tasks, one)


@contextmanager
def _letting_go(
    runner: asyncio.Runner, tasks: dict[asyncio.Task[SinkReceipt], _Sending], one: _Sending
) -> Iterator[None]:
    """Let a stream go at once if nothing is under way for it any more, however long others take."""
    try:
        yield
    finally:
        if one not in tasks.values():
            _let_go(runner, one)


def _let_go(runner: asyncio.Runner, one: _Sending) -> None:
    runner.run(one.sink.aclose())
    claims.release(one.stream, one.claim)


async def _first_of(tasks: Iterable[asyncio.Task[SinkReceipt]]) -> set[asyncio.Task[SinkReceipt]]:
    done, _ = await asyncio.wait(tasks, timeout=_LOOK_SECONDS, return_when=asyncio.FIRST_COMPLETED)
    return done


def _take(stream: AuditStream) -> _Sending | None:
    mine = claims.claim(stream)
    if mine is None:
        return None
    try:
        return _Sending(stream=stream, claim=mine, sink=sink_of(stream))
    except Exception as error:  # noqa: BLE001 - whatever is wrong with one stream, the others go on
        _fail(stream, mine, error)
        claims.release(stream, mine)
        return None


def _go_on(
    runner: asyncio.Runner, tasks: dict[asyncio.Task[SinkReceipt], _Sending], one: _Sending
) -> None:
    """Begin with the next batch, if there is one and the stream is still ours."""
    try:
        _begin_next(runner, tasks, one)
    except Exception as error:  # noqa: BLE001  as said there
        _fail_alone(one, error)


def _begin_next(
    runner: asyncio.Runner, tasks: dict[asyncio.Task[SinkReceipt], _Sending], one: _Sending
) -> None:
    while claims.renew(one.stream, one.claim):
        one.batch = _next_of(one)
        if one.batch is None:
            return
        if one.batch.events:
            tasks[runner.get_loop().create_task(_send(one.sink, one.batch.events))] = one
            return
        claims.note_taken(
            one.stream,
            one.claim,
            chain_id=one.batch.chain_id,
            upto=one.batch.upto,
            sent=0,
            refused=0,
        )


def _next_of(one: _Sending) -> Batch | None:
    """A batch of the next chain in turn: none holds up the others."""
    if not one.chains:
        one.chains = chains_to_send(current_heads(one.stream), cursors_of(one.stream))
    while one.chains:
        batch = next_batch(one.stream, one.chains.pop(0))
        if batch is not None:
            return batch
    return None


async def _send(sink: Sink, events: list[StreamedEntry]) -> SinkReceipt:
    try:
        async with asyncio.timeout(SEND_SECONDS):
            return await sink.send(events)
    except TimeoutError as error:
        raise DeliveryRefused("There was no answer in time.") from error


def _note(one: _Sending, task: asyncio.Task[SinkReceipt]) -> bool:
    """Note how a batch went; whether to go on with the stream."""
    assert one.batch is not None
    error = task.exception()
    if error is not None:
        _fail(one.stream, one.claim, error)
        return False
    sent = len(one.batch.events)
    try:
        return claims.note_taken(
            one.stream,
            one.claim,
            chain_id=one.batch.chain_id,
            upto=one.batch.upto,
            sent=sent,
            # Whatever a sink says, it refused no more than it was sent.
            refused=min(task.result().refused, sent),
        )
    except Exception as fault:  # noqa: BLE001  as said there
        _fail_alone(one, fault)
        return False


def _fail_alone(one: _Sending, error: Exception) -> None:
    """What is wrong with one stream's entries or notes is its trouble alone; a database that is away is everybody's."""
    if is_unavailable(error):
        raise error
    _fail(one.stream, one.claim, error)


def _fail(stream: AuditStream, claim: UUID, error: BaseException) -> None:
    """Note what went wrong, and pause."""
    message, pause = _CRASHED, None
    if isinstance(error, DomainError):
        message = error.message
    if isinstance(error, DeliveryRefused):
        message, pause = error.message, error.retry_after
    if message == _CRASHED:
        logger.error("stream_crashed", extra={"stream": str(stream.pk)}, exc_info=error)
    else:
        logger.warning("stream_failed", extra={"stream": str(stream.pk), "why": message})
    claims.note_failure(stream, claim, message=message, retry_after=pause)
