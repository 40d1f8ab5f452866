"""Search in one's own conversations: words, phrases, excerpts, and nothing of anybody else."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from datetime import UTC, datetime, timedelta
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar
from uuid import UUID

import pytest
from django.apps import apps
from django.db import connection
from django.db.models.sql import compiler
from django.test.utils import CaptureQueriesContext
from uuid_utils.compat import uuid7

from chat.artifacts.services import create_artifact
from chat.models import (
    Artifact,
    ArtifactVersion,
    Attachment,
    Bud,
    Conversation,
    Folder,
    Message,
    ToolCall,
    Turn,
)
from chat.services import word_index
from chat.services.conversations import delete_conversation
from chat.services.search import LONGEST_QUERY, search
from chat.services.word_index import FIRST_CHATS, MOST_CANDIDATES, MOST_NEWEST
from chat.values import ArtifactOrigin, ToolCallStatus, TurnStatus
from tests import factories
from tests.chat.services.talks import found, talk
from tests.factories import Tenant, make_tenant
from workspaces.database.sql_files import read_statements
from workspaces.errors import InvalidInput

pytestmark = pytest.mark.both_engines


tenant = factories.tenant


def add_said(conversation: Conversation, text: str, count: int) -> None:
    """So many messages more that say the same."""
    Message.objects.bulk_create(
        [
            Message(
                workspace_id=conversation.workspace_id,
                conversation=conversation,
                role="user",
                text=text,
                status="complete",
                order_key=at + 10,
            )
            for at in range(count)
        ],
        batch_size=500,
    )


@contextmanager
def reading(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """How many rows each statement gives."""
    counts: list[int] = []
    fetch, listed, pairs = compiler.cursor_iter, word_index._listed, word_index._pairs

    def counted(*arguments: Any) -> Iterator[Any]:
        for rows in fetch(*arguments):
            counts.append(len(rows))
            yield rows

    def counted_list(*arguments: Any) -> list[Any]:
        rows = listed(*arguments)
        counts.append(len(rows))
        return rows

    def counted_pairs(*arguments: Any) -> list[tuple[Any, Any]]:
        rows = pairs(*arguments)
        counts.append(len(rows))
        return rows

    with monkeypatch.context() as patch:
        patch.setattr(word_index, "_pairs", counted_pairs)
        patch.setattr(compiler, "cursor_iter", counted)
        patch.setattr(word_index, "_listed", counted_list)
        yield counts


def asks_for_all(captured: CaptureQueriesContext) -> bool:
    """Whether a statement compared all messages that hold the words with all that are wanted."""
    return any(re.search(r"chat_message\.(row)?id IN \(\s*SELECT", one["sql"]) for one in captured)


def test_a_filter_names_no_bud_that_is_somebody_elses_alone(tenant: Tenant) -> None:
    """SEC-622: neither as a value that may have been meant, nor by taking it. One that answered in a chat is known."""
    talk(tenant, "member", "We plant in March.")
    own = Bud.objects.create(
        workspace=tenant.workspace,
        slug="layoffs",
        name="Layoffs in May",
        owner=tenant.owner,
        visibility="owner",
    )

    def shown(query: str) -> str:
        with pytest.raises(InvalidInput) as refused:
            search(workspace=tenant.workspace, person=tenant.member, query=query)
        return str(refused.value.fields)

    assert "layoffs" not in shown("from:nobody plant")
    assert "layoffs" not in shown("from:layofs plant")
    assert "no value" in shown("from:layoffs plant")
    Conversation.objects.for_workspace(tenant.workspace).update(bud=own)
    assert len(found(tenant, "from:layoffs plant")) == 1


def test_words_are_found_by_their_beginning_and_phrases_as_they_stand(tenant: Tenant) -> None:
    """REL-331: in whatever case; all words have to be there."""
    talk(tenant, "member", "Which vegetables grow in March?", "Carrots, and early peas.")
    assert found(tenant, "veget") == ["Which [veget]ables grow in March?"]
    assert found(tenant, "MARCH grow") == ["Which vegetables [grow] in [March]?"]
    assert found(tenant, '"early peas"') == ["Carrots, and [early peas]."]
    assert found(tenant, '"peas early"') == []
    assert found(tenant, "vegetables peas") == []


def test_an_excerpt_is_without_marks_of_markdown_unless_they_were_looked_for(
    tenant: Tenant,
) -> None:
    """REL-2463: headings, quotations, links, code and bold words read as words."""
    text = "## Peas\n\n> Sow **early** in `March`, [so](https://p.example/):\n\n```python\na[2](3)**3**4\n```"
    talk(tenant, "member", text)
    assert found(tenant, "early") == ["Peas Sow [early] in March, so: a[2](3)**3**4"]
    assert found(tenant, '"**early**"') == [
        "## Peas > Sow [**early**] in `March`, [so](https://p.example/): ```python a[2](3)**3**4 ```"
    ]


@pytest.mark.parametrize("query", ["", '"', "'", "* OR", "a:b & !c", ") (", "\\", "NEAR(", "%_"])
def test_no_query_is_a_fault(tenant: Tenant, query: str) -> None:
    """REL-331: what the engines would take for an operator is a text like all others."""
    talk(tenant, "member", "plain words")
    assert found(tenant, query) == []


def test_titles_and_names_of_files_are_found_too(tenant: Tenant) -> None:
    """REL-331, REL-3123: and a hit says which conversation it is of. A title is not said again below itself."""
    conversation = talk(tenant, "member")
    conversation.title = "Garden plans"
    conversation.save()
    create_artifact(
        conversation=conversation,
        name="garden.md",
        content=b"# x",
        actor=tenant.actor("member"),
        origin=ArtifactOrigin.UPLOAD,
    )
    assert found(tenant, "garden") == ["", "[garden].md"]


def test_a_message_that_says_the_same_as_the_title_is_found_without_its_text(
    tenant: Tenant,
) -> None:
    """REL-3123: titles are often the first question. One that says more is shown, in a chat without a title too."""
    named = talk(tenant, "member", "**When** do orchids  bloom?", "orchids, when it is warm")
    named.title = "When do orchids bloom"
    named.save()
    assert found(tenant, "orchids") == ["[orchids], when it is warm", ""]
    talk(tenant, "member", "orchids 🌱")
    assert found(tenant, "orchids")[0] == "[orchids] 🌱"


def test_nobody_finds_what_others_have_said(tenant: Tenant) -> None:
    """SEC-01: neither in the same workspace nor in another one."""
    other = make_tenant("other")
    talk(tenant, "admin", "secret word")
    talk(other, "member", "secret word")
    assert found(tenant, "secret") == []
    assert found(tenant, "secret", "admin") == ["[secret] word"]


def test_what_streams_changes_or_goes_is_found_as_it_is_now(tenant: Tenant) -> None:
    """REL-331, REL-2506: the index follows the rows, and keeps no words of what is erased."""
    conversation = talk(tenant, "member", "half an ans", status="streaming")
    assert found(tenant, "half") == []
    row = Message.objects.for_workspace(tenant.workspace).get()
    row.text = "half an answer"
    row.save()
    assert indexed() == 0
    row.status = "complete"
    row.save()
    assert found(tenant, "half") == ["[half] an answer"]
    row.text = "a whole answer"
    row.save()
    assert found(tenant, "whole") == ["a [whole] answer"]
    row.text = "another one"
    row.save()
    assert found(tenant, "whole") == []
    assert found(tenant, "another") == ["[another] one"]
    delete_conversation(conversation=conversation, actor=tenant.actor("member"))
    assert found(tenant, "another") == []
    assert indexed() == 1
    conversation.delete()
    assert indexed() == 0
    talk(tenant, "member", "")
    assert indexed() == 0, "nothing is said"


def test_a_very_long_message_is_kept_and_found_by_its_beginning(tenant: Tenant) -> None:
    """REL-331: it has more different words than PostgreSQL takes into one row of an index."""
    talk(tenant, "member", " ".join(f"word{number}" for number in range(120_000)))
    assert len(found(tenant, "word77")) == 1


def indexed() -> int:
    """How many messages have words in the index."""
    table = {"postgresql": "chat_message_lexemes", "sqlite": "chat_message_words"}
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT count(*) FROM {table[connection.vendor]}")
        return int(cursor.fetchone()[0])


def test_what_is_rare_is_found_behind_much_that_is_not(tenant: Tenant) -> None:
    """REL-566: older than all that is looked through first, and in a chat that a filter asks for."""
    talk(tenant, "member", "A rare orchid", "An orchid and weather")
    add_said(talk(tenant, "member"), "weather", MOST_NEWEST + 1)
    add_said(talk(tenant, "admin"), "weather orchid", MOST_NEWEST + 1)
    assert found(tenant, "orchid") == ["An [orchid] and weather", "A rare [orchid]"]
    assert found(tenant, "weath orch") == ["An [orch]id and [weath]er"]
    assert len(found(tenant, "weather")) == 30
    rare = Message.objects.for_workspace(tenant.workspace).get(text="A rare orchid")
    Conversation.objects.for_workspace(tenant.workspace).filter(pk=rare.conversation_id).update(
        is_pinned=True
    )
    assert found(tenant, "weather is:pinned") == ["An orchid and [weather]"]


def test_a_search_reads_as_little_among_many_messages_as_among_few(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REL-566: of a word in each message the newest are read; of one that nobody else's search finds, none of theirs."""
    mine = talk(tenant, "member", "orchid")
    costs = []
    for count in (MOST_NEWEST + 1, 3_000):
        add_said(mine, "weather", count)
        add_said(talk(tenant, "admin"), "orchid", count)
        for query, hits in (("weather", 30), ("orchid", 1)):
            with CaptureQueriesContext(connection) as captured, reading(monkeypatch) as read:
                assert len(found(tenant, query)) == hits
            costs.append((query, len(captured), sum(read)))
    assert costs[:2] == costs[2:]
    assert all(rows <= MOST_CANDIDATES + 30 for _, _, rows in costs)


