"""Search in what stands beside messages: calls of tools, and attached files and resources."""

from __future__ import annotations

from datetime import timedelta
from importlib import import_module
from typing import Any

import pytest
from django.apps import apps
from django.db import connection
from django.db.models import UUIDField

from chat.artifacts.services import create_artifact, delete_artifact, undelete_artifact
from chat.engine.attaching import file_attachment
from chat.models import Artifact, Attachment, Bud, Conversation, Message, ToolCall, Turn
from chat.services import beside_index, search
from chat.services.beside_index import MOST_GIVEN, MOST_OF_FILE, MOST_RESULT
from chat.services.conversations import create_conversation, delete_conversation
from chat.services.search import MOST_BESIDE, FoundIn, SearchHit
from chat.values import ArtifactOrigin, AttachmentStatus, ToolCallStatus, TurnStatus
from tests import factories
from tests.factories import Tenant, make_tenant
from workspaces.database import database_now

pytestmark = pytest.mark.both_engines


tenant = factories.tenant


def say(tenant: Tenant, who: str = "member", text: str = "", **fields: Any) -> Message:
    """A message of a new conversation."""
    buds = Bud.objects.for_workspace(tenant.workspace)
    bud = buds.first() or Bud.objects.create(workspace=tenant.workspace, slug="bud", name="Bud")
    conversation = create_conversation(bud=bud, owner=getattr(tenant, who), actor=tenant.actor(who))
    return add_message(conversation, text, **fields)


def add_message(conversation: Conversation, text: str = "", **fields: Any) -> Message:
    row: Message = Message.objects.create(
        workspace_id=conversation.workspace_id,
        conversation=conversation,
        role="assistant",
        text=text,
        status="complete",
        order_key=1,
        **fields,
    )
    return row


def call(
    message: Message, *, status: ToolCallStatus = ToolCallStatus.SUCCEEDED, **fields: Any
) -> ToolCall:
    """A call of `mail.send` that the message made."""
    turn = Turn.objects.create(
        workspace_id=message.workspace_id,
        conversation=message.conversation,
        user_message=message,
        asked_by=message.conversation.owner,
        status=TurnStatus.COMPLETED.value,
        place=Turn.objects.for_workspace(message.workspace_id).count(),
    )
    named = {"server_name": "mail", "tool_name": "send", "tool_title": "Send it"}
    named["function_name"] = "mail__send"
    row: ToolCall = ToolCall.objects.create(
        workspace_id=message.workspace_id,
        turn=turn,
        message=message,
        position=ToolCall.objects.for_workspace(message.workspace_id).count(),
        status=status.value,
        **{**named, **fields},
    )
    return row


def attach(
    tenant: Tenant, message: Message, text: str, name: str = "notes.md", who: str = "member"
) -> Attachment:
    """A file at the message, as it has been read."""
    saved = create_artifact(
        conversation=message.conversation,
        name=name,
        content=text.encode(),
        actor=tenant.actor(who),
        origin=ArtifactOrigin.UPLOAD,
    )
    position = Attachment.objects.for_workspace(tenant.workspace).filter(message=message).count()
    row = file_attachment(message, position, saved.version)
    row.save()
    row.status, row.model_text = AttachmentStatus.READY.value, text[:MOST_OF_FILE]
    row.characters = len(text)
    row.save()
    return row


def hits(tenant: Tenant, query: str, who: str = "member") -> list[SearchHit]:
    """What is found in calls and in files."""
    found = search.search(workspace=tenant.workspace, person=getattr(tenant, who), query=query)
    return [hit for hit in found if hit.found_in in {FoundIn.CALL, FoundIn.FILE}]


def found(tenant: Tenant, query: str, who: str = "member") -> list[str]:
    """Where, and what stands there, with what was looked for in brackets."""
    return [
        f"{one.name}: " + "".join(f"[{text}]" if hit else text for text, hit in one.excerpt)
        for one in hits(tenant, query, who)
    ]


def test_words_of_a_call_are_found_with_their_place(tenant: Tenant) -> None:
    """REL-1160: in what it was given, however deep, in what it gave, and in its names."""
    message = say(tenant, text="Done.")
    call(
        message,
        arguments={"to": ["ann@garden.example"], "what": {"n": 4711, "text": "Zürich\norchids"}},
        model_text="Sent under /outbox/parcel.eml",
    )
    assert found(tenant, "orch zürich") == ["mail.send: ann@garden.example 4711 [Zürich] [orch]ids"]
    assert found(tenant, "garden") == ["mail.send: ann@[garden].example 4711 Zürich orchids"]
    assert found(tenant, "parcel outbox") == ["mail.send: Sent under /[outbox]/[parcel].eml"]
    assert found(tenant, "4711")
    assert found(tenant, '"sent under"') == ["mail.send: [Sent under] /outbox/parcel.eml"]
    assert found(tenant, '"under sent"') == []
    assert found(tenant, "send mail") == ["mail.send: [mail] [send] [Send] it"]
    assert found(tenant, '"ann@garden.example"')
    # Words of what it was given and of what it gave.
    assert [hit.message_id for hit in hits(tenant, "orchids parcel")] == [message.pk]


