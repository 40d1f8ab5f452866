"""Two schedulers run at once: after a failover, or because somebody started a second one."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from django.core import mail

from chat.models import CheckRun
from config.celery import app
from tests.audit.exports.planned import a_schedule
from tests.chat.conftest import Chat
from tests.chat.reminders.waiting_people import (
    mails_are_sent,  # noqa: F401  a fixture
    person_of,
    waits_since,
)
from tests.chat.services.check_plans import come_due, plan
from tests.chat.services.checking import check
from tests.patience import PATIENCE
from workspaces.database import give_back_connections
from workspaces.process.schedules import SCHEDULE

AT_ONCE = 2


def run_at_once(task: str) -> None:
    """Do what one task does in several threads, which begin together."""
    together = Barrier(AT_ONCE)
    function = app.tasks[task].run

    def run() -> None:
        together.wait(PATIENCE)
        try:
            function()
        finally:
            give_back_connections()

    with ThreadPoolExecutor(AT_ONCE) as pool:
        for running in [pool.submit(run) for _ in range(AT_ONCE)]:
            running.result(PATIENCE)


@pytest.mark.both_engines
def test_every_job_does_its_work_once_though_two_schedulers_start_it(chat: Chat) -> None:
    """REL-26: a reminder and a report are mailed once, checks run once, and no job fails because of the other."""
    app.loader.import_default_modules()
    person = person_of(chat)
    waits_since(chat, 61)
    check(chat)
    plan(chat)
    come_due(chat)
    a_schedule(chat.tenant)
    for task in sorted(SCHEDULE):
        run_at_once(task)
    # A file's subject names its day, too.
    subjects = sorted((sent.to[0], sent.subject.partition(",")[0]) for sent in mail.outbox)
    name = chat.tenant.workspace.name
    assert subjects == sorted(
        [
            (person.email, f"Something waits for you in {name}"),
            (chat.tenant.auditor.email, "Audit log: Calls of yesterday"),
        ]
    )
    assert CheckRun.objects.for_workspace(chat.tenant.workspace).count() == 1
