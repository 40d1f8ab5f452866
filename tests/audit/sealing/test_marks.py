"""Only what `record()` wrote is sealed and signed: entries bear a mark under a key that no database holds."""

from __future__ import annotations

import io
import json
import logging
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.db import DatabaseError, connection, transaction
from django.urls import reverse
from django.utils import timezone

from audit.actions import Action
from audit.alerts.conditions import measure
from audit.models import AlertRule, AuditCheckpoint, AuditEntry, AuditHead, AuditSeal, PendingSeal
from audit.proof import marks
from audit.proof.marks import are_demanded, is_marked
from audit.proof.records import record_of
from audit.proof.signing import SigningKey, signed
from audit.proof.trellis_verify import VerificationReport, entry_hash, verify_export
from audit.sealing import checkpoints
from audit.sealing.checkpoints import make_checkpoint
from audit.sealing.reading import head_of
from audit.sealing.sealer import seal_pending
from audit.services import EntryDraft, Ref, record
from audit.verification.exporting import proof_pieces
from tests.audit.tampering import sealed_log, tamper, write_entries
from tests.audit.verification.checked import check
from tests.factories import Tenant
from workspaces.actors import Actor, Source

pytestmark = pytest.mark.usefixtures("checkpoint_file")
TABLE = "audit_auditentry"


def insert(like: AuditEntry, **changes: Any) -> UUID:
    """One plain INSERT: the row of an entry once more, under an id of its own, changed as wished; past no trigger."""
    pk = uuid4()
    columns = [field.column for field in AuditEntry._meta.concrete_fields]
    values = {"id": pk.hex if connection.vendor == "sqlite" else pk, **changes}
    chosen = ", ".join("%s" if name in values else f'"{name}"' for name in columns)
    names = ", ".join(f'"{name}"' for name in columns)
    like_id = like.pk.hex if connection.vendor == "sqlite" else like.pk
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO {TABLE} ({names}) SELECT {chosen} FROM {TABLE} WHERE id = %s",
            [*(values[name] for name in columns if name in values), like_id],
        )
    return pk


def seal_all() -> None:
    while (batch := seal_pending()).sealed or batch.skipped:
        pass


def reports(workspace_id: UUID) -> list[VerificationReport]:
    """Of both verifiers, of the workspace and of all of the log."""
    return [
        report
        for scope in (workspace_id, None)
        for report in (
            check(workspace_id=scope),
            verify_export(io.BytesIO(b"".join(proof_pieces(scope)))),
        )
    ]


