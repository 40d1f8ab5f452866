"""A lost key is declared: the log goes on, says what it proves no longer, and hides nothing of what somebody changed."""

from __future__ import annotations

import base64
import hashlib
import io
import json
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from unittest.mock import patch
from uuid import UUID

import pytest
from django.conf import settings
from django.core.management import CommandError, call_command
from django.test import override_settings
from django.utils import timezone
from pydantic import SecretStr

from audit.actions import Action
from audit.alerts.conditions import measure
from audit.management.commands import declare_keys_lost
from audit.models import AlertRule, AuditCheckpoint, AuditEntry, AuditSeal
from audit.proof import marks
from audit.proof.signing import signed, signing_keys
from audit.proof.trellis_verify import VerificationReport, verify_export
from audit.sealing import external_checkpoint, key_loss, sealer, sealing_thread
from audit.sealing.checkpoints import make_checkpoint
from audit.sealing.declared_losses import DeclaredLosses
from audit.verification.exporting import proof_pieces
from config.doctor import DoctorFinding, FindingState, examine_part
from config.env import EncryptionKey
from tests.audit.tampering import sealed_log, tamper, write_entries
from tests.audit.verification.checked import check
from tests.factories import Tenant

pytestmark = pytest.mark.usefixtures("checkpoint_file", "derived_signing_key")


@pytest.fixture
def derived_signing_key(checkpoint_file: object) -> Iterator[None]:
    """As in most installations: who loses TRELLIS_AUDIT_KEY loses what signs, too."""
    config = settings.TRELLIS.model_copy(update={"audit_signing_keys": ()})
    with override_settings(TRELLIS=config):
        yield


@contextmanager
def other_key(first: int = 7) -> Iterator[None]:
    key = SecretStr(base64.b64encode(bytes(range(first, first + 32))).decode())
    with override_settings(TRELLIS=settings.TRELLIS.model_copy(update={"audit_key": key})):
        yield


@contextmanager
def keys(name: str) -> Iterator[None]:
    found = (EncryptionKey(name, name.encode() * 32),)
    config = settings.TRELLIS.model_copy(update={"audit_signing_keys": found})
    with override_settings(TRELLIS=config):
        yield


def seals() -> DoctorFinding:
    return examine_part("seals")


def bodied(tenant: Tenant, count: int = 3) -> list[AuditEntry]:
    return write_entries(tenant, count, arguments=b'{"to":"ada"}', result=b'{"sent":true}')


def declare(fingerprint: str, reason: str = "The disk burnt.") -> str:
    out = io.StringIO()
    call_command("declare_keys_lost", reason=reason, fingerprint=fingerprint, stdout=out)
    return out.getvalue()


def export(*trusted: str, workspace_id: UUID | None = None) -> VerificationReport:
    file = io.BytesIO(b"".join(proof_pieces(workspace_id)))
    return verify_export(file, trusted=trusted)


def lost_log(tenant: Tenant) -> str:
    """A log of before; gives the fingerprint of the key that signed it."""
    sealed_log(tenant, rounds=2, each=2)
    bodied(tenant)
    sealer.seal_pending()
    make_checkpoint()
    bodied(tenant, 2)  # and the process ends before they are sealed
    return signing_keys()[0].fingerprint


