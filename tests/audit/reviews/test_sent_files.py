"""What schedules sent: nothing is lost to a failure, readers sign it off, and it is kept for a while."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.core import mail
from django.core.mail.backends.locmem import EmailBackend
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from audit.actions import Action
from audit.models import AuditEntry, AuditPolicy, LegalHold, ReportSchedule, SentFile, SignOff
from audit.reviews import scheduled_exports
from audit.reviews.scheduled_exports import send_due
from audit.reviews.schedules import pause_schedule
from audit.reviews.sent_files import KEEP_DAYS, MOST_SIGNERS, trim_sent_files
from audit.reviews.timing import next_run
from tests.audit.exports.planned import a_schedule, yesterday
from tests.audit.retention.asking import ask
from tests.audit.views.log_pages import url
from tests.factories import Tenant, TwoTenants
from workspaces.database import database_now
from workspaces.errors import Conflict
from workspaces.models import Membership

pytestmark = pytest.mark.django_db


def files(tenant: Tenant) -> Any:
    return SentFile.objects.for_workspace(tenant.workspace).order_by("created_at")


def actions(tenant: Tenant, action: Action) -> Any:
    return AuditEntry.objects.for_workspace(tenant.workspace).filter(action=action.value)


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
    [row] = files(tenant)
    assert (row.status, row.attempts, row.sent_to) == ("waiting", 1, [])
    assert "smtp" not in row.fault
    since = row.since
    due_again(schedule)
    mail_is_down()
    assert send_due() == 2
    first, second = files(tenant)
    assert (first.pk, first.status, first.attempts, first.since) == (row.pk, "sent", 2, since)
    assert first.fault == ""
    assert second.since == first.until
    assert second.status == "sent"
    assert [
        str(one.pk) in m.extra_headers["Message-ID"]
        for one, m in zip(files(tenant), mail.outbox, strict=True)
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
    [row] = files(tenant)
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
    stale = files(tenant).get()
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
    [row] = files(tenant)
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
    assert files(tenant).count() == 1
    files(tenant).update(status="waiting", attempts=scheduled_exports.MOST_ATTEMPTS)
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
    made = files(tenant).exclude(pk=lost.pk).get()
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
        if files(tenant).count() == 1:
            row = ReportSchedule.objects.for_workspace(tenant.workspace).get()
            pause_schedule(schedule=row, actor=actor, is_paused=True, now=timezone.now())
        raise OSError("down")

    monkeypatch.setattr(scheduled_exports, "_send", fail)
    send_due()
    assert files(tenant).get().status == "failed"
    schedule.refresh_from_db()
    pause_schedule(schedule=schedule, actor=actor, is_paused=False, now=timezone.now())
    due_again(schedule)
    send_due()
    assert [one.status for one in files(tenant)] == ["failed", "waiting"]
    schedule.refresh_from_db()
    pause_schedule(schedule=schedule, actor=actor, is_paused=False, now=timezone.now())
    assert files(tenant).last().status == "waiting"


def test_a_schedule_that_is_deleted_while_its_file_is_made_leaves_its_record(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REL-1215: the mail has left, and says so; no schedule comes back."""
    schedule = a_schedule(tenant)

    def delete(*_args: object, **_kwargs: object) -> None:
        ReportSchedule.objects.for_workspace(tenant.workspace).filter(pk=schedule.pk).delete()

    monkeypatch.setattr("django.core.mail.EmailMessage.send", delete)
    assert send_due() == 1
    [row] = files(tenant)
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
    made = list(files(tenant))
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


def sent_and_opened(tenant: Tenant) -> tuple[SentFile, str]:
    """Send a file; gives it with the address that its mail leads to."""
    yesterday(tenant)
    a_schedule(tenant, query="tool=echo&outcome=ok")
    send_due()
    [row] = files(tenant)
    found = re.search(
        r"^https?://[^/]+(/w/\S+/sent/\S+/)$", str(mail.outbox[-1].body), re.MULTILINE
    )
    assert found
    return row, found[1]


