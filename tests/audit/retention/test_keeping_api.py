"""Streams, saved views, schedules, sign-offs and the log's settings over REST, as on their pages."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone
from uuid_utils.compat import uuid7

from audit.actions import Action, Outcome
from audit.models import AuditBody, AuditEntry, AuditStream, LegalHold, ReportSchedule, SignOff
from audit.services import EntryDraft, record
from tests.audit.retention.asking import ask
from tests.factories import Tenant, TwoTenants
from workspaces.people.tokens import issue_token

pytestmark = pytest.mark.django_db
STREAM = {"name": "SIEM", "kind": "webhook", "target": "https://sink.example.org/in"}
REFUSED = {400, 422}


def faults(answer: Any) -> set[str]:
    assert answer.status_code in REFUSED, answer.content
    return {str(one["attr"]).partition(".")[0] for one in answer.json()["errors"]}


def verbs(tenant: Tenant) -> list[str]:
    rows = AuditEntry.objects.for_workspace(tenant.workspace).filter(action="config.changed")
    return [row.details["verb"] for row in rows.order_by("id")]


def test_all_faults_of_a_stream_are_told_at_once(tenant: Tenant) -> None:
    """REL-947: what is not written as it should be, and what cannot be used, of whatever field."""
    wrong = {"name": "", "target": "nonsense", "headers": {"Host": "x"}, "client_key": "x"}
    answer = ask(tenant, "post", "audit-streams/", {**wrong, "kind": "webhook"})
    assert (answer.status_code, faults(answer)) == (400, set(wrong))
    unnamed = ask(tenant, "post", "audit-streams/", {"kind": "webhook", "target": "nonsense"})
    assert faults(unnamed) == {"name", "target"}
    made = ask(tenant, "post", "audit-streams/", {**STREAM, "headers": {"X-Key": "secret"}})
    path = f"audit-streams/{made.json()['stream']['id']}/"
    moved = {"target": "https://elsewhere.example.org/", "is_paused": "maybe", "client_key": "x"}
    assert faults(ask(tenant, "patch", path, moved)) == {"headers", "is_paused", "client_key"}
    assert ask(tenant, "patch", path, []).status_code == 400
    assert ask(tenant, "get", path).json() == made.json()["stream"]


def test_a_stream_is_added_changed_and_deleted_and_keeps_its_secrets(
    two_workspaces: TwoTenants,
) -> None:
    """REL-730, SEC-425: with the rights and faults of its page; only a webhook's new signing key comes out, once."""
    tenant, other = two_workspaces.a, two_workspaces.b
    made = ask(tenant, "post", "audit-streams/", {**STREAM, "headers": {"X-Key": "hush-hush"}})
    assert made.status_code == 201, made.content
    assert made.json()["secret"].startswith("whsec_")
    row = made.json()["stream"]
    assert (row["has_headers"], row["is_paused"], row["waiting"]) == (True, False, 0)
    path = f"audit-streams/{row['id']}/"
    changed = ask(tenant, "patch", path, {"name": "Archive", "is_paused": True}).json()
    assert (changed["name"], changed["is_paused"], changed["has_headers"]) == (
        "Archive",
        True,
        True,
    )
    # The stored headers do not follow to another host, and a half right body changes nothing.
    elsewhere = {"name": "x", "target": "https://elsewhere.example.org/", "is_paused": False}
    assert faults(ask(tenant, "patch", path, elsewhere)) == {"headers"}
    assert faults(ask(tenant, "patch", path, {"client_key": "x"})) == {"client_key"}
    seen = ask(tenant, "get", path, role="auditor").json()
    assert seen == changed
    renewed = ask(tenant, "post", f"{path}renew-secret/").json()["secret"]
    assert renewed not in {None, made.json()["secret"]}
    assert ask(tenant, "post", f"{path}restart/", {"start": "beginning"}).json()["waiting"] >= 0
    shown = str([made.json()["stream"], changed, ask(tenant, "get", "audit-streams/").json()])
    assert "hush-hush" not in shown
    assert "whsec_" not in shown
    assert faults(ask(tenant, "post", "audit-streams/", {**STREAM, "target": "nonsense"})) == {
        "target"
    }
    assert faults(ask(tenant, "post", "audit-streams/", {**STREAM, "kind": "pigeon"})) == {"kind"}
    for role in ("admin", "auditor", "member"):
        assert ask(tenant, "post", "audit-streams/", STREAM, role=role).status_code == 403
        assert ask(tenant, "delete", path, role=role).status_code == 403
    assert ask(tenant, "get", path, role="member").status_code == 403
    for verb, end in (("get", ""), ("delete", ""), ("post", "test/"), ("post", "renew-secret/")):
        assert ask(other, verb, f"{path}{end}").status_code == 404
    assert AuditStream.objects.for_workspace(tenant.workspace).count() == 1
    assert ask(tenant, "delete", path).status_code == 204
    recorded = verbs(tenant)
    assert (recorded[0], recorded[-1], recorded.count("changed")) == ("created", "deleted", 4)


