"""The database goes back in time, and nothing that it remembers is done a second time."""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path

import pytest
from django.contrib.sessions.models import Session
from django.core.management import call_command
from django.db import transaction
from django.test import Client

from audit.models import AuditEntry
from chat import restore_confirmation as chat_restore
from chat import tasks
from chat.engine import leases, runner
from chat.models import Turn
from chat.services.approvals import decide
from chat.values import Decision
from chat.webhooks import delivery
from mcp_servers.models import Approval
from tests.chat.conftest import Chat
from workspaces import restore_detection
from workspaces.database import database_now
from workspaces.errors import Conflict
from workspaces.models import Installation
from workspaces.process import shutdown


@pytest.fixture(autouse=True)
def epoch_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file outside the database, of this test alone."""
    path = tmp_path / "epoch.json"
    monkeypatch.setattr(restore_detection, "_path", lambda: path)
    return path


def test_a_database_that_went_back_does_nothing_by_itself(
    chat: Chat, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REL-46, SEC-530: open turns are interrupted, approvals void, webhooks wait; the server sees nothing."""
    chat.model.call(("counting__destroy", {"what": "x"}))
    sent = chat.send()
    chat.watching.turn("waiting_for_approval")
    assert not chat_restore.look()
    backup = Installation.objects.get().epoch
    # Approved and taken by nobody yet: as the backup has it, whatever was done after it.
    shutdown.begin()
    try:
        decide(call=chat.calls()[0], decision=Decision.APPROVED, actor=chat.actor)
    finally:
        shutdown.cancel()
    assert not chat_restore.look()
    Installation.objects.update(epoch=backup)
    chat.watching.forget()
    Client().force_login(chat.tenant.member)

    assert chat_restore.look()
    assert chat.reload(sent.turn).status == "interrupted"
    assert runner.recover() == 0
    assert chat.server.calls == []
    assert not Approval.objects.for_workspace(chat.tenant.workspace).filter(
        expires_at__gt=database_now()
    )
    with pytest.raises(Conflict):
        decide(call=chat.calls()[0], decision=Decision.APPROVED, actor=chat.actor)
    entry = AuditEntry.objects.across_workspaces().get(action="restore.found")
    assert entry.details["database_epoch"] == backup
    assert entry.details["interrupted_turns"] == 1
    assert not Session.objects.exists(), "everybody signs in again"

    delivered: list[bool] = []
    monkeypatch.setattr(delivery, "deliver_due", lambda: delivered.append(True))
    tasks.deliver_webhooks()
    assert not delivered
    call_command("confirm_restore")
    tasks.deliver_webhooks()
    assert delivered
    assert AuditEntry.objects.across_workspaces().filter(action="restore.confirmed").count() == 1
    assert not chat_restore.look(), "it is told once"


def test_a_restore_is_confirmed_before_the_first_start(db: None) -> None:
    """REL-3061: the command finds it itself, and the start after it finds nothing to ask about."""
    assert restore_detection.beat() is None
    assert restore_detection.beat() is None
    Installation.objects.update(epoch=1)

    call_command("confirm_restore")

    actions = AuditEntry.objects.across_workspaces().values_list("action", flat=True)
    assert {"restore.found", "restore.confirmed"} <= set(actions)
    assert not chat_restore.look()
    assert not restore_detection.is_unconfirmed()


def test_a_restore_is_settled_after_a_crash_and_on_a_full_disk(
    chat: Chat, epoch_file: Path
) -> None:
    """REL-3071: what was found and not settled is settled at the next look, once, without the file."""
    assert restore_detection.beat() is None
    assert restore_detection.beat() is None
    Installation.objects.update(epoch=1)
    Client().force_login(chat.tenant.member)
    # Nothing can be written there.
    blocked = epoch_file.with_name(f"{epoch_file.name}.{os.getpid()}")
    blocked.mkdir()

    found = restore_detection.beat()
    assert found is not None
    assert Session.objects.exists(), "the process ended here"
    assert chat_restore.look()
    assert not Session.objects.exists()
    with transaction.atomic():
        assert not restore_detection.mark_settled(found), "another process comes too late"

    blocked.rmdir()
    assert not chat_restore.look()
    assert AuditEntry.objects.across_workspaces().filter(action="restore.found").count() == 1


def test_a_restart_and_another_database_are_no_restore(epoch_file: Path, db: None) -> None:
    """REL-46: the number grows, a missing or foreign file says nothing, and a broken one neither."""
    assert restore_detection.beat() is None
    assert restore_detection.beat() is None
    epoch_file.unlink()
    assert restore_detection.beat() is None
    epoch_file.write_text('{"installation": "another", "epoch": 10000}')
    assert restore_detection.beat() is None
    epoch_file.write_text("{")
    assert restore_detection.beat() is None
    assert not restore_detection.is_unconfirmed()


def test_a_turn_that_is_about_to_be_taken_is_no_orphan(chat: Chat) -> None:
    """REL-11, REL-41: at the second look it is one, and one whose holder let its lease run out is at the first."""
    shutdown.begin()
    try:
        sent = chat.send()
    finally:
        shutdown.cancel()
    orphanage = leases.Orphanage()
    assert orphanage.look() == []
    assert [one.turn_id for one in orphanage.look()] == [sent.turn.pk]
    turns = Turn.objects.for_workspace(chat.tenant.workspace).filter(pk=sent.turn.pk)
    held = {"status": "running", "attempt": 1, "lease_token": 1}
    turns.update(**held, lease_until=database_now() + timedelta(seconds=30))
    assert leases.Orphanage().look() == []
    turns.update(lease_until=database_now() - timedelta(seconds=1))
    assert [one.turn_id for one in leases.Orphanage().look()] == [sent.turn.pk]
