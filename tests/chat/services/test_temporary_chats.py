"""A temporary chat is in no list, can be kept, and is otherwise erased some hours after its last activity."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any
from unittest.mock import patch

import pytest
from pytest_django.fixtures import Settings
from uuid_utils.compat import uuid7

from chat.engine import steps
from chat.models import Artifact, Bud, Conversation, Draft, Folder, Message, ToolCall, Turn
from chat.reminders.digest import unseen_answers, waiting_things
from chat.services import conversations
from chat.services.approvals import decide
from chat.services.branches import fork_conversation
from chat.services.conversation_sweeps import erase_temporary, temporary_hours
from chat.services.conversations import create_conversation, keep_conversation
from chat.services.pending_decisions import waiting_for
from chat.services.search import search
from chat.tasks import erase_deleted_conversations
from chat.values import Decision
from tests.chat.conftest import Chat
from tests.chat.services.talks import talk
from tests.chat.services.waiting_calls import waiting_call
from tests.factories import Tenant, TwoTenants, make_tenant
from workspaces import restore_detection
from workspaces.database import database_now
from workspaces.errors import Conflict
from workspaces.models import Installation


def call(
    tenant: Tenant, method: str, path: str = "", body: Any = None, role: str = "member"
) -> Any:
    given = {} if body is None else {"data": json.dumps(body), "content_type": "application/json"}
    return getattr(tenant.client(role), method)(
        f"/api/{path}", headers={"X-Workspace": tenant.workspace.slug}, **given
    )


def temporary(tenant: Tenant, text: str = "secret radishes") -> Conversation:
    """A member's temporary chat in which something was said."""
    row = talk(tenant, "member", text)
    Conversation.objects.for_workspace(tenant.workspace).filter(pk=row.pk).update(is_temporary=True)
    return Conversation.objects.for_workspace(tenant.workspace).fetch(row.pk)


def listed(tenant: Tenant, query: str = "") -> list[str]:
    return [one["id"] for one in call(tenant, "get", f"conversations/{query}").json()["results"]]


def made_temporary(chat: Chat) -> Chat:
    chat.conversation.is_temporary = True
    chat.conversation.save(update_fields=["is_temporary"])
    return chat


def hours_ago(row: Conversation, hours: float) -> None:
    moment = database_now() - timedelta(hours=hours)
    rows = Conversation.objects.for_workspace(row.workspace_id)
    rows.filter(pk=row.pk).update(last_message_at=moment)
    Turn.objects.for_workspace(row.workspace_id).filter(conversation=row).update(finished_at=moment)


@pytest.fixture
def acme(db: None) -> Tenant:
    return make_tenant("acme")


def test_it_is_in_no_list_and_no_search_until_it_is_kept(acme: Tenant) -> None:
    """REL-1010: its address opens it, whoever asks for the temporary ones gets them, and kept it is as any other."""
    bud = Bud.objects.create(workspace=acme.workspace, slug="bud", name="Bud")
    made = call(acme, "post", "conversations/", {"bud_id": str(bud.pk), "is_temporary": True})
    assert made.json()["is_temporary"] is True
    row = temporary(acme)
    Artifact.objects.create(
        workspace=acme.workspace, conversation=row, name="radishes.md", newest=1
    )
    assert listed(acme) == []
    assert listed(acme, "?archived=false") == []
    assert set(listed(acme, "?temporary=true")) == {made.json()["id"], str(row.pk)}
    words = ("radishes", "radishes from:bud", "has:file", "radishes has:file", "after:1d")
    for query in words:
        assert search(workspace=acme.workspace, person=acme.member, query=query) == [], query
    assert call(acme, "get", f"conversations/{row.pk}/").json()["is_temporary"] is True
    assert acme.client("member").get(f"/w/acme/c/{row.pk}/").status_code == 200
    assert call(acme, "post", f"conversations/{row.pk}/keep/").json()["is_temporary"] is False
    assert listed(acme) == [str(row.pk)]
    assert listed(acme, "?temporary=true") == [made.json()["id"]]
    assert search(workspace=acme.workspace, person=acme.member, query="radishes")


