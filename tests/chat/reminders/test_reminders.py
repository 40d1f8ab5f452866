"""Mails about what waits for people."""

from __future__ import annotations

import smtplib
from datetime import UTC, datetime, time, timedelta
from typing import Any

import pytest
from django.core import mail
from django.core.mail import EmailMultiAlternatives
from pytest_django import Settings

from chat.models import ReminderChoice, ReminderMail, ToolCall
from chat.reminders import mailing, recipients
from chat.reminders.choices import ReminderDraft, choice_of, choose, is_quiet
from chat.services.approvals import decide
from chat.services.resolutions import resolve_call
from chat.tasks import remind_by_mail
from chat.values import Decision, Resolution
from tests.chat.conftest import Chat
from tests.chat.reminders.waiting_people import (
    After,
    chosen,
    mails_are_sent,  # noqa: F401  a fixture
    person_of,
    waits_since,
)
from tests.factories import Tenant
from tests.workspaces.people.asked import send
from workspaces.database import database_now
from workspaces.errors import InvalidInput, PermissionDenied
from workspaces.models import AccessRequest, Membership, User, Workspace
from workspaces.people.access_requests import decide_request
from workspaces.people.profiles import change_profile


def test_a_mail_tells_once_what_has_waited(chat: Chat) -> None:
    """REL-550: after the chosen time, with a link to the chat and nothing of the call."""
    person = person_of(chat)
    chosen(chat.tenant, person, mail_after=After.QUARTER)
    waits_since(chat, 14)
    remind_by_mail()
    assert mail.outbox == []
    rows = ToolCall.objects.for_workspace(chat.tenant.workspace)
    rows.update(created_at=database_now() - timedelta(minutes=16))
    remind_by_mail()
    (sent,) = mail.outbox
    assert isinstance(sent, EmailMultiAlternatives)
    assert sent.to == [person.email]
    assert sent.subject == f"Something waits for you in {chat.tenant.workspace.name}"
    (call,) = chat.calls()
    assert f"/c/{chat.conversation.pk}/#message-{call.message_id}\n" in str(sent.body)
    assert "/reminders/" in str(sent.body)
    assert "the world" not in str(sent.body), "an argument of the call"
    assert sent.extra_headers["Auto-Submitted"] == "auto-generated"
    remind_by_mail()
    assert len(mail.outbox) == 1


def test_who_never_chose_is_mailed_after_an_hour(chat: Chat) -> None:
    """REL-550: and who chose never, not at all."""
    person = person_of(chat)
    waits_since(chat, 61)
    assert choice_of(workspace=chat.tenant.workspace, person=person).mail_after == After.HOUR
    assert recipients.find_reminders() == 1
    ReminderChoice.objects.for_workspace(chat.tenant.workspace).update(told_until=None)
    chosen(chat.tenant, person, mail_after=After.NEVER)
    assert recipients.find_reminders() == 0


def test_what_was_decided_meanwhile_is_not_mailed(chat: Chat) -> None:
    """REL-550: the mail is written when it is sent."""
    person_of(chat)
    call = waits_since(chat, 61)
    assert recipients.find_reminders() == 1
    chat.model.say("gone")
    decide(call=call, decision=Decision.REFUSED, actor=chat.actor)
    chat.watching.turn("completed")
    assert mailing.deliver_due() == 1
    assert mail.outbox == []
    assert ReminderMail.objects.across_workspaces().get().status == "delivered"


@pytest.mark.parametrize("reason", ["address", "member", "server"])
def test_nobody_else_is_mailed(chat: Chat, settings: Settings, reason: str) -> None:
    """SEC-395: no address that nobody confirmed, nobody who left, nothing without a mail server."""
    person = person_of(chat)
    waits_since(chat, 61)
    if reason == "address":
        User.objects.filter(pk=person.pk).update(is_address_confirmed=False)
    elif reason == "member":
        Membership.objects.for_workspace(chat.tenant.workspace).filter(user=person).delete()
    else:
        settings.TRELLIS = settings.TRELLIS.model_copy(update={"email_host": None})
    remind_by_mail()
    assert mail.outbox == []


def test_a_mail_that_waits_does_not_leave_a_suspended_workspace(chat: Chat) -> None:
    """REL-2613."""
    person_of(chat)
    waits_since(chat, 61)
    assert recipients.find_reminders() == 1
    Workspace.objects.filter(pk=chat.tenant.workspace.pk).update(is_active=False)
    assert mailing.deliver_due() == 1
    assert mail.outbox == []