def test_a_mail_leads_to_its_entries_and_a_click_signs_them_off(tenant: Tenant) -> None:
    """REL-1216: the same time and filters, a note, and who did so when; once for each person, as an entry of the log."""
    row, link = sent_and_opened(tenant)
    client = tenant.client("auditor")
    page = client.get(link, follow=True)
    wanted = page.context["filters"]
    assert (wanted["tool"], wanted["outcome"]) == ("echo", "ok")
    assert (page.context["since"], page.context["until"]) == (row.since, row.until)
    assert len(page.context["entries"]) == 1
    assert "Looked through" in page.content.decode()
    done = client.post(link, {"note": "All fine"}, follow=True).content.decode()
    assert "That is part of the log." in done
    assert f"Signed off by {tenant.auditor.email}" in done
    assert "All fine" in done
    assert "Looked through</" not in done
    sign = SignOff.objects.for_workspace(tenant.workspace).get()
    assert (sign.sent_file_id, sign.query, sign.since, sign.until) == (
        *(row.pk, row.query, row.since),
        row.until,
    )
    assert sign.totals["entries"] == 1
    entry = actions(tenant, Action.REPORT_SIGNED_OFF).get()
    assert entry.pk == sign.entry_id
    assert (entry.details["sent_file"], entry.details["note"]) == (str(row.pk), "All fine")
    again = client.post(link, {"note": "x"}, follow=True).content.decode()
    assert "You have signed this off already." in again
    tenant.client("admin").post(link)
    assert SignOff.objects.for_workspace(tenant.workspace).count() == 2
    shown = client.get(url(tenant, f"schedules/{row.schedule_id}/")).content.decode()
    for words in (tenant.auditor.email, tenant.admin.email, "All fine"):
        assert words in shown
    listed = client.get(url(tenant, "reviews/")).content.decode()
    assert f"the file “{row.name}”" in listed
    assert "tool=echo" in listed


def test_the_next_review_begins_where_the_whole_log_was_reviewed(tenant: Tenant) -> None:
    """REL-1271: a file with filters was no review of everything else in its time."""
    row, link = sent_and_opened(tenant)
    client = tenant.client("auditor")
    until = row.since - timedelta(days=2)
    whole = {"since": f"{until - timedelta(days=1):%Y-%m-%dT%H:%M}", "note": ""}
    client.post(url(tenant, "reviews/"), {**whole, "until": f"{until:%Y-%m-%dT%H:%M}"})
    client.post(link, {"note": "One tool"})
    form = client.get(url(tenant, "reviews/")).context["form"]
    assert form["since"] == f"{until:%Y-%m-%dT%H:%M}"
    SignOff.unscoped.filter(sent_file_id=row.pk).update(query="")
    form = client.get(url(tenant, "reviews/")).context["form"]
    assert form["since"] == f"{row.until:%Y-%m-%dT%H:%M}"


def test_who_signed_off_a_file_is_told_so_behind_many_others(tenant: Tenant) -> None:
    """REL-1216: a list is cut for each file, and never before the reader."""
    row, link = sent_and_opened(tenant)
    SignOff.objects.bulk_create(
        SignOff(
            workspace_id=tenant.workspace.pk,
            sent_file_id=row.pk,
            since=row.since,
            until=row.until,
            signed_by_id=uuid4(),
            signed_by="somebody@example.com",
            entry_id=uuid4(),
        )
        for _number in range(MOST_SIGNERS + 1)
    )
    client = tenant.client("auditor")
    client.post(link, {"note": "Seen"}, follow=True)
    looked = client.get(link, follow=True).context["looked"]
    assert (len(looked["signed"]), looked["may_sign"]) == (MOST_SIGNERS + 1, False)


def test_a_note_that_is_too_long_signs_nothing_off(tenant: Tenant) -> None:
    """REL-1216: and nobody signs off what was not sent."""
    _row, link = sent_and_opened(tenant)
    client = tenant.client("auditor")
    assert (
        b"at most 1000 characters" in client.post(link, {"note": "x" * 1001}, follow=True).content
    )
    files(tenant).update(status="failed")
    assert b"nothing to sign off" in client.post(link, follow=True).content
    assert not SignOff.objects.for_workspace(tenant.workspace).exists()


