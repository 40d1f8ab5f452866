"""Noting when background jobs ran and how it went, by whoever runs them.

Jobs run every few seconds, so runs that went well are kept in memory and written together, every half minute. What failed,
and what runs at most once an hour, is written at once. A job never fails because its run could not be noted.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from django.db import Error, transaction
from django.utils import timezone

from workspaces.database import database_now, is_unavailable, leave_database
from workspaces.database.row_security import everywhere
from workspaces.jobs.installation import BackgroundJob, InstalledVersion, JobFault, WorkerSeen
from workspaces.process.schedules import DAY, JOBS
from workspaces.product import VERSION

logger = logging.getLogger(__name__)

NOTED_EVERY: Final = 30.0
"""Seconds for which runs that went well wait to be written."""
AWAY: Final = timedelta(minutes=10)
"""A worker that was silent for so long was stopped, or its machine slept."""
_AHEAD: Final = timedelta(minutes=10)
"""What is noted as so far in the future was noted by a wrong clock."""
_SAME: Final = timedelta(seconds=1)
_TIME: Final = frozenset({"TimeoutError", "SoftTimeLimitExceeded", "TimeLimitExceeded"})
_NETWORK: Final = ("redis", "kombu", "httpx2", "httpcore2", "smtplib", "ssl", "socket")
"""Packages whose exceptions come from elsewhere."""


@dataclass(frozen=True, slots=True)
class _Ran:
    started_at: datetime
    ended_at: datetime
    is_by_database: bool = False
    """By its clock, and not by this machine's."""


class JobRuns:
    """What one process knows of the jobs it ran, until it is written."""

    def __init__(self, *, noted_every: float = NOTED_EVERY) -> None:
        self._every = noted_every
        self._process_began = timezone.now()
        self._lock = threading.Lock()
        self._ended: dict[str, _Ran] = {}
        self._noted_at = -math.inf
        self._noted: set[str] = set()
        """Jobs of which a run was written; the first one of each is not waited for."""

    def begin(self, name: str) -> datetime:
        """Note that a job begins; gives when. One that runs rarely is seen to be at work."""
        now = timezone.now()
        if JOBS[name].is_rare:
            _try(
                lambda: BackgroundJob.objects.update_or_create(
                    pk=name, defaults={"started_at": now - _ahead_of_database()}
                )
            )
        return now

    def end(
        self, name: str, started_at: datetime, *, worker: str, error: BaseException | None = None
    ) -> None:
        """Note that a job has ended.

        Args:
            worker: who ran it, as Celery names it.
            error: why it failed; None: it went well.
        """
        ran = _Ran(started_at, timezone.now())
        if error is not None:

            def store() -> None:
                nonlocal ran
                # Once for both: whether the newest run failed is seen by its end.
                ran = _by_database(ran, _ahead_of_database())
                _store_failure(name, ran, error)

            _try(store)
        with self._lock:
            self._ended[name] = ran
            is_time = time.monotonic() - self._noted_at >= self._every
            if not (is_time or JOBS[name].is_rare or name not in self._noted):
                return
            self._noted.add(name)
            ended, self._ended = self._ended, {}
            self._noted_at = time.monotonic()
        _try(lambda: _store(ended, worker, self._process_began))


def last_begun() -> dict[str, datetime]:
    """When each job that runs at set times began last; for one that never ran, since when there is an installation.

    Nothing while the database is away.
    """
    try:
        with everywhere():
            begun = dict(BackgroundJob.objects.values_list("pk", "started_at"))
            first = InstalledVersion.objects.order_by("id").first()
    except Error:
        logger.warning("last_runs_not_read", exc_info=True)
        return {}
    finally:
        leave_database()
    since = first.since if first is not None else None
    # A clock that was ahead has noted runs that are still to come. Their jobs would rest until then.
    now = timezone.now()
    begun = {name: min(at, now) for name, at in begun.items() if at is not None}
    found = {name: begun.get(name) or since for name, job in JOBS.items() if job.is_rare}
    return {name: at for name, at in found.items() if at is not None}


def failures_in_a_day(job: BackgroundJob, now: datetime) -> int:
    """How many runs of a job failed in the last 24 hours, to the hour."""
    return sum(_of_last_day(job.failures, now).values())