@pytest.mark.both_engines
def test_a_lost_key_is_declared_and_known_from_then_on(tenant: Tenant) -> None:
    """REL-2171: the log is signed, exported and verified again; the doctor calls the loss a fact."""
    old = lost_log(tenant)
    rule = AlertRule(
        workspace=tenant.workspace, condition=AlertRule.Condition.TAMPERING, window_minutes=5
    )
    with other_key():
        bodied(tenant)
        with pytest.raises(CommandError):
            call_command("verify_audit", stdout=io.StringIO())
        assert seals().state is FindingState.FAILED
        assert "declare_keys_lost" in seals().advice
        out = declare(old)
        assert "WHOLE" in out
        assert seals().state is FindingState.OK
        assert "declared lost" in seals().text
        for report in (check(), check(workspace_id=tenant.workspace.pk)):
            assert report.result == "whole", report.findings
            assert any("The disk burnt" not in note and "is lost" in note for note in report.notes)
            assert any("2 entries have no seal" in note for note in report.notes)
        assert check(is_incremental=True).result == "whole"
        new = signing_keys()[0].fingerprint
        assert (
            export(old, new).result
            == export(new, workspace_id=tenant.workspace.pk).result
            == "whole"
        )
        assert measure(rule, timezone.now()) >= 1
        bodied(tenant)
        sealer.seal_pending()
        make_checkpoint()
        assert check().result == "whole"
        assert "no loss to declare" in declare(old)


def test_without_a_reason_nothing_is_declared(tenant: Tenant) -> None:
    """REL-2171: it only shows what it would say, and to whom it belongs."""
    old = lost_log(tenant)
    with other_key():
        out = declare(old, reason="")
        assert old in out
        assert "Nothing was declared" in out
        assert str(tenant.workspace.pk) in out
        assert not AuditEntry.unscoped.filter(action=Action.LOG_KEY_LOST.value).exists()


def test_a_lost_signing_key_alone_is_declared(tenant: Tenant) -> None:
    """REL-2171: nothing could be signed, exported or removed any more, for ever."""
    with keys("a"):
        sealed_log(tenant)
        old = signing_keys()[0].fingerprint
    with keys("b"):
        assert "WHOLE" in declare(old)
        bodied(tenant)
        sealer.seal_pending()
        assert make_checkpoint() is not None
        assert check().result == "whole"


def test_the_fingerprint_of_the_lost_key_must_be_known(tenant: Tenant) -> None:
    """SEC-891: else somebody could replace the whole log, and have an operator vouch for it."""
    lost_log(tenant)
    with other_key():
        for given in ("", "0" * 64, signing_keys()[0].fingerprint):
            with pytest.raises(CommandError, match="noted it elsewhere"):
                declare(given)


def test_an_export_with_a_key_that_nobody_introduced_is_altered_unless_that_key_is_trusted(
    tenant: Tenant,
) -> None:
    """SEC-891: whoever can write to the database could cut the log off, and go on with a key of their own."""
    old = lost_log(tenant)
    with other_key():
        declare(old)
        for trusted in ((), (old,)):
            report = export(*trusted)
            assert report.result == "altered"
            assert "name that one, too" in report.findings[0].text


@pytest.mark.both_engines
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_changed_entry_of_before_is_found(tenant: Tenant, when: str) -> None:
    """SEC-892: the chain and its signatures go on counting, whether it was changed before the declaration or after."""
    old = lost_log(tenant)
    seal = AuditSeal.objects.get(chain_id=tenant.workspace.pk, seq=2)

    def change() -> None:
        tamper("UPDATE audit_auditentry SET actor_label = 'nobody' WHERE id = %s", seal.entry_id)

    with other_key():
        if when == "before":
            change()
            with pytest.raises(CommandError, match="for other reasons"):
                declare(old)
        else:
            declare(old)
            change()
        report = check()
        assert report.result == "altered"
        assert report.first_bad[str(tenant.workspace.pk)] == 2


@pytest.mark.parametrize("column", ["arguments_preview", "result_preview"])
def test_changed_contents_of_before_are_found(tenant: Tenant, column: str) -> None:
    """SEC-892: the declaration keeps, under the key of now, what they were when it was made."""
    old = lost_log(tenant)
    with other_key():
        declare(old)
        entry = AuditEntry.unscoped.exclude(arguments_preview="").order_by("pk").first()
        assert entry is not None
        tamper(f"UPDATE audit_auditentry SET {column} = 'another' WHERE id = %s", entry.pk)
        report = check()
        assert report.result == "altered"
        assert "Arguments or result were changed" in report.findings[0].text


