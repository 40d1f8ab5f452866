"""A thread of each process that seals what waits and signs where the chains stand. One at a time does; the others wait."""

from __future__ import annotations

import logging
import os
import platform
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

from django.db import DatabaseError, close_old_connections, connection, connections

from audit import outside_writes, trigger_check
from audit.actions import Action
from audit.errors import AuditUnavailable
from audit.models import AuditCheckpoint
from audit.proof import marks
from audit.proof.signing import SigningKeyMissing
from audit.sealing.checkpoints import due_in, make_checkpoint, was_unsigned_since
from audit.sealing.checkpoints import is_due as checkpoint_is_due
from audit.sealing.rotation import newest_checkpoint
from audit.sealing.sealer import seal_pending
from audit.services import EntryDraft, record, spool, unsealed_writes
from workspaces.actors import Actor, Source
from workspaces.database import drop_dead_connections, is_unavailable
from workspaces.database.row_security import everywhere

logger = logging.getLogger(__name__)

_WAITING = """
SELECT EXISTS (SELECT 1 FROM "audit_pendingseal")
    OR EXISTS (SELECT 1 FROM "audit_outsidewrite")
    OR EXISTS (SELECT 1 FROM "audit_audithead" WHERE "seq" <> "stated_seq")
"""
ROUND_SECONDS = 1.0
REST_SECONDS = 5.0
"""How often the database is asked whether anything waits that this process has not written itself."""
TELL_SECONDS = 600.0
"""How often the log says again what still goes wrong in each round."""
_MOST_PAUSE_SECONDS = 10.0
_MOST_BATCHES = 1_000
_lock = threading.Lock()
_thread: SealingThread | None = None


class LastingFaults:
    """Which faults go on from round to round: each is a line of the log when it begins, and now and then while it lasts."""

    def __init__(self) -> None:
        self._since: dict[tuple[str, str], float] = {}

    def is_news(self, step: str, fault: Exception) -> bool:
        """Whether a fault is to be told: it has begun, is another one, or was told long ago."""
        what, now = (step, f"{type(fault).__name__} {fault}"), time.monotonic()
        if what in self._since and now < self._since[what] + TELL_SECONDS:
            return False
        self.is_over(step)
        self._since[what] = now
        return True

    def is_over(self, step: str) -> None:
        """The step has worked."""
        self._since = {what: at for what, at in self._since.items() if what[0] != step}

    def clear(self) -> None:
        """Forget all."""
        self._since.clear()


lasting = LastingFaults()


class SealingThread(threading.Thread):
    """Goes round until it is stopped; whatever fails, it goes on trying."""

    def __init__(self) -> None:
        super().__init__(name="audit-sealer", daemon=True)
        self._stopping = threading.Event()
        self._rests_until = 0.0
        """Until then there is nothing to sign, unless something is written."""
        self._asked_at = 0.0

    @everywhere()
    def run(self) -> None:
        """Seal, sign, pause."""
        has_begun = False
        pause = ROUND_SECONDS
        while not self._stopping.wait(0 if not has_begun else pause):
            try:
                close_old_connections()
                if not has_begun:
                    look_at_key()
                    note_process(Action.LOG_STARTED)
                    look_at_triggers()
                    has_begun = True
                if self._rests_until <= time.monotonic() or self._something_waits():
                    go_round()
                    self._rests_until = time.monotonic() + due_in()
                else:
                    _try(spool.replay)
                pause = ROUND_SECONDS
                lasting.is_over("round")
            except Exception as error:
                pause = min(pause * 2, _MOST_PAUSE_SECONDS)
                if lasting.is_news("round", error):
                    has_traceback = not isinstance(error, DatabaseError)
                    logger.warning("audit_not_sealed", exc_info=has_traceback)
                drop_dead_connections()
                if not has_begun and self._stopping.wait(pause):
                    break
            finally:
                close_old_connections()
        connections.close_all()

    def _something_waits(self) -> bool:
        """Whether a round has work: asked at once after this process has written, else now and then."""
        now = time.monotonic()
        if not unsealed_writes.take() and now < self._asked_at + REST_SECONDS:
            return False
        self._asked_at = now
        return something_waits()

    def stop(self) -> None:
        """Let the round under way come to its end, and no other begin."""
        self._stopping.set()


def start() -> None:
    """From now on seal in this process."""
    global _thread
    with _lock:
        if _thread is None:
            _thread = SealingThread()
            _thread.start()


