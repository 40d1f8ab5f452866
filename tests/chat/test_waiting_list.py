"""One list of what waits for a person, across all their conversations."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from chat.models import ToolCall
from chat.services.approvals import decide
from chat.values import Decision
from tests.chat.conftest import Chat
from tests.chat.test_approvals import waiting_call
from tests.chat.test_inputs import answer, wait_for_question
from workspaces.database import database_now


def listed(chat: Chat, role: str = "member") -> list[dict[str, Any]]:
    """What the list says to this person."""
    client = chat.tenant.client(role)
    answer = client.get("/api/waiting/", headers={"X-Workspace": chat.tenant.workspace.slug})
    assert answer.status_code == 200
    found: list[dict[str, Any]] = answer.json()
    return found


def role_of(chat: Chat) -> str:
    """Whose conversation it is."""
    return next(
        role
        for role, person in chat.tenant.people.items()
        if person.pk == chat.conversation.owner_id
    )


def test_an_approval_is_listed_until_it_is_decided(chat: Chat) -> None:
    """REL-374: with all that the decision needs, and the message where it stands; nobody else sees it."""
    call = waiting_call(chat)
    mine = role_of(chat)
    (one,) = listed(chat, mine)
    assert one["tool_call"]["id"] == str(call.pk)
    assert one["tool_call"]["arguments"] == {"what": "the world"}
    assert one["message_id"] == str(call.message_id)
    assert one["conversation"]["id"] == str(chat.conversation.pk)
    assert one["input_request"] is None
    for other in set(chat.tenant.people) - {mine}:
        assert listed(chat, other) == []
    chat.model.say("gone")
    decide(call=call, decision=Decision.REFUSED, actor=chat.actor)
    chat.watching.turn("completed")
    assert listed(chat, mine) == []


def test_what_has_run_out_is_not_listed(chat: Chat) -> None:
    """REL-374: nobody can decide about it any more."""
    call = waiting_call(chat)
    ToolCall.objects.for_workspace(chat.tenant.workspace).filter(pk=call.pk).update(
        approval_expires_at=database_now() - timedelta(seconds=1)
    )
    assert listed(chat, role_of(chat)) == []


def test_a_question_is_listed_until_it_is_answered(asked: Chat) -> None:
    """REL-374: with its form, and the message of the call that it was asked for."""
    row = wait_for_question(asked)
    (one,) = listed(asked, role_of(asked))
    assert one["tool_call"] is None
    assert one["input_request"]["id"] == str(row.pk)
    assert one["message_id"] == str(asked.calls()[0].message_id)
    answer(asked, row, "decline")
    asked.watching.turn("completed")
    assert listed(asked, role_of(asked)) == []