def test_a_changed_entry_without_a_seal_is_found(tenant: Tenant) -> None:
    """SEC-892: nothing but the declaration says what it was."""
    old = lost_log(tenant)
    with other_key():
        declare(old)
        newest = DeclaredLosses(tenant.workspace.pk).unsealed
        assert len(newest) == 2
        tamper("UPDATE audit_auditentry SET actor_label = 'nobody' WHERE id = %s", max(newest))
        report = check()
        assert report.result == "altered"
        assert "has no seal" in report.findings[0].text


@pytest.mark.both_engines
def test_a_declaration_written_past_trellis_counts_for_nothing(tenant: Tenant) -> None:
    """SEC-893: its mark is made under a key that no database holds."""
    sealed_log(tenant)
    bodied(tenant)
    sealer.seal_pending()
    with other_key():
        write_entries(tenant, 1)
        declared = AuditEntry.unscoped.order_by("-pk").first()
        assert declared is not None
    details = json.dumps({"until": 99, "part": 1, "unsealed": {}, "contents": {}, "newest": None})
    tamper(
        "UPDATE audit_auditentry SET action = 'log.key_lost', details = %s WHERE id = %s",
        details,
        declared.pk,
    )
    first = AuditSeal.objects.get(chain_id=tenant.workspace.pk, seq=1)
    tamper("UPDATE audit_auditentry SET mark = %s WHERE id = %s", "0" * 64, first.entry_id)
    report = check()
    assert report.result == "altered"
    assert any("no valid mark" in finding.text for finding in report.findings)


def alter_everything(tenant: Tenant) -> None:
    """As somebody who can write to the database: no mark and no contents fit any key."""
    sealer.seal_pending()
    make_checkpoint()
    for pk in AuditSeal.objects.filter(chain_id=tenant.workspace.pk).values_list(
        "entry_id", flat=True
    ):
        tamper("UPDATE audit_auditentry SET mark = %s WHERE id = %s", "0" * 64, pk)
        tamper("UPDATE audit_auditentry SET arguments_preview = 'x' WHERE id = %s", pk)


def nothing_is_declared() -> bool:
    return not AuditEntry.unscoped.filter(action=Action.LOG_KEY_LOST.value).exists()


@pytest.mark.parametrize("is_signing_key_named", [False, True])
def test_altered_entries_are_not_taken_for_a_lost_key(
    tenant: Tenant, is_signing_key_named: bool
) -> None:
    """SEC-894: somebody could alter them to have an operator declare away what they did."""
    with keys("a") if is_signing_key_named else nullcontext():
        sealed_log(tenant)
        bodied(tenant)
        alter_everything(tenant)
        out = declare(signing_keys()[0].fingerprint)
        assert "no loss to declare" in out
        assert check().result == "altered"
    assert nothing_is_declared()


def test_a_foreign_entry_is_not_declared_away(tenant: Tenant) -> None:
    """SEC-894: it was refused its seal for its mark, and no key is lost."""
    sealed_log(tenant)
    with other_key():
        write_entries(tenant, 1)
    sealer.seal_pending()
    assert "no loss to declare" in declare(signing_keys()[0].fingerprint)
    assert check().result == "altered"
    assert nothing_is_declared()


def test_where_only_the_signing_key_is_lost_altered_entries_are_not_declared_away(
    tenant: Tenant,
) -> None:
    """SEC-894: the settings name it apart, so TRELLIS_AUDIT_KEY can be there still."""
    with keys("a"):
        sealed_log(tenant)
        bodied(tenant)
        alter_everything(tenant)
        old = signing_keys()[0].fingerprint
    with keys("b"):
        with pytest.raises(CommandError, match="So they were altered"):
            declare(old)
        forget_key_checks()
        with pytest.raises(CommandError, match="nothing can be declared"):
            declare(old)
    assert nothing_is_declared()


