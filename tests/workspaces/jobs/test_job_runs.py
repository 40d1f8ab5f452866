"""Runs of background jobs are noted by whoever runs them."""

from __future__ import annotations

import smtplib
from datetime import datetime, timedelta
from typing import Any

import pytest
from celery.contrib.testing.worker import start_worker
from celery.signals import task_postrun, worker_process_init
from django.db import DatabaseError, OperationalError, connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from config.celery import app
from config.workers.task_modules import load_tasks
from workspaces.jobs import job_runs
from workspaces.jobs.installation import JobFault
from workspaces.jobs.job_runs import JobRuns, failures_in_a_day, fault_of
from workspaces.models import BackgroundJob, WorkerSeen
from workspaces.product import VERSION

pytestmark = [pytest.mark.django_db, pytest.mark.both_engines]

OFTEN = "audit.tasks.count_entries"
ALSO_OFTEN = "chat.tasks.recover_turns"
RARELY = "workspaces.tasks.clear_sessions"
WORKER = "celery@here"


@pytest.fixture(autouse=True)
def _as_in_a_worker() -> None:
    load_tasks()


def run(runs: JobRuns, name: str, error: BaseException | None = None) -> None:
    runs.end(name, runs.begin(name), worker=WORKER, error=error)


def started(row: BackgroundJob) -> datetime:
    assert row.started_at is not None
    return row.started_at


def ended(row: BackgroundJob) -> datetime:
    assert row.ended_at is not None
    return row.ended_at


def test_runs_that_went_well_are_written_together() -> None:
    """REL-1201: those that come every few seconds take no statement each."""
    runs = JobRuns()
    for name in (OFTEN, ALSO_OFTEN):  # the first ones of a process are written
        run(runs, name)
    with CaptureQueriesContext(connection) as asked:
        for _ in range(10):
            run(runs, OFTEN)
            run(runs, ALSO_OFTEN)
    assert not asked.captured_queries
    first = BackgroundJob.objects.get(pk=OFTEN)
    runs._noted_at -= job_runs.NOTED_EVERY
    run(runs, OFTEN)
    rows = {row.pk: row for row in BackgroundJob.objects.all()}
    assert set(rows) == {OFTEN, ALSO_OFTEN}
    assert ended(rows[OFTEN]) > ended(first)
    assert rows[OFTEN].seconds is not None
    assert WorkerSeen.objects.get().version == VERSION


def test_a_rare_job_is_seen_at_work_and_noted_at_once() -> None:
    """REL-1201: it may take hours, and is not run again within half a minute."""
    runs = JobRuns()
    run(runs, OFTEN)
    started_at = runs.begin(RARELY)
    row = BackgroundJob.objects.get(pk=RARELY)
    assert (row.started_at, row.ended_at) == (started_at, None)
    runs.end(RARELY, started_at, worker=WORKER)
    row.refresh_from_db()
    assert ended(row) >= started(row) == started_at


def test_a_run_that_failed_under_a_wrong_clock_has_one_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """REL-1201: whether the newest run failed is seen by that, and no two looks at two clocks say the same."""
    ahead = iter(timedelta(seconds=number) for number in (30, 29, 28, 27))
    monkeypatch.setattr(job_runs, "_ahead_of_database", lambda: next(ahead))
    run(JobRuns(), OFTEN, OperationalError())
    row = BackgroundJob.objects.get()
    assert row.failed_at == row.ended_at


def test_a_failure_is_noted_at_once_and_counted_by_the_hour() -> None:
    """REL-1201, SEC-586: its kind alone; what the exception says may quote an address with a password."""
    runs = JobRuns()
    run(runs, OFTEN)
    for _ in range(3):
        run(runs, OFTEN, OperationalError("postgres://user:password@db"))
    row = BackgroundJob.objects.get()
    assert (row.fault, row.error) == (JobFault.DATABASE, "OperationalError")
    assert failures_in_a_day(row, timezone.now()) == 3
    assert failures_in_a_day(row, timezone.now() + timedelta(hours=25)) == 0
    assert "password" not in str(vars(row))
    # Hours that are over go with the next failure, so the row stays small.
    BackgroundJob.objects.update(failures={"2020-01-01T00": 7})
    run(runs, OFTEN, OperationalError())
    row.refresh_from_db()
    assert list(row.failures.values()) == [1]


