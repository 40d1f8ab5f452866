"""One list of what waits for a person, across all their conversations."""

from __future__ import annotations

import re
from copy import copy
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from uuid_utils.compat import uuid7

from chat.models import ToolCall, Turn
from chat.reminders.digest import NewsKind, waiting_since, waiting_things
from chat.reporting import approvals
from chat.services.approvals import decide, expire_approvals
from chat.services.pending_decisions import waiting_for
from chat.services.resolutions import expire_resolutions, resolve_call, settle_known
from chat.values import Decision, Resolution, ToolCallStatus, TurnStatus
from tests.chat.conftest import Chat
from tests.chat.services.questions import answer, wait_for_question
from tests.chat.services.waiting_calls import waiting_call
from tests.factories import Tenant, TwoTenants
from tests.workspaces.people.asked import send
from workspaces.database import database_now
from workspaces.models import AccessRequest, Membership
from workspaces.people.access_requests import decide_request, withdraw_request
from workspaces.people.tokens import issue_token


def listed(chat: Chat, role: str = "member") -> list[dict[str, Any]]:
    """What the list says to this person."""
    return listed_in(chat.tenant, role)


def listed_in(tenant: Tenant, role: str) -> list[dict[str, Any]]:
    answer = tenant.client(role).get(
        "/api/waiting/", headers={"X-Workspace": tenant.workspace.slug}
    )
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


def test_a_call_of_unknown_outcome_is_listed_until_somebody_says_what_became_of_it(
    chat: Chat,
) -> None:
    """REL-878: it stops the answer as an approval does, and so it is in the list; not when its time is over."""
    unknown = chat.lose_call()
    mine = role_of(chat)
    (one,) = listed(chat, mine)
    assert one["tool_call"]["id"] == str(unknown.pk)
    assert one["tool_call"]["status"] == "outcome_unknown"
    assert one["tool_call"]["resolution"]["due_at"]
    for other in set(chat.tenant.people) - {mine}:
        assert listed(chat, other) == []
    (thing,) = waiting_things(
        workspace=chat.tenant.workspace,
        person=chat.conversation.owner,
        since=unknown.created_at,
        until=database_now(),
    )
    assert thing.kind is NewsKind.UNKNOWN
    rows = ToolCall.objects.for_workspace(chat.tenant.workspace).filter(pk=unknown.pk)
    rows.update(resolution_due_at=database_now() - timedelta(seconds=1))
    assert listed(chat, mine) == []
    rows.update(resolution_due_at=database_now() + timedelta(hours=1))
    chat.model.say("all right")
    resolve_call(call=unknown, resolution=Resolution.GIVE_UP, actor=chat.actor)
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


def asked_for(tenant: Tenant, **changes: str) -> AccessRequest:
    """What a member has asked for."""
    assert send(tenant, **changes).status_code == 302
    row: AccessRequest = AccessRequest.objects.for_workspace(tenant.workspace).latest("created_at")
    return row


@pytest.mark.django_db
def test_a_request_is_listed_for_administrators_until_it_is_decided(tenant: Tenant) -> None:
    """REL-584: with who asks, for what and why, and the page where it is set up; it belongs to no conversation."""
    row = asked_for(tenant, kind="server", name="Weather", reason="Trips")
    for role in ("admin", "owner"):
        (one,) = listed_in(tenant, role)
        assert (one["conversation"], one["tool_call"], one["input_request"]) == (None, None, None)
        asked = one["access_request"]
        assert (asked["id"], asked["name"], asked["reason"]) == (str(row.pk), "Weather", "Trips")
        assert asked["requester_email"] == tenant.member.email
        path = f"/w/{tenant.workspace.slug}/catalogue/?q=Weather"
        assert asked["path_to_set_up"] == path
        assert tenant.client(role).get(path).status_code == 200
    decide_request(request=row, is_granted=False, note="", actor=tenant.actor("admin"))
    assert listed_in(tenant, "owner") == []
    again = asked_for(tenant)
    assert len(listed_in(tenant, "admin")) == 1
    withdraw_request(request=again, actor=tenant.actor("member"))
    assert listed_in(tenant, "admin") == []