def forget_key_checks() -> None:
    """As in a log of a version that stated none; the command makes no checkpoint while the signing key is missing."""
    state_key(None)


def state_key(check: str | None) -> None:
    """As if the newest checkpoint had said so."""
    newest = AuditCheckpoint.objects.order_by("-number").first()
    assert newest is not None
    statement = {**json.loads(newest.statement), "audit_key": check}
    del statement["key"]
    if check is None:
        del statement["audit_key"]
    with keys("a"):
        text, signature = signed(statement, signing_keys()[0])
    tamper(
        "UPDATE audit_auditcheckpoint SET statement = %s, signature = %s, hash = %s WHERE number = %s",
        *(text, signature, hashlib.sha256(text.encode()).hexdigest(), newest.number),
    )
    external_checkpoint.file_path().unlink()


@pytest.mark.both_engines
def test_the_loss_of_the_audit_key_alone_is_declared(tenant: Tenant) -> None:
    """REL-2235: each checkpoint states which key is the log's, so that another one is no matter of belief."""
    with keys("a"):
        lost_log(tenant)
        with other_key():
            bodied(tenant)
            make_checkpoint()
            with pytest.raises(CommandError):
                call_command("verify_audit", stdout=io.StringIO())
            assert "not the key that the newest checkpoint names" in declare("", reason="")
            assert nothing_is_declared()
            assert "WHOLE" in declare("")
            assert seals().state is FindingState.OK
            bodied(tenant)
            sealer.seal_pending()
            make_checkpoint()
            assert check().result == "whole"
            assert export(signing_keys()[0].fingerprint).result == "whole"
            assert "no loss to declare" in declare("")


def test_once_a_loss_is_declared_the_rounds_of_the_log_go_on(tenant: Tenant) -> None:
    """REL-2504, REL-2405: what waited for its seal until then gets one, and servers are ready."""
    with keys("a"):
        lost_log(tenant)
        with other_key():
            new = bodied(tenant, 1)
            sealing_thread.go_round()
            assert not AuditSeal.objects.filter(entry_id=new[0].pk).exists()
            assert "WHOLE" in declare("")
            new += bodied(tenant, 1)
            sealing_thread.go_round()
            assert AuditSeal.objects.filter(entry_id__in=[one.pk for one in new]).count() == 2
            assert not marks.states_other_key()


def test_the_loss_of_both_keys_is_declared_where_the_settings_name_them(tenant: Tenant) -> None:
    """REL-2235: with the fingerprint of the lost signing key, as ever."""
    with keys("a"):
        old = lost_log(tenant)
    with keys("b"), other_key():
        with pytest.raises(CommandError, match="noted it elsewhere"):
            declare("")
        assert "WHOLE" in declare(old)


def test_a_wrong_audit_key_for_a_while_makes_the_right_one_no_lost_one(tenant: Tenant) -> None:
    """SEC-921: what a checkpoint states of the key stays, whatever key the process has that signs."""
    with keys("a"):
        sealed_log(tenant)
        with other_key():
            write_entries(tenant, 1)
            assert make_checkpoint() is not None
        alter_everything(tenant)
        assert "no loss to declare" in declare("")
    assert nothing_is_declared()


def test_a_log_without_entries_states_no_key(tenant: Tenant) -> None:
    """SEC-921: nothing in it tells a wrong key from the right one."""
    with keys("a"):
        make_checkpoint()
        assert stated_key() is None
        sealed_log(tenant, rounds=1)
        assert stated_key() == marks.key_check()


@pytest.mark.parametrize("is_marked", [False, True])
def test_a_log_older_than_marks_takes_no_wrong_key_for_its_own(
    tenant: Tenant, is_marked: bool
) -> None:
    """SEC-921: the first checkpoint that states a key can be made under a wrong one, after an upgrade."""
    with keys("a"):
        sealed_log(tenant)
        bodied(tenant)
        sealer.seal_pending()
        tamper("UPDATE audit_auditentry SET mark = NULL")
        if is_marked:  # else only contents tell
            sealed_log(tenant, rounds=1)
        forget_key_checks()
        with other_key():
            sealed_log(tenant, rounds=1)
            assert stated_key() is None
        alter_everything(tenant)
        assert "no loss to declare" in declare("")
    assert nothing_is_declared()


