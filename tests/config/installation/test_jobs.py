"""What the platform's owner reads of background jobs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import time_machine
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from pytest_django.fixtures import Settings

from audit.models import AuditEntry
from config import doctor
from config.celery import app
from config.doctor import work
from config.installation import jobs
from config.installation.jobs import JobState, all_jobs, read_jobs, run_now
from config.workers.queues import QueueBacklog
from tests.config.installation.jobs import DAILY, HOURLY, OFTEN, ran
from tests.factories import Tenant
from tests.platform_api import Api, faults
from workspaces.errors import Conflict, NotFound
from workspaces.jobs.installation import JobFault
from workspaces.models import BackgroundJob, InstalledVersion, User, WorkerSeen
from workspaces.process.schedules import DAY, HOUR, WEEK

pytestmark = [pytest.mark.django_db, pytest.mark.both_engines]
URL = "/platform/state/jobs/"


@pytest.fixture(autouse=True)
def _nothing_noted() -> Iterator[None]:
    InstalledVersion.objects.all().delete()
    yield
    app.control.purge()


def seen(ago: timedelta = timedelta(), *, since: timedelta = DAY * 30, name: str = "w") -> None:
    now = timezone.now()
    WorkerSeen.objects.update_or_create(
        name=name, defaults={"seen_at": now - ago, "since": now - since, "version": "0.1.0"}
    )


def all_ran() -> None:
    """As in an installation that is well."""
    for job in all_jobs().values():
        ran(job.name, timedelta(seconds=2))


def of(name: str) -> jobs.JobReport:
    return next(one for one in read_jobs().jobs if one.name == name)


def failed_now() -> dict[str, Any]:
    now = timezone.now()
    return {
        "failed_at": now,
        "fault": JobFault.NETWORK.value,
        "error": "ConnectionError",
        "failures": {now.strftime("%Y-%m-%dT%H"): 2},
    }


def test_every_job_says_what_it_does_and_when_it_runs() -> None:
    """REL-1200: none is forgotten, since each task says it of itself."""
    seen()
    all_ran()
    report = read_jobs()
    assert {one.name for one in report.jobs} == set(all_jobs())
    assert {one.state for one in report.jobs} == {JobState.OK}
    assert (report.problem, report.alive, report.failed, report.late) == ("", 1, 0, 0)
    now = timezone.now()
    for one in report.jobs:
        assert one.what
        assert one.often.startswith("every")
        assert one.next_at is not None
        assert now - timedelta(seconds=5) <= one.next_at <= now + WEEK
    assert of(OFTEN).often == "every 15 seconds"
    assert of(DAILY).often == "every day"


def test_what_needs_somebody_stands_first() -> None:
    """REL-1200, SEC-586: with why it failed, in words, and how often in a day."""
    seen()
    all_ran()
    ran(HOURLY, timedelta(minutes=5), **failed_now())
    report = read_jobs()
    first = report.jobs[0]
    assert (first.name, first.state, first.failures) == (HOURLY, JobState.FAILED, 2)
    assert (first.fault, first.error) == (str(JobFault.NETWORK.label), "ConnectionError")
    assert (report.failed, report.failures) == (1, 2)
    # One that has not run yet needs nobody: the others stand by how often they run.
    BackgroundJob.objects.filter(pk=OFTEN).delete()
    seen(since=timedelta(seconds=50))
    assert read_jobs().jobs[1].often == "every 5 seconds"
    # It went well again: the failures of the day are still told.
    BackgroundJob.objects.filter(pk=HOURLY).update(ended_at=timezone.now())
    assert (of(HOURLY).state, of(HOURLY).failures) == (JobState.OK, 2)


def test_a_rare_job_is_seen_at_work() -> None:
    """REL-1200: from its begin to its end."""
    seen()
    ran(DAILY, DAY / 2)
    BackgroundJob.objects.filter(pk=DAILY).update(started_at=timezone.now())
    assert of(DAILY).state is JobState.RUNNING
    BackgroundJob.objects.filter(pk=DAILY).update(ended_at=None)
    assert of(DAILY).state is JobState.RUNNING


def test_a_job_is_late_only_if_somebody_was_there_to_run_it() -> None:
    """REL-1208: a laptop that slept is no fault, and a night or two may be missed."""
    ran(OFTEN, HOUR)
    ran(HOURLY, HOUR * 5)
    ran(DAILY, HOUR * 40)
    seen(since=HOUR * 90)
    assert (of(OFTEN).state, of(HOURLY).state) == (JobState.LATE, JobState.LATE)
    assert of(DAILY).state is JobState.OK
    ran(DAILY, DAY * 5)
    assert of(DAILY).state is JobState.LATE
    seen(since=timedelta(seconds=50))
    assert {one.state for one in read_jobs().jobs} == {JobState.OK, JobState.WAITING}


@pytest.mark.parametrize("second", [0, 20, 59])
def test_a_job_whose_minute_fell_into_a_start_is_not_late(
    second: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REL-1386: the scheduler begins a moment after the worker, and leaves that run out; the next one counts."""
    monkeypatch.setattr(jobs, "database_now", timezone.now)  # which does not travel
    minute = 29  # of the hourly job
    with time_machine.travel(datetime(2026, 11, 27, 12, minute, second, tzinfo=UTC), tick=False):
        seen(since=timedelta(seconds=40))
        ran(HOURLY, HOUR)
    for later, state in ((50, JobState.OK), (60 + 10, JobState.OK), (60 + 25, JobState.LATE)):
        at = datetime(2026, 11, 27, 12, minute, second, tzinfo=UTC) + timedelta(minutes=later)
        with time_machine.travel(at, tick=False):
            WorkerSeen.objects.update(seen_at=at)
            assert of(HOURLY).state is state, later


