"""Celery's scheduler, which goes on where the last one stopped."""

from __future__ import annotations

from typing import Any

from celery.beat import Scheduler

from workspaces.job_runs import last_begun


class JobScheduler(Scheduler):
    """Runs at once what should have run while nothing did: a machine that is off each night does its daily jobs, too.

    Celery's own keeps these times in a file, or not at all. Ours are in the database, where whoever runs a job notes it.
    """

    def setup_schedule(self) -> None:
        """Fill the schedule, and have each job at a set time count from its last run."""
        super().setup_schedule()
        entries: dict[str, Any] = self.schedule
        for name, begun_at in last_begun().items():
            if name in entries:
                entries[name].last_run_at = begun_at