def test_a_key_that_was_declared_lost_is_not_stated_again(tenant: Tenant) -> None:
    """SEC-921: neither where a version that states no key made the newest checkpoint."""
    with keys("a"):
        sealed_log(tenant)
        with other_key():
            declare("")
        forget_key_checks()
        sealed_log(tenant, rounds=1)
        assert stated_key() is None
        assert seals().text == marks.OTHER_KEY


def test_a_loss_is_not_declared_where_contents_without_a_mark_fit_the_key(tenant: Tenant) -> None:
    """SEC-894: a version without marks wrote them under the key of now, so that one is not the lost one's successor."""
    with keys("a"):
        bodied(tenant)
        sealer.seal_pending()
        tamper("UPDATE audit_auditentry SET mark = NULL")
        with other_key():
            sealed_log(tenant, rounds=1)
            state_key(marks.key_check())
        with pytest.raises(CommandError, match="A lost key does not leave that"):
            declare("")
    assert nothing_is_declared()


def stated_key() -> str | None:
    newest = AuditCheckpoint.objects.order_by("-number").first()
    assert newest is not None
    return marks.stated_key_check(newest)


@pytest.mark.parametrize("kind", ["interval", "rotation"])
def test_a_forged_key_check_declares_nothing(tenant: Tenant, kind: str) -> None:
    """SEC-921: whoever can write to the database cannot sign, also not as a key that introduces the one of now."""
    with keys("a"):
        sealed_log(tenant)
        newest = AuditCheckpoint.objects.order_by("-number").first()
        assert newest is not None
        statement = {**json.loads(newest.statement), "audit_key": "0" * 32, "kind": kind}
        ours = statement.pop("key")
        with keys("x"):
            text, signature = signed({**statement, "next_key": ours}, signing_keys()[0])
        if kind == "interval":
            text = json.dumps({**statement, "key": ours})
        tamper(
            "UPDATE audit_auditcheckpoint SET statement = %s, signature = %s WHERE number = %s",
            *(text, signature, newest.number),
        )
        with (
            patch.object(declare_keys_lost, "make_checkpoint"),
            pytest.raises(CommandError, match="was altered"),
        ):
            declare("")
        alter_everything(tenant)
        assert "no loss to declare" in declare("")
    assert nothing_is_declared()


@pytest.mark.parametrize("is_key_known", [False, True])
def test_an_altered_checkpoint_names_no_lost_key(tenant: Tenant, is_key_known: bool) -> None:
    """SEC-891: neither the key of now, nor one that was the log's once and whose fingerprint people know."""
    with keys("c"):
        sealed_log(tenant)
        once = signing_keys()[0]
    with keys("b"):
        newest = AuditCheckpoint.objects.order_by("-number").first()
        assert newest is not None
        statement = json.loads(newest.statement)
        named = signing_keys()[0].named if is_key_known else once.named
        statement["key"] = {**named, "id": "0" * 16}
        tamper("UPDATE audit_auditcheckpoint SET statement = %s", json.dumps(statement))
        with pytest.raises(CommandError, match="was altered"):
            declare(once.fingerprint)
    assert nothing_is_declared()


def test_a_lost_key_hides_no_older_copy_of_the_log(tenant: Tenant) -> None:
    """SEC-892: the file outside tells of what came after; it is kept, and the loss is in the log."""
    lost_log(tenant)
    found = external_checkpoint.read()
    assert found is not None
    tamper("DELETE FROM audit_auditcheckpoint WHERE number = %s", found.number)
    old = signing_keys()[0].fingerprint
    with other_key():
        with pytest.raises(CommandError, match=r"incomplete|INCOMPLETE"):
            declare(old)
        assert external_checkpoint.kept_aside()
        assert AuditEntry.unscoped.filter(action=Action.LOG_LOSS.value).exists()
        assert check().result == "incomplete"