def test_views_schedules_and_sign_offs_are_kept_over_rest(two_workspaces: TwoTenants) -> None:
    """REL-731, REL-736, REL-737: with the rights and faults of their pages, and for tokens with the scope of keeping."""
    tenant, other = two_workspaces.a, two_workspaces.b
    view = {"name": "Refused", "page": "log", "query": "outcome:refused", "is_shared": True}
    made = ask(tenant, "post", "audit-views/", view, role="auditor")
    assert made.status_code == 201, made.content
    path = f"audit-views/{made.json()['id']}/"
    assert ask(tenant, "get", path, role="admin").json()["owner"] == tenant.auditor.email
    assert ask(tenant, "patch", path, {"query": "tool:x"}, role="admin").status_code == 409
    assert ask(tenant, "delete", path, role="admin").status_code == 404
    changed = ask(tenant, "patch", path, {"query": "tool:x"}, role="auditor").json()
    assert (changed["name"], changed["query"]) == ("Refused", "tool:x")
    assert ask(tenant, "post", "audit-views/", view, role="auditor").status_code == 409
    assert faults(ask(tenant, "post", "audit-views/", {**view, "page": "moon"})) == {"page"}
    assert ask(other, "get", path).status_code == 404
    assert ask(tenant, "delete", path, role="auditor").status_code == 204

    when = {"name": "Weekly", "format": "csv", "cadence": "weekly", "delivery": "mail"}
    draft = {**when, "recipients": [str(tenant.auditor.pk)], "query": "outcome:refused"}
    wrongs: tuple[dict[str, Any], ...] = (
        {"query": "outcom:refused"},
        {"recipients": []},
        {"recipients": [str(tenant.member.pk)]},
        {"recipients": [str(other.auditor.pk)]},
        {"cadence": "hourly"},
    )
    for wrong in wrongs:
        answer = ask(tenant, "post", "audit-schedules/", {**draft, **wrong}, role="auditor")
        assert faults(answer) == set(wrong)
    assert not ReportSchedule.objects.for_workspace(tenant.workspace).exists()
    for role in ("owner", "admin", "member"):
        assert ask(tenant, "post", "audit-schedules/", draft, role=role).status_code == 403
        assert ask(tenant, "get", "audit-schedules/", role=role).status_code == 403
    daily = {**draft, "cadence": "daily", "recipients": [], "query": ""}
    body = ask(tenant, "post", "audit-schedules/preview/", daily, role="auditor").json()
    assert (body["entries"], body["until"][11:16]) == (0, "00:00")
    page = tenant.client("auditor").post("/w/a/audit/schedules/", {**daily, "preview": "1"})
    assert "Nothing in the log fits, so the file holds no entries." in page.content.decode()
    wrong = {**daily, "query": "outcom:refused", "preview": "1"}
    page = tenant.client("auditor").post("/w/a/audit/schedules/", wrong)
    assert page.status_code == 422
    assert b'id="schedule-query_error"' in page.content
    assert ask(tenant, "post", "audit-schedules/preview/", draft).status_code == 403
    assert not ReportSchedule.objects.for_workspace(tenant.workspace).exists()
    row = ask(tenant, "post", "audit-schedules/", draft, role="auditor").json()
    path = f"audit-schedules/{row['id']}/"
    assert (row["is_active"], row["last_ok"]) == (True, None)
    paused = ask(tenant, "patch", path, {"is_active": False}, role="auditor").json()
    assert paused["is_active"] is False
    renamed = ask(tenant, "patch", path, {"name": "Refused ones"}, role="auditor").json()
    assert (renamed["name"], renamed["query"], renamed["is_active"]) == (
        *("Refused ones", "outcome:refused"),
        False,
    )
    assert faults(ask(tenant, "patch", path, {"recipients": []}, role="auditor")) == {"recipients"}
    sent = ask(tenant, "post", f"{path}send/", role="auditor").json()
    assert sent["last_ok"] is True, sent
    assert ask(other, "post", f"{path}send/", role="auditor").status_code == 404
    assert ask(tenant, "delete", path, role="auditor").status_code == 204

    now = timezone.now()
    span = {"since": (now - timedelta(days=1)).isoformat(), "until": now.isoformat()}
    late = {**span, "until": (now + timedelta(hours=1)).isoformat()}
    assert faults(ask(tenant, "post", "audit-sign-offs/", late)) == {"until"}
    signed = ask(tenant, "post", "audit-sign-offs/", {**span, "note": "Fine."}, role="auditor")
    assert signed.status_code == 201, signed.content
    assert signed.json()["signed_by"] == tenant.auditor.email
    assert signed.json()["totals"]["entries"] > 0
    path = f"audit-sign-offs/{signed.json()['id']}/"
    assert ask(tenant, "get", path, role="admin").json() == signed.json()
    for verb in ("delete", "patch", "put"):
        assert ask(tenant, verb, path, {}).status_code == 405
    assert SignOff.objects.for_workspace(tenant.workspace).count() == 1
    assert verbs(tenant) == ["created", "changed", "changed", "deleted"]

    def signs_with(scope: str) -> int:
        _, plain = issue_token(
            workspace=tenant.workspace,
            user=tenant.auditor,
            name="script",
            scopes=[scope],
            expires_at=now + timedelta(days=1),
            actor=tenant.actor("auditor"),
        )
        client = Client(headers={"Authorization": f"Bearer {plain}"})
        answer = client.post("/api/audit-sign-offs/", span, content_type="application/json")
        return answer.status_code

    assert [signs_with(scope) for scope in ("audit:read", "audit:write")] == [403, 201]


