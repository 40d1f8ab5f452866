"""Drafts that people find on every device."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any
from unittest.mock import patch
from uuid import UUID, uuid4

import pytest

from chat.models import Draft
from chat.services import drafts
from chat.services.conversations import delete_conversation, erase_conversation
from chat.services.drafts import ChosenFile, keep_draft
from tests import factories
from tests.chat.services.talks import talk
from tests.factories import Tenant
from workspaces.database import database_now
from workspaces.errors import InvalidInput

pytestmark = pytest.mark.both_engines


tenant = factories.tenant


FILE_ID = uuid4()


def a_file() -> ChosenFile:
    return ChosenFile(artifact_id=FILE_ID, version=1, title="a.txt", kind="text", size=3)


def keep(
    tenant: Tenant,
    text: str,
    at: datetime,
    conversation_id: UUID | None = None,
    files: Sequence[ChosenFile] = (),
    base: int | None = None,
) -> Draft:
    return keep_draft(
        workspace=tenant.workspace,
        owner=tenant.member,
        actor=tenant.actor("member"),
        conversation_id=conversation_id,
        text=text,
        attachments=files,
        written_at=at,
        base_version=base,
    )


def test_the_last_writer_wins_by_time(tenant: Tenant) -> None:
    """REL-430: for each conversation and the start page; a sent draft is not brought back by an older one."""
    now = database_now() - timedelta(minutes=5)
    conversation = talk(tenant, "member", "hello")
    assert keep(tenant, "new", now).text == "new"
    assert keep(tenant, "old", now - timedelta(seconds=9)).text == "new"
    assert keep(tenant, "", now + timedelta(seconds=1)).text == ""
    assert keep(tenant, "new", now).text == ""
    assert keep(tenant, "here", now, conversation.pk).text == "here"
    assert Draft.objects.for_workspace(tenant.workspace).count() == 2
    ahead = keep(tenant, "clock", database_now() + timedelta(days=3))
    assert ahead.written_at <= database_now()
    for text in ("x" * 100_001, "\x00"):
        with pytest.raises(InvalidInput):
            keep(tenant, text, now)
    with pytest.raises(InvalidInput):
        keep(tenant, "x", now, uuid4())


def test_no_device_replaces_what_it_has_not_seen(tenant: Tenant) -> None:
    """REL-1346: whatever its clock says; what it has seen it replaces, though its clock be behind."""
    now = database_now() - timedelta(minutes=5)
    first = keep(tenant, "Dear", now, base=0)
    assert (first.text, first.version) == ("Dear", 1)
    # Another device, which began before it heard of that, keeps nothing and gets what is there.
    assert keep(tenant, "Hi", now + timedelta(seconds=1), base=0).version == 1
    second = keep(tenant, "Dear Ada", now + timedelta(seconds=2), base=1)
    assert (second.text, second.version) == ("Dear Ada", 2)
    lost = keep(tenant, "Dear Ben", now + timedelta(seconds=9), base=1)
    assert (lost.text, lost.version) == ("Dear Ada", 2)
    behind = keep(tenant, "Dear Ada and Ben", now - timedelta(minutes=9), base=2)
    assert (behind.text, behind.version) == ("Dear Ada and Ben", 3)
    # The same again is no change, from whichever device.
    assert keep(tenant, "Dear Ada and Ben", now, base=1).version == 3
    assert keep(tenant, "", now, base=3).version == 4
    assert keep(tenant, "Dear Ada", now, base=3).text == ""
    # Who says nothing of versions is treated as before.
    assert keep(tenant, "a program's", now + timedelta(minutes=1)).version == 5


def test_versions_of_drafts_over_rest(tenant: Tenant) -> None:
    """REL-1346: the answer has the version, to be named with the next change."""
    header = {"X-Workspace": tenant.workspace.slug}
    client = tenant.client("member")

    def send(text: str, **more: Any) -> Any:
        at = database_now().isoformat()
        body = {"conversation_id": None, "text": text, "written_at": at, **more}
        return client.post("/api/drafts/", body, content_type="application/json", headers=header)

    assert send("one", base_version=0).json()["version"] == 1
    assert send("two", base_version=1).json()["version"] == 2
    other = send("three", base_version=1).json()
    assert (other["text"], other["version"]) == ("two", 2)
    assert send("four", base_version=-1).status_code == 400
    [listed] = client.get("/api/drafts/", headers=header).json()
    assert listed["version"] == 2


def test_open_pages_of_the_writer_hear_of_another_text(tenant: Tenant) -> None:
    """REL-754: nobody else's do, and no page hears of the same text or files again."""
    now = database_now() - timedelta(minutes=5)
    conversation = talk(tenant, "member", "hello")
    with patch.object(drafts, "announce") as announced:
        keep(tenant, "", now)
        keep(tenant, "new", now + timedelta(seconds=1), conversation.pk)
        keep(tenant, "new", now + timedelta(seconds=2), conversation.pk)
        keep(tenant, "old", now, conversation.pk)
        keep(tenant, "", now + timedelta(seconds=3), conversation.pk)
        keep(tenant, "", now + timedelta(seconds=4), conversation.pk, files=[a_file()])
        keep(tenant, "", now + timedelta(seconds=5), conversation.pk, files=[a_file()])
        keep(tenant, "", now + timedelta(seconds=6), conversation.pk)
    nudges = [call.args[1] for call in announced.call_args_list]
    assert [nudge.kind for nudge in nudges] == ["draft.changed"] * 4
    assert {nudge.id for nudge in nudges} == {str(conversation.pk)}
    assert {nudge.user_id for nudge in nudges} == {str(tenant.member.pk)}


