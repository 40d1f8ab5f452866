"""Conversations in folders, several at once, and searches that are narrowed by filters."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from unittest.mock import patch
from uuid import uuid4

import pytest

from chat.models import Bud, Conversation, Folder, Message, ToolCall, Turn
from chat.services import folders
from chat.services.conversations import (
    change_conversations,
    create_conversation,
    update_conversation,
)
from chat.services.folders import MOST_FOLDERS, create_folder, delete_folder, update_folder
from chat.services.search import search
from chat.values import BulkChange
from tests import factories
from tests.chat.services.talks import found, talk
from tests.factories import Tenant
from workspaces.database import database_now
from workspaces.errors import Conflict, InvalidInput

pytestmark = pytest.mark.both_engines


tenant = factories.tenant


def folder_of(tenant: Tenant, name: str, who: str = "member") -> Folder:
    return create_folder(
        workspace_id=tenant.workspace.pk,
        owner=getattr(tenant, who),
        actor=tenant.actor(who),
        name=name,
    )


def titles(tenant: Tenant, query: str, who: str = "member") -> list[str]:
    hits = search(workspace=tenant.workspace, person=getattr(tenant, who), query=query)
    return sorted({hit.conversation.title for hit in hits})


def named(tenant: Tenant, title: str, *texts: str, who: str = "member") -> Conversation:
    row = talk(tenant, who, *texts)
    return update_conversation(conversation=row, actor=tenant.actor(who), title=title)


def test_folders_are_named_once_and_are_their_owners_alone(tenant: Tenant) -> None:
    """REL-427: a name is short, free of quotation marks and taken once; deleting one keeps what was in it."""
    plans = folder_of(tenant, "  Plans  of  March ")
    assert plans.name == "Plans of March"
    folder_of(tenant, "Plans of March", "admin")
    for name in ("", "  ", 'a "b"', "x" * 61, "Plans of March"):
        with pytest.raises(InvalidInput):
            folder_of(tenant, name)
    update_folder(folder=plans, actor=tenant.actor("member"), name="Plans", colour="blue")
    row = named(tenant, "one", "hello")
    row = update_conversation(conversation=row, actor=tenant.actor("member"), folder_id=plans.pk)
    assert row.folder_id == plans.pk
    foreign = folder_of(tenant, "theirs", "admin")
    for pk in (foreign.pk, uuid4()):
        with pytest.raises(InvalidInput):
            update_conversation(conversation=row, actor=tenant.actor("member"), folder_id=pk)
    delete_folder(folder=plans, actor=tenant.actor("member"))
    assert Conversation.objects.for_workspace(tenant.workspace).get(pk=row.pk).folder_id is None
    Folder.objects.bulk_create(
        Folder(workspace=tenant.workspace, owner=tenant.member, name=str(n))
        for n in range(MOST_FOLDERS)
    )
    with pytest.raises(Conflict):
        folder_of(tenant, "one more")


def test_a_chat_begins_in_a_folder(tenant: Tenant) -> None:
    """REL-1341: in one of its owner's own; asked for again it is the same chat; a temporary one is in none."""
    bud = Bud.objects.create(workspace=tenant.workspace, slug="bud", name="Bud")
    plans, foreign = folder_of(tenant, "Plans"), folder_of(tenant, "Theirs", "admin")

    def begin(folder: Folder, client_id: str, **more: Any) -> Conversation:
        return create_conversation(
            bud=bud,
            owner=tenant.member,
            actor=tenant.actor("member"),
            folder_id=folder.pk,
            client_id=client_id,
            **more,
        )

    row = begin(plans, "one")
    assert row.folder_id == plans.pk
    assert begin(plans, "one").pk == row.pk
    with pytest.raises(Conflict):
        begin(foreign, "one")
    with pytest.raises(InvalidInput) as refused:
        begin(foreign, "two")
    assert set(refused.value.fields) == {"folder_id"}
    with pytest.raises(InvalidInput):
        begin(plans, "three", is_temporary=True)
    assert Conversation.objects.for_workspace(tenant.workspace).count() == 1


def test_several_conversations_are_changed_at_once_and_back(tenant: Tenant) -> None:
    """REL-428: archived, moved, deleted and restored; where one is not there, nothing is changed."""
    rows = [named(tenant, f"number {n}", "hello") for n in range(3)]
    ids = [row.pk for row in rows]
    plans = folder_of(tenant, "Plans")

    def change(what: BulkChange, given: Any = None, **more: Any) -> list[Conversation]:
        return change_conversations(
            ids=given or ids,
            change=what,
            workspace=tenant.workspace,
            person=tenant.member,
            actor=tenant.actor("member"),
            **more,
        )

    assert all(row.is_archived for row in change(BulkChange.ARCHIVE))
    assert not any(row.is_archived for row in change(BulkChange.UNARCHIVE))
    assert {row.folder_id for row in change(BulkChange.MOVE, folder_id=plans.pk)} == {plans.pk}
    assert {row.folder_id for row in change(BulkChange.MOVE)} == {None}
    theirs = named(tenant, "theirs", "hello", who="admin")
    for given in ([*ids, theirs.pk], [*ids, uuid4()]):
        with pytest.raises(InvalidInput):
            change(BulkChange.DELETE, given)
    change(BulkChange.DELETE, [ids[0], ids[0], ids[1]])
    mine = Conversation.objects.for_workspace(tenant.workspace).visible_to(tenant.member)
    assert [row.pk for row in mine] == [ids[2]]
    change(BulkChange.RESTORE, ids[:2])
    assert mine.all().count() == 3


