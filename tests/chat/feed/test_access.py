"""Who may go on following a turn: by the session or the token that they came with, as these are now."""

from __future__ import annotations

import threading
from dataclasses import replace
from datetime import timedelta

import pytest
from django.contrib.sessions.models import Session
from django.test import Client
from django.utils import timezone

from chat.feed.access import may_follow
from chat.models import ToolCall, Turn
from chat.services.approvals import decide
from chat.values import Decision
from tests.chat.conftest import Chat
from workspaces.middleware import actor_for
from workspaces.models import ApiToken, Membership
from workspaces.people.browser_sessions import end_other_sessions
from workspaces.people.services import remove_member
from workspaces.people.tokens import issue_token


def key_of(client: Client) -> str:
    key = client.session.session_key
    assert key is not None
    return key


def token_of(chat: Chat) -> ApiToken:
    """A token of the person whose chat it is; from now on they come with it."""
    token, _plain = issue_token(
        workspace=chat.tenant.workspace,
        user=chat.tenant.member,
        name="a program",
        scopes=["chat"],
        expires_at=timezone.now() + timedelta(hours=1),
        actor=chat.actor,
    )
    chat.actor = actor_for(
        chat.tenant.member, chat.tenant.workspace, source=chat.actor.source, token=token
    )
    return token


def run_out(token: ApiToken) -> None:
    rows = ApiToken.objects.for_workspace(token.workspace_id).filter(pk=token.pk)
    rows.update(expires_at=timezone.now() - timedelta(seconds=1))


@pytest.fixture
def turn(chat: Chat) -> Turn:
    chat.model.say("Done.")
    return chat.ask()


def test_a_session_is_that_persons_and_lives(chat: Chat, turn: Turn) -> None:
    """SEC-764: not with another person's session, none, or one that has run out."""
    mine, other = chat.tenant.client("member"), chat.tenant.client("admin")
    assert may_follow(chat.actor, turn, key_of(mine))
    assert not may_follow(chat.actor, turn, key_of(other))
    assert not may_follow(chat.actor, turn, None)
    ended = timezone.now() - timedelta(seconds=1)
    Session.objects.filter(session_key=key_of(mine)).update(expire_date=ended)
    assert not may_follow(chat.actor, turn, key_of(mine))


def test_another_password_ends_it(chat: Chat, turn: Turn) -> None:
    """SEC-764, SEC-21: whoever has a stolen session hears no more."""
    key = key_of(chat.tenant.client("member"))
    chat.tenant.member.set_password("quite another password")
    chat.tenant.member.save()
    assert not may_follow(chat.actor, turn, key)


def test_signing_out_everywhere_else_ends_it(chat: Chat, turn: Turn) -> None:
    """SEC-764, SEC-461: also in a browser that was used in no workspace. One's own goes on."""
    here, elsewhere = chat.tenant.client("member"), chat.tenant.client("member")
    key, session = key_of(elsewhere), here.session
    end_other_sessions(user=chat.tenant.member, session=session, actor=chat.actor)
    assert may_follow(chat.actor, turn, session.session_key)
    assert not may_follow(chat.actor, turn, key)


def test_the_end_of_a_membership_ends_it(chat: Chat, turn: Turn) -> None:
    """SEC-14: with a session that lives."""
    key = key_of(chat.tenant.client("member"))
    rows = Membership.objects.for_workspace(chat.tenant.workspace)
    membership = rows.get(user=chat.tenant.member)
    remove_member(membership=membership, actor=chat.tenant.actor("owner"))
    assert not may_follow(chat.actor, turn, key)


def test_a_token_that_ran_out_ends_it(chat: Chat, turn: Turn) -> None:
    """SEC-764: as one that was revoked does."""
    token = token_of(chat)
    assert may_follow(chat.actor, turn, None)
    run_out(token)
    assert not may_follow(chat.actor, turn, None)
    assert not may_follow(replace(chat.actor, token_id=chat.tenant.member.pk), turn, None)


@pytest.mark.both_engines
def test_a_turn_ends_with_the_token_that_began_it(chat: Chat) -> None:
    """SEC-765, SEC-14: nothing more is asked of the model, and no tool is called, once the token has run out."""
    token = token_of(chat)
    hold = threading.Event()
    chat.model.say("one two", hold=hold)
    sent = chat.send()
    chat.watching.until(lambda event: event["type"] == "text.delta")
    run_out(token)
    chat.watching.turn("cancelled")
    hold.set()
    assert chat.reload(sent.turn).status == "cancelled"


def test_a_call_that_waits_is_not_made_for_a_token_that_ran_out(chat: Chat) -> None:
    """SEC-765: approved later in a browser, its turn does not go on with what the token was for."""
    token = token_of(chat)
    chat.model.call(("counting__destroy", {"what": "x"}))
    chat.model.say("Done.")
    sent = chat.send()
    chat.watching.turn("waiting_for_approval")
    run_out(token)
    person = chat.tenant.actor("member")
    call = ToolCall.objects.for_workspace(chat.tenant.workspace).get(turn=sent.turn)
    decide(call=call, decision=Decision.APPROVED, actor=person)
    chat.watching.turn("failed", "cancelled")
    assert "destroy" not in chat.server.names()
