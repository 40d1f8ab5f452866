"""Files of the log: whole, safe to open, and of any size in constant memory."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import pytest
from django.test import AsyncClient, Client

from audit import exports
from audit.exports import streams
from audit.models import AuditEntry
from audit.sealing.sealer import seal_pending
from audit.verification import exporting
from tests.audit.exports.formulas import FORMULAS, write
from tests.factories import Tenant, make_tenant
from tests.workspaces.api.tokens import bearer, token_of
from workspaces.errors import PermissionDenied
from workspaces.models import ApiToken, Membership, User, Workspace


@pytest.mark.parametrize("text", FORMULAS)
def test_no_cell_can_become_a_formula(text: str) -> None:
    """SEC-88."""
    assert exports.neutral(text).startswith("'")


@pytest.mark.parametrize("text", ["plain", "a=b", "3-4", "", "12", "2026-01-01T00:00:00"])
def test_ordinary_cells_stay_as_they_are(text: str) -> None:
    """SEC-88."""
    assert exports.neutral(text) == text


@pytest.mark.django_db
def test_every_text_column_of_a_csv_is_neutral(tenant: Tenant) -> None:
    """SEC-88: whatever field a hostile name arrives in."""
    for text in FORMULAS:
        write(tenant, text.replace("\x00", ""))
    rows = AuditEntry.objects.for_workspace(tenant.workspace)
    text = b"".join(exports.FORMATS["csv"].stream(rows)).decode().removeprefix("\ufeff")
    table = list(csv.reader(io.StringIO(text)))
    assert tuple(table[0]) == exports.COLUMNS
    assert len(table) == len(FORMULAS) + 1
    cells = [cell for row in table[1:] for cell in row]
    assert all(cell.startswith("'") or exports.neutral(cell) == cell for cell in cells)


@pytest.mark.django_db
def test_batches_join_to_the_whole_log(tenant: Tenant, monkeypatch: pytest.MonkeyPatch) -> None:
    """REL-48: no entry is missing or doubled where batches meet."""
    monkeypatch.setattr(streams, "BATCH", 3)
    for number in (0, 1, 2, 3, 4, 5, 6):
        if number:
            write(tenant, f"entry {number}")
        rows = AuditEntry.objects.for_workspace(tenant.workspace)
        lines = b"".join(exports.FORMATS["jsonl"].stream(rows)).decode().splitlines()
        names = [json.loads(line)["server_name"] for line in lines]
        assert names == [f"entry {n}" for n in range(1, number + 1)]


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("lost", "file"),
    [
        *(("right", "export.csv"), ("account", "export.csv"), ("workspace", "export.csv")),
        *(("token", ""), ("right", "proof.jsonl")),
    ],
)
def test_a_download_ends_where_its_person_loses_the_right(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch, lost: str, file: str
) -> None:
    """SEC-1053."""
    monkeypatch.setattr(streams, "BATCH", 2)
    monkeypatch.setattr(exporting, "_PIECE_BYTES", 100)
    for number in range(5):
        write(tenant, f"entry {number}")
    seal_pending()
    address = f"/w/{tenant.workspace.slug}/audit/{file}"
    client, headers = tenant.client("auditor"), {}
    if lost == "token":
        address, client = "/api/audit-files/log/", Client()
        headers = bearer(token_of(tenant, "audit:read", role="auditor"))
    answer: Any = client.get(address, headers=headers)
    pieces = iter(answer.streaming_content)
    if file == "proof.jsonl":
        assert b'"record":"header"' in next(pieces)
    else:
        assert b"entry 1" in next(pieces)
    if lost == "right":
        rows = Membership.objects.for_workspace(tenant.workspace)
        rows.filter(user=tenant.auditor).update(is_auditor=False)
    elif lost == "account":
        User.objects.filter(pk=tenant.auditor.pk).update(is_active=False)
    elif lost == "workspace":
        Workspace.objects.filter(pk=tenant.workspace.pk).update(is_active=False)
    else:
        ApiToken.objects.for_workspace(tenant.workspace).delete()
    with pytest.raises(PermissionDenied):
        next(pieces)


@pytest.mark.django_db(transaction=True)
async def test_an_asynchronous_server_streams_batch_by_batch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """REL-48: the first bytes leave before the last entry is read."""
    from asgiref.sync import sync_to_async

    tenant = await sync_to_async(make_tenant)("a")
    monkeypatch.setattr(streams, "BATCH", 2)
    for number in range(5):
        await sync_to_async(write)(tenant, f"entry {number}")
    client = AsyncClient()
    await client.aforce_login(
        tenant.auditor, backend="allauth.account.auth_backends.AuthenticationBackend"
    )
    answer: Any = await client.get(f"/w/{tenant.workspace.slug}/audit/export.jsonl")
    assert answer.is_async
    pieces = [piece async for piece in answer.streaming_content]
    assert len(pieces) == 3
    assert b"".join(pieces).count(b"\n") == 6, "five entries, and the sign-in"