def test_administrators_are_mailed_of_what_members_ask_for(tenant: Tenant) -> None:
    """REL-585: each as they chose, without the request's words; not who asked, and nothing that was decided."""
    people = [tenant.owner, tenant.people["admin"], tenant.member]
    User.objects.filter(pk__in=[one.pk for one in people]).update(is_address_confirmed=True)
    chosen(tenant, tenant.owner, mail_after=After.NEVER)
    assert send(tenant, name="Weather", reason="Trips").status_code == 302
    assert send(tenant, "admin", name="Calendar").status_code == 302
    rows = AccessRequest.objects.for_workspace(tenant.workspace)
    rows.update(created_at=database_now() - timedelta(minutes=59))
    remind_by_mail()
    assert mail.outbox == []
    rows.update(created_at=database_now() - timedelta(minutes=61))
    remind_by_mail()
    (sent,) = mail.outbox
    assert (sent.to, "1" in sent.subject) == ([tenant.people["admin"].email], False)
    body = str(sent.body)
    assert "A request of a member waits for your decision." in body
    assert f"/w/{tenant.workspace.slug}/requests/" in body
    assert "Weather" not in body
    assert "Trips" not in body
    remind_by_mail()
    assert len(mail.outbox) == 1


def test_a_decided_request_is_not_mailed(tenant: Tenant) -> None:
    """REL-585: the mail is written when it is sent."""
    User.objects.filter(pk=tenant.owner.pk).update(is_address_confirmed=True)
    assert send(tenant).status_code == 302
    rows = AccessRequest.objects.for_workspace(tenant.workspace)
    rows.update(created_at=database_now() - timedelta(minutes=61))
    assert recipients.find_reminders() >= 1
    decide_request(request=rows.get(), is_granted=True, note="", actor=tenant.actor("admin"))
    mailing.deliver_due()
    assert mail.outbox == []


def test_a_request_that_nobody_decides_is_not_looked_at_for_ever(tenant: Tenant) -> None:
    """REL-585: whoever wanted a mail has had one after a week."""
    User.objects.filter(pk=tenant.owner.pk).update(is_address_confirmed=True)
    assert send(tenant).status_code == 302
    rows = AccessRequest.objects.for_workspace(tenant.workspace)
    rows.update(created_at=database_now() - timedelta(days=8))
    assert recipients.find_reminders() == 0


