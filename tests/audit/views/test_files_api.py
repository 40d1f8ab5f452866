"""The log, its report and its proof as files over REST."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from audit.actions import Action
from audit.models import AuditEntry
from audit.services import EntryDraft, record
from tests.factories import Tenant, make_tenant
from workspaces.errors import PermissionDenied
from workspaces.roles import Permission, Role, require

FILES = "/api/audit-files/"


@pytest.fixture
def acme(db: None) -> Tenant:
    """A workspace with two entries."""
    tenant = make_tenant("acme")
    for name in ("one", "two"):
        record(
            EntryDraft(
                action=Action.SERVER_ERROR,
                actor=tenant.actor("admin"),
                workspace_id=tenant.workspace.pk,
                details={"name": name},
            )
        )
    return tenant


def get(tenant: Tenant, path: str, role: str = "auditor") -> Any:
    headers = {"X-Workspace": tenant.workspace.slug}
    return tenant.client(role).get(f"{FILES}{path}", headers=headers)


def body_of(answer: Any) -> bytes:
    return b"".join(answer.streaming_content) if answer.streaming else answer.content


def taken(tenant: Tenant) -> list[Any]:
    rows = AuditEntry.objects.for_workspace(tenant.workspace)
    found = rows.filter(action=Action.EXPORT_CREATED.value).order_by("id")
    return [entry.details["format"] for entry in found]


def test_the_log_as_a_file_is_what_the_page_gives(acme: Tenant) -> None:
    """REL-1108: with the same filters, in each format."""
    answer = get(acme, "log/?as=jsonl&q=action:server.error")
    assert answer["Content-Type"] == "application/x-ndjson"
    assert answer["Content-Disposition"].startswith('attachment; filename="trellis-audit-acme-')
    lines = body_of(answer).splitlines()
    assert [json.loads(line)["action"] for line in lines] == ["server.error"] * 2
    page = acme.client("auditor").get("/w/acme/audit/export.jsonl?range=all&q=action:server.error")
    assert body_of(page).splitlines() == lines
    for kind, begins in (("csv", b"\xef\xbb\xbf"), ("xlsx", b"PK"), ("cef", b"CEF:")):
        assert body_of(get(acme, f"log/?as={kind}")).startswith(begins)
    assert body_of(get(acme, "log/")).startswith(b"\xef\xbb\xbf")
    assert taken(acme) == ["jsonl", "jsonl", "csv", "xlsx", "cef", "csv"]


def test_the_report_and_the_proof_as_files(acme: Tenant) -> None:
    """REL-1108."""
    report = get(acme, "report/?range=7d&by=server")
    assert (report["Content-Type"], body_of(report)[:5]) == ("application/pdf", b"%PDF-")
    proof = get(acme, "proof/")
    assert json.loads(body_of(proof).splitlines()[0])
    assert b"def main" in body_of(get(acme, "verifier/"))
    assert taken(acme) == ["pdf", "proof"]


def test_a_wrong_filter_gives_no_file(acme: Tenant) -> None:
    """REL-1108: without it the file would hold more than was asked for."""
    for query, field in (
        ("log/?as=exe", "as"),
        ("log/?range=ever", "range"),
        ("log/?q=colour:red", "q"),
        ("report/?by=moon", "by"),
        ("report/?q=sort:duration", "q"),
    ):
        refused = get(acme, query)
        assert (refused.status_code, refused.json()["errors"][0]["attr"]) == (422, field), query
    assert get(acme, "log/?format=csv").status_code in {400, 404}
    assert not taken(acme)


@pytest.mark.parametrize("role", ["member", "admin"])
def test_only_who_may_export_gets_a_file(acme: Tenant, role: str) -> None:
    """SEC-550: over REST as on the pages, and a refusal is no entry."""
    for path in ("log/", "report/", "proof/", "verifier/"):
        assert get(acme, path, role).status_code == 403
    assert not taken(acme)


def test_a_refusal_says_who_may(acme: Tenant) -> None:
    """REL-2256: A refusal for a missing right says who has it, or which scope the token lacks."""
    refused = get(acme, "log/", "admin").json()["errors"][0]
    assert (refused["code"], refused["attr"]) == ("forbidden", None)
    assert "Only auditors can do that" in refused["detail"]
    reader = replace(acme.actor("owner"), scopes=frozenset({"audit:read"}))
    with pytest.raises(PermissionDenied, match="scope 'workspace:write'"):
        require(reader, Permission.MANAGE_WORKSPACE, workspace_id=acme.workspace.pk)
    member = replace(reader, role=Role.MEMBER)
    with pytest.raises(PermissionDenied, match="Only owners of the workspace"):
        require(member, Permission.MANAGE_WORKSPACE, workspace_id=acme.workspace.pk)
