"""Conversations of any length: the end first, older parts when somebody scrolls up, other branches as outlines."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from uuid import UUID

import pytest
from django.db import connection
from django.db.models.sql import compiler
from django.test.utils import CaptureQueriesContext
from uuid_utils.compat import uuid7

from chat.message_paths import beside_path, newest_leaf, path_to
from chat.models import Conversation, Message, Turn
from chat.services.branches import fork_conversation, show_branch
from chat.services.exports import ExportFormat, export_conversation
from chat.snapshots import (
    MOST_AT_FIRST,
    MOST_MESSAGES,
    MOST_OF_PATH,
    MOST_SIBLINGS,
    read_snapshot,
)
from chat.values import MessageRole, MessageStatus, TurnStatus
from tests import factories
from tests.factories import Tenant

tenant = factories.tenant


def add_path(conversation: Conversation, count: int, *, below: UUID | None = None) -> list[UUID]:
    """So many messages one below the other; the shown path ends with the last one."""
    before = Message.objects.for_workspace(conversation.workspace_id).count()
    ids = [uuid7() for _ in range(count)]
    Message.objects.bulk_create(
        Message(
            pk=pk,
            workspace_id=conversation.workspace_id,
            conversation=conversation,
            parent_id=parent,
            role=(MessageRole.ASSISTANT if at % 2 else MessageRole.USER).value,
            status=MessageStatus.COMPLETE.value,
            text=f"message {before + at}",
            order_key=before + at + 1,
        )
        for at, (pk, parent) in enumerate(zip(ids, [below, *ids], strict=False))
    )
    conversation.leaf_id = ids[-1]
    conversation.save(update_fields=["leaf_id"])
    return ids


@contextmanager
def rows_read(monkeypatch: pytest.MonkeyPatch, most: int) -> Iterator[None]:
    """At most so many rows come from the database."""
    count = 0
    fetch = compiler.cursor_iter

    def counted(*arguments: Any) -> Iterator[Any]:
        nonlocal count
        for rows in fetch(*arguments):
            count += len(rows)
            yield rows

    with monkeypatch.context() as patch:
        patch.setattr(compiler, "cursor_iter", counted)
        yield
    assert 0 < count <= most


def ids_of(messages: Sequence[Any]) -> list[UUID]:
    return [UUID(message["id"]) for message in messages]


def test_the_whole_of_a_long_conversation_can_be_read_part_by_part(
    tenant: Tenant, conversation: Conversation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REL-330, REL-560, REL-564: 10,000 messages; each part costs the same few statements, and no more rows than it shows."""
    path = add_path(conversation, 10_000)
    with (
        CaptureQueriesContext(connection) as captured,
        rows_read(monkeypatch, MOST_AT_FIRST + 20),
    ):
        snapshot = read_snapshot(conversation)
    assert len(captured) <= 13
    assert ids_of(snapshot.messages) == path[-MOST_AT_FIRST:]
    client = tenant.client("member")
    first = str(path[-MOST_AT_FIRST])
    found: list[UUID] = []
    while True:
        with (
            CaptureQueriesContext(connection) as captured,
            rows_read(monkeypatch, MOST_OF_PATH + 20),
        ):
            part = client.get(f"/api/messages/{first}/older/").json()
        if not part["messages"]:
            break
        assert len(captured) <= 14
        found = [*ids_of(part["messages"]), *found]
        first = part["messages"][0]["id"]
    assert found == path[:-MOST_AT_FIRST]


