"""Answers that nobody has looked at yet, on whichever device."""

from __future__ import annotations

import threading
from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from chat.models import Conversation, Turn
from chat.services.seen_answers import mark_seen
from chat.services.turns import stop_turn
from tests.chat.conftest import Chat
from tests.chat.sockets.pages import opened
from workspaces.actors import Source
from workspaces.database import in_database


def shown(chat: Chat) -> Conversation:
    """The conversation as it is now; the model answers once."""
    chat.model.say("Yes.")
    chat.ask()
    return chat.reload_conversation()


def test_an_answer_is_new_until_it_was_seen(chat: Chat) -> None:
    """REL-608: the list says so, watching pages hear when it is seen, and seeing it again writes nothing."""
    row = shown(chat)
    assert row.unseen_answer_at == Turn.objects.for_workspace(row.workspace_id).get().finished_at
    client = chat.tenant.client("member")
    header = {"X-Workspace": chat.tenant.workspace.slug}
    (listed,) = client.get("/api/conversations/", headers=header).json()["results"]
    assert listed["unseen_answer_at"] is not None
    chat.watching.forget()
    mark_seen(conversation=row, until=row.unseen_answer_at, actor=chat.actor)
    changed = chat.watching.until(lambda event: event["type"] == "conversation.changed")
    assert changed["conversation"]["unseen_answer_at"] is None
    seen = chat.reload_conversation()
    with CaptureQueriesContext(connection) as captured:
        mark_seen(conversation=seen, actor=chat.actor)
    assert len(captured) == 0


def test_an_answer_that_ended_after_the_look_stays_new(chat: Chat) -> None:
    """REL-608: a page says up to which answer it was looked at."""
    row = shown(chat)
    assert row.unseen_answer_at is not None
    before = row.unseen_answer_at - timedelta(seconds=1)
    mark_seen(conversation=row, until=before, actor=chat.actor)
    assert chat.reload_conversation().unseen_answer_at == row.unseen_answer_at


def test_what_was_stopped_is_not_new(chat: Chat) -> None:
    """REL-608: the person who stopped an answer knows how it ended."""
    held = threading.Event()
    chat.model.say("word " * 10, hold=held)
    sent = chat.send()
    chat.watching.turn("running")
    stop_turn(turn=sent.turn, actor=chat.actor)
    chat.watching.turn("cancelled")
    held.set()
    assert chat.reload_conversation().unseen_answer_at is None


def test_what_a_program_asked_is_not_new(chat: Chat) -> None:
    """REL-608: a program reads its answers itself."""
    chat.actor = chat.tenant.actor("member", source=Source.API)
    assert shown(chat).unseen_answer_at is None


def test_programs_say_that_an_answer_was_seen(chat: Chat) -> None:
    """REL-608: over REST; with a moment, only up to it."""
    row = shown(chat)
    assert row.unseen_answer_at is not None
    client = chat.tenant.client("member")
    url = f"/api/conversations/{row.pk}/seen/"
    header = {"X-Workspace": chat.tenant.workspace.slug}
    for body, is_new in (
        ({"until": (row.unseen_answer_at - timedelta(seconds=1)).isoformat()}, True),
        ({"until": row.unseen_answer_at.isoformat()}, False),
        ({}, False),
    ):
        answer = client.post(url, body, content_type="application/json", headers=header)
        assert answer.status_code == 204
        assert (chat.reload_conversation().unseen_answer_at is not None) is is_new
    wrong = client.post(url, {"until": "soon"}, content_type="application/json", headers=header)
    assert wrong.status_code == 400
    assert wrong.json()["errors"][0]["attr"] == "until"


@pytest.mark.django_db(transaction=True)
async def test_every_page_of_the_person_hears_that_it_was_seen(chat: Chat) -> None:
    """REL-608: one page says it over its socket; another, which shows the list alone, is nudged."""
    row = await in_database(shown, chat)
    assert row.unseen_answer_at is not None
    async with opened(chat.tenant) as listing, opened(chat.tenant) as reading:
        reply = await reading.answer(
            type="seen", conversation_id=str(row.pk), until=row.unseen_answer_at.isoformat()
        )
        assert reply["type"] == "accepted"
        await listing.until(
            lambda event: event["type"] == "workspace.changed" and event["id"] == str(row.pk)
        )
        bad = await reading.answer(type="seen", conversation_id=str(row.pk), until="soon")
        assert bad["type"] == "error"
    assert (await in_database(chat.reload_conversation)).unseen_answer_at is None
