"""What the database could not take is kept on the disk, entered in order, and said to be lost if it is."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from uuid import UUID

import pytest
from django.db import connection
from uuid_utils.compat import uuid7

from audit.actions import Action, Outcome, RefusedBy
from audit.bodies import is_body_whole, read_body
from audit.models import AuditBody, AuditEntry
from audit.policies import DEFAULT
from audit.sealing.checkpoints import make_checkpoint
from audit.sealing.sealer import seal_pending
from audit.services import EntryDraft, drafted, is_call_open, record
from audit.services import spool as spooling
from audit.services.spool import replay, spool, spool_size
from tests.audit.verification.test_other_audit_key import other_key
from tests.factories import Tenant

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data folder of the test's own, and a process that has spooled nothing yet."""
    monkeypatch.setattr(spooling, "_folder", lambda: tmp_path / "spool")
    monkeypatch.setattr(spooling, "_own", spooling._OwnFile())
    return tmp_path / "spool"


def draft(
    tenant: Tenant, action: Action, call_id: UUID | None = None, **values: object
) -> EntryDraft:
    return EntryDraft(
        action=action,
        actor=tenant.actor("member"),
        workspace_id=tenant.workspace.pk,
        call_id=call_id or uuid7(),
        **values,  # type: ignore[arg-type]
    )


def entries(tenant: Tenant) -> list[AuditEntry]:
    return list(AuditEntry.objects.for_workspace(tenant.workspace).order_by("id"))


def finished(tenant: Tenant, call_id: UUID | None = None) -> EntryDraft:
    return draft(
        tenant,
        Action.TOOL_CALL_FINISHED,
        call_id,
        outcome=Outcome.OK,
        result=b'{"text":"the quiet result"}',
    )


def test_entries_are_kept_on_the_disk_and_entered_in_order(tenant: Tenant, folder: Path) -> None:
    """SEC-101: with their times, ids and bodies; nothing readable lies on the disk."""
    calls = [uuid7() for _ in range(3)]
    for call in calls:
        record(draft(tenant, Action.TOOL_CALL_REQUESTED, call))
        assert spool(finished(tenant, call))
    (path,) = folder.glob("*.jsonl")
    assert path.stat().st_mode & 0o077 == 0
    assert spool_size().size_bytes == path.stat().st_size
    assert replay() == 3
    found = [entry for entry in entries(tenant) if entry.action == Action.TOOL_CALL_FINISHED]
    assert [entry.call_id for entry in found] == calls
    assert all(entry.details == {"spooled": True} for entry in found)
    assert all(is_body_whole(entry, AuditBody.unscoped.get(pk=entry.pk)) for entry in found)
    body = read_body(found[0])
    assert body is not None
    assert body.result == '{"text":"the quiet result"}'
    assert not spool_size().files
    assert not any(is_call_open(tenant.workspace.pk, call) for call in calls)


def test_the_next_process_enters_what_a_dead_one_left(tenant: Tenant, folder: Path) -> None:
    """REL-41: and leaves alone what a living one still writes; a repeated start enters nothing twice."""
    spool(finished(tenant))
    (path,) = folder.glob("*.jsonl")
    raw = path.read_bytes()
    living, spooling._own = (
        spooling._own,
        spooling._OwnFile(),
    )  # another process; the first holds its lock
    assert replay() == 0
    assert len(entries(tenant)) == 0
    living.hand_over()  # as its end does
    assert replay() == 1
    path.write_bytes(raw)  # killed after the commit, before the file was gone
    assert replay() == 0
    assert len(entries(tenant)) == 1
    assert not spool_size().files


@pytest.mark.usefixtures("checkpoint_file")
def test_a_process_with_another_key_leaves_to_others_what_they_kept(tenant: Tenant) -> None:
    """REL-2574: to it, all of that looks altered, and it would declare it lost and delete it."""
    call = uuid7()
    record(draft(tenant, Action.TOOL_CALL_REQUESTED, call))
    seal_pending()
    assert make_checkpoint() is not None
    spool(finished(tenant, call))
    spooling._own.hand_over()  # its process ends
    with other_key():
        assert replay() == 0
    assert spool_size().files == 1
    assert replay() == 1
    assert not is_call_open(tenant.workspace.pk, call)
    assert not AuditEntry.unscoped.filter(action=Action.LOG_LOSS.value).exists()