def test_without_workers_the_report_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch, settings: Settings, tenant: Tenant
) -> None:
    """REL-1202: whether it is Redis, a worker or the scheduler that is missing."""
    assert read_jobs().problem == "No job has run yet. The first ones run within a minute."
    assert doctor.examine_part("background jobs").state is doctor.FindingState.OK
    long_ago = timezone.now() - HOUR
    InstalledVersion.objects.create(version="0.1.0", since=long_ago)
    assert "celery beat" in read_jobs().problem
    seen(HOUR)
    report = read_jobs()
    assert "No job has run since" in report.problem
    assert report.alive == 0
    assert {one.next_at for one in report.jobs} == {None}
    found = doctor.examine_part("background jobs")
    assert (found.state, found.text) == (doctor.FindingState.LOOK, report.problem)
    monkeypatch.setattr(jobs, "_waiting", lambda: QueueBacklog(tasks=3, since=None))
    assert "3 tasks wait, and no worker takes them" in read_jobs().problem
    monkeypatch.undo()
    # Nothing listens there.
    away = settings.TRELLIS.model_copy(update={"redis_url": "redis://127.0.0.1:1/0"})
    settings.TRELLIS = away
    report = read_jobs()
    assert report.waiting is None
    assert "Redis does not answer" in report.problem
    owner = replace(tenant.actor(), is_superuser=True)
    with pytest.raises(Conflict, match="Redis does not answer"):
        run_now(OFTEN, actor=owner)
    assert not AuditEntry.objects.across_workspaces().filter(action="job.started").exists()


def test_the_doctor_names_jobs_that_failed_or_are_late() -> None:
    """REL-1202: a few by name."""
    seen()
    all_ran()
    assert doctor.examine_part("background jobs").text == "all run, and 1 worker is alive"
    ran(HOURLY, timedelta(minutes=5), **failed_now())
    ran(OFTEN, HOUR)
    found = doctor.examine_part("background jobs")
    assert found.state is doctor.FindingState.LOOK
    assert "“Remove files that no chat or bud uses any more” failed" in found.text
    assert "“Count log entries for reports” is late" in found.text
    assert "Background jobs" in found.advice


def test_the_next_run_is_when_the_scheduler_says() -> None:
    """REL-1200: hourly, daily and weekly jobs by their clock, others by their distance."""
    at = datetime(2026, 11, 27, 4, 7, 30, tzinfo=UTC)
    known = all_jobs()
    assert known[DAILY].next_after(at) == datetime(2026, 11, 28, 4, 7, tzinfo=UTC)
    assert known[HOURLY].next_after(at) == datetime(2026, 11, 27, 4, 29, tzinfo=UTC)
    weekly = known["audit.tasks.verify_the_whole"]
    assert weekly.next_after(at) == datetime(2026, 11, 29, 1, 23, tzinfo=UTC)
    assert known[OFTEN].next_after(at) == at + timedelta(seconds=15)
    assert [known[name].period for name in (HOURLY, DAILY, weekly.name)] == [HOUR, DAY, WEEK]


def test_it_takes_as_many_statements_however_many_workers_there_are() -> None:
    """REL-1200: and lists at most fifty."""
    with CaptureQueriesContext(connection) as few:
        read_jobs()
    for number in range(60):
        seen(name=f"w{number}")
    all_ran()
    with CaptureQueriesContext(connection) as many:
        report = read_jobs()
    assert len(many) == len(few) <= 4
    assert len(report.workers) == jobs.MOST_WORKERS