def test_how_the_log_is_kept_is_changed_over_rest(two_workspaces: TwoTenants) -> None:
    """REL-732: settings, legal holds and erasure, by owners, with the faults of their page."""
    tenant, other = two_workspaces.a, two_workspaces.b
    entry = record(
        EntryDraft(
            action=Action.TOOL_CALL_FINISHED,
            actor=tenant.actor("member"),
            workspace_id=tenant.workspace.pk,
            call_id=uuid7(),
            outcome=Outcome.OK,
            arguments=b'{"to": "Ada"}',
        )
    )
    before = ask(tenant, "get", "audit-settings/", role="auditor").json()
    assert before["keep_days"] is None
    changes = {"keep_days": 90, "masked_paths": ["$.arguments.ssn"]}
    after = ask(tenant, "post", "audit-settings/", changes).json()
    assert after == {**before, **changes}
    assert ask(other, "get", "audit-settings/").json() == before
    for wrong in (
        {"keep_days": 0},
        {"keep_entries": 5},
        {"masked_paths": ["not a path"]},
        {"detectors": ["x"]},
    ):
        assert faults(ask(tenant, "post", "audit-settings/", {"body_bytes": 5, **wrong})) == set(
            wrong
        )
    assert ask(tenant, "get", "audit-settings/").json() == after

    assert faults(ask(tenant, "post", "legal-holds/", {"reason": " "})) == {"reason"}
    hold = ask(tenant, "post", "legal-holds/", {"reason": "Matter 7"})
    assert hold.status_code == 201, hold.content
    assert ask(tenant, "post", "legal-holds/", {"reason": "Matter 8"}).status_code == 409
    wanted = {"email": tenant.member.email, "reason": "Request 12"}
    assert ask(tenant, "post", "audit-erasures/", wanted).status_code == 409
    release = f"legal-holds/{hold.json()['id']}/release/"
    assert ask(other, "post", release).status_code == 404
    for role in ("admin", "auditor", "member"):
        for path, body in (
            ("audit-settings/", changes),
            ("legal-holds/", {"reason": "x"}),
            (release, None),
            ("audit-erasures/", wanted),
        ):
            assert ask(tenant, "post", path, body, role=role).status_code == 403, (role, path)
    assert ask(tenant, "post", release).json()["released_by"] == tenant.owner.email
    assert LegalHold.objects.for_workspace(tenant.workspace).get().released_at is not None

    nobody = {**wanted, "email": "nobody@example.org"}
    assert faults(ask(tenant, "post", "audit-erasures/", nobody)) == {"email"}
    assert ask(tenant, "post", "audit-erasures/", wanted).json()["erased"] >= 1
    entry.refresh_from_db()
    assert entry.arguments_preview == ""
    assert not AuditBody.unscoped.filter(entry_id=entry.pk).exists()
