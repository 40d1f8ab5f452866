"""What schedules sent: nothing is lost to a failure, readers sign it off, and it is kept for a while."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.core import mail
from django.core.mail.backends.locmem import EmailBackend
from django.utils import timezone

from audit.models import ReportSchedule, SentFile
from audit.reviews import scheduled_exports
from audit.reviews.scheduled_exports import send_due
from audit.reviews.schedules import pause_schedule
from audit.reviews.timing import next_run
from tests.audit.exports.planned import a_schedule, sent_files, yesterday
from tests.audit.retention.asking import ask
from tests.audit.views.log_pages import url
from tests.factories import Tenant
from workspaces.database import database_now
from workspaces.errors import Conflict
from workspaces.models import Membership, Workspace

pytestmark = pytest.mark.django_db


@pytest.fixture
def mail_is_down() -> Iterator[Any]:
    """No mail leaves until it is called."""
    with pytest.MonkeyPatch.context() as patched:

        def refused(*_args: object, **_kwargs: object) -> None:
            raise ConnectionRefusedError("smtp.internal:25 refused")

        patched.setattr("django.core.mail.EmailMessage.send", refused)
        yield patched.undo


def due_again(schedule: ReportSchedule) -> None:
    """The hour until the next attempt is over."""
    rows = ReportSchedule.objects.for_workspace(schedule.workspace_id).filter(pk=schedule.pk)
    rows.update(next_run_at=database_now() - timedelta(seconds=1))


def test_a_file_that_could_not_be_sent_is_sent_later_as_it_was_to_be(
    tenant: Tenant, mail_is_down: Any
) -> None:
    """REL-1215: of its own time, though a later one is due meanwhile; then that one comes."""
    yesterday(tenant)
    due = database_now() - timedelta(days=1, minutes=1)
    schedule = a_schedule(tenant, next_run_at=due, hour=due.hour)
    assert send_due() == 1
    [row] = sent_files(tenant)
    assert (row.status, row.attempts, row.sent_to) == ("waiting", 1, [])
    assert "smtp" not in row.fault
    since = row.since
    due_again(schedule)
    mail_is_down()
    assert send_due() == 2
    first, second = sent_files(tenant)
    assert (first.pk, first.status, first.attempts, first.since) == (row.pk, "sent", 2, since)
    assert first.fault == ""
    assert second.since == first.until
    assert second.status == "sent"
    assert [
        str(one.pk) in m.extra_headers["Message-ID"]
        for one, m in zip(sent_files(tenant), mail.outbox, strict=True)
    ] == [True, True]
    schedule.refresh_from_db()
    assert schedule.last_ok
    assert schedule.next_run_at > timezone.now()


def test_a_file_is_given_up_after_a_day_and_sent_by_hand(
    tenant: Tenant, mail_is_down: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REL-1215: the page says so, and the next one's turn comes."""
    monkeypatch.setattr(scheduled_exports, "MOST_ATTEMPTS", 2)
    schedule = a_schedule(tenant)
    send_due()
    due_again(schedule)
    send_due()
    [row] = sent_files(tenant)
    assert (row.status, row.attempts) == ("failed", 2)
    schedule.refresh_from_db()
    assert schedule.next_run_at == next_run("daily", row.due_at)
    page_path = url(tenant, f"schedules/{schedule.pk}/")
    client = tenant.client("auditor")
    page = client.get(page_path).content.decode()
    assert "The mail could not be handed over" in page
    assert "Send again" in page
    again = url(tenant, f"sent/{row.pk}/again/")
    assert tenant.client("admin").post(again).status_code == 403
    assert b"could not be handed over" in client.post(again, follow=True).content
    mail_is_down()
    assert b"Sent to" in client.post(again, follow=True).content
    row.refresh_from_db()
    assert (row.status, row.asked_by, row.attempts) == ("sent", tenant.auditor.email, 4)
    assert b"This file was sent already." in client.post(again, follow=True).content
    assert len(mail.outbox) == 1


def test_a_file_that_a_worker_has_just_sent_is_not_sent_again(
    tenant: Tenant, mail_is_down: Any
) -> None:
    """REL-1215: whatever the page that the button stands on still shows; and the schedule goes on."""
    schedule = a_schedule(tenant)
    send_due()
    stale = sent_files(tenant).get()
    mail_is_down()
    due_again(schedule)
    send_due()
    with pytest.raises(Conflict):
        scheduled_exports.send_again(sent=stale, actor=tenant.actor("auditor"))
    schedule.refresh_from_db()
    assert schedule.claimed_until is None
    assert len(mail.outbox) == 1


