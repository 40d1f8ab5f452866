"""Celery's scheduler, which goes on where the last one stopped, and hands out nothing that nobody takes."""

from __future__ import annotations

import logging
import math
import time
from typing import Any, Final

from celery.beat import Scheduler

from config.workers.queues import read_queue
from workspaces.jobs.job_runs import last_begun
from workspaces.process.schedules import JOBS

logger = logging.getLogger(__name__)

MOST_WAITING: Final = 200
"""Jobs that run every few seconds are not handed out while so many tasks wait. They would be out of date first."""
LOOK_SECONDS: Final = 5.0


class JobScheduler(Scheduler):
    """Runs at once what should have run while nothing did: a machine that is off each night does its daily jobs, too.

    Celery's own keeps these times in a file, or not at all. Ours are in the database, where whoever runs a job notes it.

    A task that has run out stays in the queue until a worker takes it. With no worker, jobs would fill Redis by 130 MB
    a day.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._looked_at = -math.inf
        self._is_full = False
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
            super().apply_entry(entry, producer=producer)

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
