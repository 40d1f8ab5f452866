"""Entries are added, never changed; and hold no secret."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import DatabaseError, connection, transaction
from uuid_utils.compat import uuid7

from audit.actions import Action, Outcome, sentence_of, title_of
from audit.bodies import commit_to
from audit.bodies.storing import PREVIEW_CHARACTERS
from audit.errors import AuditUnavailable
from audit.models import AuditEntry
from audit.services import EntryDraft, Ref, record
from audit.services.recording import prepare
from tests.factories import Tenant
from workspaces.redaction import remember_secret

CANARY = "canary-audit-0123456789"


def draft(tenant: Tenant, **changes: object) -> EntryDraft:
    values = {
        "action": Action.TOOL_CALL_FINISHED,
        "actor": tenant.actor("member"),
        "workspace_id": tenant.workspace.pk,
        **changes,
    }
    return EntryDraft(**values)  # type: ignore[arg-type]


STATEMENTS = {
    "change": "UPDATE audit_auditentry SET actor_label = 'nobody'",
    "delete": "DELETE FROM audit_auditentry",
    "change of nothing": "UPDATE audit_auditentry SET rule = rule",
}


@pytest.mark.parametrize("kind", STATEMENTS)
def test_the_database_refuses_to_alter_entries(tenant: Tenant, kind: str) -> None:
    """SEC-100: raw SQL on either engine."""
    record(draft(tenant))
    with pytest.raises(DatabaseError), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(STATEMENTS[kind])
    assert AuditEntry.objects.for_workspace(tenant.workspace).count() == 1


@pytest.mark.postgresql
def test_the_database_refuses_to_empty_the_log(tenant: Tenant) -> None:
    """SEC-100: TRUNCATE passes no row trigger, and is refused by its own."""
    record(draft(tenant))
    with pytest.raises(DatabaseError), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("TRUNCATE audit_auditentry")


def test_replacing_an_entry_is_refused_too(tenant: Tenant) -> None:
    """SEC-100: the ORM's save and delete, and SQLite's REPLACE, which hides a delete."""
    entry = record(draft(tenant))
    for attempt in (entry.save, entry.delete):
        with pytest.raises(DatabaseError), transaction.atomic():
            attempt()
    if connection.vendor == "sqlite":
        with pytest.raises(DatabaseError), transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("REPLACE INTO audit_auditentry SELECT * FROM audit_auditentry")


def test_entries_outlive_their_workspace(tenant: Tenant) -> None:
    """SEC-100: values, not foreign keys."""
    record(draft(tenant))
    pk = tenant.workspace.pk
    tenant.workspace.delete()
    assert AuditEntry.objects.for_workspace(pk).count() == 1


def test_what_cannot_be_written_raises(tenant: Tenant) -> None:
    """SEC-101: the caller learns of it, and does nothing."""
    with pytest.raises(AuditUnavailable), transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("ALTER TABLE audit_auditentry RENAME TO audit_gone")
        record(draft(tenant))


@pytest.mark.postgresql
def test_an_entry_whose_connection_breaks_while_it_is_counted_is_not_taken_for_written(
    tenant: Tenant, transactional_db: None
) -> None:
    """REL-2881: else a decision is lost without a word, or its request fails with a 500."""

    def break_it(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if sql.startswith("SELECT"):
            sql, params = "SELECT pg_terminate_backend(pg_backend_pid())", None
        return execute(sql, params, many, context)

    granted = prepare(draft(tenant, action=Action.APPROVAL_GRANTED, call_id=uuid7()))
    broken = connection.execute_wrapper(break_it)
    with pytest.raises(AuditUnavailable), transaction.atomic(), broken:
        record(granted)
    entries = AuditEntry.objects.for_workspace(tenant.workspace)
    assert not entries.filter(pk=granted.entry.pk).exists()


def test_bodies_are_redacted_before_they_are_stored(tenant: Tenant) -> None:
    """SEC-94: by value, by name and by shape; the commitment covers the original."""
    remember_secret(CANARY, workspace_id=tenant.workspace.pk)
    raw = f'{{"text":"{CANARY}","api_key":"short","url":"https://u:pw@h.example","jwt":"Bearer abcdefgh12"}}'.encode()
    entry = record(draft(tenant, arguments=raw, result=raw, details={"password": "hunter2"}))
    everything = str(vars(entry))
    for secret in (CANARY, "short", "u:pw@", "abcdefgh12", "hunter2"):
        assert secret not in everything
    assert entry.arguments_size == len(raw)
    assert entry.arguments_commitment == commit_to(raw)


def test_a_large_body_is_redacted_by_name_too(tenant: Tenant) -> None:
    """SEC-94: a value under a telling name is masked, however large its neighbour is."""
    raw = b'{"api_key":"plain-and-short","content":"' + b"x" * 200_000 + b'"}'
    entry = record(draft(tenant, arguments=raw))
    assert "plain-and-short" not in entry.arguments_preview
    assert "api_key" in entry.arguments_preview
    broken = record(draft(tenant, arguments=b'{"password":"hunter2", nonsense'))
    assert "hunter2" not in broken.arguments_preview


def test_a_long_body_is_cut_and_says_so(tenant: Tenant) -> None:
    """SEC-107: size and commitment are those of the whole."""
    raw = b'{"x":"' + b"a" * 2_000_000 + b'"}'
    entry = record(draft(tenant, result=raw, outcome=Outcome.OK))
    assert len(entry.result_preview) < PREVIEW_CHARACTERS + 100
    assert f"{len(raw)} bytes" in entry.result_preview
    assert entry.result_commitment == commit_to(raw)


def test_foreign_text_cannot_break_a_line(tenant: Tenant) -> None:
    """SEC-106: control characters, bidi overrides and NUL are made harmless."""
    name = "tool\x00\x1b[31m\u202egnp\r\n2026 forged line"
    entry = record(draft(tenant, tool=Ref(id=None, name=name)))
    assert not set(entry.tool_name) & {"\x00", "\x1b", "\u202e", "\r"}


def test_every_action_has_its_sentence() -> None:
    """Ours: people read sentences, not codes."""
    assert all(action.label and action.sentence for action in Action)
    assert len({action.label for action in Action}) == len(Action)
    assert title_of("tool_call.finished") == "Tool call finished"
    assert sentence_of("tool_call.finished") == "A tool call ended."
    assert (title_of("of.nobody"), sentence_of("of.nobody")) == ("of.nobody", "")