@pytest.mark.both_engines
def test_odd_alarms_and_declarations_stop_nothing(tenant: Tenant) -> None:
    """SEC-892: what somebody wrote past Trellis keeps neither the command nor the verification from its end."""
    old = lost_log(tenant)
    with other_key():
        sealer.seal_pending(is_key_lost=True)
        odd = json.dumps({"entries": ["no id", 5], "reason": "x"})
        tamper("UPDATE audit_auditentry SET details = %s WHERE action = 'log.intrusion'", odd)
        with pytest.raises(CommandError, match="for other reasons"):
            declare(old)
        tamper("UPDATE audit_auditentry SET details = '{}' WHERE action = 'log.key_lost'")
        report = check()
        assert report.result == "altered"
        assert not any("cannot be read" in finding.text for finding in report.findings)


def test_what_was_inserted_while_nothing_was_signed_is_named(tenant: Tenant) -> None:
    """SEC-892: a range that lay unsigned is said, although the result is whole."""
    old = lost_log(tenant)
    with other_key():
        write_entries(tenant, 2)
        declare(old)
        assert any("nothing was signed from" in note for note in check().notes)


def test_a_second_loss_is_declared_like_the_first(tenant: Tenant) -> None:
    """REL-2171: what the first declaration kept was under the key that is lost now."""
    old = lost_log(tenant)
    with other_key():
        declare(old)
        bodied(tenant)
        sealer.seal_pending()
        make_checkpoint()
        second = signing_keys()[0].fingerprint
    with other_key(99):
        assert seals().state is FindingState.FAILED
        assert "WHOLE" in declare(second)
        assert seals().state is FindingState.OK
        assert export(signing_keys()[0].fingerprint).result == "whole"
        assert export(second).result == "altered"


def test_after_a_loss_the_signing_key_changes_as_ever(tenant: Tenant) -> None:
    """REL-2171: who trusts the newest key need not know each one before it."""
    old = lost_log(tenant)
    with other_key():
        declare(old)
        with keys("a"):
            bodied(tenant)
            sealer.seal_pending()
            make_checkpoint()
            assert check().result == "whole"
            assert export(signing_keys()[0].fingerprint).result == "whole"
            assert export(old).result == "altered"


@pytest.mark.both_engines
def test_a_long_log_is_declared_in_parts(tenant: Tenant) -> None:
    """REL-2171: no entry grows beyond what streams send."""
    sealed_log(tenant)
    bodied(tenant, 12)
    sealer.seal_pending()
    make_checkpoint()
    old = signing_keys()[0].fingerprint
    with other_key(), patch.object(key_loss, "PART", 5):
        declare(old)
        rows = AuditEntry.unscoped.filter(
            action=Action.LOG_KEY_LOST.value, workspace_id=tenant.workspace.pk
        )
        assert [row.details["part"] for row in rows.order_by("pk")] == [1, 2, 3]
        assert check().result == "whole"


def test_an_older_checkpoint_makes_no_key_lost_that_came_after_it(tenant: Tenant) -> None:
    """SEC-921: neither in the place of the newest one, nor where those after it were deleted."""
    with keys("a"):
        lost_log(tenant)
        before = AuditCheckpoint.objects.order_by("-number").first()
        assert before is not None
        with other_key():
            declare("")
            alter_everything(tenant)
            tamper(
                "UPDATE audit_auditcheckpoint SET statement = %s, signature = %s WHERE number > %s",
                *(before.statement, before.signature, before.number),
            )
            assert "no loss to declare" in declare("")
            tamper("DELETE FROM audit_auditcheckpoint WHERE number > %s", before.number)
            with pytest.raises(CommandError, match="tells of a newer log"):
                declare("")
