"""Tells `workspaces.jobs.job_runs` of each run of a job that runs by itself."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from celery.signals import task_postrun, task_prerun

from workspaces.process.schedules import JOBS

_began: Final[dict[str, datetime]] = {}


@task_prerun.connect
def _begin(task_id: str = "", task: Any = None, **_kwargs: Any) -> None:
    # One that is called in the middle of something else is no run of its own.
    if task.name in JOBS and not task.request.is_eager:
        from workspaces.jobs.job_runs import runs

        _began[task_id] = runs.begin(task.name)


@task_postrun.connect
def _end(
    task_id: str = "", task: Any = None, retval: Any = None, state: str = "", **_kwargs: Any
) -> None:
    started_at = _began.pop(task_id, None)
    if started_at is not None:
        from workspaces.jobs.job_runs import runs

        error = retval if state == "FAILURE" and isinstance(retval, BaseException) else None
        runs.end(task.name, started_at, worker=str(task.request.hostname), error=error)
