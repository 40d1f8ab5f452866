"""Rows that are written by statements that are compiled once; they stand on parts of Django that it does not promise."""

from __future__ import annotations

import sys
from typing import Any
from unittest.mock import patch
from uuid import uuid4

import pytest
from django.apps import apps
from django.db import DatabaseError, connection, models, transaction
from django.db.models.expressions import DatabaseDefault
from django.db.models.functions import Lower
from django.forms import model_to_dict
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from audit.models import AuditBody, AuditEntry
from chat.models import Bud, Message
from chat.services.conversations import create_conversation
from chat.values import MessageRole, MessageStatus
from tests.factories import Tenant
from workspaces.database import row_security
from workspaces.database.prepared_writes import WrittenOften, insert
from workspaces.database.sqlite.base import _converted
from workspaces.secrets import Secret

pytestmark = [pytest.mark.django_db, pytest.mark.both_engines]


def entry_of(tenant: Tenant, **more: Any) -> AuditEntry:
    return AuditEntry(
        workspace_id=tenant.workspace.pk,
        action="tool_call.requested",
        actor_kind="user",
        actor_label="ä\u2028\x7f",
        ip_address="2001:db8::1",
        call_id=uuid4(),
        annotations={"read_only": True, "title": None},
        arguments_size=2**40,
        duration_ms=7,
        details={"a": ["b", 1.5, None]},
        **more,
    )


def message_of(tenant: Tenant) -> Message:
    owner, actor = tenant.member, tenant.actor("member")
    bud = Bud.objects.create(workspace=tenant.workspace, name="Bud", slug=uuid4().hex)
    conversation = create_conversation(bud=bud, owner=owner, actor=actor)
    return Message.objects.create(
        workspace_id=tenant.workspace.pk,
        conversation=conversation,
        role=MessageRole.USER.value,
        status=MessageStatus.COMPLETE.value,
        text="Hello",
        order_key=1,
    )


def columns(row: models.Model) -> dict[str, Any]:
    read = type(row)._base_manager.get(pk=row.pk)
    return {field.attname: getattr(read, field.attname) for field in row._meta.concrete_fields}


def test_a_row_is_what_django_would_have_added(tenant: Tenant) -> None:
    """REL-354: in every column, of every kind; and the instance knows that it is stored."""
    now = timezone.now()
    ours, djangos = entry_of(tenant), entry_of(tenant)
    with patch("django.db.models.base.Model.save", side_effect=AssertionError):
        ours.save(force_insert=True)
    models.Model.save(djangos, force_insert=True)
    assert not ours._state.adding
    assert ours.created_at >= now
    unlike = {"id", "call_id", "created_at"}
    assert {k: v for k, v in columns(ours).items() if k not in unlike} == {
        k: v for k, v in columns(djangos).items() if k not in unlike
    }
    assert columns(ours)["call_id"] == ours.call_id


def test_bytes_and_sealed_texts_are_added(tenant: Tenant) -> None:
    """REL-354: what a field makes itself when a row is saved it makes here too."""
    entry = entry_of(tenant)
    entry.save(force_insert=True)
    for result in (None, b"\x00\xff'"):
        AuditBody._base_manager.filter(pk=entry.pk).delete()
        body = AuditBody(
            entry_id=entry.pk,
            workspace_id=tenant.workspace.pk,
            key="secret",
            arguments=b"\x00\x01",
            result=result,
        )
        body.save(force_insert=True)
        read = AuditBody._base_manager.get(pk=entry.pk)
        assert bytes(read.arguments or b"") == b"\x00\x01"
        assert (bytes(read.result) if read.result is not None else None) == result
        assert read.key.reveal("test", is_credential=False) == "secret"


def test_named_fields_are_changed_as_django_would(tenant: Tenant) -> None:
    """REL-903: these and no others, with what a field makes itself; sealed texts, JSON and nothing among them."""
    rows = [message_of(tenant), message_of(tenant)]
    for row in rows:
        row.text, row.reasoning = "Good-bye\u2028", "not stored"
        row.json_meta, row.turn_id = {"a": [None, 1.5]}, None
    before = columns(rows[0])["updated_at"]
    names = {"text", "json_meta", "turn", "updated_at"}
    with patch("django.db.models.base.Model.save", side_effect=AssertionError):
        rows[0].save(update_fields=names)
    models.Model.save(rows[1], update_fields=names)
    unlike = {"id", "conversation_id", "created_at", "updated_at", "client_id"}
    assert {k: v for k, v in columns(rows[0]).items() if k not in unlike} == {
        k: v for k, v in columns(rows[1]).items() if k not in unlike
    }
    assert columns(rows[0])["text"] == "Good-bye\u2028"
    assert columns(rows[0])["reasoning"] == ""
    assert columns(rows[0])["updated_at"] > before


