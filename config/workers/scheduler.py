"""Celery's scheduler, which goes on where the last one stopped, and hands out nothing that nobody takes."""

from __future__ import annotations

import logging
import math
import time
from typing import Any, Final

from celery.beat import Scheduler, SchedulingError
from kombu.exceptions import OperationalError

from config.workers.queues import read_queue
from workspaces.jobs.job_runs import last_begun
from workspaces.process.outages import LastingOutage
from workspaces.process.schedules import JOBS

logger = logging.getLogger(__name__)

MOST_WAITING: Final = 200
"""Jobs that run every few seconds are not handed out while so many tasks wait. They would be out of date first."""
LOOK_SECONDS: Final = 5.0
REST_SECONDS: Final = 600.0
"""After which a job is tried again that could not be handed out while others could."""
_outage = LastingOutage(logger, begins="jobs_not_handed_out", ends="jobs_handed_out_again")


class JobScheduler(Scheduler):
    """Runs at once what should have run while nothing did: a machine that is off each night does its daily jobs, too.

    Celery's own keeps these times in a file, or not at all. Ours are in the database, where whoever runs a job notes it.

    A task that has run out stays in the queue until a worker takes it. With no worker, jobs would fill Redis by 130 MB
    a day.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._looked_at = -math.inf
        self._is_full = False
        self._missed: dict[str, Any] = {}
        """Name of a job → when it last ran before Redis was away."""
        self._refused_at: dict[str, float] = {}
        """Name of a job → when it was last refused for another reason. The first time does not count."""
        super().__init__(*args, **kwargs)

    def setup_schedule(self) -> None:
        """Fill the schedule, and have each job at a set time count from its last run."""
        super().setup_schedule()
        entries: dict[str, Any] = self.schedule
        for name, begun_at in last_begun().items():
            if name in entries:
                entries[name].last_run_at = begun_at

    def apply_entry(self, entry: Any, producer: Any = None) -> None:
        """Hand a job out that is due, unless the next run of it makes up for this one and nobody takes tasks."""
        job = JOBS.get(entry.task)
        if job is None or job.is_rare or not self._is_queue_full():
            self._hand_out(entry, producer)

    def _hand_out(self, entry: Any, producer: Any) -> None:
        """As Celery's own, which writes three tracebacks for each job while Redis is away."""
        try:
            self.apply_async(entry, producer=producer, advance=False)
        except SchedulingError as error:
            if JOBS[entry.task].is_rare:
                self._missed[entry.name] = entry.last_run_at
            if isinstance(error.__context__, OperationalError):
                _outage.note(error.__context__)
            else:
                is_again = entry.name in self._refused_at
                self._refused_at[entry.name] = time.monotonic() if is_again else -math.inf
                logger.exception("job_not_handed_out", extra={"job": entry.task})
        else:
            _outage.is_over()
            self._refused_at.pop(entry.name, None)
            self._make_up()

    def _make_up(self) -> None:
        """Have what runs rarely be due again if its time came while nothing could be handed out."""
        ready = [name for name in self._missed if not self._rests(name)]
        if not ready:
            return
        entries: dict[str, Any] = self.schedule
        for name in ready:
            entries[name].last_run_at = self._missed.pop(name)
        self._heap = None  # the order of what comes next is made anew

    def _rests(self, name: str) -> bool:
        """Whether a job was refused again, and lately: it may be at fault itself, while others are handed out."""
        return time.monotonic() - self._refused_at.get(name, -math.inf) < REST_SECONDS

    def _is_queue_full(self) -> bool:
        now = time.monotonic()
        if now - self._looked_at < LOOK_SECONDS:
            return self._is_full
        self._looked_at = now
        was_full, self._is_full = self._is_full, _is_long()
        if self._is_full != was_full:
            event = "jobs_held_back" if self._is_full else "jobs_handed_out_again"
            logger.warning(event)
        return self._is_full


def _is_long() -> bool:
    try:
        return read_queue().tasks >= MOST_WAITING
    except Exception:  # noqa: BLE001 - whatever its library raises: Celery finds out, and tries again
        return False