def test_other_filters_are_not_those_of_the_file(tenant: Tenant) -> None:
    """REL-1216: the log offers to sign off only where it shows what the file is of, on each of its pages."""
    row, link = sent_and_opened(tenant)
    client = tenant.client("auditor")
    address = client.get(link)["Location"]
    assert client.get(address).context["looked"]
    for changed in (
        address.replace("tool=echo", "tool=other"),
        address.replace("outcome=ok&", ""),
        address.replace(str(row.pk), str(uuid4())),
        address.replace(str(row.pk), "x"),
    ):
        assert client.get(changed).context["looked"] is None


def test_the_pages_of_a_long_file_keep_the_way_to_sign_it_off(tenant: Tenant) -> None:
    """REL-1216: people read to the end before they say that they did."""
    noon = timezone.now().replace(hour=12) - timedelta(days=1)
    AuditEntry.objects.bulk_create(
        AuditEntry(
            workspace_id=tenant.workspace.pk,
            created_at=noon + timedelta(seconds=number),
            action=Action.TOOL_CALL_FINISHED.value,
            actor_kind="user",
            actor_label="x",
            source="chat",
            tool_name="echo",
            outcome="ok",
        )
        for number in range(60)
    )
    a_schedule(tenant)
    send_due()
    [row] = files(tenant)
    client = tenant.client("auditor")
    page = client.get(url(tenant, f"sent/{row.pk}/"), follow=True)
    older = client.get(page.context["older_url"])
    assert older.context["looked"]["row"] == row
    assert older.context["newer_url"]


def test_sent_files_are_their_workspaces(two_workspaces: TwoTenants) -> None:
    """SEC-591, SEC-592: another workspace finds nothing, a plain member may nothing, an admin looks and signs off."""
    tenant, other = two_workspaces.a, two_workspaces.b
    row, link = sent_and_opened(tenant)
    stranger = other.client("auditor")
    inside = link.replace(f"/w/{tenant.workspace.slug}/", f"/w/{other.workspace.slug}/")
    for path in (link, inside, f"{inside}again/"):
        assert stranger.post(path).status_code == 404, path
    assert stranger.get(inside).status_code == 404
    page = url(other, f"schedules/{row.schedule_id}/")
    assert stranger.get(page).status_code == 404
    member = tenant.client("member")
    assert member.get(link).status_code == 403
    assert member.post(link).status_code == 403
    assert tenant.client("admin").get(link).status_code == 302
    assert tenant.client("admin").post(f"{link}again/").status_code == 403
    assert not SignOff.objects.for_workspace(tenant.workspace).exists()
    assert ask(other, "get", f"audit-sent-files/{row.pk}/", role="auditor").status_code == 404
    for end in ("sign-off", "send-again"):
        path = f"audit-sent-files/{row.pk}/{end}/"
        assert ask(other, "post", path, role="auditor").status_code == 404
        assert ask(tenant, "post", path, role="member").status_code == 403


def test_sent_files_over_rest(tenant: Tenant) -> None:
    """REL-1217, REL-1214, REL-1210: listed, filtered, signed off, sent again; choices and one for oneself."""
    row, _link = sent_and_opened(tenant)
    listed = ask(tenant, "get", f"audit-sent-files/?schedule={row.schedule_id}", role="auditor")
    [shown] = listed.json()["results"]
    assert (shown["status"], shown["entries"], shown["calls"]) == ("sent", 1, 1)
    assert shown["sent_to"] == [tenant.auditor.email]
    assert f"sent={row.pk}" in shown["log_query"]
    nothing = ask(tenant, "get", f"audit-sent-files/?schedule={uuid4()}", role="auditor").json()
    assert nothing["results"] == []
    path = f"audit-sent-files/{row.pk}/"
    signed = ask(tenant, "post", f"{path}sign-off/", {"note": "Seen"}, role="admin")
    assert signed.status_code == 201, signed.content
    assert signed.json()["sent_file_id"] == str(row.pk)
    assert ask(tenant, "post", f"{path}sign-off/", {}, role="admin").status_code == 409
    found = ask(tenant, "get", f"audit-sign-offs/?sent_file={row.pk}", role="admin").json()
    assert [one["note"] for one in found["results"]] == ["Seen"]
    assert ask(tenant, "post", f"{path}send-again/", role="auditor").status_code == 409
    asked = {"name": "x", "format": "jsonl", "cadence": "daily", "delivery": "mail", "hour": 7}
    body = ask(tenant, "post", "audit-schedules/preview/", asked, role="auditor").json()
    assert len(body["next_runs"]) == 3
    assert body["sample"]["lines"]
    mine = ask(tenant, "post", "audit-schedules/send-to-me/", asked, role="auditor")
    assert (mine.status_code, mine.json()["is_trial"]) == (201, True)
    assert ask(tenant, "post", "audit-schedules/send-to-me/", asked).status_code == 403
    known = ask(tenant, "get", "audit-schedules/choices/", role="auditor").json()
    assert [one["email"] for one in known["people"]] == [tenant.auditor.email]
    assert {"key": "failures", "query": "outcome:failed"}.items() <= known["views"][2].items()
    assert ask(tenant, "get", "audit-schedules/choices/").status_code == 403
    wrong = {**asked, "hour": 24, "time_zone": "Nowhere"}
    assert ask(tenant, "post", "audit-schedules/", wrong, role="auditor").status_code == 400


