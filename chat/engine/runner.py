"""The turns of this process: started, renewed, stopped, taken over from the dead, and handed back when it ends.

Turns run on the connections' loop thread, so that they work alike in a server, in a task worker
and in a terminal command. Everything here may be called from any thread.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import logging
import random
import time
import weakref
from dataclasses import dataclass, field
from enum import StrEnum
from uuid import UUID

from django.db import InterfaceError, OperationalError

from chat.engine import dead_processes, leases, turns
from chat.engine.leases import Lease, LeaseLost, Orphan, Orphanage
from chat.engine.loop import run_turn
from chat.engine.observing import turn_observed
from chat.models import Message
from chat.values import TurnStatus
from mcp_servers.client.connections import runtime
from mcp_servers.gate.caller import Standing
from workspaces.database import in_database
from workspaces.database.row_security import reach_of, set_reach
from workspaces.errors import NotFound
from workspaces.process.failpoints import Failpoint, failpoint
from workspaces.process.outages import LastingOutage
from workspaces.process.shutdown import is_shutting_down
from workspaces.secrets import SecretUnreadable

logger = logging.getLogger(__name__)

MOST_TURNS = 500
"""In one process; further ones wait in their rows for a free process."""
WATCH_SECONDS = 5.0
"""About how often each process looks for turns that nobody works on."""
_outage = LastingOutage(logger, begins="orphans_not_looked_for", ends="orphans_looked_for_again")
HAND_BACK_SECONDS = 3.0
"""How long a turn that is cut off may take to be given back."""
_AWAY = (OperationalError, InterfaceError)
"""The database is gone, or was for a moment: nothing is wrong with the turn."""
_UNREADABLE = (
    "Something stored for this answer can no longer be read, because the encryption key that protected it is gone. "
    "Ask again. If that fails, too, whoever runs Trellis can put the key back."
)


class _Reason(StrEnum):
    STOP = "stop"
    SHUTDOWN = "shutdown"
    LEASE_LOST = "lease_lost"


@dataclass(slots=True)
class _Running:
    task: asyncio.Task[None]
    lease: Lease | None = None
    reason: _Reason | None = None
    begun_at: float = field(default_factory=time.monotonic)
    is_wanted_again: bool = False
    """Somebody woke it while it ran: it may be about to park, so look again when it has."""


Taken = tuple[Lease, turns.Work]
"""A turn that is ours, and what to do first."""

_running: dict[UUID, _Running] = {}
_runtimes_drained: set[int] = set()
_orphanage = Orphanage()


def wake(turn_id: UUID, workspace_id: UUID) -> None:
    """Take a turn that is ready, unless somebody else does. A process that goes away leaves it to the others."""
    if not is_shutting_down():
        _loop().call_soon_threadsafe(_start, turn_id, workspace_id)


def can_take() -> bool:
    """Whether this process can work on another turn."""
    return len(_running) < MOST_TURNS and not is_shutting_down()


def start(lease: Lease, answer: Message | None) -> None:
    """Work on a turn that was taken when it was stored, and whose answer has been opened."""
    taken = lease, turns.AskModel(0, answer)
    _loop().call_soon_threadsafe(_begin, lease.turn_id, lease.workspace_id, taken)


def stop(turn_id: UUID) -> None:
    """Cancel a turn if it runs here; in another process its holder reads the row."""
    runtime.current().loop.call_soon_threadsafe(_cancel, turn_id, _Reason.STOP)


def watch_for_orphans() -> None:
    """From now on, take over what other processes leave behind, for as long as this one lives."""
    loop = _loop()
    loop.call_soon_threadsafe(lambda: _watches.append(loop.create_task(_watch())))


_watches: list[asyncio.Task[None]] = []


def recover() -> int:
    """Take over turns that nobody works on; returns how many were found."""
    orphans = _find_orphans()
    for orphan in orphans:
        wake(orphan.turn_id, orphan.workspace_id)
    return len(orphans)


def _find_orphans(limit: int = leases.MOST_ORPHANS) -> list[Orphan]:
    dead_processes.free_turns_of_the_dead()
    return _orphanage.look(limit)


def conversations() -> set[UUID]:
    """Those that a turn of this process speaks in."""
    return {one.lease.conversation_id for one in _running.values() if one.lease is not None}


async def hand_over(seconds: float) -> None:
    """Give the steps under way this long to end, then give every turn back for others to take at once.

    From any loop. A process that is shutting down begins no further step, and takes no turn.
    """
    if _runtimes_drained and runtime.is_running():
        await runtime.run(_hand_over(seconds))


async def _hand_over(seconds: float) -> None:
    tasks = [running.task for running in _running.values()]
    if tasks and seconds > 0:
        await asyncio.wait(tasks, timeout=seconds)
    await _hand_back_all()


def _loop() -> asyncio.AbstractEventLoop:
    loop_thread = runtime.current()
    if id(loop_thread) not in _runtimes_drained:
        _runtimes_drained.add(id(loop_thread))
        loop_thread.closers.append(_hand_back_all)
    return loop_thread.loop


def _start(turn_id: UUID, workspace_id: UUID) -> None:
    if turn_id in _running:
        _running[turn_id].is_wanted_again = True
        return
    if len(_running) >= MOST_TURNS or is_shutting_down():
        return
    _begin(turn_id, workspace_id, None)


def _begin(turn_id: UUID, workspace_id: UUID, taken: Taken | None) -> None:
    work = _work(turn_id, workspace_id) if taken is None else _work_on(*taken)
    task = asyncio.get_running_loop().create_task(work)
    _running[turn_id] = _Running(task, lease=taken[0] if taken is not None else None)
    task.add_done_callback(lambda _: _ended(turn_id, workspace_id))
    _keep_leases()


def _ended(turn_id: UUID, workspace_id: UUID) -> None:
    running = _running.pop(turn_id, None)
    if running is not None and running.is_wanted_again and running.reason is not _Reason.SHUTDOWN:
        _start(turn_id, workspace_id)


def _cancel(turn_id: UUID, reason: _Reason) -> None:
    running = _running.get(turn_id)
    if running is not None and running.reason is None:
        running.reason = reason
        if running.lease is not None:
            running.lease.clock.is_handed_over = reason is not _Reason.STOP
        running.task.cancel()


async def _work(turn_id: UUID, workspace_id: UUID) -> None:
    set_reach(reach_of([workspace_id]))
    taking = asyncio.ensure_future(in_database(turns.take, turn_id, workspace_id))
    try:
        taken = await asyncio.shield(taking)
    except asyncio.CancelledError:
        # It is taken all the same, and must not stand there held by nobody.
        with contextlib.suppress(*_AWAY):
            taken = await taking
            if taken is not None:
                await _settle(taken[0], _running[turn_id].reason)
        return
    except _AWAY:
        logger.warning("turn_not_taken", extra={"turn": str(turn_id)})
        return  # whoever looks for orphans finds it
    if taken is None:
        return
    _running[turn_id].lease = taken[0]
    await _work_on(*taken)


async def _work_on(lease: Lease, work: turns.Work) -> None:
    """Work on a turn that this process has taken."""
    turn_id = lease.turn_id
    set_reach(reach_of([lease.workspace_id]))
    failpoint(Failpoint.TAKE_AFTER_COMMIT)
    try:
        with turn_observed(lease):
            await run_turn(lease, work, leaves=is_shutting_down)
    except (LeaseLost, NotFound):
        logger.info("turn_left_to_others", extra={"turn": str(turn_id)})
    except asyncio.CancelledError:
        await asyncio.shield(_settle(lease, _running[turn_id].reason))
    except _AWAY:
        logger.warning("turn_interrupted", extra={"turn": str(turn_id)}, exc_info=True)
        await _give_back(lease)
    except Exception as error:
        # Never a hung turn: what nobody foresaw ends it in plain words, and the log has the rest.
        logger.exception("turn_crashed", extra={"turn": str(turn_id)})
        await _crash(lease, error)
    finally:
        # What a turn has read may be large, and some still hold its lease for a while.
        lease.carried.past = None


_keepers: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Task[None]] = (
    weakref.WeakKeyDictionary()
)


def _keep_leases() -> None:
    """Have the leases of all turns that run here renewed together, as long as one runs."""
    loop = asyncio.get_running_loop()
    keeper = _keepers.get(loop)
    if keeper is None or keeper.done():
        # In a context of its own: it works for all of them, not for the first.
        _keepers[loop] = loop.create_task(_keep(), context=contextvars.Context())


async def _keep() -> None:
    """Renew the leases; notice stops that were asked for elsewhere."""
    while True:
        await asyncio.sleep(leases.RENEW_SECONDS)
        # Those that have only just been taken last for long, and most turns end before.
        young = time.monotonic() - leases.RENEW_SECONDS
        held = [
            one.lease
            for one in _running.values()
            if one.lease is not None and one.begun_at <= young
        ]
        if not held:
            if not _running:
                return
            continue
        try:
            renewed = await in_database(leases.renew_all, held)
        except Exception:  # noqa: BLE001
            # The database is away: the leases run out by themselves if that lasts.
            logger.warning("leases_not_renewed", extra={"turns": len(held)})
            continue
        for lease in renewed.lost:
            _cancel_held(lease, _Reason.LEASE_LOST)
        for lease in renewed.stopping:
            _cancel_held(lease, _Reason.STOP)


def _cancel_held(lease: Lease, reason: _Reason) -> None:
    """Cancel a turn, unless it has ended meanwhile, or is held anew."""
    running = _running.get(lease.turn_id)
    if running is not None and running.lease is lease:
        _cancel(lease.turn_id, reason)


async def _watch() -> None:
    """Look for orphans at once, then now and then, each process at moments of its own."""
    while True:
        room = MOST_TURNS - len(_running)
        if room > 0 and not is_shutting_down():
            try:
                for orphan in await in_database(_find_orphans, min(room, leases.MOST_ORPHANS)):
                    _start(orphan.turn_id, orphan.workspace_id)
                _outage.is_over()
            except Exception as error:  # noqa: BLE001
                _outage.note(error)
        await asyncio.sleep(WATCH_SECONDS * random.uniform(0.7, 1.3))  # noqa: S311 - no secret


async def _settle(lease: Lease, reason: _Reason | None) -> None:
    """What becomes of a cancelled turn."""
    with contextlib.suppress(LeaseLost, NotFound):
        if reason is _Reason.STOP:
            await in_database(turns.finish, lease, TurnStatus.CANCELLED, can_retry=True)
        elif reason is not _Reason.LEASE_LOST:
            await in_database(turns.release, lease)


async def _give_back(lease: Lease) -> None:
    """Release a turn that the database broke off, as soon as it answers again; then it is taken anew."""
    pause = 0.25
    while lease.standing() is Standing.OURS:
        try:
            await in_database(turns.release, lease)
        except (LeaseLost, NotFound):
            return
        except Exception:  # noqa: BLE001
            await asyncio.sleep(pause)
            pause = min(pause * 2, 4.0)
        else:
            if lease.turn_id in _running:
                _running[lease.turn_id].is_wanted_again = True
            return
    # The lease runs out, and another process takes the turn over.
    logger.warning("turn_not_given_back", extra={"turn": str(lease.turn_id)})


async def _crash(lease: Lease, error: Exception) -> None:
    code, message = "internal_error", "Something went wrong on our side. It has been logged."
    if isinstance(error, SecretUnreadable):  # such as how far a call had come
        code, message = error.code, _UNREADABLE
    try:
        await in_database(
            turns.finish,
            lease,
            TurnStatus.FAILED,
            error_code=code,
            error_message=message,
            can_retry=True,
        )
    except Exception:  # noqa: BLE001
        # The database is away: the lease runs out, and another process takes the turn over.
        logger.warning("turn_not_settled", extra={"turn": str(lease.turn_id)})


async def _hand_back_all() -> None:
    """The process ends: give every turn back."""
    tasks = [running.task for running in _running.values()]
    for turn_id in list(_running):
        _cancel(turn_id, _Reason.SHUTDOWN)
    if tasks:
        await asyncio.wait(tasks, timeout=HAND_BACK_SECONDS)
    # Nothing runs on this loop any more, also where a task's last callback did not get its turn.
    _running.clear()
