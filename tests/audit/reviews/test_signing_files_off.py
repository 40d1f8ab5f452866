"""What is done with a file that was sent: its entries are looked through and signed off."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.core import mail
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from audit.actions import Action
from audit.models import AuditEntry, AuditPolicy, LegalHold, SentFile, SignOff
from audit.reviews.scheduled_exports import send_due
from audit.reviews.sent_files import KEEP_DAYS, MOST_SIGNERS, trim_sent_files
from tests.audit.exports.planned import a_schedule, sent_files, yesterday
from tests.audit.retention.asking import ask
from tests.audit.views.log_pages import url
from tests.factories import Tenant, TwoTenants
from workspaces.database import database_now

pytestmark = pytest.mark.django_db


def actions(tenant: Tenant, action: Action) -> Any:
    return AuditEntry.objects.for_workspace(tenant.workspace).filter(action=action.value)


def sent_and_opened(tenant: Tenant) -> tuple[SentFile, str]:
    """Send a file; gives it with the address that its mail leads to."""
    yesterday(tenant)
    a_schedule(tenant, query="tool=echo&outcome=ok")
    send_due()
    [row] = sent_files(tenant)
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
    sent_files(tenant).update(status="failed")
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
    [row] = sent_files(tenant)
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
        sent_files(tenant).update(created_at=made, until=made, since=made - timedelta(days=1))

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