def test_filters_narrow_what_is_found(tenant: Tenant) -> None:
    """REL-429: by bud, folder, file, tool, date and state, with words and without."""
    plans = folder_of(tenant, "My plans")
    carrots = named(tenant, "Carrots", "carrots in spring")
    peas = named(tenant, "Peas", "carrots with peas")
    member = tenant.actor("member")
    update_conversation(conversation=peas, actor=member, is_archived=True)
    update_conversation(conversation=carrots, actor=member, is_pinned=True, folder_id=plans.pk)
    clerk = Bud.objects.create(workspace=tenant.workspace, slug="clerk", name="The Clerk")
    update_conversation(conversation=peas, actor=member, bud=clerk)
    assert titles(tenant, "carrots") == ["Carrots", "Peas"]
    assert titles(tenant, "carrots is:archived") == ["Peas"]
    assert titles(tenant, "is:pinned") == ["Carrots"]
    assert titles(tenant, 'in:"my PLANS" spring') == ["Carrots"]
    assert titles(tenant, "from:clerk") == ["Peas"]
    assert titles(tenant, 'carrots from:"the clerk"') == ["Peas"]
    assert titles(tenant, "has:file") == []
    tomorrow = (database_now() + timedelta(days=1)).date()
    assert titles(tenant, f"carrots before:{tomorrow}") == ["Carrots", "Peas"]
    assert titles(tenant, f"carrots after:{tomorrow}") == []
    assert titles(tenant, "after:1h") == ["Carrots", "Peas"]
    assert titles(tenant, "before:7d") == []
    asked = Message.objects.for_workspace(tenant.workspace).get(conversation=carrots)
    turn = Turn.objects.create(
        workspace=tenant.workspace,
        conversation=carrots,
        user_message=asked,
        asked_by=tenant.member,
        source="chat",
        status="completed",
    )
    ToolCall.objects.create(
        workspace=tenant.workspace,
        turn=turn,
        message=asked,
        position=0,
        provider_call_id="1",
        function_name="garden__plant",
        server_name="garden",
        tool_name="plant",
    )
    for query in (
        "tool:plant",
        "tool:garden",
        "tool:garden.plant",
        "tool:PLANT carrots",
        "tool:plant is:pinned",
    ):
        assert titles(tenant, query) == ["Carrots"], query
    assert titles(tenant, "tool:other") == []
    assert titles(tenant, "carrots", "admin") == []
    assert found(tenant, '"in spring"') == ["carrots [in spring]"]


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("frm:clerk", "Did you mean “from”?"),
        ("is:archvied", "Did you mean “archived”?"),
        ("in:nowhere", "has no value “nowhere”. There is none yet."),
        ("is:xyz", "It is one of: archived, pinned."),
        ("has:", "needs a value"),
        ("before:yesterday", "takes a date, such as 2026-11-01"),
        ("after:2026-13-01", "takes a date"),
        ("after:12345678", "takes a date"),
        ("is:pinned is:archived", "is given twice"),
    ],
)
def test_a_filter_that_cannot_be_read_is_told(tenant: Tenant, query: str, message: str) -> None:
    """REL-429: in words at the field, also over REST; a link and a quoted colon are words."""
    with pytest.raises(InvalidInput) as refused:
        search(workspace=tenant.workspace, person=tenant.member, query=query)
    assert message in str(refused.value.fields["q"])
    header = {"X-Workspace": tenant.workspace.slug}
    answer = tenant.client("member").get("/api/search/", {"q": query}, headers=header)
    assert answer.status_code in (400, 422)
    assert answer.json()["errors"][0]["attr"] == "q"
    for words in ("https://example.org/x", '"note: this"', "10:30"):
        search(workspace=tenant.workspace, person=tenant.member, query=words)


def test_open_pages_of_the_owner_hear_of_other_folders(tenant: Tenant) -> None:
    """REL-1242: of a new one, another name and a deletion; a name that is refused is told to nobody."""
    with patch.object(folders, "announce") as announced:
        plans = folder_of(tenant, "Plans")
        update_folder(folder=plans, actor=tenant.actor("member"), name="Later")
        with pytest.raises(InvalidInput):
            folder_of(tenant, "Later")
        pk = str(plans.pk)
        delete_folder(folder=plans, actor=tenant.actor("member"))
    nudges = [call.args[1] for call in announced.call_args_list]
    assert [(nudge.kind, nudge.id) for nudge in nudges] == [("folder.changed", pk)] * 3
    assert {nudge.user_id for nudge in nudges} == {str(tenant.member.pk)}


def test_folders_over_rest(tenant: Tenant) -> None:
    """REL-427, REL-428: made, listed, used as a filter, and refused where they are somebody else's."""
    client, header = tenant.client("member"), {"X-Workspace": tenant.workspace.slug}

    def send(method: str, path: str, body: object = None) -> Any:
        call = getattr(client, method)
        return call(f"/api/{path}", body, content_type="application/json", headers=header)

    made = send("post", "folders/", {"name": "Plans", "colour": "red"})
    assert made.status_code == 201
    pk = made.json()["id"]
    row = named(tenant, "one", "hello")
    moved = send(
        "post", "conversations/bulk/", {"ids": [str(row.pk)], "change": "move", "folder_id": pk}
    )
    assert [one["folder_id"] for one in moved.json()] == [pk]
    listed = client.get("/api/conversations/", {"folder": pk}, headers=header).json()["results"]
    assert [one["id"] for one in listed] == [str(row.pk)]
    assert send("patch", f"folders/{pk}/", {"name": "Later"}).json()["name"] == "Later"
    assert send("patch", f"folders/{pk}/", {"colour": "mauve"}).status_code == 400
    assert send("post", "conversations/bulk/", {"ids": [], "change": "delete"}).status_code == 400
    other = tenant.client("admin").get(f"/api/folders/{pk}/", headers=header)
    assert other.status_code == 404
    assert client.delete(f"/api/folders/{pk}/", headers=header).status_code == 204
