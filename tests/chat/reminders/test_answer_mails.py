"""Mails about finished answers, for people who want them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.core import mail

from chat.models import Conversation, ReminderChoice, Turn
from chat.reminders import recipients
from chat.services.seen_answers import mark_seen
from chat.tasks import remind_by_mail
from tests.chat.conftest import Chat
from tests.chat.reminders.waiting_people import answered, chosen, mails_are_sent, person_of
from workspaces.database import database_now
from workspaces.models import User

After = ReminderChoice.After
__all__ = ["mails_are_sent"]


def wants(chat: Chat, **values: Any) -> User:
    """A person who wants mails about answers after a quarter of an hour, as they did an hour ago."""
    person = person_of(chat)
    chosen(chat.tenant, person, **{"answers_after": After.QUARTER, **values})
    rows = ReminderChoice.objects.for_workspace(chat.tenant.workspace)
    rows.update(answers_told_until=database_now() - timedelta(hours=1))
    return person


def test_a_mail_tells_once_of_an_answer_that_nobody_saw(chat: Chat) -> None:
    """REL-610: after the chosen time, with a link to the exact message and nothing of what it says."""
    person = wants(chat)
    turn = answered(chat, minutes_ago=14)
    remind_by_mail()
    assert mail.outbox == []
    turn = answered(chat, minutes_ago=16)
    remind_by_mail()
    (sent,) = mail.outbox
    assert sent.to == [person.email]
    assert sent.subject == f"An answer in {chat.tenant.workspace.name} has ended"
    message = turn.messages.get(role="assistant")
    assert f"/c/{chat.conversation.pk}/#message-{message.pk}\n" in str(sent.body)
    assert "“Tomatoes”" in str(sent.body)
    assert "Water" not in str(sent.body)
    remind_by_mail()
    assert len(mail.outbox) == 1


def test_an_answer_that_failed_is_told_as_such(chat: Chat) -> None:
    """REL-610: a person who waits for it wants to know; the link leads to the question where nothing was said."""
    wants(chat)
    turn = answered(chat, minutes_ago=16)
    Turn.objects.for_workspace(turn.workspace_id).update(status="failed")
    turn.messages.filter(role="assistant").delete()
    remind_by_mail()
    (sent,) = mail.outbox
    assert "The answer in “Tomatoes” could not be finished." in str(sent.body)
    assert f"#message-{turn.user_message_id}\n" in str(sent.body)


def test_nobody_is_mailed_about_answers_who_did_not_ask_for_it(chat: Chat) -> None:
    """REL-610: it is off at first, and when it is switched on, it tells of what ends from then on."""
    person = person_of(chat)
    answered(chat, minutes_ago=61)
    assert recipients.find_reminders() == 0
    chosen(chat.tenant, person, answers_after=After.FIVE_MINUTES)
    assert recipients.find_reminders() == 0


@pytest.mark.parametrize("reason", ["seen", "short", "deleted"])
def test_there_is_no_mail_where_there_is_no_news(chat: Chat, reason: str) -> None:
    """REL-610: what was seen on any device, what took a moment alone, what was deleted."""
    wants(chat)
    answered(chat, minutes_ago=16, seconds=5 if reason == "short" else 60)
    rows = Conversation.objects.for_workspace(chat.tenant.workspace)
    if reason == "seen":
        mark_seen(conversation=chat.reload_conversation(), actor=chat.actor)
    elif reason == "deleted":
        rows.update(deleted_at=database_now())
    assert recipients.find_reminders() == 0


def test_an_answer_that_is_seen_before_the_mail_goes_is_left_out(chat: Chat) -> None:
    """REL-610: the mail is written when it is sent; quiet hours put it off."""
    now = database_now()
    wants(
        chat,
        quiet_from=(now - timedelta(hours=1)).time(),
        quiet_to=(now + timedelta(hours=1)).time(),
    )
    answered(chat, minutes_ago=16)
    assert recipients.find_reminders() == 0
    rows = ReminderChoice.objects.for_workspace(chat.tenant.workspace)
    rows.update(quiet_from=None, quiet_to=None)
    assert recipients.find_reminders() == 1
    mark_seen(conversation=chat.reload_conversation(), actor=chat.actor)
    remind_by_mail()
    assert mail.outbox == []


def test_the_choice_is_on_the_page_and_over_rest(chat: Chat) -> None:
    """REL-610: never, until a person chooses otherwise; another delay is refused at its field."""
    client = chat.tenant.client("member")
    url = f"/w/{chat.tenant.workspace.slug}/reminders/"
    header = {"X-Workspace": chat.tenant.workspace.slug}
    assert client.get("/api/reminders/", headers=header).json()["answers_after"] == 0
    body = {"mail_after": "60", "answers_after": "240", "time_zone": "UTC"}
    assert client.post(url, {**body, "answers_after": "7"}).status_code == 422
    assert client.post(url, body).status_code == 302
    assert client.get("/api/reminders/", headers=header).json()["answers_after"] == 240
    refused = client.post(
        "/api/reminders/",
        {**body, "answers_after": 7},
        content_type="application/json",
        headers=header,
    )
    assert refused.json()["errors"][0]["attr"] == "answers_after"