def test_a_mail_that_waited_for_the_server_keeps_quiet_hours(
    chat: Chat, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REL-1390: it is put off until they are over, and does not come once nobody wants it any more."""
    person = person_of(chat)
    waits_since(chat, 61)
    assert recipients.find_reminders() == 1
    now = database_now()
    quiet = {
        "quiet_from": (now - timedelta(hours=1)).time(),
        "quiet_to": (now + timedelta(hours=1)).time(),
        "time_zone": "UTC",
    }
    chosen(chat.tenant, person, mail_after=After.HOUR, **quiet)
    assert mailing.deliver_due() == 1
    row = ReminderMail.objects.across_workspaces().get()
    assert (mail.outbox, row.status, row.attempts) == ([], "waiting", 0)
    assert now < row.next_attempt_at < now + timedelta(minutes=11)
    chosen(chat.tenant, person, mail_after=After.HOUR)
    rows = ReminderMail.objects.across_workspaces()
    rows.update(next_attempt_at=now)
    assert mailing.deliver_due() == 1
    assert len(mail.outbox) == 1


@pytest.mark.parametrize("reason", ["choice", "address"])
def test_a_mail_that_waits_is_not_sent_to_who_does_not_want_it_any_more(
    chat: Chat, reason: str
) -> None:
    """REL-1390, SEC-395: who has switched them off, or has another address that nobody confirmed."""
    person = person_of(chat)
    waits_since(chat, 61)
    assert recipients.find_reminders() == 1
    if reason == "choice":
        chosen(chat.tenant, person, mail_after=After.NEVER)
    else:
        User.objects.filter(pk=person.pk).update(
            email="other@example.org", is_address_confirmed=False
        )
    assert mailing.deliver_due() == 1
    assert mail.outbox == []
    assert ReminderMail.objects.across_workspaces().get().status == "delivered"


def test_a_mail_that_is_not_taken_is_sent_again(
    chat: Chat, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REL-550: from the outbox, with its own id."""
    person_of(chat)
    waits_since(chat, 61)

    def refuse(self: EmailMultiAlternatives, fail_silently: bool = False) -> int:
        raise smtplib.SMTPServerDisconnected("gone")

    with monkeypatch.context() as patch:
        patch.setattr(EmailMultiAlternatives, "send", refuse)
        remind_by_mail()
    row = ReminderMail.objects.across_workspaces().get()
    assert (row.status, row.attempts) == ("waiting", 1)
    assert row.last_error == "The mail could not be handed over."
    ReminderMail.objects.across_workspaces().update(next_attempt_at=database_now())
    remind_by_mail()
    (sent,) = mail.outbox
    assert str(row.pk) in sent.extra_headers["Message-ID"]


def test_quiet_hours_put_mails_off(chat: Chat) -> None:
    """REL-551: by the person's clock; what came meanwhile is mailed after them."""
    person = person_of(chat)
    waits_since(chat, 61)
    now = database_now()
    chosen(
        chat.tenant,
        person,
        quiet_from=(now - timedelta(hours=1)).time(),
        quiet_to=(now + timedelta(hours=1)).time(),
    )
    assert recipients.find_reminders() == 0
    chosen(chat.tenant, person)
    assert recipients.find_reminders() == 1


def test_quiet_hours_go_past_midnight_and_follow_the_time_zone(tenant: Tenant) -> None:
    """REL-551: 22:00 to 07:00 in Zurich, summer and winter."""
    choice = ReminderChoice(
        owner=tenant.member, quiet_from=time(22), quiet_to=time(7), time_zone="Europe/Zurich"
    )
    for hour, is_in_winter, is_in_summer in [
        (4, True, True),
        (5, True, False),
        (6, False, False),
        (20, False, True),
        (21, True, True),
    ]:
        assert is_quiet(choice, datetime(2026, 1, 15, hour, 30, tzinfo=UTC)) is is_in_winter, hour
        assert is_quiet(choice, datetime(2026, 7, 15, hour, 30, tzinfo=UTC)) is is_in_summer, hour


def test_quiet_hours_follow_the_time_zone_of_the_settings(
    tenant: Tenant, django_assert_num_queries: Any
) -> None:
    """REL-856: as soon as somebody has chosen one. What they gave with the quiet hours holds again without it."""
    person = tenant.member
    chosen(tenant, person, quiet_from=time(22), quiet_to=time(7), time_zone="Europe/Zurich")
    at = datetime(2026, 1, 15, 21, 30, tzinfo=UTC)
    now_quiet = is_quiet(choice_of(workspace=tenant.workspace, person=person), at)
    assert now_quiet
    change_profile(user=person, time_zone="America/New_York")
    assert not is_quiet(choice_of(workspace=tenant.workspace, person=person), at)
    people = {(tenant.workspace.pk, person.pk): [at]}
    with django_assert_num_queries(2):
        (choice,) = recipients.choices_of_members(people, have_address=False).values()
        assert not is_quiet(choice, at)
        assert is_quiet(choice, at + timedelta(hours=6))
    change_profile(user=person, time_zone="")
    assert is_quiet(choice_of(workspace=tenant.workspace, person=person), at)


def test_the_page_says_which_time_zone_the_quiet_hours_follow(tenant: Tenant) -> None:
    """REL-856: it asks for one only where the settings have none, and leads there."""
    client, person = tenant.client("member"), tenant.member
    url = f"/w/{tenant.workspace.slug}/reminders/"
    page = client.get(url).content.decode()
    assert 'name="time_zone"' in page
    assert 'href="/account/formats/"' in page
    change_profile(user=person, time_zone="Asia/Tokyo")
    page = client.get(url).content.decode()
    assert 'name="time_zone"' not in page
    assert "Quiet hours follow your time zone, Asia/Tokyo." in page
    body = {"mail_after": "15", "answers_after": "0", "quiet_from": "22:00", "quiet_to": "07:00"}
    assert client.post(url, {**body, "time_zone": "Europe/Zurich"}).status_code == 302
    assert choice_of(workspace=tenant.workspace, person=person).zone == "Asia/Tokyo"


def test_programs_are_told_where_the_time_zone_is_changed(tenant: Tenant) -> None:
    """REL-856: another time zone than the one of the settings would have no effect, so it is refused."""
    client = tenant.client("member")
    change_profile(user=tenant.member, time_zone="Asia/Tokyo")

    def send(**body: Any) -> Any:
        given = {"mail_after": 5, "quiet_from": "22:00", "quiet_to": "07:00", **body}
        header = {"X-Workspace": tenant.workspace.slug}
        return client.post(
            "/api/reminders/", given, content_type="application/json", headers=header
        )

    assert send().json()["time_zone"] == "Asia/Tokyo"
    assert send(time_zone="Asia/Tokyo").status_code == 200
    (fault,) = send(time_zone="Europe/Zurich").json()["errors"]
    assert fault["attr"] == "time_zone"
    assert fault["detail"].startswith("Your settings say Asia/Tokyo.")


def test_a_choice_is_checked_and_ones_own(tenant: Tenant) -> None:
    """REL-551, SEC-395: faults stand at their fields, and nobody chooses for somebody else."""
    faults: list[tuple[dict[str, Any], str]] = [
        ({"mail_after": 7}, "mail_after"),
        ({"time_zone": "Middle/Earth"}, "time_zone"),
        ({"quiet_from": time(22)}, "quiet_to"),
        ({"quiet_to": time(22)}, "quiet_from"),
        ({"quiet_from": time(22), "quiet_to": time(22)}, "quiet_to"),
    ]
    for wrong, field in faults:
        with pytest.raises(InvalidInput) as caught:
            chosen(tenant, tenant.member, **wrong)
        assert set(caught.value.fields) == {field}
    with pytest.raises(PermissionDenied):
        choose(
            workspace=tenant.workspace,
            person=tenant.member,
            draft=ReminderDraft(mail_after=After.DAY),
            actor=tenant.actor("owner"),
        )


def test_the_page_keeps_a_choice(tenant: Tenant) -> None:
    """REL-551: faults at their fields, and what was typed stays."""
    client = tenant.client("member")
    url = f"/w/{tenant.workspace.slug}/reminders/"
    assert 'data-time-zone="guess"' in client.get(url).content.decode()
    body = {
        "mail_after": "15",
        "answers_after": "0",
        "quiet_from": "22:00",
        "quiet_to": "",
        "time_zone": "Europe/Zurich",
    }
    refused = client.post(url, body)
    assert refused.status_code == 422
    assert "Quiet hours need a beginning and an end." in refused.content.decode()
    assert client.post(url, {**body, "quiet_to": "07:00"}).status_code == 302
    choice = choice_of(workspace=tenant.workspace, person=tenant.member)
    assert (choice.mail_after, choice.quiet_to) == (15, time(7))
    page = client.get(url).content.decode()
    assert 'value="07:00"' in page
    assert 'data-time-zone="kept"' in page


def test_programs_keep_a_choice(tenant: Tenant) -> None:
    """REL-551: over REST, with the same checks."""
    client = tenant.client("member")
    header = {"X-Workspace": tenant.workspace.slug}
    kept = client.get("/api/reminders/", headers=header).json()
    assert kept == {
        "mail_after": 60,
        "answers_after": 0,
        "quiet_from": None,
        "quiet_to": None,
        "time_zone": "UTC",
    }
    body = {"mail_after": 5, "quiet_from": "22:00", "quiet_to": "07:00", "time_zone": "Asia/Tokyo"}
    answer = client.post("/api/reminders/", body, content_type="application/json", headers=header)
    assert answer.status_code == 200
    assert client.get("/api/reminders/", headers=header).json()["time_zone"] == "Asia/Tokyo"
    for wrong in ({"mail_after": 7}, {**body, "quiet_to": None}, {**body, "time_zone": "x"}):
        refused = client.post(
            "/api/reminders/", wrong, content_type="application/json", headers=header
        )
        assert refused.status_code in {400, 422}, refused.content
        assert refused.json()["errors"][0]["attr"] in wrong


@pytest.mark.both_engines
def test_a_call_of_unknown_outcome_is_mailed_as_what_else_waits(chat: Chat) -> None:
    """REL-915: after the chosen time since its outcome is unknown, not in quiet hours, and once."""
    person = person_of(chat)
    chosen(chat.tenant, person, mail_after=After.QUARTER)
    call = chat.lose_call()
    rows = ToolCall.objects.for_workspace(chat.tenant.workspace).filter(pk=call.pk)
    rows.update(created_at=database_now() - timedelta(hours=2))
    remind_by_mail()
    assert mail.outbox == [], "it became unknown just now"
    rows.update(finished_at=database_now() - timedelta(minutes=16))
    now = database_now()
    quiet = {
        "quiet_from": (now - timedelta(hours=1)).time(),
        "quiet_to": (now + timedelta(hours=1)).time(),
    }
    chosen(chat.tenant, person, mail_after=After.QUARTER, **quiet)
    remind_by_mail()
    assert mail.outbox == []
    chosen(chat.tenant, person, mail_after=After.QUARTER)
    remind_by_mail()
    (sent,) = mail.outbox
    assert "The outcome of a call is unknown in “" in str(sent.body)
    assert f"/c/{chat.conversation.pk}/#message-{call.message_id}\n" in str(sent.body)
    remind_by_mail()
    assert len(mail.outbox) == 1


def test_a_call_of_unknown_outcome_that_was_settled_is_not_mailed(chat: Chat) -> None:
    """REL-915: nor one whose time is over."""
    person_of(chat)
    call = chat.lose_call()
    rows = ToolCall.objects.for_workspace(chat.tenant.workspace).filter(pk=call.pk)
    rows.update(finished_at=database_now() - timedelta(hours=2))
    rows.update(resolution_due_at=database_now() - timedelta(seconds=1))
    assert recipients.find_reminders() == 0
    rows.update(resolution_due_at=database_now() + timedelta(hours=1))
    assert recipients.find_reminders() == 1
    chat.model.say("all right")
    resolve_call(call=call, resolution=Resolution.GIVE_UP, actor=chat.actor)
    chat.watching.turn("completed")
    assert mailing.deliver_due() == 1
    assert mail.outbox == []
