"""How the jobs of the background are: when each ran, how it went, when it runs next, and who runs them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from django.conf import settings
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from audit.actions import Action
from audit.services import EntryDraft, record
from config.workers.queues import QueueBacklog, read_queue, write_to_redis
from config.workers.redis_faults import find_redis_fault
from config.workers.task_modules import load_tasks
from workspaces.database import database_now
from workspaces.errors import Conflict, NotFound
from workspaces.jobs.backup_notes import BACKUP
from workspaces.jobs.installation import JobFault
from workspaces.jobs.job_runs import failures_in_a_day
from workspaces.models import BackgroundJob, InstalledVersion, WorkerSeen
from workspaces.process.schedules import DAY, HOUR, JOBS, WEEK, ScheduledJob
from workspaces.words.formats import decimal, moment_and_zone, whole

if TYPE_CHECKING:
    from config.faults import Fault
    from workspaces.actors import Actor

ALIVE: Final = timedelta(minutes=3)
"""Workers note themselves each half minute, as they run jobs that run every few seconds."""
MOST_WORKERS: Final = 50
_STARTING: Final = timedelta(minutes=2)
"""What a start takes. The scheduler leaves out what fell into it, and so it is not late."""
_SLACK: Final = timedelta(minutes=2)
_HOURLY_SLACK: Final = timedelta(minutes=15)
_DAILY_SLACK: Final = timedelta(days=2)
"""A night or two may be missed before somebody has to look."""


class JobState(StrEnum):
    """How a job is."""

    OK = "ok"
    RUNNING = "running"
    WAITING = "waiting"
    LATE = "late"
    FAILED = "failed"


_PRESSING: Final = {JobState.FAILED: -3, JobState.LATE: -2, JobState.RUNNING: -1}


@dataclass(frozen=True, slots=True, kw_only=True)
class JobReport:
    """One job, as far as its runs are known."""

    name: str
    what: str
    often: str
    state: JobState
    started_at: datetime | None
    ended_at: datetime | None
    """Of the last run that ended."""
    seconds: float | None
    """How long that run took."""
    next_at: datetime | None
    """None: nobody runs jobs."""
    failures: int
    """In the last 24 hours."""
    failed_at: datetime | None
    fault: str
    """Why the last run that failed did so, in words; empty: none did within a day."""
    error: str
    """The kind of its exception."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Worker:
    """Somebody who runs jobs, or did until lately."""

    name: str
    since: datetime
    seen_at: datetime
    version: str
    is_alive: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class JobsReport:
    """What one look found. The most pressing jobs stand first."""

    jobs: list[JobReport]
    workers: list[Worker]
    queue: QueueBacklog | None
    """None: it does not answer, or refuses."""
    has_begun: bool
    """Whether jobs have had the time to run; not so in the first minutes of an installation."""
    problem: str
    """Why no job runs, and what to do; empty: they run."""

    @property
    def waiting(self) -> int | None:
        """Tasks that no worker has taken; None: the queue is not known."""
        return self.queue.tasks if self.queue else None

    @property
    def waiting_since(self) -> datetime | None:
        """When the oldest of them was handed out; None: none waits, or the queue is not known."""
        return self.queue.since if self.queue else None

    @property
    def alive(self) -> int:
        """Workers that have spoken lately."""
        return sum(one.is_alive for one in self.workers)

    def number(self, *states: JobState) -> int:
        """How many jobs are in one of these states."""
        return sum(one.state in states for one in self.jobs)

    @property
    def failed(self) -> int:
        """Jobs whose last run failed."""
        return self.number(JobState.FAILED)

    @property
    def late(self) -> int:
        """Jobs that should have run."""
        return self.number(JobState.LATE)

    @property
    def failures(self) -> int:
        """Runs that failed in the last 24 hours."""
        return sum(one.failures for one in self.jobs)


def read_jobs() -> JobsReport:
    """Look once. Without Redis or a worker the report says so."""
    now = database_now()
    rows = {row.pk: row for row in BackgroundJob.objects.exclude(pk=BACKUP)}
    for row in rows.values():  # a clock that was ahead has noted what is still to come
        row.started_at = min(row.started_at, now) if row.started_at else None
        row.ended_at = min(row.ended_at, now) if row.ended_at else None
    workers = [
        Worker(
            name=row.name,
            since=row.since,
            seen_at=row.seen_at,
            version=row.version,
            is_alive=abs(now - row.seen_at) < ALIVE,
        )
        for row in WorkerSeen.objects.order_by("-seen_at")[:MOST_WORKERS]
    ]
    newest = InstalledVersion.objects.order_by("-id").first()
    # Nothing was due before somebody was there to do it: the machine may have been off, or asleep.
    awake = min((one.since for one in workers if one.is_alive), default=None)
    known = awake or (newest.since if newest else None)
    queue = _waiting()
    jobs = [
        _report(job, rows.get(job.name), known=known, now=now, is_run=awake is not None)
        for job in all_jobs().values()
    ]
    jobs.sort(key=lambda one: (_PRESSING.get(one.state, 0), JOBS[one.name].period, one.what))
    has_begun = bool(rows) or (known is not None and now - known > ALIVE)
    return JobsReport(
        jobs=jobs,
        workers=workers,
        queue=queue,
        has_begun=has_begun,
        problem="" if awake else _problem(workers, queue, has_begun=has_begun),
    )


def all_jobs() -> dict[str, ScheduledJob]:
    """Every job that runs by itself, by the name of its task."""
    load_tasks()
    return JOBS


