"""The log in the database, attacked past its triggers: what `verify_audit` says."""

from __future__ import annotations

import json
import re
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.core.management import CommandError, call_command
from django.db import transaction
from django.test import override_settings
from django.utils import timezone

from audit.actions import Action
from audit.errors import AuditUnavailable
from audit.health import health
from audit.management.commands import count_audit, export_audit
from audit.models import (
    AuditBody,
    AuditCheckpoint,
    AuditEntry,
    AuditHead,
    AuditPolicy,
    AuditSeal,
    AuditTombstone,
    PendingSeal,
)
from audit.proof import signing
from audit.proof.signing import SigningKeyMissing, signed
from audit.proof.trellis_verify import EXTERNAL_FORMAT
from audit.retention import apply_retention
from audit.retention.removing import remove_bodies
from audit.sealing import checkpoints, external_checkpoint, reading, rotation
from audit.sealing.checkpoints import make_checkpoint
from audit.sealing.reading import sealed_after
from audit.sealing.sealer import seal_pending
from audit.sealing.tombstones import make_tombstone
from audit.verification import exporting, online, stream
from audit.verification.online import last_verification, verify
from chat import restore_confirmation as chat_restore
from config.env import EncryptionKey
from tests.audit.tampering import sealed_log, tamper, write_entries
from tests.audit.verification.checked import SYSTEM, at, check
from tests.factories import Tenant, TwoTenants
from workspaces import restore_detection
from workspaces.models import Installation

pytestmark = pytest.mark.usefixtures("checkpoint_file")
ENTRY, SEAL = "audit_auditentry", "audit_auditseal"


def test_a_clean_log_is_whole_and_the_verification_is_an_entry(tenant: Tenant) -> None:
    """SEC-103, SEC-105: all of it, and one workspace of it."""
    sealed_log(tenant)
    assert check().findings == []
    report = verify(tenant.workspace.pk, actor=SYSTEM)
    assert (report.result, report.entries) == ("whole", 12)
    entry = AuditEntry.objects.for_workspace(tenant.workspace).get(action=Action.LOG_VERIFIED.value)
    assert entry.details["result"] == "whole"


@pytest.mark.parametrize(
    ("attack", "result", "first"),
    [
        (f"UPDATE {ENTRY} SET actor_label = 'nobody' WHERE id = %s", "altered", 6),
        (f"UPDATE {ENTRY} SET outcome = 'timeout' WHERE id = %s", "altered", 6),
        (f"DELETE FROM {ENTRY} WHERE id = %s", "incomplete", 6),
        (f"DELETE FROM {SEAL} WHERE entry_id = %s", "altered", 6),
        (f"UPDATE {SEAL} SET hash = '{'0' * 64}' WHERE entry_id = %s", "altered", 6),
        (f"UPDATE {SEAL} SET seq = seq + 100 WHERE entry_id = %s", "incomplete", 6),
        (f"UPDATE {ENTRY} SET result_preview = 'ok' WHERE id = %s", "altered", 6),
    ],
)
def test_an_attack_on_one_row_is_found_and_named(
    tenant: Tenant, attack: str, result: str, first: int
) -> None:
    """SEC-103: past the triggers, as the role that owns the tables."""
    sealed_log(tenant)
    assert tamper(attack, at(tenant, 6).entry_id) == 1
    report = check()
    assert (report.result, report.first_bad) == (result, {str(tenant.workspace.pk): first})
    with pytest.raises(CommandError) as caught:
        call_command("verify_audit", "--workspace", tenant.workspace.slug)
    assert caught.value.returncode == {"altered": 1, "incomplete": 2}[result]


def test_rows_that_came_in_past_the_log_are_found(tenant: Tenant) -> None:
    """SEC-103: an entry without seal that waits for none."""
    sealed_log(tenant)
    write_entries(tenant, 1)
    PendingSeal.objects.all().delete()
    assert check().result == "altered"


