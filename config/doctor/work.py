"""What the doctor sees of background work."""

from __future__ import annotations

from typing import Final

from django.conf import settings
from django.db.models import Min
from django.utils.translation import ngettext

from audit.models import AuditStream
from audit.services.spool import spool_size
from config.doctor.findings import DoctorFinding, FindingState, look, ok
from workspaces.database import database_now
from workspaces.words.formats import whole
from workspaces.words.waiting_times import duration_in_words

QUEUE_LENGTH: Final = 1_000
QUEUE_SECONDS: Final = 600
_MOST_TOLD: Final = 3
_JOBS_ADVICE: Final = "Look under Admin, State of the installation, Background jobs. Workers' logs say why a job failed."


def check_queues(part: str) -> DoctorFinding:
    """Look whether tasks or messages pile up."""
    tasks = _check_tasks(part) if settings.TRELLIS.redis_url is not None else None
    for found in (tasks, _check_spool(part), _check_streams(part)):
        if found is not None and found.state is not FindingState.OK:
            return found
    return ok(part, ", ".join([*([tasks.text] if tasks else []), "nothing is held back"]))


def _check_tasks(part: str) -> DoctorFinding:
    import redis

    from config.workers.queues import read_queue

    try:
        waiting = read_queue()
    except redis.RedisError:
        return look(part, "the queue of tasks was not looked at", "Mend Redis first.")
    tasks = ngettext("%s task waits", "%s tasks wait", waiting.tasks) % whole(waiting.tasks)
    if waiting.tasks > QUEUE_LENGTH or waiting.seconds > QUEUE_SECONDS:
        is_late = waiting.seconds >= QUEUE_SECONDS
        since = f", the oldest for {whole(waiting.seconds / 60)} minutes" if is_late else ""
        advice = "Start workers, or start more of them."
        return look(part, f"{tasks} for a worker{since}", advice)
    return ok(part, tasks)


def _check_spool(part: str) -> DoctorFinding | None:
    spool = spool_size()
    if not spool.files:
        return None
    return look(
        part,
        ngettext(
            "%s file with %s bytes waits in audit-spool",
            "%s files with %s bytes wait in audit-spool",
            spool.files,
        )
        % (whole(spool.files), whole(spool.size_bytes)),
        "They are entered as soon as the database takes writes and a server runs.",
    )


def _check_streams(part: str) -> DoctorFinding | None:
    failing = AuditStream.objects.across_workspaces().filter(is_paused=False, state__failures__gt=0)
    if not (number := failing.count()):
        return None
    first = failing.aggregate(first=Min("state__failing_since"))["first"]
    text = ngettext("%s audit stream cannot deliver", "%s audit streams cannot deliver", number)
    since = ""
    if first is not None:
        one = "" if number == 1 else "one of them "
        since = f", {one}for {duration_in_words((database_now() - first).total_seconds())}"
    return look(
        part,
        text % whole(number) + since,
        "Their pages under Audit › Streams show the reason.",
    )


def check_jobs(part: str) -> DoctorFinding:
    """Look whether background jobs run."""
    from config.installation.jobs import JobState, read_jobs  # no other check needs Celery

    found = read_jobs()
    if found.problem:
        if found.has_begun:
            return look(part, found.problem, _JOBS_ADVICE)
        return ok(part, found.problem)
    if found.failed or found.late:
        jobs_in_words = [
            f"“{one.what}” {'failed' if one.state is JobState.FAILED else 'is late'}"
            for one in found.jobs
            if one.state in {JobState.FAILED, JobState.LATE}
        ]
        more = (
            f", and {whole(len(jobs_in_words) - _MOST_TOLD)} more"
            if len(jobs_in_words) > _MOST_TOLD
            else ""
        )
        return look(part, ", ".join(jobs_in_words[:_MOST_TOLD]) + more, _JOBS_ADVICE)
    workers = ngettext("%s worker is alive", "%s workers are alive", found.alive)
    return ok(part, f"all run, and {workers % whole(found.alive)}")