@pytest.mark.django_db
def test_nobody_waits_for_their_own_answer(tenant: Tenant) -> None:
    """REL-584: what an administrator asks for waits for the others."""
    assert send(tenant, "admin").status_code == 302
    assert listed_in(tenant, "admin") == []
    assert len(listed_in(tenant, "owner")) == 1


@pytest.mark.django_db
def test_requests_are_listed_for_nobody_else(two_workspaces: TwoTenants) -> None:
    """SEC-397: not for members and auditors, another workspace, a token for less, or who no longer decides."""
    tenant, other = two_workspaces.a, two_workspaces.b
    asked_for(tenant)
    for role in ("member", "auditor"):
        assert listed_in(tenant, role) == []
    assert listed_in(other, "admin") == []
    _, token = issue_token(
        workspace=tenant.workspace,
        user=tenant.people["admin"],
        name="Only chat",
        scopes=["chat"],
        expires_at=database_now() + timedelta(days=1),
        actor=tenant.actor("admin"),
    )
    answer = Client().get("/api/waiting/", headers={"Authorization": f"Bearer {token}"})
    assert (answer.status_code, answer.json()) == (200, [])
    Membership.objects.for_workspace(tenant.workspace).filter(user=tenant.people["admin"]).update(
        role="member"
    )
    assert listed_in(tenant, "admin") == []


@pytest.mark.django_db
def test_pages_outside_the_chat_tell_how_much_waits(two_workspaces: TwoTenants) -> None:
    """REL-590, SEC-397: nothing where nothing waits, and nothing of other workspaces."""
    tenant, other = two_workspaces.a, two_workspaces.b
    path = f"/w/{tenant.workspace.slug}/waiting/"
    admin = tenant.client("admin")
    assert admin.get(path).content.strip() == b""
    asked_for(tenant)
    page = admin.get(path).content.decode()
    assert "Waiting for you: 1 item" in page
    assert f'href="/w/{tenant.workspace.slug}/?waiting"' in page
    assert f'hx-get="{path}"' in admin.get("/admin/").content.decode()
    assert tenant.client("member").get(path).content.strip() == b""
    assert other.client("admin").get(path).status_code == 404


LOOKING = {
    "the list": lambda chat: waiting_for(
        workspace=chat.tenant.workspace, person=chat.conversation.owner
    ),
    "reminders": lambda _chat: waiting_since(None, database_now()),
    "the overview": lambda chat: approvals(chat.tenant.workspace.pk, 10),
    "approvals that run out": lambda _chat: expire_approvals(),
    "words that nobody said in time": lambda _chat: expire_resolutions(),
    "ends that the log has learned of": lambda _chat: settle_known(),
}


@pytest.mark.both_engines
def test_what_waits_is_found_without_looking_at_calls_that_have_ended(chat: Chat) -> None:
    """REL-902: of all the calls that were ever made, an index holds those that wait."""
    call = waiting_call(chat)
    turns = [copy(call.turn) for _ in range(300)]
    for turn in turns:
        turn.pk, turn.status = uuid7(), TurnStatus.COMPLETED.value
    Turn.objects.bulk_create(turns)
    rows = [copy(call) for _ in range(3_000)]
    for number, row in enumerate(rows, 1):
        row.pk, row.position, row.status = uuid7(), number, ToolCallStatus.SUCCEEDED.value
        row.turn = turns[number % len(turns)]
    ToolCall.objects.bulk_create(rows, batch_size=500)
    asked: list[tuple[str, Any]] = []

    def keep(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if 'FROM "chat_toolcall"' in sql:
            asked.append((sql, params))
        return execute(sql, params, many, context)

    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
        explain = "EXPLAIN QUERY PLAN" if connection.vendor == "sqlite" else "EXPLAIN"
        for name, look in LOOKING.items():
            asked.clear()
            with connection.execute_wrapper(keep):
                look(chat)
            plans = []
            for sql, params in asked:
                cursor.execute(f"{explain} {sql}", params)
                plans.append(" ".join(str(row) for row in cursor.fetchall()))
            assert "tool_call_waiting" in plans[0], name
            for plan in plans:
                assert not re.search(
                    r"Seq Scan on chat_toolcall|SCAN chat_toolcall(?! USING)", plan
                )