def run_now(name: str, *, actor: Actor) -> ScheduledJob:
    """Hand a job to the workers, beside its own times. Each of them looks for what is due, so that is safe at any time.

    Raises:
        NotFound: there is no such job, or it is not for this person.
        Conflict: the queue does not take it.
    """
    from celery import current_app
    from kombu.exceptions import OperationalError
    from redis import RedisError

    job = all_jobs().get(name)
    if job is None or not actor.is_superuser:
        raise NotFound(_("Job not found."))
    if fault := _fault_of_redis():  # Celery would try for longer than a person waits
        raise _not_started(fault)
    _record(Action.JOB_STARTED, job, actor)
    try:
        current_app.send_task(name, expires=HOUR.total_seconds(), retry=False)
    except (OperationalError, RedisError, OSError) as error:
        # The entry before it says that the job was started.
        _record(Action.JOB_NOT_STARTED, job, actor, fault=type(error).__name__)
        raise _not_started(find_redis_fault(error.__cause__ or error)) from error
    return job


def _not_started(fault: Fault) -> Conflict:
    message = _("The job was not started, because Redis %(fault)s. %(advice)s Then try again.")
    return Conflict(message % {"fault": _(fault.text), "advice": _(fault.advice)})


def _record(action: Action, job: ScheduledJob, actor: Actor, **more: str) -> None:
    details = {"job": job.name, "what": str(job.what), **more}
    record(EntryDraft(action=action, actor=actor, workspace_id=None, details=details))


def _report(
    job: ScheduledJob,
    row: BackgroundJob | None,
    *,
    known: datetime | None,
    now: datetime,
    is_run: bool,
) -> JobReport:
    row = row or BackgroundJob(name=job.name)
    base = max((at for at in (row.started_at, known) if at), default=None)
    due = job.next_after(base) if base else None
    started = max((at for at in (base, known + _STARTING if known else None) if at), default=None)
    missed = job.next_after(started) + _slack(job) if started else None
    failures = failures_in_a_day(row, now)
    return JobReport(
        name=job.name,
        what=str(job.what),
        often=_often(job),
        state=_state(row, missed=missed, now=now),
        started_at=row.started_at,
        ended_at=row.ended_at,
        seconds=row.seconds,
        next_at=_next(job, due, now) if is_run else None,
        failures=failures,
        failed_at=row.failed_at if failures else None,
        fault=str(JobFault(row.fault).label) if failures and row.fault else "",
        error=row.error if failures else "",
    )


def _state(row: BackgroundJob, *, missed: datetime | None, now: datetime) -> JobState:
    if missed is not None and now > missed:
        return JobState.LATE
    ended = [at for at in (row.ended_at, row.failed_at) if at]
    if row.started_at and row.started_at > max(ended, default=row.started_at - DAY):
        return JobState.RUNNING
    if row.failed_at and row.failed_at == max(ended):
        return JobState.FAILED
    return JobState.OK if row.ended_at else JobState.WAITING


def _slack(job: ScheduledJob) -> timedelta:
    if job.period >= DAY:
        return _DAILY_SLACK
    return _SLACK + min(job.period, _HOURLY_SLACK)


def _next(job: ScheduledJob, due: datetime | None, now: datetime) -> datetime:
    """The first time that is not over; of jobs that run often, not every run is known."""
    if due is None or job.is_rare:
        return due if due is not None and due > now else job.next_after(now)
    behind = max(timedelta(), now - due)
    return due + -(-behind // job.period) * job.period


def _often(job: ScheduledJob) -> str:
    period = job.period
    if period == HOUR:
        return _("every hour")
    if period == DAY:
        return _("every day")
    if period == WEEK:
        return _("every week")
    seconds = int(period.total_seconds())
    if seconds % 60:
        return ngettext("every second", "every %(number)s seconds", seconds) % {
            "number": whole(seconds)
        }
    minutes = seconds // 60
    return ngettext("every minute", "every %(number)s minutes", minutes) % {
        "number": whole(minutes)
    }


def duration(seconds: float | None) -> str:
    """How long a run took, for people."""
    if seconds is None:
        return ""
    if seconds < 1:
        return _("%(number)s ms") % {"number": whole(seconds * 1000)}
    if seconds < 120:
        return _("%(number)s s") % {"number": decimal(seconds, 1)}
    return _("%(number)s min") % {"number": decimal(seconds / 60, 1)}


def _waiting() -> QueueBacklog | None:
    import redis

    try:
        return read_queue()
    except (redis.RedisError, OSError):
        return None


def _fault_of_redis() -> Fault | None:
    """What keeps tasks from being handed out; None: nothing of Redis, or there is none."""
    import redis

    if settings.TRELLIS.redis_url is None:
        return None
    try:
        read_queue()
        write_to_redis()
    except (redis.RedisError, OSError) as error:
        return find_redis_fault(error)
    return None


def _problem(workers: Sequence[Worker], queue: QueueBacklog | None, *, has_begun: bool) -> str:
    if not has_begun:
        return _("No job has run yet. The first ones run within a minute.")
    sentences = [
        _("No job has run since %(time)s.") % {"time": moment_and_zone(workers[0].seen_at)}
        if workers
        else _("No job has run lately.")
    ]
    if fault := _fault_of_redis():
        words = _("Redis %(fault)s, so no job is handed out. %(advice)s")
        sentences.append(words % {"fault": _(fault.text), "advice": _(fault.advice)})
    elif queue is not None and queue.tasks:
        tasks = ngettext(
            "%(number)s task waits, and no worker takes it. Start a worker.",
            "%(number)s tasks wait, and no worker takes them. Start a worker.",
            queue.tasks,
        )
        sentences.append(tasks % {"number": whole(queue.tasks)})
    else:
        sentences.append(_("Check that the scheduler (celery beat) and a worker run."))
    return " ".join(sentences)