def test_what_waits_ends_with_its_schedule(tenant: Tenant, mail_is_down: Any) -> None:
    """REL-1215: paused or deleted, it sends nothing of before; the record stays."""
    schedule = a_schedule(tenant)
    send_due()
    actor = tenant.actor("auditor")
    pause_schedule(schedule=schedule, actor=actor, is_paused=True, now=timezone.now())
    [row] = sent_files(tenant)
    assert (row.status, row.fault) == ("failed", "The schedule was paused.")
    mail_is_down()
    tenant.client("auditor").post(url(tenant, f"schedules/{schedule.pk}/delete/"))
    row.refresh_from_db()
    assert row.schedule is None
    answer = tenant.client("auditor").post(url(tenant, f"sent/{row.pk}/again/"), follow=True)
    assert b"Its schedule no longer exists" in answer.content
    assert mail.outbox == []


def left_behind(schedule: ReportSchedule, **values: Any) -> SentFile:
    """A file whose process died before it was sent."""
    now = timezone.now()
    row: SentFile = SentFile.objects.create(
        workspace=schedule.workspace,
        schedule=schedule,
        name=schedule.name,
        query=schedule.query,
        format="csv",
        time_zone="UTC",
        since=now - timedelta(days=2),
        until=now - timedelta(days=1),
        **values,
    )
    return row


def test_a_process_that_died_leaves_its_file_to_the_next_one(tenant: Tenant) -> None:
    """REL-1215: the same row, so the same Message-ID; and not for ever."""
    schedule = a_schedule(tenant)
    row = left_behind(schedule, due_at=schedule.next_run_at, attempts=1)
    assert send_due() == 1
    row.refresh_from_db()
    assert (row.status, row.attempts) == ("sent", 2)
    assert sent_files(tenant).count() == 1
    sent_files(tenant).update(status="waiting", attempts=scheduled_exports.MOST_ATTEMPTS)
    due_again(schedule)
    assert send_due() > 0
    row.refresh_from_db()
    assert row.status == "failed"
    assert "ended each time" in row.fault


def test_one_by_hand_whose_process_died_is_not_taken_for_the_one_that_is_due(
    tenant: Tenant,
) -> None:
    """REL-1215: it has no due time, so nothing follows from it; the due file is sent, and the next comes in its time."""
    schedule = a_schedule(tenant)
    lost = left_behind(schedule, asked_by="somebody")
    assert send_due() == 1
    lost.refresh_from_db()
    assert lost.status == "waiting"
    made = sent_files(tenant).exclude(pk=lost.pk).get()
    assert (made.status, made.due_at) == ("sent", schedule.next_run_at)
    schedule.refresh_from_db()
    assert schedule.next_run_at > timezone.now()


