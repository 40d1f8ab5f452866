"""What the scheduler does at its start about jobs that should have run while nothing did."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest
import redis
import time_machine
from celery import Celery
from celery.beat import ScheduleEntry, Scheduler, SchedulingError
from django.utils import timezone
from kombu.exceptions import OperationalError
from kombu.utils.imports import symbol_by_name
from pytest_django.fixtures import Settings

from config import doctor
from config.celery import app, keep_to_itself
from config.installation.jobs import all_jobs, read_jobs
from config.workers import consumer
from config.workers import scheduler as scheduling
from config.workers.queues import read_queue
from config.workers.scheduler import JobScheduler
from tests.config.installation.jobs import DAILY, HOURLY, OFTEN, ran
from tests.own_redis import own_redis
from tests.patience import PATIENCE, wait_until
from workspaces.database import database_now
from workspaces.jobs.job_runs import JobRuns, last_begun
from workspaces.models import BackgroundJob, InstalledVersion, WorkerSeen
from workspaces.process import outages
from workspaces.process.schedules import DAY, HOUR, WEEK


@pytest.fixture(autouse=True)
def _empty_queue() -> Iterator[None]:
    yield
    app.control.purge()


pytestmark = [pytest.mark.django_db, pytest.mark.both_engines]
WEEKLY = "audit.tasks.verify_the_whole"


def due() -> set[str]:
    """The jobs at set times that a scheduler hands out as soon as it begins."""
    rare = [name for name, job in all_jobs().items() if job.is_rare]
    scheduler = JobScheduler(app=app, lazy=True)  # its jobs are known once their modules are there
    scheduler.setup_schedule()
    return {name for name in rare if scheduler.schedule[name].is_due().is_due}


def installed(ago: timedelta) -> None:
    InstalledVersion.objects.all().delete()
    InstalledVersion.objects.create(version="0.1.0", since=timezone.now() - ago)


def test_what_was_missed_runs_at_once() -> None:
    """REL-1452: on a machine that is off at night, too; what has run in time waits for its next time."""
    installed(DAY * 30)
    for name in all_jobs():
        ran(name, timedelta(seconds=1))
    assert due() == set()
    ran(DAILY, DAY + HOUR)
    ran(HOURLY, HOUR + timedelta(minutes=1))
    ran(OFTEN, DAY)
    assert due() == {DAILY, HOURLY}


def test_what_never_ran_counts_from_the_installation() -> None:
    """REL-1452: a new installation does not begin with all jobs at once; one that is never on at night does them all the same."""
    BackgroundJob.objects.all().delete()
    installed(timedelta())
    assert due() == set()
    installed(WEEK + HOUR)
    assert {DAILY, WEEKLY} <= due()
    InstalledVersion.objects.all().delete()
    assert due() == set()


def test_jobs_that_nobody_takes_do_not_pile_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """REL-1503: no worker runs. What runs rarely is handed out all the same; the rest, once workers take tasks again."""
    monkeypatch.setattr(scheduling, "LOOK_SECONDS", 0.0)
    monkeypatch.setattr(scheduling, "MOST_WAITING", 20)
    scheduler = JobScheduler(app=app, lazy=True)
    scheduler.setup_schedule()
    for _n in range(50):
        scheduler.apply_entry(scheduler.schedule[OFTEN])
    assert read_queue().tasks == 20
    scheduler.apply_entry(scheduler.schedule[DAILY])
    assert read_queue().tasks == 21
    app.control.purge()
    scheduler.apply_entry(scheduler.schedule[OFTEN])
    assert read_queue().tasks == 1


@pytest.mark.parametrize("error", [OperationalError, AttributeError])
def test_while_redis_is_away_the_log_says_it_once_and_daily_jobs_are_made_up(
    error: type[Exception], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """REL-2233: they counted as done until the next day, and each job that failed was three tracebacks.

    Of a full Redis, Celery's libraries lose a connection and stumble over that (AttributeError).
    """
    for name in all_jobs():
        ran(name, timedelta(seconds=1))
    ran(DAILY, DAY + HOUR)
    scheduler = JobScheduler(app=app, lazy=True)
    scheduler.setup_schedule()
    handed_out: list[str] = []

    def hand_out(_self: Scheduler, entry: ScheduleEntry, **_: object) -> None:
        handed_out.append(entry.task)
        if minutes == 1:
            try:
                raise error
            except error:
                raise SchedulingError  # noqa: B904  as Celery does

    monkeypatch.setattr(Scheduler, "apply_async", hand_out)
    monkeypatch.setattr(outages, "QUIET_SECONDS", 0.0)
    for minutes in range(1, 4):  # Redis is away in the first
        handed_out.clear()
        with time_machine.travel(timezone.now() + timedelta(minutes=minutes), tick=False):
            while scheduler.tick() == 0:
                pass
        assert OFTEN in handed_out
        assert (DAILY in handed_out) is (minutes < 3)
    if error is OperationalError:
        assert caplog.messages == ["jobs_not_handed_out", "jobs_handed_out_again"]


def test_a_job_that_can_never_be_handed_out_is_not_tried_all_the_time(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """REL-3135: each other job had it tried again. It hinders none, and the page and the doctor name it once it is late."""
    for name in all_jobs():
        ran(name, timedelta(seconds=1))
    ran(DAILY, DAY * 4)
    now = database_now()
    WorkerSeen.objects.create(name="worker", since=now - DAY * 30, seen_at=now, version="0.1.0")
    scheduler = JobScheduler(app=app, lazy=True)
    scheduler.setup_schedule()
    scheduler.schedule[DAILY].args = [object()]  # no message can hold that

    def go_on(minutes: int) -> None:
        with time_machine.travel(timezone.now() + timedelta(minutes=minutes), tick=False):
            while scheduler.tick() == 0:
                pass

    for minutes in range(1, 4):
        go_on(minutes)
    assert [one.job for one in caplog.records] == [DAILY, DAILY]  # type: ignore[attr-defined]
    assert read_queue().tasks > 2
    (late,) = [one for one in read_jobs().jobs if one.name == DAILY]
    assert late.state == "late"
    assert late.what in doctor.examine_part("background jobs").text
    monkeypatch.setattr(scheduling, "REST_SECONDS", 0.0)
    go_on(4)
    assert len(caplog.records) > 2


def test_workers_try_for_ever_to_reach_redis() -> None:
    """REL-2233: Celery's own end after 100 tries, which is 50 minutes."""
    assert app.conf.broker_connection_max_retries is None