def test_a_cut_tail_with_its_checkpoints_is_found_by_the_file_outside(tenant: Tenant) -> None:
    """SEC-103: nothing in the database knows any more of what was there."""
    made = sealed_log(tenant)
    for seq in range(9, 13):
        tamper(f"DELETE FROM {ENTRY} WHERE id = %s", at(tenant, seq).entry_id)
        tamper(f"DELETE FROM {SEAL} WHERE entry_id = %s", at(tenant, seq).entry_id)
    newest = sealed_after(tenant.workspace.pk, 7)[0]
    AuditHead.objects.filter(chain_id=tenant.workspace.pk).update(
        seq=8, hash=newest.hash, stated_seq=8
    )
    report = check()
    assert (report.result, report.first_bad) == ("incomplete", {str(tenant.workspace.pk): 9})
    tamper("DELETE FROM audit_auditcheckpoint WHERE number = %s", made[-1].number)
    report = check()
    assert report.result == "incomplete"
    assert any("old copy" in finding.text for finding in report.findings)
    external_checkpoint.file_path().unlink()
    assert check().notes  # without the file nobody can know, and that is said


def test_the_newest_rows_are_missed_without_a_checkpoint_too(tenant: Tenant) -> None:
    """SEC-103: what was sealed since the newest checkpoint."""
    sealed_log(tenant, rounds=1)
    write_entries(tenant, 2)
    seal_pending()
    seal = at(tenant, 6)
    tamper(f"DELETE FROM {ENTRY} WHERE id = %s", seal.entry_id)
    tamper(f"DELETE FROM {SEAL} WHERE entry_id = %s", seal.entry_id)
    assert check().result == "incomplete"


def test_an_entry_moved_from_another_workspace_is_found(two_workspaces: TwoTenants) -> None:
    """SEC-103: splice."""
    a, b = two_workspaces.a, two_workspaces.b
    sealed_log(a, rounds=1)
    sealed_log(b, rounds=1)
    tamper(f"UPDATE {ENTRY} SET workspace_id = %s WHERE id = %s", a.workspace.pk, at(b, 2).entry_id)
    report = check()
    assert (report.result, report.first_bad) == ("altered", {str(b.workspace.pk): 2})


def test_a_changed_body_is_found_and_an_erased_one_is_not(tenant: Tenant) -> None:
    """SEC-107: the commitment of the entry holds body and previews; erasing them takes a signed statement."""
    write_entries(tenant, 2, result=b'{"content":"something that was said"}')
    seal_pending()
    make_checkpoint()
    assert check().result == "whole"
    body = AuditBody.objects.for_workspace(tenant.workspace).get(pk=at(tenant, 2).entry_id)
    body.delete()
    report = check()
    assert (report.result, report.first_bad) == ("altered", {str(tenant.workspace.pk): 2})
    make_tombstone(
        chain_id=tenant.workspace.pk,
        kind=AuditTombstone.Kind.BODIES,
        first_seq=2,
        last_seq=2,
        reason="asked for",
    )
    entries = AuditEntry.objects.for_workspace(tenant.workspace)
    assert check().result == "altered"  # the previews are still there
    entries.filter(pk=at(tenant, 2).entry_id).update(arguments_preview="", result_preview="")
    assert check().result == "whole"