def test_another_time_chosen_while_a_file_is_made_stays(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REL-1215: what was worked out from the times of before does not overwrite it."""
    schedule = a_schedule(tenant)
    chosen = timezone.now() + timedelta(days=3)

    def change(*_args: object, **_kwargs: object) -> None:
        rows = ReportSchedule.objects.for_workspace(tenant.workspace)
        rows.filter(pk=schedule.pk).update(next_run_at=chosen)

    monkeypatch.setattr(scheduled_exports, "_send", change)
    assert send_due() == 1
    schedule.refresh_from_db()
    assert (schedule.next_run_at, schedule.last_ok, schedule.claimed_until) == (chosen, True, None)


def test_a_pause_while_a_file_is_made_ends_its_attempts(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REL-1215: a file that fails then is not tried again, since nobody would; going on twice gives up nothing."""
    schedule = a_schedule(tenant)
    actor = tenant.actor("auditor")

    def fail(*_args: object, **_kwargs: object) -> None:
        if sent_files(tenant).count() == 1:
            row = ReportSchedule.objects.for_workspace(tenant.workspace).get()
            pause_schedule(schedule=row, actor=actor, is_paused=True, now=timezone.now())
        raise OSError("down")

    monkeypatch.setattr(scheduled_exports, "_send", fail)
    send_due()
    assert sent_files(tenant).get().status == "failed"
    schedule.refresh_from_db()
    pause_schedule(schedule=schedule, actor=actor, is_paused=False, now=timezone.now())
    due_again(schedule)
    send_due()
    assert [one.status for one in sent_files(tenant)] == ["failed", "waiting"]
    schedule.refresh_from_db()
    pause_schedule(schedule=schedule, actor=actor, is_paused=False, now=timezone.now())
    assert sent_files(tenant).last().status == "waiting"


def test_a_schedule_that_is_deleted_while_its_file_is_made_leaves_its_record(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REL-1215: the mail has left, and says so; no schedule comes back."""
    schedule = a_schedule(tenant)

    def delete(*_args: object, **_kwargs: object) -> None:
        ReportSchedule.objects.for_workspace(tenant.workspace).filter(pk=schedule.pk).delete()

    monkeypatch.setattr("django.core.mail.EmailMessage.send", delete)
    assert send_due() == 1
    [row] = sent_files(tenant)
    assert (row.status, row.schedule) == ("sent", None)
    assert not ReportSchedule.objects.for_workspace(tenant.workspace).exists()


def test_after_long_the_file_that_was_due_and_those_of_the_last_week_are_made(
    tenant: Tenant,
) -> None:
    """REL-1215: what was due comes, however late; of those behind it only the last week's."""
    schedule = a_schedule(tenant, next_run_at=database_now() - timedelta(days=40), hour=0)
    assert send_due() == scheduled_exports.AT_ONCE
    assert send_due() > 0
    assert send_due() == 0
    made = list(sent_files(tenant))
    assert len(made) in {8, 9}
    now = timezone.now()
    assert made[0].until < now - timedelta(days=39)
    assert all(row.until > now - timedelta(days=9) for row in made[1:])
    schedule.refresh_from_db()
    assert schedule.next_run_at > timezone.now()


def test_whoever_lost_the_right_gets_nothing_more(tenant: Tenant) -> None:
    """SEC-590: asked again at each file; the others still get theirs."""
    rows = Membership.objects.for_workspace(tenant.workspace)
    rows.filter(user=tenant.admin).update(is_auditor=True)
    both = [str(tenant.auditor.pk), str(tenant.admin.pk)]
    schedule = a_schedule(tenant, recipients=both)
    send_due()
    rows.filter(user=tenant.admin).update(is_auditor=False)
    due_again(schedule)
    send_due()
    assert [sorted(one.to) for one in mail.outbox] == [
        sorted([tenant.auditor.email, tenant.admin.email]),
        [tenant.auditor.email],
    ]
    page = tenant.client("auditor").get(url(tenant, f"schedules/{schedule.pk}/")).content.decode()
    assert "1 who may no longer export" in page
    # They still see the log as an admin, and nothing that was sent.
    admin = tenant.client("admin")
    assert admin.get(url(tenant, f"schedules/{schedule.pk}/")).status_code == 403
    assert ask(tenant, "get", "audit-sent-files/", role="admin").status_code == 403


def test_schedules_of_a_suspended_workspace_wait(tenant: Tenant) -> None:
    """REL-2612: no attempt is made and nobody is blamed; the file that was due comes once the workspace is open again."""
    yesterday(tenant)
    schedule = a_schedule(tenant)
    workspaces = Workspace.objects.filter(pk=tenant.workspace.pk)
    workspaces.update(is_active=False)
    assert send_due() == 0
    schedule.refresh_from_db()
    assert schedule.last_result == ""
    workspaces.update(is_active=True)
    assert send_due() == 1
    [row] = sent_files(tenant)
    assert (row.status, row.attempts) == ("sent", 1)


_others: list[int] = []


class SlowMail(EmailBackend):
    """Takes longer than a claim lasts, while another worker looks for what is due."""

    def send_messages(self, messages: Any) -> int:
        """Hand them over slowly."""
        time.sleep(2.5)
        _others.append(send_due())
        return int(super().send_messages(messages))


@pytest.mark.both_engines
@pytest.mark.django_db(transaction=True)
def test_a_file_that_takes_long_is_made_once(
    tenant: Tenant, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REL-1504: its claim is kept while it is made, however long that takes, and let go at its end."""
    monkeypatch.setattr(scheduled_exports, "CLAIM_SECONDS", 1.0)
    settings.EMAIL_BACKEND = f"{__name__}.SlowMail"
    _others.clear()
    schedule = a_schedule(tenant)
    assert send_due() == 1
    assert _others == [0]
    assert len(mail.outbox) == 1
    schedule.refresh_from_db()
    assert schedule.claimed_until is None