def _try(store: Callable[[], object]) -> None:
    try:
        with everywhere():
            store()
    except Error as error:
        # The next run is noted again; what is wrong with the database is told elsewhere.
        level = logging.INFO if is_unavailable(error) else logging.WARNING
        logger.log(level, "job_run_not_noted", exc_info=True)


def _ahead_of_database() -> timedelta:
    """How far this machine's clock is ahead of the database's; none where that is no more than asking takes.

    Machines' clocks may differ. All notes are by the database's, so that they can be compared.
    """
    ahead = timezone.now() - database_now()
    return ahead if abs(ahead) > _SAME else timedelta()


def _by_database(ran: _Ran, ahead: timedelta) -> _Ran:
    if ran.is_by_database:
        return ran
    return _Ran(ran.started_at - ahead, ran.ended_at - ahead, is_by_database=True)


def _store(ended: dict[str, _Ran], worker: str, process_began: datetime) -> None:
    with transaction.atomic():
        ahead = _ahead_of_database()
        now = timezone.now() - ahead
        ended = {name: _by_database(ran, ahead) for name, ran in ended.items()}
        # In one order, so that no two workers wait for each other.
        held = BackgroundJob.objects.select_for_update().filter(pk__in=ended).order_by("pk")
        known = {row.pk: row for row in held}
        newer = []
        for name, ran in sorted(ended.items()):
            row = known.get(name) or BackgroundJob(name=name)
            begun_at = row.started_at or ran.started_at
            if row.ended_at is None or row.ended_at < ran.ended_at or row.ended_at > now + _AHEAD:
                row.started_at = (
                    ran.started_at if begun_at > now + _AHEAD else max(ran.started_at, begun_at)
                )
                row.ended_at = ran.ended_at
                row.seconds = (ran.ended_at - ran.started_at).total_seconds()
                newer.append(row)
        BackgroundJob.objects.bulk_create(
            newer,
            update_conflicts=True,
            unique_fields=["name"],
            update_fields=["started_at", "ended_at", "seconds"],
        )
        _note_worker(worker, now, process_began - ahead)


def _note_worker(name: str, now: datetime, process_began: datetime) -> None:
    seen = WorkerSeen.objects.filter(pk=name).first()
    is_back = seen is None or now - seen.seen_at > AWAY or seen.seen_at < process_began
    values: dict[str, object] = {"seen_at": now, "version": VERSION}
    if is_back:
        values["since"] = now
    WorkerSeen.objects.update_or_create(pk=name, defaults=values)
    WorkerSeen.objects.filter(seen_at__lt=now - DAY).delete()


def _store_failure(name: str, ran: _Ran, error: BaseException) -> None:
    with transaction.atomic():
        BackgroundJob.objects.get_or_create(pk=name)
        row = BackgroundJob.objects.select_for_update().get(pk=name)
        failures = _of_last_day(row.failures, ran.ended_at)
        hour = _hour_of(ran.ended_at)
        row.failures = {**failures, hour: failures.get(hour, 0) + 1}
        row.failed_at = ran.ended_at
        row.fault = fault_of(error).value
        row.error = type(error).__name__[:100]
        row.save(update_fields=["failures", "failed_at", "fault", "error"])


def fault_of(error: BaseException) -> JobFault:
    """Say in general why a job failed."""
    package = type(error).__module__.partition(".")[0]
    if isinstance(error, Error):
        return JobFault.DATABASE
    if type(error).__name__ in _TIME:
        return JobFault.TIME
    if package in _NETWORK or isinstance(error, ConnectionError):
        return JobFault.NETWORK
    return JobFault.DISK if isinstance(error, OSError) else JobFault.UNEXPECTED


def _of_last_day(failures: dict[str, int], now: datetime) -> dict[str, int]:
    since = _hour_of(now - DAY)
    return {hour: number for hour, number in failures.items() if hour > since}


def _hour_of(at: datetime) -> str:
    """By which failures are counted: "2026-11-27T08"."""
    return at.astimezone(UTC).isoformat(timespec="hours").partition("+")[0]


runs: Final = JobRuns()
"""This process's."""