def test_a_schedules_page_is_read_by_pages(tenant: Tenant) -> None:
    """REL-1217: newest first, each once, with as many statements as for one."""
    schedule = a_schedule(tenant, is_active=False)
    now = timezone.now()

    def made(number: int) -> SentFile:
        return SentFile(
            workspace=tenant.workspace,
            schedule=schedule,
            name=schedule.name,
            format="csv",
            time_zone="UTC",
            since=now - timedelta(days=number + 1),
            until=now - timedelta(days=number),
            sent_to=[tenant.auditor.email],
            entries=number,
            status=SentFile.Status.SENT,
        )

    client, path = tenant.client("auditor"), url(tenant, f"schedules/{schedule.pk}/")
    assert b"Nothing was sent yet." in client.get(path).content
    SentFile.objects.bulk_create([made(1)])
    with CaptureQueriesContext(connection) as few:
        client.get(path)
    SentFile.objects.bulk_create([made(number) for number in range(2, 120)])
    with CaptureQueriesContext(connection) as many:
        page = client.get(path)
    assert len(many) <= len(few)
    seen = [one["row"].pk for one in page.context["files"]]
    rest = client.get(path + page.context["ways"].following)
    seen += [one["row"].pk for one in rest.context["files"]]
    assert len(seen) == len(set(seen)) == 119
    assert b"This page does not exist" in client.get(f"{path}?after=x").content


def test_what_was_sent_long_ago_is_forgotten_and_its_sign_off_stays(
    two_workspaces: TwoTenants,
) -> None:
    """REL-1217: after a fixed time, earlier where the log is kept shorter, and never under a legal hold."""
    tenant, other = two_workspaces.a, two_workspaces.b
    row, link = sent_and_opened(tenant)
    tenant.client("auditor").post(link)
    assert trim_sent_files() == 0

    def sent_ago(days: int) -> None:
        made = database_now() - timedelta(days=days)
        files(tenant).update(created_at=made, until=made, since=made - timedelta(days=1))

    hold = LegalHold.objects.create(workspace_id=tenant.workspace.pk, reason="x", placed_by="x")
    sent_ago(KEEP_DAYS + 2)
    assert trim_sent_files() == 0
    hold.released_at = timezone.now()
    hold.save()
    sent_ago(31)
    AuditPolicy.objects.create(workspace=other.workspace, keep_days=30)
    assert trim_sent_files() == 0
    AuditPolicy.objects.create(workspace=tenant.workspace, keep_days=32)
    assert trim_sent_files() == 0
    AuditPolicy.objects.for_workspace(tenant.workspace).update(keep_days=30)
    assert trim_sent_files() == 1
    assert SignOff.objects.for_workspace(tenant.workspace).get().sent_file_id == row.pk
    client = tenant.client("auditor")
    assert client.get(link).status_code == 404
    assert b"a file that was sent" in client.get(url(tenant, "reviews/")).content


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