def test_a_worker_waits_for_a_redis_that_takes_no_writes(
    settings: Settings,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """REL-2961: it died of a full one, at its start and when Redis came back."""
    monkeypatch.setattr(consumer, "LOOK_SECONDS", 0.01)
    with own_redis(tmp_path) as url, redis.Redis.from_url(url) as client:
        own = Celery(broker=url, set_as_current=False)
        settings.TRELLIS = settings.TRELLIS.model_copy(update={"redis_url": url})
        worker = symbol_by_name(app.conf.worker_consumer)(
            print, app=own, controller=SimpleNamespace(use_eventloop=False), hostname="full"
        )
        client.config_set("maxmemory", 1)
        with ThreadPoolExecutor(1) as aside:
            connecting = aside.submit(worker.connect)
            wait_until(lambda: caplog.messages or connecting.done())
            client.config_set("maxmemory", 0)
            connecting.result(PATIENCE).close()
    assert caplog.messages == ["worker_waits_for_redis", "worker_goes_on"]


def test_a_worker_that_is_to_end_waits_for_no_redis() -> None:
    """REL-3231: while Redis stood still, a heartbeat or an answer to nobody kept it for ever."""
    controller = SimpleNamespace(use_eventloop=False, options={})
    keep_to_itself(sender=controller)
    worker = symbol_by_name(app.conf.worker_consumer)(
        print, app=app, controller=controller, hostname="ending", **controller.options
    )
    talks = {type(step).__name__ for step in worker.steps} & {
        "Control",
        "Gossip",
        "Heart",
        "Mingle",
    }
    assert not talks


@pytest.mark.parametrize("name", [DAILY, OFTEN])
def test_a_clock_that_was_ahead_keeps_no_job_from_running(name: str) -> None:
    """REL-2097: what it noted lies in the future, and nothing ran or was noted until then."""
    later = timezone.now() + timedelta(days=400)
    BackgroundJob.objects.create(name=name, started_at=later, ended_at=later, seconds=1.0)
    if name == DAILY:
        assert last_begun()[name] <= timezone.now()
    runs = JobRuns(noted_every=0)
    runs.end(name, runs.begin(name), worker="worker")
    row = BackgroundJob.objects.get(pk=name)
    for at in (row.started_at, row.ended_at):
        assert at is not None
        assert abs(at - database_now()) < timedelta(minutes=1)


@pytest.mark.postgresql
@pytest.mark.parametrize("hours", [2, -2])
def test_runs_are_noted_by_the_clock_of_the_database(hours: int) -> None:
    """REL-2097: whatever the machine's says, so that the doctor and other machines can compare them."""
    runs = JobRuns(noted_every=0)
    with time_machine.travel(timezone.now() + timedelta(hours=hours)):
        for name in (DAILY, OFTEN):
            runs.end(name, runs.begin(name), worker="worker")
        runs.end(OFTEN, runs.begin(OFTEN), worker="worker", error=OSError())
        found = read_jobs()
    assert found.alive == 1
    (worker,) = WorkerSeen.objects.all()
    moments = [worker.seen_at]
    for row in BackgroundJob.objects.all():
        moments += [at for at in (row.started_at, row.ended_at, row.failed_at) if at is not None]
    assert len(moments) == 6
    now = database_now()
    assert all(abs(at - now) < timedelta(minutes=1) for at in moments)