@pytest.mark.parametrize("word", ["post", "dispatch", "parcelling", "mailer_send", "minutes"])
def test_each_name_of_a_call_is_found_alone(tenant: Tenant, word: str) -> None:
    """REL-1160."""
    call(
        say(tenant),
        server_name="post",
        tool_name="dispatch",
        tool_title="Parcelling",
        function_name="mailer_send",
        artifact={"name": "minutes.md"},
    )
    assert len(hits(tenant, word)) == 1


def test_words_of_an_attached_file_and_its_name_are_found(tenant: Tenant) -> None:
    """REL-1161: with the message that it is attached to; so are those of an attached resource."""
    message = say(tenant, text="See this")
    attach(tenant, message, "Tulips come from Persia.", name="bulbs.md")
    assert found(tenant, "persia") == ["bulbs.md: Tulips come from [Persia]."]
    [hit] = hits(tenant, "bulbs")
    assert (hit.message_id, hit.found_in) == (message.pk, FoundIn.FILE)
    Attachment.objects.create(
        workspace=tenant.workspace,
        message=message,
        position=5,
        server_id=tenant.workspace.pk,
        server_name="docs",
        uri="papers://humus",
        title="Soil",
        status=AttachmentStatus.READY.value,
        model_text="Loam and sand",
    )
    assert found(tenant, "loam") == ["Soil: [Loam] and sand"]
    assert found(tenant, "soil docs") == ["Soil: [Soil] [docs] papers://humus"]
    assert len(hits(tenant, "docs")) == len(hits(tenant, "humus")) == 1


def test_whose_a_file_is_stays_as_it_was_written(tenant: Tenant) -> None:
    """REL-1161: it is looked up where nobody said it, as for a call."""
    message, kept = say(tenant), UUIDField().get_db_prep_value
    for row in (attach(tenant, message, "Tulips"), call(message)):
        table, of = row._meta.db_table, kept(row.pk, connection)
        for given, stored in ((tenant.admin.pk, tenant.admin.pk), (None, tenant.member.pk)):
            with connection.cursor() as cursor:
                change = f"UPDATE {table} SET owner_id = %s WHERE id = %s"
                cursor.execute(change, [kept(given, connection), of])
                cursor.execute(f"SELECT owner_id FROM {table} WHERE id = %s", [of])
                assert cursor.fetchone() == (kept(stored, connection),)


def test_a_file_is_found_once_it_was_read_and_by_its_name_if_it_cannot_be(tenant: Tenant) -> None:
    """REL-1161: what the model reads in place of its text is no text of it."""
    row = attach(tenant, say(tenant), "", name="bulbs.md")
    row.status, row.model_text = AttachmentStatus.QUEUED.value, "Tulips"
    row.save()
    Attachment.objects.for_workspace(tenant.workspace).filter(pk=row.pk).delete()
    row.save(force_insert=True)
    assert indexed() == 0
    row.title = "tulips.md"
    row.model_text = "A file without text."
    row.save()
    assert indexed() == 0
    row.status = AttachmentStatus.READY.value
    row.save()
    assert len(hits(tenant, "tulips")) == 1
    assert hits(tenant, "without") == []


@pytest.mark.parametrize(
    "query", ["", '"', "'", "* OR", "a:b & !c", ") (", "\\", "NEAR(", "_", "%"]
)
def test_no_query_finds_all_calls_or_is_a_fault(tenant: Tenant, query: str) -> None:
    """REL-1160: what an engine would take for an operator is a text like all others."""
    call(say(tenant), arguments={"x": "plain words"})
    assert found(tenant, query) == []


def test_a_message_is_found_once(tenant: Tenant) -> None:
    """REL-1160: not by its calls if it says the words itself, and not by each of its calls."""
    message, asked = say(tenant, text="An orchid"), say(tenant, text="Wait.")
    call(message, model_text="orchid")
    for _ in range(3):
        call(asked, model_text="orchid")
    assert [hit.message_id for hit in hits(tenant, "orchid")] == [asked.pk]