def test_the_owner_reads_the_page(root: Api) -> None:
    """REL-1200: what is known of each job, and an empty list in words."""
    empty = root.client.get(URL).content.decode()
    assert "No worker has run a job yet." in empty
    assert "not run yet" in empty
    seen(name="celery@machine-1")
    all_ran()
    ran(HOURLY, timedelta(minutes=5), **failed_now())
    text = root.client.get(URL).content.decode()
    for words in ("celery@machine-1", "Remove files that no chat", "ConnectionError", "every hour"):
        assert words in text
    assert text.index("Remove files that no chat") < text.index("Count log entries")


def test_the_owner_has_a_job_run_now(root: Api, superuser: User) -> None:
    """REL-1203: on the page and over REST; the log says who."""
    page = root.client.post(f"{URL}run/", {"name": OFTEN}, follow=True).content.decode()
    assert "Started: Count log entries for reports" in page
    answer = root.post("jobs/run/", {"name": HOURLY})
    assert (answer.status_code, answer.json()["name"]) == (202, HOURLY)
    entries = [
        (row.details["job"], row.actor_label, row.workspace_id)
        for row in AuditEntry.objects.across_workspaces()
        .filter(action="job.started")
        .order_by("pk")
    ]
    assert entries == [(OFTEN, superuser.email, None), (HOURLY, superuser.email, None)]


def test_it_says_how_long_tasks_wait(
    root: Api, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REL-1239: by the oldest one, on the page, over REST, in the metrics and to the doctor."""
    assert read_jobs().waiting_since is None
    before = timezone.now()
    for name in (OFTEN, HOURLY):
        app.send_task(name)
    between = timezone.now()
    app.send_task(DAILY)
    report = read_jobs()
    assert report.waiting == 3
    assert report.waiting_since is not None
    assert before <= report.waiting_since <= between
    assert "The oldest since" in root.client.get(URL).content.decode()
    moment = datetime.fromisoformat(root.get("jobs/").json()["waiting_since"])
    assert moment == report.waiting_since
    if settings.TRELLIS.redis_url is None:
        return
    assert doctor.examine_part("queues").state is doctor.FindingState.OK
    monkeypatch.setattr(work, "QUEUE_SECONDS", 0)
    found = doctor.examine_part("queues")
    assert (found.state, found.advice) == (
        doctor.FindingState.LOOK,
        "Start workers, or start more of them.",
    )


def test_only_jobs_run(root: Api, tenant: Tenant) -> None:
    """REL-1203: no other task, whoever asks."""
    for name in ("chat.tasks.title_conversation", "nothing", ""):
        page = root.client.post(f"{URL}run/", {"name": name}, follow=True).content.decode()
        assert "Job not found." in page
    assert root.post("jobs/run/", {"name": "chat.tasks.title_conversation"}).status_code == 404
    assert faults(root.post("jobs/run/", {})) == {"name": "required"}
    assert root.client.get(f"{URL}run/").status_code == 405
    with pytest.raises(NotFound):
        run_now(OFTEN, actor=tenant.actor("owner"))
    assert not AuditEntry.objects.across_workspaces().filter(action="job.started").exists()


def test_a_queue_that_takes_nothing_is_told(root: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    """REL-1202: in words, and no error of ours."""

    def refuse(*_: Any, **__: Any) -> None:
        raise ConnectionError("redis://:password@db")

    monkeypatch.setattr(app, "send_task", refuse)
    page = root.client.post(f"{URL}run/", {"name": OFTEN}, follow=True).content.decode()
    assert "Redis does not answer" in page
    assert ":password@" not in page
    answer = root.post("jobs/run/", {"name": OFTEN})
    assert answer.status_code == 409
    assert "Redis does not answer" in answer.json()["errors"][0]["detail"]


def test_the_log_says_that_a_job_was_not_handed_out(
    root: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REL-1385: the entry that it was started comes before the act, so another one takes it back."""

    def refuse(*_: Any, **__: Any) -> None:
        raise ConnectionError("redis://:password@db")

    monkeypatch.setattr(app, "send_task", refuse)
    root.client.post(f"{URL}run/", {"name": OFTEN})
    started, failed = (
        AuditEntry.objects.across_workspaces().filter(action__startswith="job.").order_by("pk")
    )
    assert (started.action, failed.action) == ("job.started", "job.not_started")
    assert failed.details == {**started.details, "fault": "ConnectionError"}
    assert failed.actor_label == started.actor_label


def test_rest_has_what_the_page_shows(root: Api) -> None:
    """REL-1209: every job and worker."""
    seen()
    all_ran()
    ran(HOURLY, timedelta(minutes=5), **failed_now())
    shown = root.get("jobs/").json()
    assert [one["name"] for one in shown["jobs"]] == [one.name for one in read_jobs().jobs]
    first = shown["jobs"][0]
    assert (first["state"], first["failures"], first["error"]) == ("failed", 2, "ConnectionError")
    assert shown["workers"][0]["is_alive"] is True
    assert (shown["problem"], shown["waiting"]) == ("", 0)