def test_a_link_to_an_old_message_reads_the_part_that_begins_with_it(
    tenant: Tenant, conversation: Conversation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REL-655: on from there part by part, down to the end of the shown path; a message of another branch gives none."""
    path = add_path(conversation, 2_000)
    client = tenant.client("member")
    at, found = path[100], list[UUID]()
    while True:
        with (
            CaptureQueriesContext(connection) as captured,
            rows_read(monkeypatch, MOST_OF_PATH + 20),
        ):
            part = client.get(f"/api/messages/{at}/newer/").json()
        assert len(captured) <= 14
        assert ids_of(part["messages"])[0] == at
        found += ids_of(part["messages"])[bool(found) :]
        if found[-1] == path[-1]:
            break
        at = found[-1]
    assert found == path[100:]
    # A shorter branch beside it is the shown one now.
    branch = add_path(conversation, 4, below=path[99])
    assert client.get(f"/api/messages/{path[100]}/newer/").json()["messages"] == []
    part = client.get(f"/api/messages/{branch[0]}/newer/").json()
    whole = [one for one in part["messages"] if not one["is_outline"]]
    beside = [one for one in part["messages"] if one["is_outline"]]
    assert (ids_of(whole), ids_of(beside)) == (branch, [path[100]])


def test_other_branches_are_outlines_and_can_be_shown(
    tenant: Tenant, conversation: Conversation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REL-330, REL-560, REL-564: 1,000 branches; the one that is shown is whole, and of a hundred it is known that they are.

    REL-2529: whoever goes to one of these finds those beside it, so that all of them are reached.
    """
    root = add_path(conversation, 2)
    branches = [add_path(conversation, 2, below=root[-1]) for _ in range(1_000)]
    with rows_read(monkeypatch, MOST_SIBLINGS + 20):
        snapshot = read_snapshot(conversation)
    whole = [message for message in snapshot.messages if not message["is_outline"]]
    outlines = [message for message in snapshot.messages if message["is_outline"]]
    assert ids_of(whole) == [*root, *branches[-1]]
    assert len(outlines) == MOST_SIBLINGS
    assert outlines[0].keys() == whole[0].keys()
    assert all(message["text"] == "" for message in outlines)
    earliest = UUID(outlines[0]["id"])
    assert earliest == branches[-1 - MOST_SIBLINGS][0]
    chosen = Message.objects.for_workspace(tenant.workspace).fetch(earliest)
    with rows_read(monkeypatch, 10):
        show_branch(message=chosen, actor=tenant.actor("member"))
    conversation.refresh_from_db()
    with rows_read(monkeypatch, 2 * MOST_SIBLINGS + 20):
        snapshot = read_snapshot(conversation)
    whole = [message for message in snapshot.messages if not message["is_outline"]]
    shown = len(branches) - 1 - MOST_SIBLINGS
    assert ids_of(whole) == [*root, *branches[shown]]
    beside = [first for first, _ in branches[shown - MOST_SIBLINGS : shown + MOST_SIBLINGS + 1]]
    beside.remove(branches[shown][0])
    assert ids_of([one for one in snapshot.messages if one["is_outline"]]) == beside


def test_a_conversation_begun_a_thousand_times_anew_is_read_as_one_begun_once(
    conversation: Conversation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REL-564: its first messages have no parent."""
    starts = [add_path(conversation, 2) for _ in range(1_000)]
    with rows_read(monkeypatch, MOST_SIBLINGS + 20):
        snapshot = read_snapshot(conversation)
    whole = [message for message in snapshot.messages if not message["is_outline"]]
    outlines = [message for message in snapshot.messages if message["is_outline"]]
    assert ids_of(whole) == starts[-1]
    assert ids_of(outlines) == [first for first, _ in starts[-MOST_SIBLINGS - 1 : -1]]


@pytest.mark.postgresql
def test_statistics_of_another_time_make_no_walk_longer(
    tenant: Tenant, conversation: Conversation
) -> None:
    """REL-772: PostgreSQL takes the messages for none yet, as after many were deleted; it reads no page many times."""
    end = add_path(conversation, 300)[-1]
    for _ in range(300):
        add_path(conversation, 1)
    with connection.cursor() as cursor:
        cursor.execute("UPDATE pg_class SET reltuples = 0 WHERE relname = 'chat_message'")
    rows = (
        path_to(tenant.workspace.pk, end, MOST_OF_PATH),
        beside_path(tenant.workspace.pk, end, most=300, siblings=MOST_SIBLINGS),
    )
    for wanted in rows:
        plan = json.loads(wanted.explain(analyze=True, buffers=True, format="json"))[0]["Plan"]
        read = plan["Shared Hit Blocks"] + plan["Shared Read Blocks"]
        assert read < 15_000


def test_exports_and_copies_read_their_path_alone(
    tenant: Tenant, conversation: Conversation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REL-565: beside them stand 500 branches, of which no row is read."""
    root = add_path(conversation, 2)
    for _ in range(500):
        add_path(conversation, 2, below=root[-1])
    with rows_read(monkeypatch, 10):
        exported = export_conversation(conversation, ExportFormat.JSON)
    entries = json.loads(exported.body)["messages"]
    assert [entry["text"] for entry in entries] == [f"message {n}" for n in (0, 1, 1000, 1001)]
    answer = Message.objects.for_workspace(tenant.workspace).fetch(conversation.leaf_id)
    assert answer.parent is not None
    answer.turn = Turn.objects.create(
        workspace_id=conversation.workspace_id,
        conversation=conversation,
        user_message=answer.parent,
        asked_by=tenant.member,
        source="web",
        status=TurnStatus.COMPLETED.value,
    )
    answer.save()
    with rows_read(monkeypatch, 30):
        copy = fork_conversation(
            message=answer, client_id="copy", owner=tenant.member, actor=tenant.actor("member")
        )
    assert [message["text"] for message in read_snapshot(copy).messages] == [
        f"message {n}" for n in (0, 1, 1000, 1001)
    ]


def test_paths_through_a_tree(conversation: Conversation) -> None:
    """Ours: below each message the newest branch is taken, and a path has its messages in their order."""
    workspace_id = conversation.workspace_id
    a, b = add_path(conversation, 2)
    (c,) = add_path(conversation, 1, below=b)
    (d,) = add_path(conversation, 1, below=a)
    (e,) = add_path(conversation, 1, below=b)
    (f,) = add_path(conversation, 1, below=c)
    leaves = {start: newest_leaf(workspace_id, start) for start in (a, b, c, e)}
    assert leaves == {a: d, b: e, c: f, e: e}
    assert [row.pk for row in path_to(workspace_id, f)] == [a, b, c, f]
    assert [row.pk for row in path_to(workspace_id, f, 2)] == [c, f]
    beside = beside_path(workspace_id, f, most=10, siblings=10)
    assert [row.pk for row in beside] == [d, e]
    assert list(path_to(workspace_id, uuid7())) == []


def test_a_short_conversation_is_given_whole(conversation: Conversation) -> None:
    """REL-330: with all its branches."""
    root = add_path(conversation, 2)
    for _ in range((MOST_MESSAGES - 2) // 2):
        add_path(conversation, 2, below=root[-1])
    snapshot = read_snapshot(conversation)
    assert len(snapshot.messages) == MOST_MESSAGES
    assert not any(message["is_outline"] for message in snapshot.messages)


def test_nobody_else_reads_older_parts(tenant: Tenant, conversation: Conversation) -> None:
    """SEC-01: a conversation is its owner's alone."""
    path = add_path(conversation, 3)
    assert tenant.client("member").get(f"/api/messages/{path[-1]}/older/").status_code == 200
    assert tenant.client("admin").get(f"/api/messages/{path[-1]}/older/").status_code == 404
