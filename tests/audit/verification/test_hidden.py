"""Entries whose seals fit although the log's pages do not show them: both verifiers name them."""

from __future__ import annotations

import io
from collections.abc import Callable
from uuid import UUID

import pytest
from django.db import connection

from audit.models import AuditEntry, AuditSeal, PendingSeal
from audit.proof.trellis_verify import VerificationReport, verify_export
from audit.sealing.checkpoints import make_checkpoint
from audit.sealing.sealer import seal_pending
from audit.verification.exporting import proof_pieces
from tests.audit.tampering import sealed_log, tamper, write_entries
from tests.audit.verification.checked import at, check
from tests.factories import Tenant

pytestmark = pytest.mark.usefixtures("checkpoint_file")
ENTRY = "audit_auditentry"
only_sqlite = pytest.mark.sqlite
"""Other databases have one form of each value."""


def check_export(workspace_id: UUID | None) -> VerificationReport:
    return verify_export(io.BytesIO(b"".join(proof_pieces(workspace_id))))


def assert_named(tenant: Tenant, pk: UUID, seq: int | None) -> None:
    chain = str(tenant.workspace.pk)
    for scope in (tenant.workspace.pk, None):
        for report in (check(workspace_id=scope), check_export(scope)):
            assert report.result == "altered", report
            named = [finding for finding in report.findings if str(pk) in finding.text]
            assert [(finding.chain, finding.seq) for finding in named][:1] == [(chain, seq)], report


@only_sqlite
@pytest.mark.parametrize(
    ("column", "spelled"),
    [
        ("workspace_id", lambda old: old.upper()),
        ("workspace_id", lambda old: str(UUID(old))),
        ("workspace_id", lambda old: f"{{{old}}}"),
        ("actor_id", lambda old: str(UUID(old))),
        ("created_at", lambda old: old.replace(" ", "T")),
        ("created_at", lambda old: f"{old}+00:00"),
        ("details", lambda old: f"{old} "),
        ("details", lambda old: '{"number": 7, ' + old.removeprefix("{")),
    ],
)
def test_an_entry_in_another_spelling_is_named(
    tenant: Tenant, column: str, spelled: Callable[[str], str]
) -> None:
    """SEC-241: read as the same value it fits its seal, but no filter finds it."""
    sealed_log(tenant, rounds=1, each=6)
    pk = at(tenant, 5).entry_id
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT +{column} FROM {ENTRY} WHERE id = %s", [pk.hex])
        (old,) = cursor.fetchone()
    assert check().result == "whole"
    assert check_export(tenant.workspace.pk).result == "whole"
    assert tamper(f"UPDATE {ENTRY} SET {column} = %s WHERE id = %s", spelled(old), pk) == 1
    assert_named(tenant, pk, 5)


@only_sqlite
def test_an_id_in_another_spelling_is_named(tenant: Tenant) -> None:
    """SEC-241: its seal finds no entry, and the entry no seal."""
    sealed_log(tenant, rounds=1, each=3)
    pk = at(tenant, 2).entry_id
    tamper(f"UPDATE {ENTRY} SET id = %s WHERE id = %s", str(pk).upper(), pk)
    for report in (check(), check_export(None)):
        assert report.result == "altered"
        assert report.first_bad == {str(tenant.workspace.pk): 2}
        assert any(str(pk).upper() in finding.text for finding in report.findings)


@only_sqlite
def test_what_is_no_value_at_all_is_no_failure_of_the_check(tenant: Tenant) -> None:
    """SEC-241: an id that cannot be read is told as any other finding."""
    sealed_log(tenant, rounds=1, each=3)
    tamper(f"UPDATE {ENTRY} SET workspace_id = 'x' WHERE id = %s", at(tenant, 2).entry_id)
    assert check().result in {"altered", "unreadable"}


def test_an_entry_without_a_seal_is_named_by_both(tenant: Tenant) -> None:
    """SEC-241: an export says it too, in its signed last line."""
    sealed_log(tenant)
    (entry,) = write_entries(tenant, 1)
    PendingSeal.objects.all().delete()
    assert_named(tenant, entry.pk, None)


def test_pages_count_what_is_sealed_and_what_waits(tenant: Tenant) -> None:
    """SEC-241: a young entry is no finding; one that the pages of its workspace miss is, with both numbers."""
    sealed_log(tenant, rounds=1, each=4)
    write_entries(tenant, 2)
    assert check().result == "whole"
    assert check_export(None).result == "whole"
    seal_pending()
    make_checkpoint()
    pk = at(tenant, 3).entry_id
    tamper(f"UPDATE {ENTRY} SET workspace_id = NULL WHERE id = %s", pk)
    assert AuditEntry.objects.for_workspace(tenant.workspace).count() == 5
    assert AuditSeal.objects.filter(chain_id=tenant.workspace.pk).count() == 6
    assert_named(tenant, pk, 3)
    for report in (check(), check_export(None)):
        assert any("Pages count 5 entries here; 6 are sealed" in f.text for f in report.findings)