def test_a_draft_keeps_what_the_message_takes_along(tenant: Tenant) -> None:
    """REL-1224: files and resources, over REST, with the text or without one; nothing of another shape."""
    conversation = talk(tenant, "member", "hello")
    header = {"X-Workspace": tenant.workspace.slug}
    client = tenant.client("member")

    def send(*attachments: dict[str, Any]) -> Any:
        body = {
            "conversation_id": str(conversation.pk),
            "text": "",
            "attachments": attachments,
            "written_at": database_now().isoformat(),
        }
        return client.post("/api/drafts/", body, content_type="application/json", headers=header)

    file = {"artifact_id": str(uuid4()), "version": 2, "title": "a.txt", "kind": "text", "size": 3}
    resource = {
        "server_id": str(uuid4()),
        "server_name": "notes",
        "uri": "note://all",
        "title": "All notes",
        "resource_id": None,
    }
    kept = [{**file, "is_new": False}, resource]
    assert send(file, resource).json()["attachments"] == kept
    [listed] = client.get("/api/drafts/", headers=header).json()
    assert (listed["text"], listed["attachments"]) == ("", kept)
    new = {**file, "is_new": True}
    assert send(new).json()["attachments"] == [new]
    assert send({"artifact_id": str(uuid4()), "title": "which?"}).status_code == 400
    for faulty in ({"title": "neither"}, {**file, **resource}, {**file, "title": "x" * 501}):
        assert send(faulty).status_code == 400
    assert send(*[{**file, "version": number} for number in range(1, 12)]).status_code == 400
    assert send().json()["attachments"] == []


def test_drafts_are_their_writers_and_go_with_their_conversation(tenant: Tenant) -> None:
    """REL-430: over REST, without those of others and of deleted conversations."""
    conversation = talk(tenant, "member", "hello")
    header = {"X-Workspace": tenant.workspace.slug}

    def drafts_of(who: str) -> Any:
        return tenant.client(who).get("/api/drafts/", headers=header).json()

    body = {
        "conversation_id": str(conversation.pk),
        "text": " draft ",
        "written_at": database_now().isoformat(),
    }
    client = tenant.client("member")
    answer = client.post("/api/drafts/", body, content_type="application/json", headers=header)
    assert (answer.status_code, answer.json()["text"]) == (200, " draft ")
    assert [one["text"] for one in drafts_of("member")] == [" draft "]
    assert drafts_of("admin") == []
    other = tenant.client("admin").post(
        "/api/drafts/", body, content_type="application/json", headers=header
    )
    assert other.status_code == 422
    delete_conversation(conversation=conversation, actor=tenant.actor("member"))
    assert drafts_of("member") == []
    conversation.refresh_from_db()
    erase_conversation(conversation=conversation, actor=tenant.actor("member"))
    assert not Draft.objects.for_workspace(tenant.workspace).exists()