@pytest.mark.parametrize("mark", ["copied", None, "", "0" * 64, "ü"])
def test_a_plain_insert_is_not_sealed_and_raises_an_alarm(
    tenant: Tenant, mark: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    """SEC-242: in the log, in the program's own log, in the alert on the log itself; both verifiers name it."""
    sealed_log(tenant, rounds=1, each=2)
    genuine = AuditEntry.objects.for_workspace(tenant.workspace).latest("pk")
    assert {report.result for report in reports(tenant.workspace.pk)} == {"whole"}
    pk = insert(genuine, **({} if mark == "copied" else {"mark": mark}), tool_name="made up")
    with caplog.at_level(logging.CRITICAL):
        seal_all()
    make_checkpoint()
    assert not AuditSeal.objects.filter(pk=pk).exists()
    assert not PendingSeal.objects.exists()
    assert "audit_foreign_entries_refused" in caplog.text
    alarm = AuditEntry.objects.for_workspace(tenant.workspace).get(
        action=Action.LOG_INTRUSION.value
    )
    assert alarm.details == {"entries": [str(pk)], "count": 1}
    rule = AlertRule(
        workspace=tenant.workspace, condition=AlertRule.Condition.TAMPERING, window_minutes=5
    )
    assert measure(rule, timezone.now()) == 1
    for report in reports(tenant.workspace.pk):
        assert report.result == "altered"
        assert any(str(pk) in finding.text for finding in report.findings), report.findings
    page = tenant.client("auditor").get(reverse("audit:entry", args=[tenant.workspace.slug, pk]))
    assert "Trellis did not write it" in page.content.decode()


def test_an_entry_inserted_with_its_seal_is_named(tenant: Tenant) -> None:
    """SEC-242: hashes need no key, so the seal can be forged; the mark cannot."""
    sealed_log(tenant, rounds=1, each=2)
    genuine = AuditEntry.objects.for_workspace(tenant.workspace).latest("pk")
    pk = insert(genuine, tool_name="made up")
    PendingSeal.objects.all().delete()
    chain = tenant.workspace.pk
    seq, previous = head_of(chain)
    entry = AuditEntry.unscoped.get(pk=pk)
    digest = entry_hash(str(chain), seq + 1, previous, record_of(entry))
    AuditSeal.objects.create(entry_id=pk, chain_id=chain, seq=seq + 1, hash=digest)
    AuditHead.objects.filter(chain_id=chain).update(seq=seq + 1, hash=digest)
    make_checkpoint()
    for report in reports(chain):
        assert (report.result, report.first_bad) == ("altered", {str(chain): seq + 1})
        assert "was not written by Trellis" in report.findings[0].text


def test_a_mark_that_was_changed_later_is_named(tenant: Tenant) -> None:
    """SEC-242: triggers refuse it, and past them it is found."""
    sealed_log(tenant, rounds=1, each=3)
    seal = AuditSeal.objects.get(chain_id=tenant.workspace.pk, seq=2)
    with pytest.raises(DatabaseError, match="append-only"), transaction.atomic():
        AuditEntry.unscoped.filter(pk=seal.entry_id).update(mark="0" * 64)
    tamper(f"UPDATE {TABLE} SET mark = NULL WHERE id = %s", seal.entry_id)
    for report in reports(tenant.workspace.pk):
        assert (report.result, report.first_bad) == ("altered", {str(tenant.workspace.pk): 2})


def test_entries_of_before_there_were_marks_stay_verifiable(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SEC-242: they are sealed until the grace is over, as signed statements say, and pass for ever."""

    def without(content: dict[str, Any], key: SigningKey) -> tuple[str, str]:
        return signed({k: v for k, v in content.items() if k != "marks_from"}, key)

    with monkeypatch.context() as old:
        old.setattr(checkpoints, "signed", without)
        sealed_log(tenant, rounds=2, each=2)
    tamper(f"UPDATE {TABLE} SET mark = NULL")
    assert {report.result for report in reports(tenant.workspace.pk)} == {"whole"}

    def write_old() -> AuditEntry:
        (entry,) = write_entries(tenant, 1)
        tamper(f"UPDATE {TABLE} SET mark = NULL WHERE id = %s", entry.pk)
        seal_all()
        return entry

    assert AuditSeal.objects.filter(pk=write_old().pk).exists()
    assert make_checkpoint() is not None  # now the grace begins
    assert AuditSeal.objects.filter(pk=write_old().pk).exists()
    later = timezone.now() + marks.GRACE + timedelta(seconds=1)
    assert are_demanded(later)
    assert not are_demanded(timezone.now())
    newest = make_checkpoint()
    assert newest is not None
    # The grace is over: by the clock of the sealer, and of the next checkpoint.
    monkeypatch.setattr(checkpoints, "database_now", lambda: later)
    monkeypatch.setattr("audit.sealing.sealer.timezone.now", lambda: later)
    make_checkpoint()
    refused = write_old()
    assert not AuditSeal.objects.filter(pk=refused.pk).exists()
    for report in reports(tenant.workspace.pk):
        assert [f.text for f in report.findings if str(refused.pk) not in f.text] == []
        assert report.result == "altered"
    tamper(f"DELETE FROM {TABLE} WHERE id = %s", refused.pk)
    assert {report.result for report in reports(tenant.workspace.pk)} == {"whole"}
    assert AuditCheckpoint.objects.count() == 5


@pytest.mark.parametrize("number", [-5, 99])
def test_a_forged_checkpoint_takes_no_mark_off(tenant: Tenant, number: int) -> None:
    """SEC-242: that entries without a mark are still taken is believed only from what we signed."""
    made = sealed_log(tenant, rounds=1, each=2)[-1]
    genuine = AuditEntry.objects.for_workspace(tenant.workspace).latest("pk")
    statement = json.loads(made.statement) | {"marks_from": "2999-01-01T00:00:00.000000Z"}
    for text in (json.dumps(statement), json.dumps({**statement, "marks_from": None})):
        AuditCheckpoint.objects.create(
            number=number,
            kind=made.kind,
            made_at=made.made_at,
            statement=text,
            heads=made.heads,
            hash=made.hash,
            key_id=made.key_id,
            signature=made.signature,
        )
        number += 1
    pk = insert(genuine, mark=None)
    seal_all()
    assert not AuditSeal.objects.filter(pk=pk).exists()
    write_entries(tenant, 1)
    seal_all()
    signed_now = make_checkpoint()
    assert signed_now is not None
    marked_from = datetime.fromisoformat(json.loads(signed_now.statement)["marks_from"])
    assert marked_from <= timezone.now()


def test_rows_that_cannot_be_read_do_not_stop_the_seal(tenant: Tenant) -> None:
    """SEC-242: what an INSERT can write is refused by itself, and the entries around it get their seals."""
    before = write_entries(tenant, 2)
    written: list[dict[str, object]] = [{"created_at": "infinity"}]
    if connection.vendor == "sqlite":
        written = [{"id": "no id"}, {"created_at": "yesterday"}, {"call_id": "x"}]
    inserted = len([insert(before[0], **changes) for changes in written])
    after = write_entries(tenant, 2)
    seal_all()
    sealed = set(AuditSeal.objects.values_list("entry_id", flat=True))
    assert sealed >= {entry.pk for entry in (*before, *after)}
    assert not PendingSeal.objects.exists()
    alarms = AuditEntry.unscoped.filter(action=Action.LOG_INTRUSION.value)
    assert sum(alarm.details["count"] for alarm in alarms) == inserted
    make_checkpoint()
    assert {report.result for report in reports(tenant.workspace.pk)} == {"altered"}


def test_an_entry_of_an_unknown_kind_breaks_no_page_and_no_file(tenant: Tenant) -> None:
    """SEC-242: what was written past Trellis is shown as it is, and keeps nobody from reading the rest."""
    (entry,) = write_entries(tenant, 1)
    insert(entry, action="made.up")
    client = tenant.client("auditor")
    page = client.get(reverse("audit:entries", args=[tenant.workspace.slug]))
    assert "made.up" in page.content.decode()
    for extension in ("csv", "xlsx", "jsonl", "ocsf.jsonl", "cef"):
        answer = client.get(reverse("audit:export", args=[tenant.workspace.slug, extension]))
        content = b"".join(answer.streaming_content)  # type: ignore[attr-defined]
        assert extension == "xlsx" or b"made.up" in content


@pytest.mark.parametrize(
    "changes",
    [
        {"details": {"n": [1e16, 2.0**53, -0.0, 1e-7, 5e-324, 1.5e300, 2**53, 2**70, 0.1]}},
        {"details": {"\ud800": "\x00 ü 😀", "a": {"b": [None, True, (1, 2)]}}},
        {"details": {"nested": [[[[{"deep": [1.0, "x"]}]]]]}},
        {"annotations": {"readOnlyHint": True, "title": "ﬀ\u202e"}, "result": b'{"a": 1}'},
        {"arguments": b'{"password": "x", "k": 1e400}', "approval": {"by": "x", "n": 3.5}},
        {"tool": Ref(id=uuid4(), name="ü" * 300), "model": "m" * 300, "rule": "\x1b[31m"},
        {"duration_ms": 5, "queue_ms": 0, "call_id": uuid4(), "turn_id": uuid4()},
    ],
)
@pytest.mark.parametrize(
    "address", [None, "10.0.0.1", "2001:DB8::0:1", "::ffff:1.2.3.4", "fe80::1", "::1.2.3.4"]
)
def test_what_record_writes_bears_its_mark_when_it_is_read(
    tenant: Tenant, changes: dict[str, Any], address: str | None
) -> None:
    """SEC-242: whatever the values are, and whatever the database makes of them, no true entry is refused."""
    actor = Actor.system(label="ü\x00", source=Source.TASK, workspace_id=tenant.workspace.pk)
    object.__setattr__(actor, "ip_address", address)
    entry = record(
        EntryDraft(
            action=Action.TOOL_CALL_REFUSED,
            actor=actor,
            workspace_id=tenant.workspace.pk,
            **changes,
        )
    )
    read = AuditEntry.unscoped.get(pk=entry.pk)
    assert is_marked(read, is_demanded=True)
