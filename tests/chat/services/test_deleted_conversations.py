"""A deleted conversation is gone from everywhere, can be brought back for some days, and is then erased."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any
from urllib.parse import urlsplit

import pytest
from pytest_django.fixtures import Settings
from uuid_utils.compat import uuid7

from chat.models import Bud, Conversation, Message, Turn
from chat.services import conversation_sweeps
from chat.services.branches import edit_message, regenerate
from chat.services.conversation_sweeps import delete_idle, erase_deleted
from chat.services.conversations import (
    create_conversation,
    delete_conversation,
    erase_with,
    restore_conversation,
)
from chat.services.search import search
from chat.services.turns import continue_turn
from tests.chat.conftest import Chat
from tests.chat.services.waiting_calls import waiting_call
from tests.factories import Tenant, TwoTenants
from workspaces.database import database_now
from workspaces.errors import NotFound

pytestmark = pytest.mark.django_db


def a_chat(tenant: Tenant, title: str = "vegetables") -> Conversation:
    bud, _ = Bud.objects.for_workspace(tenant.workspace).get_or_create(
        slug="bud", defaults={"workspace": tenant.workspace, "name": "Bud"}
    )
    conversation = create_conversation(bud=bud, owner=tenant.member, actor=tenant.actor("member"))
    conversation.title = title
    conversation.save()
    return conversation


def call(tenant: Tenant, method: str, path: str, role: str = "member") -> Any:
    client = tenant.client(role)
    return getattr(client, method)(
        f"/api/conversations/{path}", headers={"X-Workspace": tenant.workspace.slug}
    )


@pytest.mark.django_db(transaction=True)
def test_nothing_is_sent_to_one_that_was_deleted_on_the_way(chat: Chat) -> None:
    """SEC-600: whoever had it before asks for no answer any more, until it is restored."""
    chat.model.say("Hello")
    turn = chat.ask("Hi")
    delete_conversation(conversation=chat.conversation, actor=chat.actor)
    ways: list[Callable[[str], Any]] = [
        lambda client_id: chat.send("And now?", client_id),
        lambda client_id: edit_message(
            message=turn.user_message, client_id=client_id, text="Ho", actor=chat.actor
        ),
        lambda client_id: regenerate(turn=turn, client_id=client_id, actor=chat.actor),
        lambda _: continue_turn(turn=turn, actor=chat.actor),
    ]
    for way in ways:
        with pytest.raises(NotFound):
            way(str(uuid7()))
    assert Turn.objects.for_workspace(chat.tenant.workspace).count() == 1
    restore_conversation(conversation=chat.conversation, actor=chat.actor)
    chat.model.say("Here I am")
    chat.ask("And now?")
    assert chat.answer() == "Here I am"


def test_it_is_gone_from_everywhere_and_comes_back(two_workspaces: TwoTenants) -> None:
    """REL-375: list, address, page and search; brought back it is what it was. Nobody else can touch it."""
    tenant, other = two_workspaces.a, two_workspaces.b
    row = a_chat(tenant)
    assert call(tenant, "delete", f"{row.pk}/").status_code == 204
    assert call(tenant, "get", "").json()["results"] == []
    assert call(tenant, "get", f"{row.pk}/").status_code == 404
    assert call(tenant, "get", f"{row.pk}/messages/").status_code == 404
    page = tenant.client("member").get(f"/w/{tenant.workspace.slug}/c/{row.pk}/")
    assert page.status_code == 404
    assert search(workspace=tenant.workspace, person=tenant.member, query="vegetables") == []
    (listed,) = call(tenant, "get", "deleted/").json()["results"]
    assert listed["id"] == str(row.pk)
    assert listed["deleted_at"]
    for stranger, role in ((tenant, "admin"), (other, "member")):
        assert call(stranger, "get", "deleted/", role).json()["results"] == []
        assert call(stranger, "post", f"{row.pk}/restore/", role).status_code == 404
        assert call(stranger, "post", f"{row.pk}/erase/", role).status_code == 404
    assert call(tenant, "post", f"{row.pk}/restore/").status_code == 200
    assert [one["title"] for one in call(tenant, "get", "").json()["results"]] == ["vegetables"]
    assert call(tenant, "get", "deleted/").json()["results"] == []


def test_the_deleted_are_listed_to_the_last_one(tenant: Tenant) -> None:
    """REL-870: page by page, the last one deleted first. One that is brought back in between hides no other."""
    rows = [a_chat(tenant, f"chat {number}") for number in range(5)]
    for row in rows:
        delete_conversation(conversation=row, actor=tenant.actor("member"))
    first = call(tenant, "get", "deleted/?page_size=2").json()
    assert [one["title"] for one in first["results"]] == ["chat 4", "chat 3"]
    assert call(tenant, "post", f"{rows[4].pk}/restore/").status_code == 200
    found = first["results"]
    following = first["next"]
    while following:
        page = call(tenant, "get", f"deleted/?{urlsplit(following).query}").json()
        found += page["results"]
        following = page["next"]
    assert [one["title"] for one in found] == [f"chat {number}" for number in (4, 3, 2, 1, 0)]
    assert call(tenant, "get", "deleted/?cursor=none").status_code == 400


def test_only_what_was_deleted_can_be_restored_or_erased(tenant: Tenant) -> None:
    """REL-375: one slip does not erase."""
    row = a_chat(tenant)
    assert call(tenant, "post", f"{row.pk}/erase/").status_code == 404
    assert call(tenant, "post", f"{row.pk}/restore/").status_code == 404
    assert call(tenant, "delete", f"{row.pk}/").status_code == 204
    assert call(tenant, "delete", f"{row.pk}/").status_code == 404
    assert call(tenant, "post", f"{row.pk}/erase/").status_code == 204
    assert not Conversation.objects.for_workspace(tenant.workspace).exists()


def test_several_that_were_deleted_are_erased_at_once(tenant: Tenant) -> None:
    """REL-1351: only deleted ones, and only one's own; where one is not among them, none is."""
    rows = [a_chat(tenant, f"chat {number}") for number in range(3)]
    for row in rows[:2]:
        delete_conversation(conversation=row, actor=tenant.actor("member"))
    headers = {"X-Workspace": tenant.workspace.slug}

    def erase(*some: Conversation, role: str = "member") -> Any:
        body = {"ids": [str(row.pk) for row in some], "change": "erase"}
        return tenant.client(role).post(
            "/api/conversations/bulk/", body, content_type="application/json", headers=headers
        )

    assert erase(*rows).status_code == 422
    assert erase(*rows[:2], role="admin").status_code == 422
    assert Conversation.objects.for_workspace(tenant.workspace).count() == 3
    answer = erase(*rows[:2])
    assert (answer.status_code, answer.json()) == (200, [])
    assert [row.pk for row in Conversation.objects.for_workspace(tenant.workspace)] == [rows[2].pk]