def test_a_word_in_some_of_a_hundred_messages_is_found_among_the_newest(tenant: Tenant) -> None:
    """REL-782: PostgreSQL looks at more of them, and does not fetch all that hold the word; one in few is still found."""
    mine = talk(tenant, "member", "orchid weather")
    for _ in range(60):
        add_said(mine, "rain", 49)
        add_said(mine, "weather", 1)
    for query, hits, looks_at_all in (("weather", 30, False), ("orchid", 1, True)):
        with CaptureQueriesContext(connection) as captured:
            assert len(found(tenant, query)) == hits
        if connection.vendor == "postgresql":
            asked = [one["sql"] for one in captured if "chat_message_lexemes" in one["sql"]]
            asked_index = any("MATERIALIZED" in one for one in asked)
            assert asked_index is looks_at_all


def add_each_second(conversation: Conversation, begin: datetime, *texts: str) -> None:
    """Messages that say this, one a second."""
    first = int(begin.timestamp() * 1000)
    Message.objects.bulk_create(
        Message(
            pk=UUID(int=((first + 1_000 * at) << 80) + at),
            workspace_id=conversation.workspace_id,
            conversation=conversation,
            role="user",
            text=text,
            status="complete",
            order_key=at,
        )
        for at, text in enumerate(texts)
    )


