"""Checkpoints: every column counts, a missing key is no secret, and what lay unsigned is named as a range."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from uuid import UUID

import pytest
from django.conf import settings
from django.test import Client, override_settings
from django.urls import reverse
from django.utils import timezone

from audit.actions import Action
from audit.alerts.conditions import measure
from audit.health import health
from audit.models import AlertRule, AuditCheckpoint, AuditEntry, AuditTombstone
from audit.proof.trellis_verify import VerificationReport, entry_hash, verify_export
from audit.sealing import checkpoints, sealing_thread
from audit.sealing.checkpoints import make_checkpoint
from audit.sealing.sealer import seal_pending
from audit.sealing.tombstones import make_tombstone
from audit.verification.exporting import proof_pieces
from audit.verification.online import last_verification, verify
from config.env import EncryptionKey
from tests.audit.sealing.signing_keys import SYSTEM, with_keys
from tests.audit.tampering import sealed_log, tamper, write_entries
from tests.audit.verification.checked import check
from tests.factories import Tenant

pytestmark = [pytest.mark.usefixtures("checkpoint_file"), pytest.mark.both_engines]


def check_export(workspace_id: UUID | None) -> VerificationReport:
    return verify_export(io.BytesIO(b"".join(proof_pieces(workspace_id))))


@contextmanager
def keys(*names: str) -> Iterator[None]:
    """With the test's own file outside."""
    found = tuple(EncryptionKey(name, name.encode() * 32) for name in names)
    config = settings.TRELLIS.model_copy(update={"audit_signing_keys": found})
    with override_settings(TRELLIS=config):
        yield


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("kind", "end"),
        ("kind", "rotation"),
        ("made_at", "2020-01-01 00:00:00"),
        ("key_id", "0" * 16),
        ("hash", "0" * 64),
        ("number", 77),
        ("countersignature", "AAAA"),
        ("heads", "{}"),
        ("heads", json.dumps({str(UUID(int=9)): [1, "0"]})),
        ("signature", "AAAA"),
    ],
)
def test_each_column_of_a_checkpoint_counts(tenant: Tenant, column: str, value: Any) -> None:
    """SEC-244: with the statement untouched; and whatever was changed, signing goes on."""
    newest = sealed_log(tenant)[-1]
    changed = tamper(
        f"UPDATE audit_auditcheckpoint SET {column} = %s WHERE number = %s", value, newest.number
    )
    assert changed == 1
    for report in (check(), check_export(None), check(workspace_id=tenant.workspace.pk)):
        assert report.result != "whole", column
    write_entries(tenant, 1)
    seal_pending()
    made = make_checkpoint()
    assert made is not None
    assert made.number > newest.number


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("chain_id", UUID(int=3)),
        ("kind", "entries"),
        ("first_seq", 1),
        ("last_seq", 9),
        ("reason", "another"),
        ("made_at", "2020-01-01 00:00:00"),
        ("key_id", "0" * 16),
    ],
)
def test_each_column_of_a_tombstone_counts(tenant: Tenant, column: str, value: Any) -> None:
    """SEC-244: triggers go by the columns, so these have to be what was signed."""
    sealed_log(tenant)
    make_tombstone(
        chain_id=tenant.workspace.pk,
        kind=AuditTombstone.Kind.BODIES,
        first_seq=2,
        last_seq=3,
        reason="kept for 1 day",
    )
    assert check().result == "whole"
    assert tamper(f"UPDATE audit_audittombstone SET {column} = %s", value) == 1
    assert check().result == "altered"
    assert check_export(None).result == "altered"


def test_a_difference_that_only_a_checkpoint_shows_is_a_range(tenant: Tenant) -> None:
    """SEC-244: hashes that were made anew fit each other, and leave no single entry to point at."""
    sealed_log(tenant, rounds=3, each=4)
    lines = b"".join(proof_pieces(tenant.workspace.pk)).splitlines()
    records = [json.loads(line) for line in lines]
    previous = ""
    for record in records:
        if record["record"] != "entry":
            continue
        if record["seq"] == 6:
            record["entry"]["actor_label"] = "nobody"
        if record["seq"] >= 6:
            record["hash"] = entry_hash(record["chain"], record["seq"], previous, record["entry"])
        previous = record["hash"]
    text = b"".join(json.dumps(record).encode() + b"\n" for record in records)
    report = verify_export(io.BytesIO(text))
    assert report.result == "altered"
    assert report.findings[0].text.startswith("Between entries 5 and 8 something was changed")


def test_a_missing_key_is_told_everywhere_and_its_gap_is_a_range(
    tenant: Tenant, client: Client
) -> None:
    """SEC-245: while it lasts by /readyz, page, health and alert; afterwards signing goes on and names the range."""
    chain = str(tenant.workspace.pk)
    rule = AlertRule(
        workspace=tenant.workspace, condition=AlertRule.Condition.TAMPERING, window_minutes=5
    )
    page = reverse("audit:entries", args=[tenant.workspace.slug])
    with keys("a"):
        sealed_log(tenant, rounds=1, each=4)
        assert client.get("/readyz").json()["status"] == "ok"
        assert measure(rule, timezone.now()) == 0
    with keys("b"):
        write_entries(tenant, 3)
        newest = AuditCheckpoint.objects.get()
        for _ in range(3):
            seal_pending()
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(checkpoints, "is_due", lambda: True)
                sealing_thread.sign_if_due()
        assert AuditCheckpoint.objects.get() == newest
        entry = AuditEntry.unscoped.get(action=Action.LOG_UNSIGNED.value)
        assert entry.details["missing_key"] == newest.key_id
        assert health().is_key_missing
        answer = client.get("/readyz")
        assert answer.status_code == 200
        assert answer.json()["status"] == "degraded"
        assert answer.json()["checks"]["log_signing"] == "failed"
        assert "is not signed right now" in tenant.client("auditor").get(page).content.decode()
        assert measure(rule, timezone.now()) >= 1
        write_entries(tenant, 2)
        seal_pending()
    with keys("b", "a"):
        write_entries(tenant, 1)
        seal_pending()
        assert make_checkpoint() is not None
        assert client.get("/readyz").json()["status"] == "ok"
        for report in (check(), check_export(tenant.workspace.pk), check_export(None)):
            assert (report.result, report.first_bad[chain]) == ("incomplete", 5)
            text = next(f.text for f in report.findings if f.chain == chain)
            assert text.startswith("Between entries 5 and ")
            assert "the signing key was missing" in text
            assert report.findings_in_all == report.gaps
        # The whole says it for ever; what came since is whole, and may be verified by itself.
        verify(actor=SYSTEM)
        found = last_verification()
        assert found is not None
        assert found.details["result"] == "incomplete"
        write_entries(tenant, 2)
        seal_pending()
        make_checkpoint()
        assert check(is_incremental=True).result == "whole"


def test_the_key_of_before_may_go_once_the_change_is_signed(tenant: Tenant) -> None:
    """SEC-245: nothing is missing then."""
    with with_keys("a"):
        sealed_log(tenant, rounds=1, each=1)
    with with_keys("b", "a"):
        make_checkpoint()
    with with_keys("b"):
        assert not health().is_key_missing