def test_it_is_erased_once_its_days_are_over(tenant: Tenant, settings: Settings) -> None:
    """REL-375: by the sweep, with its messages; younger ones and those that live stay."""
    old, young, living = (a_chat(tenant, title) for title in ("old", "young", "living"))
    for row in (old, young):
        delete_conversation(conversation=row, actor=tenant.actor("member"))
    days = settings.TRELLIS.deleted_conversation_days
    Conversation.objects.for_workspace(tenant.workspace).filter(pk=old.pk).update(
        deleted_at=database_now() - timedelta(days=days, minutes=1)
    )
    assert erase_deleted() == 1
    left = Conversation.objects.for_workspace(tenant.workspace)
    assert set(left.values_list("title", flat=True)) == {young.title, living.title}
    assert erase_deleted() == 0


def test_many_that_can_not_be_erased_keep_no_other(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REL-1644: though there are more of them than one round erases, and all are older."""
    stuck = [a_chat(tenant, f"stuck {number}") for number in range(4)]
    last = a_chat(tenant, "last")
    days = timedelta(days=400)
    for row in [*stuck, last]:
        delete_conversation(conversation=row, actor=tenant.actor("member"))
        rows = Conversation.objects.for_workspace(tenant.workspace).filter(pk=row.pk)
        rows.update(deleted_at=database_now() - days)
        days -= timedelta(days=1)
    erase = erase_with

    def fails(changes: Any, actor: Any) -> None:
        if changes.conversation.title.startswith("stuck"):
            raise OSError("no disk")
        erase(changes, actor)

    monkeypatch.setattr(conversation_sweeps, "erase_with", fails)
    monkeypatch.setattr(conversation_sweeps, "MOST_ERASED", 2)
    assert erase_deleted() == 1
    left = Conversation.objects.for_workspace(tenant.workspace)
    assert set(left.values_list("title", flat=True)) == {row.title for row in stuck}


def test_one_that_was_brought_back_at_the_last_moment_stays(tenant: Tenant) -> None:
    """REL-1281: the sweep finds many, and erases them one after the other."""
    late, again = a_chat(tenant, "late"), a_chat(tenant, "again")
    actor, oldest = tenant.actor("member"), database_now() - timedelta(days=1)
    for row in (late, again):
        delete_conversation(conversation=row, actor=actor)
        Conversation.objects.for_workspace(tenant.workspace).filter(pk=row.pk).update(
            deleted_at=oldest - timedelta(minutes=1)
        )
    found = Conversation.objects.for_workspace(tenant.workspace)
    for row in (late, again):
        restore_conversation(conversation=row, actor=actor)
    delete_conversation(conversation=again, actor=actor)
    take = partial(conversation_sweeps._erase_if_deleted, oldest=oldest)
    assert conversation_sweeps._sweep("erase_deleted", found, take) == 0
    assert Conversation.objects.for_workspace(tenant.workspace).count() == 2


def test_a_conversation_that_nobody_uses_is_deleted_where_the_owner_says_so(
    tenant: Tenant, settings: Settings
) -> None:
    """REL-561: pinned ones and younger ones stay, its owner can bring it back, and without the setting all stay."""
    old, pinned, _ = (a_chat(tenant, title) for title in ("old", "pinned", "young"))
    rows = Conversation.objects.for_workspace(tenant.workspace)
    rows.filter(pk__in=[old.pk, pinned.pk]).update(
        last_message_at=database_now() - timedelta(days=90, minutes=1)
    )
    rows.filter(pk=pinned.pk).update(is_pinned=True)
    assert delete_idle() == 0
    settings.TRELLIS = settings.TRELLIS.model_copy(update={"idle_conversation_days": 90})
    assert delete_idle() == 1
    assert set(rows.filter(deleted_at=None).values_list("title", flat=True)) == {"pinned", "young"}
    (listed,) = call(tenant, "get", "deleted/").json()["results"]
    assert listed["id"] == str(old.pk)
    assert delete_idle() == 0


def test_nothing_is_kept_where_the_owner_says_so(tenant: Tenant, settings: Settings) -> None:
    """REL-375: with no days, deleting erases."""
    settings.TRELLIS = settings.TRELLIS.model_copy(update={"deleted_conversation_days": 0})
    row = a_chat(tenant)
    delete_conversation(conversation=row, actor=tenant.actor("member"))
    assert not Conversation.objects.for_workspace(tenant.workspace).exists()


@pytest.mark.django_db(transaction=True)
def test_what_waits_in_it_is_ended_and_can_not_be_decided(chat: Chat) -> None:
    """REL-375: the call that waited never runs, also after the conversation came back; its messages are there."""
    waiting = waiting_call(chat)
    delete_conversation(conversation=chat.conversation, actor=chat.actor)
    owner = next(
        role
        for role, person in chat.tenant.people.items()
        if person.pk == chat.conversation.owner_id
    )
    client = chat.tenant.client(owner)
    headers = {"X-Workspace": chat.tenant.workspace.slug}
    answer = client.post(
        f"/api/tool-calls/{waiting.pk}/decide/",
        json.dumps({"decision": "approve"}),
        content_type="application/json",
        headers=headers,
    )
    assert answer.status_code == 404
    messages_before = Message.objects.for_workspace(chat.tenant.workspace).count()
    assert messages_before > 0
    row = restore_conversation(conversation=chat.reload_conversation(), actor=chat.actor)
    assert row.deleted_at is None
    answer = client.post(
        f"/api/tool-calls/{waiting.pk}/decide/",
        json.dumps({"decision": "approve"}),
        content_type="application/json",
        headers=headers,
    )
    assert answer.status_code == 409
    assert chat.server.calls == []
    assert Message.objects.for_workspace(chat.tenant.workspace).count() == messages_before