def test_only_its_owner_can_keep_it(two_workspaces: TwoTenants) -> None:
    """SEC-480: to everybody else it is not there, and what is not temporary stays as it is."""
    mine, other = two_workspaces.a, two_workspaces.b
    row = temporary(mine)
    for stranger, role in ((mine, "admin"), (mine, "owner"), (other, "member")):
        assert call(stranger, "post", f"conversations/{row.pk}/keep/", role=role).status_code == 404
        found = call(stranger, "get", "conversations/?temporary=true", role=role)
        assert found.json()["results"] == []
    kept = keep_conversation(conversation=row, actor=mine.actor("member"))
    again = keep_conversation(conversation=kept, actor=mine.actor("member"))
    assert again.event_seq == kept.event_seq


def test_it_cannot_be_pinned_archived_or_sorted(acme: Tenant) -> None:
    """REL-1010: the answer says what to do; of several chats, none is changed."""
    row, usual = temporary(acme), talk(acme, "member", "hello")
    folder = Folder.objects.create(workspace=acme.workspace, owner=acme.member, name="f")
    for change in ({"is_pinned": True}, {"is_archived": True}, {"folder_id": str(folder.pk)}):
        refused = call(acme, "patch", f"conversations/{row.pk}/", change)
        assert refused.status_code == 422
        (fault,) = refused.json()["errors"]
        assert fault["attr"] == next(iter(change))
        assert "Keep it first" in fault["detail"]
    assert call(acme, "patch", f"conversations/{row.pk}/", {"title": "x"}).status_code == 200
    assert call(acme, "patch", f"conversations/{row.pk}/", {"is_pinned": False}).status_code == 200
    ids = [str(usual.pk), str(row.pk)]
    for bulk in ({"change": "archive"}, {"change": "move", "folder_id": str(folder.pk)}):
        assert call(acme, "post", "conversations/bulk/", {"ids": ids, **bulk}).status_code == 422
    rows = Conversation.objects.for_workspace(acme.workspace)
    assert not rows.filter(is_archived=True).exists()
    assert not rows.filter(folder=folder).exists()


def test_deleted_it_is_gone_for_good(acme: Tenant) -> None:
    """REL-1011: it does not wait among the deleted ones, also not if it is deleted with others."""
    first, second = temporary(acme), temporary(acme)
    assert call(acme, "delete", f"conversations/{first.pk}/").status_code == 204
    body = {"ids": [str(second.pk)], "change": "delete"}
    assert call(acme, "post", "conversations/bulk/", body).status_code == 200
    assert call(acme, "get", "conversations/deleted/").json()["results"] == []
    assert not Conversation.objects.for_workspace(acme.workspace).exists()


def test_it_is_erased_some_hours_after_its_last_activity(acme: Tenant, settings: Settings) -> None:
    """REL-1011: with its messages and files; a younger one, a usual one and one with a newer answer stay."""
    over, young, answered = (temporary(acme) for _ in range(3))
    usual = talk(acme, "member", "hello")
    Artifact.objects.create(workspace=acme.workspace, conversation=over, name="a.md", newest=1)
    for row in (over, answered, usual):
        hours_ago(row, temporary_hours() + 0.1)
    hours_ago(young, temporary_hours() - 0.1)
    message = Message.objects.for_workspace(acme.workspace).get(conversation=answered)
    Turn.objects.create(
        workspace=acme.workspace,
        conversation=answered,
        user_message=message,
        asked_by=acme.member,
        source="chat",
        status="completed",
        finished_at=database_now() - timedelta(hours=1),
    )
    assert erase_deleted_conversations() == 1
    left = Conversation.objects.for_workspace(acme.workspace)
    assert set(left.values_list("pk", flat=True)) == {young.pk, answered.pk, usual.pk}
    assert not Artifact.objects.for_workspace(acme.workspace).exists()
    assert not Message.objects.for_workspace(acme.workspace).filter(conversation=over.pk).exists()
    kept = keep_conversation(conversation=young, actor=acme.actor("member"))
    hours_ago(kept, 1_000)
    assert erase_temporary() == 0