@everywhere()
def stop(seconds: float = 2.0) -> None:
    """Say that the log stops here, seal everything, and sign the end."""
    global _thread
    with _lock:
        thread, _thread = _thread, None
    if thread is None:
        return
    thread.stop()
    thread.join(seconds)
    try:
        note_process(Action.LOG_STOPPED)
        if not marks.states_other_key():
            seal_all()
            make_checkpoint(AuditCheckpoint.Kind.END)
    except (DatabaseError, AuditUnavailable, SigningKeyMissing, OSError):
        logger.warning("audit_end_not_signed", exc_info=True)
    finally:
        connections.close_all()


def something_waits() -> bool:
    """Whether anything was written that a round has to deal with: one statement, asked all the time."""
    with connection.cursor() as cursor:
        cursor.execute(_WAITING)
        return bool(cursor.fetchone()[0])


def go_round() -> None:
    """Enter what was spooled and what was written past the services, seal what waits, and sign if it is time.

    A process with another TRELLIS_AUDIT_KEY does none of it: it would refuse what others wrote, and they what it writes.
    """
    if marks.states_other_key():
        return
    _try(spool.replay)
    _try(outside_writes.sweep)
    seal_all()
    if checkpoint_is_due():
        sign_if_due()


def sign_if_due() -> None:
    """Sign where the chains stand; a missing key is told, and tried again in the next round."""
    try:
        make_checkpoint(only_if_due=True)
    except SigningKeyMissing as error:
        if lasting.is_news("sign", error):
            logger.critical("audit_signing_key_missing", extra={"key": error.key_id})
        _note_unsigned(error.key_id)
    except OSError as error:
        if lasting.is_news("sign", error):
            logger.exception("audit_checkpoint_file_not_written")
    else:
        lasting.is_over("sign")


def _try(step: Callable[[], object]) -> None:
    """Whatever keeps one step from working must not keep the log from being sealed."""
    name = step.__qualname__
    try:
        step()
        lasting.is_over(name)
    except Exception as error:
        cause = error.__cause__ if isinstance(error, AuditUnavailable) else error
        if is_unavailable(cause):
            raise  # then nothing else works either, and the round is tried again after a pause
        if lasting.is_news(name, error):
            logger.exception("a step of the log's round failed", extra={"step": name})


def seal_all() -> int:
    """Seal until nothing waits or another process is at it; how many entries that were."""
    sealed = 0
    for _ in range(_MOST_BATCHES):
        batch = seal_pending()
        sealed += batch.sealed
        if batch.is_elsewhere or not batch.sealed + batch.skipped:
            break
    return sealed


def _note_unsigned(key_id: str) -> None:
    """Enter that nothing can be signed, once since the newest statement; the next one will say from when on.

    Raises:
        AuditUnavailable: it could not be written.
    """
    newest = newest_checkpoint()
    if newest is not None and not was_unsigned_since(newest):
        record(
            EntryDraft(
                action=Action.LOG_UNSIGNED,
                actor=Actor.system(label="audit log", source=Source.TASK, workspace_id=None),
                workspace_id=None,
                details={"missing_key": key_id, "newest_checkpoint": newest.number},
            )
        )


def look_at_key() -> None:
    """Say at the start if this process writes what no other one takes for the log's."""
    if marks.states_other_key():
        logger.critical("audit_key_is_another", extra={"advice": marks.PUT_BACK})


def look_at_triggers() -> None:
    """Raise the alarm if the triggers under the log are not those that Trellis made.

    Raises:
        AuditUnavailable: it could not be written.
    """
    faults = trigger_check.find_faults()
    if not faults:
        return
    logger.critical("audit_triggers_changed", extra={"faults": faults})
    record(
        EntryDraft(
            action=Action.LOG_UNGUARDED,
            actor=Actor.system(label="audit log", source=Source.TASK, workspace_id=None),
            workspace_id=None,
            details={"faults": faults},
        )
    )


def note_process(action: Action) -> None:
    """Enter that the log began or ended in this process.

    Raises:
        AuditUnavailable: it could not be written.
    """
    record(
        EntryDraft(
            action=action,
            actor=Actor.system(label="audit log", source=Source.TASK, workspace_id=None),
            workspace_id=None,
            details={
                "host": platform.node(),
                "process": os.getpid(),
                "program": Path(sys.argv[0]).name,
            },
        )
    )