def test_what_the_database_does_not_take_holds_up_nothing(tenant: Tenant, folder: Path) -> None:
    """SEC-101: it is said, and what stands behind it is entered."""
    for name in ("fine", "x" * 300, "fine too"):
        entry, body = drafted(finished(tenant), DEFAULT)
        entry.server_name = name
        assert spooling._own.append(spooling._line_of(entry, body))
    if connection.vendor == "sqlite":  # which knows no lengths
        with connection.cursor() as cursor:
            cursor.execute(
                "CREATE TRIGGER test_long BEFORE INSERT ON audit_auditentry"
                " WHEN length(NEW.server_name) > 200 BEGIN SELECT RAISE(ABORT, 'too long'); END"
            )
    assert replay() == 2
    (loss,) = AuditEntry.unscoped.filter(action=Action.LOG_LOSS.value)
    assert loss.details["entries"] == 1
    assert not spool_size().files


def test_a_torn_or_altered_line_is_declared_lost(tenant: Tenant, folder: Path) -> None:
    """SEC-101: loss is said, never silent, and what is whole beside it is entered."""
    for _ in range(3):
        spool(finished(tenant))
    (path,) = folder.glob("*.jsonl")
    lines = path.read_bytes().split(b"\n")
    lines[1] = lines[1].replace(b'"ok"', b'"no"')
    lines[2] = lines[2][:100]
    path.write_bytes(b"\n".join(lines))
    assert replay() == 1
    (loss,) = AuditEntry.unscoped.filter(action=Action.LOG_LOSS.value)
    assert loss.details["bytes"] == len(lines[1]) + 100
    assert loss.workspace_id is None


def test_what_finds_no_room_is_counted_and_declared(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REL-31: a full disk loses no line that was taken, and what it could not take is said."""
    assert spool(finished(tenant))
    monkeypatch.setattr(spooling, "MOST_BYTES", spool_size().size_bytes + 10)
    assert not spool(finished(tenant))
    assert not spool(finished(tenant))
    assert spool_size().files
    assert replay() == 1
    (loss,) = AuditEntry.unscoped.filter(action=Action.LOG_LOSS.value)
    assert loss.details["entries"] == 2
    assert not spool_size().files


def test_half_a_line_is_taken_back(
    tenant: Tenant, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REL-31: the disk is full in the middle of a line; the next one still fits behind a whole one."""
    assert spool(finished(tenant))
    write = os.write
    monkeypatch.setattr(os, "write", lambda handle, line: write(handle, line[:50]))
    assert not spool(finished(tenant))
    monkeypatch.setattr(os, "write", write)
    assert spool(finished(tenant))
    assert replay() == 2
    (loss,) = AuditEntry.unscoped.filter(action=Action.LOG_LOSS.value)
    assert "bytes" not in loss.details


def test_an_end_that_comes_late_is_kept_beside_the_one_that_was_recorded(tenant: Tenant) -> None:
    """SEC-102: a call has one *finished*; what became known later is not thrown away."""
    call = uuid7()
    record(draft(tenant, Action.TOOL_CALL_REQUESTED, call))
    spool(finished(tenant, call))
    record(draft(tenant, Action.TOOL_CALL_FINISHED, call, outcome=Outcome.OUTCOME_UNKNOWN))
    assert replay() == 1
    found = [entry.action for entry in entries(tenant)]
    assert sorted(found) == ["tool_call.finished", "tool_call.learned", "tool_call.requested"]


def test_a_request_that_was_recorded_too_late_is_closed_by_its_refusal(tenant: Tenant) -> None:
    """SEC-102: nothing was sent, so it is not listed as open."""
    call = uuid7()
    spool(draft(tenant, Action.TOOL_CALL_REFUSED, call, refused_by=RefusedBy.AUDIT))
    record(draft(tenant, Action.TOOL_CALL_REQUESTED, call))
    assert is_call_open(tenant.workspace.pk, call)
    assert replay() == 1
    assert not is_call_open(tenant.workspace.pk, call)


def test_a_file_somebody_else_writes_is_left_alone(tenant: Tenant, folder: Path) -> None:
    """Ours: two processes share one folder."""
    folder.mkdir()
    with (folder / "other.jsonl").open("wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.write(b"half a line of another proc")
        file.flush()
        assert replay() == 0
        assert (folder / "other.jsonl").exists()
