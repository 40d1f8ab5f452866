"""The proof as a download, and how the log says it is."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from django.conf import settings
from django.db import connection
from django.test import AsyncClient, override_settings
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from audit.actions import Action
from audit.health import health
from audit.models import AuditEntry, AuditSeal
from audit.proof import trellis_verify
from audit.proof.trellis_verify import verify_export
from audit.sealing.checkpoints import make_checkpoint
from audit.verification import nightly
from config.env import EncryptionKey
from tests.audit.tampering import sealed_log, tamper, write_entries
from tests.factories import Tenant, TwoTenants, signed_in
from workspaces.models import User

pytestmark = pytest.mark.usefixtures("checkpoint_file")


def test_who_may_export_takes_the_proof_and_its_verifier(two_workspaces: TwoTenants) -> None:
    """SEC-103, SEC-105: the file checks out with the program beside it; taking it is an entry."""
    a, b = two_workspaces.a, two_workspaces.b
    sealed_log(a, rounds=1)
    sealed_log(b, rounds=1)
    client = a.client("auditor")
    response = client.get(reverse("audit:proof-export", args=[a.workspace.slug]))
    assert response.status_code == 200
    content = b"".join(response.streaming_content)  # type: ignore[attr-defined]
    report = verify_export(io.BytesIO(content))
    assert (report.result, report.entries) == ("whole", 4)
    assert str(b.workspace.pk).encode() not in content
    made = AuditEntry.objects.for_workspace(a.workspace).filter(
        action=Action.EXPORT_CREATED.value, details__format="proof"
    )
    assert made.count() == 1
    program = client.get(reverse("audit:verifier", args=[a.workspace.slug]))
    assert program.content == Path(trellis_verify.__file__).read_bytes()


@pytest.mark.parametrize("name", ["proof-export", "verifier"])
def test_who_may_not_export_gets_neither(two_workspaces: TwoTenants, name: str) -> None:
    """SEC-105: a member, and an auditor of another workspace."""
    url = reverse(f"audit:{name}", args=[two_workspaces.a.workspace.slug])
    assert two_workspaces.a.client("member").get(url).status_code in {403, 404}
    assert two_workspaces.b.client("auditor").get(url).status_code in {403, 404}


@pytest.mark.django_db(transaction=True)
async def test_an_asynchronous_server_streams_it_too(two_workspaces: TwoTenants) -> None:
    """REL-48: piece by piece."""
    from asgiref.sync import sync_to_async

    a = two_workspaces.a
    await sync_to_async(sealed_log)(a, rounds=1)
    client = AsyncClient()
    await sync_to_async(client.force_login)(a.auditor)
    response = await client.get(reverse("audit:proof-export", args=[a.workspace.slug]))
    pieces = [piece async for piece in response.streaming_content]  # type: ignore[attr-defined]
    assert verify_export(io.BytesIO(b"".join(pieces))).result == "whole"


def test_without_the_key_in_use_nothing_is_given(tenant: Tenant) -> None:
    """Ours: 503 with a sentence, not a file that proves nothing."""
    sealed_log(tenant, rounds=1)
    key = EncryptionKey("x", b"x" * 32)
    config = settings.TRELLIS.model_copy(update={"audit_signing_keys": (key,)})
    with override_settings(TRELLIS=config):
        url = reverse("audit:proof-export", args=[tenant.workspace.slug])
        assert tenant.client("auditor").get(url).status_code == 503


def test_the_health_of_the_log(tenant: Tenant) -> None:
    """Ours: what waits, what was signed, what was verified."""
    young = health()
    assert (young.pending, young.checkpoint_number, young.verified_result) == (0, 0, None)
    sealed_log(tenant, rounds=2, each=2)
    write_entries(tenant, 3)
    now = health()
    assert now.pending == 3
    assert now.oldest_pending_seconds >= 0
    assert now.checkpoint_number == 2
    assert now.checkpoint_age_seconds is not None
    assert now.entries_by_chain == {tenant.workspace.pk: 4}
    assert now.sealed_since_start >= young.sealed_since_start + 4
    nightly.verify_log(is_incremental=True)
    assert health().verified_result == "whole"


def test_a_finding_of_the_night_is_an_entry(tenant: Tenant) -> None:
    """SEC-103: which alerts look at."""
    sealed_log(tenant, rounds=1)
    tamper("UPDATE audit_auditentry SET actor_label = 'x'")
    make_checkpoint()
    nightly.verify_log(is_incremental=False)
    entry = AuditEntry.objects.across_workspaces().get(action=Action.LOG_VERIFIED.value)
    assert entry.details["result"] == "altered"
    assert entry.details["first_bad"] == {str(tenant.workspace.pk): 1}
    assert health().verified_result == "altered"


def test_pages_say_what_a_verification_found(two_workspaces: TwoTenants) -> None:
    """REL-1939: each workspace of its own log, with the way to the entry; the platform's owner of all of it."""
    a, b = two_workspaces.a, two_workspaces.b
    for tenant in (a, b):
        sealed_log(tenant, rounds=1)
    whole, gone = AuditSeal.objects.filter(chain_id=a.workspace.pk).order_by("seq")[:2]
    tamper("UPDATE audit_auditentry SET actor_label = 'x' WHERE id = %s", whole.entry_id)
    tamper("DELETE FROM audit_auditentry WHERE id = %s", gone.entry_id)
    nightly.verify_log(is_incremental=False)
    auditor = a.client("auditor")
    with CaptureQueriesContext(connection) as asked:
        needs = auditor.get(reverse("audit:overview", args=[a.workspace.slug]))
    verified = f"'{Action.LOG_VERIFIED.value}' AND"
    assert sum(verified in one["sql"] for one in asked) == 1, "it is one entry, and may be long"
    listed = [(need.text, need.url) for need in needs.context["needs"]]
    entry = reverse("audit:entry", args=[a.workspace.slug, whole.entry_id])
    assert any("place 1:" in text and "changed" in text and url == entry for text, url in listed)
    assert any("place 2:" in text and "gone" in text and "#log" in url for text, url in listed)
    others = b.client("auditor").get(reverse("audit:overview", args=[b.workspace.slug]))
    assert not any("place" in need.text for need in others.context["needs"])
    owner = User.objects.create_superuser("platform@example.org", None)
    client = signed_in(owner)
    page = client.get(reverse("audit:platform")).content.decode()
    assert a.workspace.name in page
    assert "The entry is gone or cannot be read" in page
