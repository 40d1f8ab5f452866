"""Conversations of any length: the end first, older parts when somebody scrolls up, other branches as outlines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from uuid import UUID

import pytest
from django.db import connection
from django.db.models.sql import compiler
from django.test.utils import CaptureQueriesContext
from uuid_utils.compat import uuid7

from chat.models import Bud, Conversation, Message
from chat.services.branches import show_branch
from chat.services.conversations import create_conversation
from chat.snapshots import MOST_MESSAGES, MOST_OF_PATH, MOST_SIBLINGS, read_snapshot
from chat.values import MessageRole, MessageStatus
from tests.factories import Tenant, make_tenant


@pytest.fixture
def tenant(db: None) -> Tenant:
    return make_tenant("acme")


@pytest.fixture
def conversation(tenant: Tenant) -> Conversation:
    bud = Bud.objects.create(workspace=tenant.workspace, slug="bud", name="Bud")
    return create_conversation(bud=bud, owner=tenant.member, actor=tenant.actor("member"))


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
    """REL-330, REL-560: 10,000 messages; each part costs the same few statements, and no more rows than it shows."""
    path = add_path(conversation, 10_000)
    with (
        CaptureQueriesContext(connection) as captured,
        rows_read(monkeypatch, MOST_MESSAGES + MOST_OF_PATH + 20),
    ):
        snapshot = read_snapshot(conversation)
    assert len(captured) <= 13
    assert ids_of(snapshot.messages) == path[-MOST_OF_PATH:]
    client = tenant.client("member")
    first = str(path[-MOST_OF_PATH])
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
    assert found == path[:-MOST_OF_PATH]


def test_other_branches_are_outlines_and_can_be_shown(
    tenant: Tenant, conversation: Conversation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REL-330, REL-560: a tree with 1,000 branches; the one that is shown is whole, and a hundred others are read."""
    root = add_path(conversation, 2)
    branches = [add_path(conversation, 2, below=root[-1]) for _ in range(1_000)]
    with rows_read(monkeypatch, MOST_MESSAGES + MOST_OF_PATH + MOST_SIBLINGS + 20):
        snapshot = read_snapshot(conversation)
    whole = [message for message in snapshot.messages if not message["is_outline"]]
    outlines = [message for message in snapshot.messages if message["is_outline"]]
    assert ids_of(whole) == [*root, *branches[-1]]
    assert len(outlines) == MOST_SIBLINGS
    assert all(message["text"] == "" for message in outlines)
    chosen = Message.objects.for_workspace(tenant.workspace).fetch(branches[950][0])
    show_branch(message=chosen, actor=tenant.actor("member"))
    conversation.refresh_from_db()
    snapshot = read_snapshot(conversation)
    whole = [message for message in snapshot.messages if not message["is_outline"]]
    assert ids_of(whole) == [*root, *branches[950]]


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