def test_a_whole_row_is_changed_as_django_would(tenant: Tenant) -> None:
    """REL-903: all that was loaded, and nothing else; a row that is gone is added again."""
    rows = [message_of(tenant), message_of(tenant)]
    for row in rows:
        row.text, row.json_meta, row.turn_id = "Good-bye\u2028", {"a": [None, 1.5]}, None
    with patch("django.db.models.base.Model.save", side_effect=AssertionError):
        rows[0].save()
    models.Model.save(rows[1])
    unlike = {"id", "conversation_id", "created_at", "updated_at", "client_id"}
    assert {k: v for k, v in columns(rows[0]).items() if k not in unlike} == {
        k: v for k, v in columns(rows[1]).items() if k not in unlike
    }
    assert columns(rows[0])["created_at"] == rows[0].created_at
    partly = Message._base_manager.defer("text").get(pk=rows[0].pk)
    Message._base_manager.filter(pk=rows[0].pk).update(text="Said meanwhile")
    partly.reasoning = "Thoughts"
    partly.save()
    assert (columns(rows[0])["text"], columns(rows[0])["reasoning"]) == (
        "Said meanwhile",
        "Thoughts",
    )
    Message._base_manager.filter(pk=rows[1].pk).delete()
    rows[1].save()
    assert columns(rows[1])["text"] == "Good-bye\u2028"


def test_a_change_that_cannot_be_made_is_refused_as_by_django(tenant: Tenant) -> None:
    """REL-903: of a row that is gone, of no such field; what the database makes Django has it make."""
    message = message_of(tenant)
    unknown: list[str] = ["text", "nothing_such"]
    with pytest.raises(ValueError, match="nothing_such"):
        message.save(update_fields=unknown)
    message.text = Lower(models.Value("HELLO"))
    message.save(update_fields=["text"])
    message.refresh_from_db()
    assert message.text == "hello"
    Message._base_manager.filter(pk=message.pk).delete()
    with pytest.raises(DatabaseError, match="did not affect"):
        message.save(update_fields=["text"])


def test_other_ways_to_save_are_djangos(tenant: Tenant) -> None:
    """REL-354: triggers refuse a change as ever."""
    entry = entry_of(tenant)
    entry.save()
    with pytest.raises(DatabaseError), transaction.atomic():
        entry.save(update_fields=["model"])
    assert model_to_dict(entry) == model_to_dict(AuditEntry._base_manager.get(pk=entry.pk))


def test_many_rows_are_added_together(tenant: Tenant) -> None:
    """REL-354: by one statement, also where the database makes a value of one of them."""
    entries = [entry_of(tenant) for _ in range(3)]
    with CaptureQueriesContext(connection) as statements:
        insert(entries)
    assert len(statements) == 1
    assert all(not entry._state.adding for entry in entries)
    read = AuditEntry._base_manager.in_bulk([entry.pk for entry in entries])
    assert {pk: entry.call_id for pk, entry in read.items()} == {
        entry.pk: entry.call_id for entry in entries
    }
    made = entry_of(tenant, server_name=Lower(models.Value("MAIL")))
    insert([entry_of(tenant), made, entry_of(tenant)])
    assert AuditEntry._base_manager.get(pk=made.pk).server_name == "mail"
    assert AuditEntry._base_manager.count() == 6
    insert([])


@pytest.mark.postgresql
def test_the_database_keeps_an_insertion_of_many_rows(tenant: Tenant) -> None:
    """REL-740: once for a connection, as it keeps that of one row."""
    for _ in range(3):
        insert([entry_of(tenant), entry_of(tenant)])
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_prepared_statements WHERE statement LIKE %s",
            [f'INSERT INTO "{AuditEntry._meta.db_table}"%'],
        )
        assert cursor.fetchone()[0] == (0 if row_security.is_on() else 1)


def test_a_new_row_is_as_django_makes_it(tenant: Tenant) -> None:
    """REL-2904: whatever is left out has its default, made anew where it can be changed; other names are refused."""
    often = [one for one in apps.get_models() if issubclass(one, WrittenOften)]
    assert len(often) > 5
    for model in often:
        ours, djangos = model(), model.__new__(model)
        models.Model.__init__(djangos)
        assert ours._state.adding
        assert vars(ours).keys() == vars(djangos).keys()
        for field in model._meta.concrete_fields:
            value, wanted = getattr(ours, field.attname), getattr(djangos, field.attname)
            assert type(value) is type(wanted), field
            if not callable(field.default) and not isinstance(wanted, DatabaseDefault):
                assert value == wanted, field
    assert AuditEntry().details is not AuditEntry().details
    assert AuditBody(key="of its own").key == Secret("of its own")
    message = message_of(tenant)
    assert Message(conversation=message.conversation).conversation is message.conversation
    unknown: dict[str, Any] = {"no_such_field": 1}
    with pytest.raises(TypeError, match="no_such_field"):
        AuditEntry(**unknown)


def test_a_new_row_costs_little(tenant: Tenant) -> None:
    """REL-2904: Django asks each of an entry's 48 fields; here a row's defaults are looked up once."""
    entry_of(tenant)
    asked: list[str] = []

    def look(frame: Any, event: str, _argument: object) -> None:
        if event == "call":
            asked.append(frame.f_code.co_name)

    sys.setprofile(look)
    try:
        AuditEntry(action="tool_call.requested", actor_label="a", duration_ms=7)
    finally:
        sys.setprofile(None)
    assert len(asked) < 20, asked


@pytest.mark.sqlite
def test_sqlite_looks_through_a_statement_once() -> None:
    """REL-2905: to find the places of values took longer than to hand a statement over; what it says stays the same."""
    _converted.cache_clear()
    with connection.cursor() as cursor:
        for number in range(3):
            cursor.execute("SELECT %s, '%%s', '?', 5 %% 3", [number])
            assert cursor.fetchone() == (number, "%s", "?", 2)
        cursor.execute("SELECT %(a)s", {"a": 4})
        assert cursor.fetchone() == (4,)
    assert _converted.cache_info().hits == 2