def test_what_is_erased_while_it_is_read_is_no_finding(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ours: between an entry and its body; behind a statement that was signed after the reading began."""
    write_entries(tenant, 3, result=b'{"content":"something that was said"}')
    seal_pending()
    make_checkpoint()
    real = AuditBody.objects.across_workspaces
    erased: list[int] = []

    def erase_first() -> Any:
        if not erased:
            erased.append(2)
            remove_bodies(tenant.workspace.pk, 2, 2, reason="erasure")
        return real()

    monkeypatch.setattr(AuditBody.objects, "across_workspaces", erase_first)
    assert check().findings == []
    assert erased


def test_what_is_removed_while_it_is_read_is_no_finding(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ours: between seals and entries; of a whole batch and of the beginning of one."""
    sealed_log(tenant)
    AuditPolicy.unscoped.create(workspace=tenant.workspace, keep_entries=3)
    real = reading.entries_by_id
    removed: list[int] = []

    def remove_first(ids: Any) -> Any:
        if not removed:
            removed.append(apply_retention(tenant.workspace.pk, now=timezone.now()).entries)
        return real(ids)

    monkeypatch.setattr(reading, "entries_by_id", remove_first)
    for batch in (2, 1_000):
        removed.clear()
        with transaction.atomic():
            monkeypatch.setattr(stream, "_LEAST", batch)
            monkeypatch.setattr(stream, "_MOST", batch)
            assert check(workspace_id=tenant.workspace.pk).findings == []
            assert removed == [9]
            transaction.set_rollback(True)


@pytest.mark.parametrize(
    "forgery",
    [
        f"UPDATE {ENTRY} SET result_preview = 'forged' WHERE id = %s",
        f"UPDATE {ENTRY} SET arguments_preview = 'forged' WHERE id = %s",
        "INSERT INTO audit_auditbody (entry_id, is_cut, created_at) VALUES (%s, false, CURRENT_TIMESTAMP)",
    ],
)
def test_nothing_can_be_put_in_an_erased_place(tenant: Tenant, forgery: str) -> None:
    """SEC-107: what a statement says is gone must be gone."""
    write_entries(tenant, 2, result=b'{"content":"something that was said"}')
    seal_pending()
    make_checkpoint()
    remove_bodies(tenant.workspace.pk, 2, 2, reason="erasure")
    assert check().result == "whole"
    assert tamper(forgery, at(tenant, 2).entry_id) == 1
    report = check()
    assert (report.result, report.first_bad) == ("altered", {str(tenant.workspace.pk): 2})


@pytest.mark.parametrize("key", [None, "garbage", "v1.key.short"])
def test_a_body_that_lost_its_key_is_found(tenant: Tenant, key: str | None) -> None:
    """SEC-107: without it nothing can be read any more, as if it had been erased."""
    write_entries(tenant, 1, result=b'{"content":"something that was said"}')
    seal_pending()
    make_checkpoint()
    assert tamper("UPDATE audit_auditbody SET key = %s", key) == 1
    report = check()
    assert (report.result, report.first_bad) == ("altered", {str(tenant.workspace.pk): 1})


def test_the_result_and_the_place_from_where_to_go_on_are_kept_together(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REL-41: a process that dies between the two leaves neither; the next one goes on from the older place."""
    sealed_log(tenant)
    before = list(AuditHead.objects.values_list("verified_seq", flat=True))
    with monkeypatch.context() as patch:

        def fail(_draft: object) -> None:
            raise AuditUnavailable

        patch.setattr(online, "record", fail)
        with pytest.raises(AuditUnavailable):
            verify(actor=SYSTEM)
    assert list(AuditHead.objects.values_list("verified_seq", flat=True)) == before
    verify(actor=SYSTEM)
    assert AuditHead.objects.get(chain_id=tenant.workspace.pk).verified_seq == 12


def test_what_retention_removed_is_whole_also_when_it_is_all(tenant: Tenant) -> None:
    """SEC-103: behind a signed statement; the chain goes on in its place."""
    sealed_log(tenant)
    chain = tenant.workspace.pk
    for first, last in ((1, 5), (6, 12)):
        make_tombstone(
            chain_id=chain,
            kind=AuditTombstone.Kind.ENTRIES,
            first_seq=first,
            last_seq=last,
            reason="kept for 30 days",
        )
        seals = AuditSeal.objects.filter(chain_id=chain, seq__range=(first, last))
        ids = list(seals.values_list("entry_id", flat=True))
        AuditEntry.objects.for_workspace(chain).filter(pk__in=ids).delete()
        seals.delete()
        assert check().findings == []
    write_entries(tenant, 1)
    seal_pending()
    assert [row.seq for row in sealed_after(chain, 0)] == [13]
    make_checkpoint()
    assert check().result == "whole"


def test_a_forged_tombstone_covers_nothing(tenant: Tenant) -> None:
    """SEC-103: the database lets it in; its signature does not hold."""
    sealed_log(tenant)
    seal = at(tenant, 3)
    AuditTombstone.objects.create(
        chain_id=seal.chain_id,
        kind=AuditTombstone.Kind.ENTRIES,
        first_seq=3,
        last_seq=3,
        reason="",
        statement='{"format":"trellis-tombstone/1"}',
        key_id="0" * 16,
        signature="",
    )
    AuditEntry.objects.for_workspace(tenant.workspace).filter(pk=seal.entry_id).delete()
    AuditSeal.objects.filter(pk=seal.pk).delete()
    assert check().result == "altered"


def test_only_what_is_new_is_verified_again(tenant: Tenant) -> None:
    """Ours: from the last verification that found nothing; what was whole then is not read again."""
    sealed_log(tenant)
    assert verify(actor=SYSTEM).entries == 12
    write_entries(tenant, 2)
    seal_pending()
    make_checkpoint()
    report = verify(actor=SYSTEM, is_incremental=True)
    assert (report.result, report.entries) == ("whole", 3)
    write_entries(tenant, 2)
    seal_pending()
    tamper(f"UPDATE {ENTRY} SET actor_label = 'x' WHERE id = %s", at(tenant, 16).entry_id)
    report = verify(actor=SYSTEM, is_incremental=True)
    assert (report.result, report.first_bad) == ("altered", {str(tenant.workspace.pk): 16})
    last = last_verification()
    assert last is not None
    assert last.details["first_bad"] == report.first_bad
    assert check(is_incremental=True).entries > 12  # after a finding, all of it


@pytest.mark.parametrize(
    "details",
    [
        '"a text"',
        "[1]",
        '{"result": "whole"}',
        '{"result": "whole", "checkpoint": 7}',
        '{"result": "whole", "checkpoint": ["x", 1]}',
    ],
)
def test_a_changed_result_of_a_verification_does_not_end_the_next_one(
    tenant: Tenant, details: str
) -> None:
    """REL-1936: it would find the change; then all of the log is checked again."""
    sealed_log(tenant)
    check_entries = verify(actor=SYSTEM).entries
    seal_pending()
    last = last_verification()
    assert last is not None
    tamper(f"UPDATE {ENTRY} SET details = %s WHERE id = %s", details, last.pk)
    assert health().pending == 0
    report = check(is_incremental=True)
    assert report.result == "altered"
    assert report.entries > check_entries


def test_the_command_says_how_far_it_is(tenant: Tenant, monkeypatch: pytest.MonkeyPatch) -> None:
    """REL-1937: at a terminal, since a long log takes minutes; a timer that runs it is told the result alone."""
    monkeypatch.setattr(online, "PROGRESS_EVERY", 5)
    sealed_log(tenant)
    with StringIO() as seen, StringIO() as mailed:
        monkeypatch.setattr(seen, "isatty", lambda: True)
        call_command("verify_audit", stdout=StringIO(), stderr=seen)
        call_command("verify_audit", stdout=StringIO(), stderr=mailed)
        assert [line.split(",")[0] for line in seen.getvalue().splitlines()] == [
            "5 entries",
            "10 entries",
        ]
        assert mailed.getvalue() == ""


def test_commands_that_read_a_long_log_say_how_far_they_are(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """REL-2003: at a terminal, and not to a timer; beside an export that goes to the output, too."""
    monkeypatch.setattr(export_audit, "EVERY", 5)
    monkeypatch.setattr(count_audit, "EVERY", 5)
    monkeypatch.setattr(exporting, "_PIECE_BYTES", 1000)
    sealed_log(tenant)
    of = ("--workspace", tenant.workspace.slug)
    out = str(tmp_path / "log.jsonl")
    for command in (("count_audit", *of, "--again"), ("export_audit", *of, "--out", out)):
        with StringIO() as seen, StringIO() as mailed:
            monkeypatch.setattr(seen, "isatty", lambda: True)
            call_command(*command, stdout=StringIO(), stderr=seen)
            call_command(*command, stdout=StringIO(), stderr=mailed)
            lines = seen.getvalue().splitlines()
            assert lines
            assert all(re.fullmatch(r"\d+ entries, \d+ s", line) for line in lines)
            assert mailed.getvalue() == ""


def restore_old_copy(tenant: Tenant) -> external_checkpoint.ExternalCheckpoint:
    """Four rounds, of which the copy that is restored knows the first two; what was newest in the lost one."""
    Installation.objects.get_or_create()
    sealed_log(tenant, rounds=2)
    old = AuditCheckpoint.objects.count()
    sealed_log(tenant, rounds=2)
    newest = external_checkpoint.read()
    assert newest is not None
    for seal in AuditSeal.objects.filter(seq__gt=8):
        tamper(f"DELETE FROM {ENTRY} WHERE id = %s", seal.entry_id)
    tamper(f"DELETE FROM {SEAL} WHERE seq > %s", 8)
    tamper("DELETE FROM audit_auditcheckpoint WHERE number > %s", old)
    head = at(tenant, 8)
    AuditHead.objects.update(seq=8, hash=head.hash, stated_seq=8)
    return newest


def losses() -> list[AuditEntry]:
    return list(AuditEntry.objects.across_workspaces().filter(action=Action.LOG_LOSS.value))


def test_a_restored_old_copy_is_said_to_be_one_until_a_person_confirms(
    tenant: Tenant, checkpoint_file: Path
) -> None:
    """SEC-103: the file outside is kept, and a signed statement bridges the gap afterwards."""
    newest = restore_old_copy(tenant)
    assert check().result == "incomplete"
    write_entries(tenant, 1)
    seal_pending()
    make_checkpoint()
    (aside,) = external_checkpoint.kept_aside()
    assert aside.name == f"checkpoint.json.before-restore-{newest.number}"
    assert restore_detection.is_unconfirmed()
    (loss,) = losses()
    assert loss.details["known_checkpoint"] == newest.number
    seal_pending()
    make_checkpoint()
    report = check()
    assert report.result == "incomplete"
    assert any("confirmed" in finding.text for finding in report.findings)
    assert chat_restore.confirm(by="somebody")
    make_checkpoint()
    assert external_checkpoint.kept_aside() == []
    report = check()
    assert (report.result, report.findings) == ("whole", [])
    assert any("restored from a backup" in note for note in report.notes)
    statement = AuditCheckpoint.objects.get(kind="restored").statement
    assert json.loads(statement)["restored"]["confirmed_by"] == "somebody"
    # Who kept the lost copy's file is told why it does not fit.
    report = check(outside=newest.as_record)
    assert report.result == "whole"
    assert any("that was lost" in note for note in report.notes)


@pytest.mark.parametrize("confirmation", [None, {"by": "x", "at": "now", "mac": "0" * 64}, "yes"])
def test_a_row_of_the_database_confirms_no_restore(tenant: Tenant, confirmation: Any) -> None:
    """SEC-103: nor does a word that was not given with this installation's key."""
    restore_old_copy(tenant)
    make_checkpoint()
    Installation.objects.update(restored_at=None)
    (aside,) = external_checkpoint.kept_aside()
    if confirmation is not None:
        kept = json.loads(aside.read_text())
        aside.write_text(json.dumps({**kept, "confirmed": confirmation}))
    make_checkpoint()
    assert external_checkpoint.kept_aside() == [aside]
    assert not AuditCheckpoint.objects.filter(kind="restored").exists()
    assert check().result == "incomplete"


def test_another_name_for_the_installation_hides_no_restore(tenant: Tenant) -> None:
    """SEC-103: the file was signed with our key, so it is kept, and the loss is entered, whatever the row says."""
    newest = restore_old_copy(tenant)
    Installation.objects.all().delete()
    Installation.objects.create()
    report = check()
    assert report.result == "incomplete"
    assert any("another installation" in finding.text for finding in report.findings)
    make_checkpoint()
    (aside,) = external_checkpoint.kept_aside()
    kept = external_checkpoint.read(aside)
    assert kept is not None
    assert kept.statement == newest.statement
    assert len(losses()) == 1
    assert restore_detection.is_unconfirmed()
    assert check().result == "incomplete"
    assert chat_restore.confirm()
    make_checkpoint()
    assert check().findings == []


def test_a_file_of_an_installation_with_other_keys_is_kept_too(
    tenant: Tenant, checkpoint_file: Path
) -> None:
    """Ours: two in one place; that is no loss, but what another one wrote is not ours to write over."""
    Installation.objects.get_or_create()
    (key,) = signing._keys((b"x" * 32,))
    content = {"format": EXTERNAL_FORMAT, "number": 7, "checkpoint": "0" * 64, "heads": {}}
    statement, signature = signed({**content, "installation": "another"}, key)
    checkpoint_file.parent.mkdir(parents=True)
    external_checkpoint.write(statement, signature)
    sealed_log(tenant, rounds=1)
    kept = external_checkpoint.read(checkpoint_file.with_name("checkpoint.json.of-another-7"))
    assert kept is not None
    assert kept.statement == statement
    assert (losses(), external_checkpoint.kept_aside(), check().findings) == ([], [], [])


@pytest.mark.parametrize("change", ['{"statement": "x"}', "", "[]", None])
def test_a_file_that_says_nothing_is_said(
    tenant: Tenant, checkpoint_file: Path, change: str | None
) -> None:
    """SEC-103: without it nobody knows whether the end was cut off."""
    sealed_log(tenant, rounds=1)
    text = checkpoint_file.read_text()
    checkpoint_file.write_text(text.replace("heads", "hands") if change is None else change)
    report = check()
    assert report.result == "incomplete"
    assert any("cannot be read" in finding.text for finding in report.findings)


def test_a_loss_is_entered_before_its_file_is_moved(tenant: Tenant) -> None:
    """REL-41: whatever fails afterwards, as signing on a new machine, neither undoes the entry nor doubles it."""
    newest = restore_old_copy(tenant)
    own = EncryptionKey("new", b"n" * 32)
    config = settings.TRELLIS.model_copy(update={"audit_signing_keys": (own,)})
    with override_settings(TRELLIS=config), pytest.MonkeyPatch.context() as patch:

        def fail(_descriptor: int) -> None:
            raise OSError(28, "No space left on device")

        patch.setattr(rotation, "find_key", lambda _key_id: None)
        patch.setattr("os.fsync", fail)
        with pytest.raises(OSError, match="No space"):
            make_checkpoint()
        assert external_checkpoint.read() == newest
        patch.undo()
        patch.setattr(rotation, "find_key", lambda _key_id: None)
        for _ in range(2):
            with pytest.raises(SigningKeyMissing):
                make_checkpoint()
        assert (len(losses()), len(external_checkpoint.kept_aside())) == (1, 1)
    chat_restore.confirm()
    (aside,) = external_checkpoint.kept_aside()
    with pytest.MonkeyPatch.context() as patch:

        def die(_made: object) -> None:
            raise ZeroDivisionError

        patch.setattr(checkpoints, "_file_of", die)
        with pytest.raises(ZeroDivisionError):
            make_checkpoint()
    assert external_checkpoint.kept_aside() == [aside]  # what would have explained it was undone
    make_checkpoint()
    assert external_checkpoint.kept_aside() == []


def test_the_commands_go_together(
    tenant: Tenant, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """SEC-103: export, and verify from the export; who takes it is recorded first."""
    sealed_log(tenant)
    out = tmp_path / "log.jsonl"
    call_command("export_audit", "--workspace", tenant.workspace.slug, "--out", str(out))
    call_command("verify_audit", "--from-export", str(out))
    call_command("verify_audit", "--from-export", str(out), "--json")
    assert '"result": "whole"' in capsys.readouterr().out
    exported = AuditEntry.objects.for_workspace(tenant.workspace)
    assert exported.filter(action=Action.EXPORT_CREATED.value).count() == 1
    out.write_bytes(out.read_bytes()[:-30])
    with pytest.raises(CommandError) as caught:
        call_command("verify_audit", "--from-export", str(out))
    assert caught.value.returncode == 3


def test_an_export_goes_where_it_is_told(
    tenant: Tenant, tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    """REL-1573: to the output, with nothing else beside it; and a file that cannot be written is named."""
    sealed_log(tenant)
    call_command("export_audit", "--workspace", tenant.workspace.slug, "--out", "-")
    out = tmp_path / "log.jsonl"
    out.write_bytes(capsysbinary.readouterr().out)
    call_command("verify_audit", "--from-export", str(out))
    nowhere = tmp_path / "nowhere" / "log.jsonl"
    with pytest.raises(CommandError, match=rf"^{nowhere}: No such file") as caught:
        call_command("export_audit", "--workspace", tenant.workspace.slug, "--out", str(nowhere))
    assert caught.value.returncode == 3