def test_of_words_in_few_messages_those_of_the_newest_time_are_fetched_first(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REL-806: on PostgreSQL; if that time holds too few, the older ones are found too."""
    monkeypatch.setattr(word_index, "MOST_NEWEST", 50)
    mine = talk(tenant, "member")
    last_year = datetime(2025, 3, 10, tzinfo=UTC)
    add_each_second(mine, last_year, *["orchid and fern"] * 150)
    some = ["elm"] * 24
    recent = ["orchid", *some] * 78 + ["orchid fern", *some] * 2
    add_each_second(mine, last_year + timedelta(days=365), *recent)
    with reading(monkeypatch) as read:
        assert found(tenant, "orchid") == ["[orchid] fern"] * 2 + ["[orchid]"] * 28
    if connection.vendor == "postgresql":
        assert sum(read) < 200  # of 230 messages that hold it, only those of the last minutes
    assert found(tenant, "fern")[:3] == ["orchid [fern]"] * 2 + ["orchid and [fern]"]
    assert len(found(tenant, "fern")) == 30


def test_a_search_within_a_time_looks_at_messages_of_that_time_alone(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REL-659: among many newer messages that say the same."""
    old = talk(tenant, "member")
    then = datetime(2025, 3, 10, 12, tzinfo=UTC)
    for text, moment in (("weather of March", then), ("weather later", then + timedelta(days=9))):
        Message.objects.create(
            pk=UUID(int=(int(moment.timestamp() * 1000) << 80) + 1),
            workspace=tenant.workspace,
            conversation=old,
            role="user",
            text=text,
            status="complete",
            order_key=1,
        )
        Message.objects.for_workspace(tenant.workspace).filter(text=text).update(created_at=moment)
    add_said(talk(tenant, "member"), "weather", MOST_NEWEST + 1)
    with reading(monkeypatch) as read:
        assert found(tenant, "weather after:2025-03-10 before:2025-03-11") == ["[weather] of March"]
        assert found(tenant, "weather after:2025-03-11 before:2025-04-01") == ["[weather] later"]
        assert found(tenant, "weather after:2024-03-11 before:2024-04-01") == []
    assert sum(read) < 20
    assert len(found(tenant, "weather after:2025-03-11")) == 30
    for query in ("weather after:0001-01-01", "weather before:9999-12-31"):
        assert len(found(tenant, query)) == 30


@pytest.mark.parametrize("chats", [2, FIRST_CHATS + 2])
def test_a_filter_leads_to_its_chats_behind_many_others_that_say_the_same(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch, chats: int
) -> None:
    """REL-802: also where one has all the newest hits. What is nowhere in them is looked for in them alone."""
    old = [talk(tenant, "member", "weather and a rare orchid") for _ in range(chats)]
    add_said(old[0], "weather", 60)
    Conversation.objects.for_workspace(tenant.workspace).update(is_archived=True)
    add_said(talk(tenant, "member"), "weather and an elm", MOST_NEWEST + 1)
    newest = talk(tenant, "member", *["weather"] * 5)
    Conversation.objects.for_workspace(tenant.workspace).filter(pk=newest.pk).update(
        is_archived=True
    )
    costs = []
    for query, count in (("weather", 30), ("orchid", min(30, chats)), ("elm", 0)):
        with CaptureQueriesContext(connection) as captured, reading(monkeypatch) as read:
            assert len(found(tenant, f"{query} is:archived")) == count
        costs.append((len(captured), sum(read)))
        assert not asks_for_all(captured)
    assert all(statements <= 13 for statements, _ in costs)
    assert all(rows <= 2 * MOST_CANDIDATES + 3 * chats + 30 for _, rows in costs)
    hits = search(workspace=tenant.workspace, person=tenant.member, query="weather is:archived")
    assert {hit.conversation.pk for hit in hits[:5]} == {newest.pk}
    assert {hit.conversation.pk for hit in hits[5:]} == {old[0].pk}


def test_many_chats_are_walked_until_what_follows_is_older(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REL-802: of hundreds of chats in a folder, those that were gone on with first; none is left out."""
    monkeypatch.setattr(word_index, "FIRST_CHATS", 3)
    monkeypatch.setattr(word_index, "MORE_CHATS", 2)
    plans = Folder.objects.create(workspace=tenant.workspace, owner=tenant.member, name="Plans")
    some = [talk(tenant, "member", f"weather {n}") for n in range(9)]
    add_said(some[0], "weather again", 20)
    Conversation.objects.for_workspace(tenant.workspace).update(folder=plans)
    add_said(talk(tenant, "member"), "weather", MOST_NEWEST + 1)
    hits = search(workspace=tenant.workspace, person=tenant.member, query="weather in:Plans")
    assert [hit.conversation.pk for hit in hits] == [
        *[some[0].pk] * 20,
        *(one.pk for one in reversed(some)),
    ]


def add_marked(conversation: Conversation, text: str, tool: str) -> Message:
    """A message that called a tool of the server "mail" three times, and has a file three times."""
    workspace = conversation.workspace
    row: Message = Message.objects.create(
        workspace=workspace,
        conversation=conversation,
        role="assistant",
        text=text,
        status="complete",
        order_key=9_000,
    )
    turn = Turn.objects.create(
        workspace=workspace,
        conversation=conversation,
        user_message=row,
        asked_by=conversation.owner,
        status=TurnStatus.COMPLETED.value,
        place=Turn.objects.for_workspace(workspace).count(),
    )
    for position in range(3):
        ToolCall.objects.create(
            workspace=workspace,
            turn=turn,
            message=row,
            position=position,
            server_name="Mail",
            tool_name=tool,
            status=ToolCallStatus.SUCCEEDED.value,
        )
    artifact = Artifact.objects.create(
        workspace=workspace, conversation=conversation, name=f"{row.pk}.md"
    )
    version = ArtifactVersion.objects.create(
        workspace=workspace,
        artifact=artifact,
        number=1,
        content_type="text/markdown",
        size=1,
        origin=ArtifactOrigin.UPLOAD.value,
    )
    for position in range(3):
        Attachment.objects.create(
            workspace=workspace, message=row, position=position, version=version
        )
    return row


def test_a_tool_and_a_file_lead_to_their_messages_behind_many_others(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REL-803: with words and without, in any case, by the tool's name, its server's, or both. Nobody else's are looked at."""
    mine = talk(tenant, "member")
    add_marked(mine, "rain in spring", "recall")
    add_marked(mine, "rain in autumn", "send")
    for _ in range(5):
        add_marked(talk(tenant, "admin"), "rain elsewhere", "recall")
    add_said(mine, "rain", MOST_NEWEST + 1)
    spring, both = ["[rain] in spring"], ["[rain] in autumn", "[rain] in spring"]
    for query, texts in (
        ("rain tool:recall", spring),
        ("rain tool:MAIL.Recall", spring),
        ("rain tool:mail", both),
        ("rain tool:mail is:archived", []),
        ("rain tool:nobody", []),
        ("rain has:file", both),
        ("rain has:file tool:send", both[:1]),
        ("spr has:file", ["rain in [spr]ing"]),
        ("tool:mail.recall", ["rain in spring"]),
    ):
        with CaptureQueriesContext(connection) as captured, reading(monkeypatch) as read:
            assert found(tenant, query) == texts
        assert sum(read) < 20
        assert len(captured) <= 14
        assert not asks_for_all(captured)


@pytest.mark.parametrize(
    ("query", "table", "index"),
    [
        ("tool:recall", "chat_toolcall", "tool_call_of_tool"),
        ("rain has:file", "chat_attachment", "attachment_of_owner"),
    ],
)
def test_a_tool_that_others_call_often_is_found_without_looking_at_their_calls(
    tenant: Tenant, query: str, table: str, index: str
) -> None:
    """REL-1150: nor at their files. The index begins with whose they are."""
    add_marked(talk(tenant, "member"), "rain in spring", "recall")
    theirs = add_marked(talk(tenant, "admin"), "rain elsewhere", "recall")
    calls = ToolCall.objects.for_workspace(tenant.workspace).filter(message=theirs)
    ToolCall.objects.bulk_create(copies(calls[0]), batch_size=500)
    files = Attachment.objects.for_workspace(tenant.workspace).filter(message=theirs)
    Attachment.objects.bulk_create(copies(files[0]), batch_size=500)
    asked: list[tuple[str, Any]] = []

    def keep(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if f'FROM "{table}"' in sql:
            asked.append((sql, params))
        return execute(sql, params, many, context)

    explain = "EXPLAIN QUERY PLAN" if connection.vendor == "sqlite" else "EXPLAIN"
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
        with connection.execute_wrapper(keep):
            assert "in spring" in found(tenant, query)[0]
        cursor.execute(f"{explain} {asked[0][0]}", asked[0][1])
        plan = " ".join(str(row) for row in cursor.fetchall())
    assert re.search(rf"{index} .*owner_id ?=", plan), plan


Row = TypeVar("Row", ToolCall, Attachment)


def copies(row: Row) -> list[Row]:
    """Many more like it, of the same message."""
    rows = [copy(row) for _ in range(3_000)]
    for number, other in enumerate(rows, 10):
        other.pk, other.position = uuid7(), number
    return rows


def test_calls_and_files_know_whose_they_are_whoever_stores_them(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REL-1150: also what an older version stores while the new one takes over, and what was there before."""
    row = add_marked(talk(tenant, "member"), "rain", "recall")
    calls = ToolCall.objects.for_workspace(tenant.workspace).filter(message=row)
    files = Attachment.objects.for_workspace(tenant.workspace).filter(message=row)
    assert {one.owner for one in (*calls, *files)} == {tenant.member}
    calls.update(owner=None)
    assert {one.owner for one in calls} == {tenant.member}
    filling = import_module("chat.migrations.0043_fill_in_owners_of_calls_and_files")
    monkeypatch.setattr(filling, "AT_ONCE", 2)
    with without_triggers():
        calls.update(owner=None)
        files.update(owner=None)
        assert {one.owner for one in (*calls.all(), *files.all())} == {None}
        filling.fill_in_owners(apps, connection.schema_editor())
    assert {one.owner for one in (*calls.all(), *files.all())} == {tenant.member}


@contextmanager
def without_triggers() -> Iterator[None]:
    """As before the version that knows them."""
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("SET LOCAL session_replication_role = replica")
            yield
            cursor.execute("SET LOCAL session_replication_role = origin")
            return
        for table in ("chat_toolcall", "chat_attachment"):
            cursor.execute(f"DROP TRIGGER {table}_owner_changed")
        yield
        for statement in read_statements(Path("chat/sql"), "owner_of_calls_and_files", "sqlite"):
            cursor.execute(statement)


@pytest.mark.parametrize("query", ["rain tool:mail", "tool:mail", "rain has:file"])
def test_more_files_and_calls_than_are_looked_through_first_hide_nothing(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch, query: str
) -> None:
    """REL-803: what is older than all of them is found too."""
    monkeypatch.setattr("chat.services.search.MOST_MARKED", 2)
    monkeypatch.setattr(word_index, "MOST_MARKED", 2)
    mine = talk(tenant, "member")
    for n in range(4):
        add_marked(mine, f"rain {n}", "send")
    hits = search(workspace=tenant.workspace, person=tenant.member, query=query)
    texts = ["".join(text for text, _ in hit.excerpt) for hit in hits if hit.message_id]
    assert texts == ["rain 3", "rain 2", "rain 1", "rain 0"]


def test_a_search_over_rest_is_a_few_statements(tenant: Tenant) -> None:
    """REL-331: however many hits; too long a query is refused."""
    talk(tenant, "member", *(f"word {number}" for number in range(40)))
    client = tenant.client("member")
    client.get("/api/search/", {"q": "none"})
    with CaptureQueriesContext(connection) as captured:
        answer: Any = client.get("/api/search/", {"q": "word"})
    assert len(answer.json()) == 30
    assert len(captured) <= 10
    assert client.get("/api/search/", {"q": "x" * (LONGEST_QUERY + 1)}).status_code == 422
    assert client.get("/api/search/", {"query": "x"}).status_code == 400