def test_the_days_of_the_platform_hold_for_it_too(acme: Tenant, settings: Settings) -> None:
    """REL-1011, REL-3181: where conversations are kept for less, so is a temporary one; after a restore all stay."""
    changed = {"temporary_conversation_hours": 72, "idle_conversation_days": 2}
    settings.TRELLIS = settings.TRELLIS.model_copy(update=changed)
    assert temporary_hours() == 48
    row = temporary(acme)
    hours_ago(row, 49)
    Installation.objects.update_or_create(defaults={"restored_at": database_now()})
    assert erase_deleted_conversations() == 0
    assert restore_detection.confirm()
    assert erase_deleted_conversations() == 1
    assert not Conversation.objects.for_workspace(acme.workspace).exists()


def test_what_is_written_in_it_stays_on_its_device(acme: Tenant) -> None:
    """SEC-480: the server refuses its drafts at the field that names it."""
    row = temporary(acme)
    moment = database_now().isoformat()
    body = {"conversation_id": str(row.pk), "text": "x", "written_at": moment}
    refused = call(acme, "post", "drafts/", body)
    assert refused.status_code == 422
    assert refused.json()["errors"][0]["attr"] == "conversation_id"
    assert not Draft.objects.for_workspace(acme.workspace).exists()


def test_the_same_client_id_is_not_both_temporary_and_usual(acme: Tenant) -> None:
    """REL-1010: a program that changes its mind hears of it."""
    bud = Bud.objects.create(workspace=acme.workspace, slug="bud", name="Bud")
    asked: dict[str, Any] = {
        "bud": bud,
        "owner": acme.member,
        "actor": acme.actor("member"),
        "client_id": "once",
    }
    first = create_conversation(**asked, is_temporary=True)
    assert create_conversation(**asked, is_temporary=True).pk == first.pk
    with pytest.raises(Conflict):
        create_conversation(**asked)


def test_the_model_names_it_only_once_it_is_kept(chat: Chat) -> None:
    """SEC-480: no second request leaves for a temporary chat; its title is the beginning of its first message."""
    made_temporary(chat)
    with patch.object(steps, "ask_for_title") as wished:
        chat.model.say("Red.")
        chat.ask("Which colour have radishes?")
        assert wished.call_count == 0
    row = chat.reload_conversation()
    assert (row.title, row.title_source) == ("Which colour have radishes?", "message")
    with patch.object(conversations, "ask_for_title") as wished:
        keep_conversation(conversation=row, actor=chat.actor)
        wished.assert_called_once_with(row.workspace_id, row.pk)


def test_a_copy_of_it_is_temporary_too(chat: Chat) -> None:
    """REL-1010: nothing of it gets into the list unasked."""
    made_temporary(chat)
    chat.model.say("Red.")
    chat.ask()
    answers = Message.objects.for_workspace(chat.tenant.workspace).filter(role="assistant")
    answer = answers.select_related("turn").get()
    fork = fork_conversation(
        message=answer,
        client_id=str(uuid7()),
        owner=chat.tenant.member,
        actor=chat.actor,
    )
    assert fork.is_temporary


def test_what_waits_in_it_is_found_decided_and_recorded(chat: Chat) -> None:
    """REL-1012: a waiting approval keeps the chat. Mails and devices hear of it without its title, and of no answer."""
    made_temporary(chat)
    waiting = waiting_call(chat)
    person, workspace = chat.tenant.member, chat.tenant.workspace
    hours_ago(chat.reload_conversation(), 1_000)
    assert erase_temporary() == 0
    (one,) = waiting_for(workspace=workspace, person=person)
    assert one.tool_call is not None
    assert one.tool_call.pk == waiting.pk
    now = database_now()
    day = timedelta(days=1)
    (thing,) = waiting_things(workspace=workspace, person=person, since=now - day, until=now)
    assert thing.title == "Temporary chat"
    chat.model.say("Done.")
    decide(call=waiting, decision=Decision.APPROVED, actor=chat.actor)
    chat.watching.turn("completed")
    assert ToolCall.objects.for_workspace(workspace).get().status == "succeeded"
    assert chat.server.calls
    Turn.objects.for_workspace(workspace).update(created_at=now - day)
    until = database_now()
    assert unseen_answers(workspace=workspace, person=person, since=now - day, until=until) == []
    assert chat.reload_conversation().unseen_answer_at is not None
    keep_conversation(conversation=chat.conversation, actor=chat.actor)
    (answer,) = unseen_answers(workspace=workspace, person=person, since=now - day, until=until)
    assert answer.title == "go"