def test_an_older_run_never_takes_the_place_of_a_newer_one() -> None:
    """REL-1201: another worker may have kept it in memory for a while."""
    slow, quick = JobRuns(), JobRuns()
    slow._noted.add(OFTEN)
    started_at = slow.begin(OFTEN) - timedelta(seconds=5)
    slow._noted_at = float("inf")
    slow.end(OFTEN, started_at, worker="celery@slow")
    run(quick, OFTEN)
    newer = BackgroundJob.objects.get()
    slow._noted_at = float("-inf")
    with slow._lock:
        kept = dict(slow._ended)
    job_runs._store(kept, "celery@slow", timezone.now())
    row = BackgroundJob.objects.get()
    assert (row.started_at, row.ended_at) == (newer.started_at, newer.ended_at)


def test_a_run_that_cannot_be_noted_does_no_harm(monkeypatch: pytest.MonkeyPatch) -> None:
    """REL-1201: the job itself went well, or has its own failure."""

    def refuse(*_: Any, **__: Any) -> None:
        raise DatabaseError("full")

    runs = JobRuns()
    monkeypatch.setattr(BackgroundJob.objects, "update_or_create", refuse)
    monkeypatch.setattr(BackgroundJob.objects, "get_or_create", refuse)
    monkeypatch.setattr(job_runs, "_store", refuse)
    run(runs, RARELY)
    run(runs, OFTEN, ValueError())
    assert not BackgroundJob.objects.exists()


def test_a_worker_that_was_away_begins_anew_and_one_that_is_gone_goes() -> None:
    """REL-1208: since when it has been there tells what it could have run."""
    long_ago = timezone.now() - timedelta(hours=5)
    WorkerSeen.objects.create(name=WORKER, since=long_ago, seen_at=long_ago, version="0.0.9")
    WorkerSeen.objects.create(
        name="celery@gone", since=long_ago, seen_at=timezone.now() - timedelta(days=2), version="0"
    )
    runs = JobRuns(noted_every=0)
    run(runs, OFTEN)
    row = WorkerSeen.objects.get()
    assert (row.name, row.version) == (WORKER, VERSION)
    assert row.since > long_ago
    run(runs, OFTEN)
    again = WorkerSeen.objects.get()
    assert again.since == row.since
    assert again.seen_at > row.seen_at


def test_a_worker_that_was_off_for_a_moment_is_there_since_its_process_began() -> None:
    """REL-2885: after five minutes off, jobs that run every other minute were late until they had run."""
    run(JobRuns(), OFTEN)
    before = WorkerSeen.objects.get()
    run(JobRuns(), OFTEN)
    assert WorkerSeen.objects.get().since > before.seen_at


@pytest.mark.parametrize(
    ("error", "fault"),
    [
        (OperationalError(), JobFault.DATABASE),
        (TimeoutError(), JobFault.TIME),
        (ConnectionRefusedError(), JobFault.NETWORK),
        (smtplib.SMTPException(), JobFault.NETWORK),
        (FileNotFoundError(), JobFault.DISK),
        (ValueError(), JobFault.UNEXPECTED),
    ],
)
def test_failures_are_told_in_words(error: BaseException, fault: JobFault) -> None:
    """SEC-586: a few kinds, with words of ours."""
    assert fault_of(error) is fault


@pytest.mark.django_db(transaction=True)
def test_a_real_worker_notes_what_it_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """REL-1201: from the queue, with the worker's name; what a test calls itself is no run.

    REL-2352: it does not talk to other workers, so nothing of that fails with Redis.
    """
    import threading

    from workspaces.tasks import trim_idempotency_keys

    name = "workspaces.tasks.trim_idempotency_keys"
    trim_idempotency_keys.apply()
    assert not BackgroundJob.objects.exists()
    done = threading.Event()

    def tell(**_: Any) -> None:
        done.set()

    monkeypatch.setattr(worker_process_init, "send", lambda **_: None)
    task_postrun.connect(tell, weak=False)
    try:
        with start_worker(
            app, pool="solo", perform_ping_check=False, queues="noting", loglevel="ERROR"
        ) as worker:
            assert worker.options["without_gossip"]  # also for a queue that could not
            assert not worker.consumer.gossip.enabled
            trim_idempotency_keys.apply_async(queue="noting")
            assert done.wait(60)
    finally:
        task_postrun.disconnect(tell)
    row = BackgroundJob.objects.get()
    assert (row.pk, row.failed_at) == (name, None)
    assert ended(row) >= started(row)
    assert WorkerSeen.objects.get().name