def test_only_the_beginning_of_a_text_is_looked_at(tenant: Tenant) -> None:
    """REL-1162: and a name is always found."""
    message = say(tenant)
    filler = "filler " * (MOST_OF_FILE // 7 + 9)
    call(
        message,
        arguments={"text": "early " + filler[:MOST_GIVEN] + " late"},
        model_text="first " + filler[:MOST_RESULT] + " last",
    )
    attach(tenant, message, "begin " + filler + " end", name="long.md")
    for query, count in (("early first", 1), ("late", 0), ("last", 0), ("begin", 1), ("end", 0)):
        assert len(found(tenant, query)) == count
    assert found(tenant, "long")


def test_a_call_is_found_once_it_has_ended_and_as_it_is_now(tenant: Tenant) -> None:
    """REL-1163: its words go with it, with its message, and with its chat."""
    message = say(tenant)
    row = call(message, status=ToolCallStatus.RUNNING, arguments={"q": "orchid"})
    assert found(tenant, "orchid") == []
    row.status, row.model_text = ToolCallStatus.SUCCEEDED.value, "a fern"
    row.save()
    assert len(found(tenant, "orchid fern")) == 1
    row.model_text = "removed"
    row.save()
    assert found(tenant, "fern") == []
    assert len(found(tenant, "removed")) == 1
    delete_conversation(conversation=message.conversation, actor=tenant.actor("member"))
    assert found(tenant, "removed") == []
    other = call(say(tenant), model_text="removed")
    assert len(found(tenant, "removed")) == 1
    assert indexed() == 2
    other.delete()
    message.conversation.delete()
    assert indexed() == 0


def indexed() -> int:
    """How many texts have words in the index."""
    tables = {"postgresql": ["chat_beside_lexemes"], "sqlite": ["chat_beside", "chat_beside_words"]}
    with connection.cursor() as cursor:
        counts = set()
        for table in tables[connection.vendor]:
            cursor.execute(f"SELECT count(*) FROM {table}")
            counts.add(cursor.fetchone()[0])
    [count] = counts
    return int(count)


def test_a_deleted_file_is_not_found(tenant: Tenant) -> None:
    """REL-1163: until it is brought back. Once it is erased, so are its words, though its message stays."""
    row = attach(tenant, say(tenant), "Tulips from Persia")
    artifact = Artifact.objects.for_workspace(tenant.workspace).get()
    delete_artifact(artifact=artifact, actor=tenant.actor("member"))
    assert found(tenant, "persia") == []
    assert found(tenant, "notes") == []
    undelete_artifact(artifact=artifact, actor=tenant.actor("member"))
    assert len(found(tenant, "persia")) == 1
    assert indexed() == 1
    artifact.delete()
    assert Attachment.objects.for_workspace(tenant.workspace).get(pk=row.pk).version is None
    assert found(tenant, "persia") == []
    assert indexed() == 0


def test_words_of_a_person_go_with_their_account(tenant: Tenant) -> None:
    """REL-1163: those of others stay."""
    mine, theirs = say(tenant), say(tenant, "admin")
    call(mine, model_text="orchid")
    attach(tenant, mine, "orchid")
    call(theirs, model_text="orchid")
    tenant.member.delete()
    assert indexed() == 1
    assert len(found(tenant, "orchid", "admin")) == 1


def test_nobody_finds_calls_and_files_of_others(tenant: Tenant) -> None:
    """SEC-570: neither in the same workspace nor in another one, nor by a filter."""
    other = make_tenant("other")
    for message, who in ((say(tenant, "admin"), tenant), (say(other, "member"), other)):
        call(message, arguments={"q": "secret orchid"}, model_text="secret fern")
        attach(who, message, "secret tulip", who="admin" if who is tenant else "member")
    for query in ("secret", "orchid", "tulip", "secret tool:send", "secret has:file", "notes"):
        assert found(tenant, query) == []
    assert len(found(tenant, "orchid", "admin")) == 1
    assert len(found(other, "tulip")) == 1
    answer: Any = tenant.client("member").get("/api/search/", {"q": "secret"})
    assert answer.json() == []


def test_temporary_chats_and_test_chats_are_not_found(tenant: Tenant) -> None:
    """SEC-571: nor does the index keep a call's sealed state, or what is sealed in the log."""
    message = say(tenant)
    call(message, model_text="orchid", checkpoint="sealed fern")
    assert found(tenant, "fern") == []
    with connection.cursor() as cursor:
        table = "chat_beside_lexemes" if connection.vendor == "postgresql" else "chat_beside_words"
        cursor.execute(f"SELECT * FROM {table}")
        kept = str(cursor.fetchall())
    assert "orchid" in kept
    assert "fern" not in kept
    chats = Conversation.objects.for_workspace(tenant.workspace)
    chats.update(is_temporary=True)
    assert found(tenant, "orchid") == []
    chats.update(is_temporary=False)
    assert len(found(tenant, "orchid")) == 1
    Bud.objects.for_workspace(tenant.workspace).update(is_draft=True)
    assert found(tenant, "orchid") == []


def test_filters_narrow_calls_and_files(tenant: Tenant) -> None:
    """REL-1164: by tool, file, time and state of the chat."""
    plain, filed = say(tenant), say(tenant)
    call(plain, model_text="orchid one", tool_name="send")
    call(filed, model_text="orchid two", tool_name="recall")
    attach(tenant, filed, "orchid three")
    for query, messages in (
        ("orchid", {plain, filed}),
        ("orchid tool:send", {plain}),
        ("orchid tool:mail.recall", {filed}),
        ("orchid tool:nobody", set()),
        ("three tool:mail", set()),
        ("orchid has:file", {filed}),
        ("three has:file", {filed}),
        ("one has:file", set()),
        ("orchid is:archived", set()),
        ("orchid after:1d", {plain, filed}),
        ("orchid before:1d", set()),
    ):
        assert {hit.message_id for hit in hits(tenant, query)} == {one.pk for one in messages}, (
            query
        )
    Conversation.objects.for_workspace(tenant.workspace).filter(pk=plain.conversation_id).update(
        is_archived=True
    )
    assert [hit.message_id for hit in hits(tenant, "orchid is:archived")] == [plain.pk]
    then = database_now() - timedelta(days=3)
    Message.objects.for_workspace(tenant.workspace).filter(pk=plain.pk).update(created_at=then)
    assert [hit.message_id for hit in hits(tenant, "orchid after:1d")] == [filed.pk]


@pytest.mark.parametrize("query", ["orchid is:pinned", "orchid", "orchid tool:mail"])
def test_what_is_old_is_found_behind_much_that_is_not_wanted(tenant: Tenant, query: str) -> None:
    """REL-1164: however many newer calls hold the words, in chats that are not asked for or not shown."""
    many = 2 * max(beside_index.AT_ONCE, beside_index.MOST_NEWEST) + 100
    old = say(tenant)
    call(old, model_text="orchid")
    hidden = say(tenant)
    row = call(hidden, model_text="orchid")
    ToolCall.objects.bulk_create(
        [
            ToolCall(
                workspace=tenant.workspace,
                turn=row.turn,
                message=hidden,
                position=at + 10,
                server_name="mail",
                tool_name="send",
                model_text="orchid",
                status=ToolCallStatus.SUCCEEDED.value,
            )
            for at in range(many)
        ]
    )
    chats = Conversation.objects.for_workspace(tenant.workspace)
    chats.filter(pk=hidden.conversation_id).update(is_temporary=True)
    chats.filter(pk=old.conversation_id).update(is_pinned=True)
    assert [hit.message_id for hit in hits(tenant, query)] == [old.pk]


def test_the_newest_are_given_and_not_more_than_some(tenant: Tenant) -> None:
    """REL-1164: calls and files together, in the order of their messages."""
    messages = [say(tenant) for _ in range(MOST_BESIDE + 3)]
    for at, message in enumerate(messages):
        if at % 2:
            call(message, model_text="orchid")
        else:
            attach(tenant, message, "orchid")
    wanted = [one.pk for one in reversed(messages)][:MOST_BESIDE]
    assert [hit.message_id for hit in hits(tenant, "orchid")] == wanted


def test_earlier_calls_and_files_are_filled_in(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REL-1165: some at once; doing it again leaves nothing twice. Calls that still run are left to their end."""
    message = say(tenant)
    for _ in range(3):
        call(message, model_text="orchid")
        attach(tenant, message, "tulip", name=f"{indexed()}.md")
    call(message, status=ToolCallStatus.RUNNING, arguments={"q": "fern"})
    empty_index()
    assert hits(tenant, "orchid") == hits(tenant, "tulip") == []
    filling = import_module("chat.migrations.0047_index_earlier_calls_and_files")
    monkeypatch.setattr(filling, "AT_ONCE", 2)
    for _ in range(2):
        filling.index_earlier(apps, connection.schema_editor())
        assert indexed() == 6
    assert len(hits(tenant, "orchid")) == len(hits(tenant, "tulip")) == 1
    assert hits(tenant, "fern") == []


def empty_index() -> None:
    """As before the version that knows it."""
    tables = {"postgresql": ["chat_beside_lexemes"], "sqlite": ["chat_beside", "chat_beside_words"]}
    with connection.cursor() as cursor:
        for table in tables[connection.vendor]:
            cursor.execute(f"DELETE FROM {table}")


def test_the_rest_interface_says_where_words_were_found(tenant: Tenant) -> None:
    """REL-1160: and in which message, so that a page goes there."""
    message = say(tenant, text="Done.")
    call(message, model_text="a rare orchid")
    answer: Any = tenant.client("member").get("/api/search/", {"q": "orchid"})
    [row] = answer.json()
    assert (row["found_in"], row["name"]) == ("call", "mail.send")
    assert row["message_id"] == str(message.pk)
    assert [piece["text"] for piece in row["excerpt"] if piece["is_match"]] == ["orchid"]
