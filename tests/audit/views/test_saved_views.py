"""Views that people keep, and reviews that they sign off."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from audit.actions import Action
from audit.models import AuditEntry, SavedView, SignOff
from tests.audit.reports.filling import filled
from tests.audit.views.log_pages import a_call, url
from tests.factories import Tenant

pytestmark = pytest.mark.django_db


def test_a_view_is_kept_shared_and_deleted_by_its_owner(tenant: Tenant) -> None:
    """Ours."""
    admin, auditor = tenant.client("admin"), tenant.client("auditor")
    draft = {"page": "log", "name": "Timeouts", "query": "outcome=timeout", "is_shared": "on"}
    answer = admin.post(url(tenant, "views/"), draft)
    assert answer["Location"].endswith("/audit/?outcome=timeout")
    assert b"Timeouts" in auditor.get(url(tenant)).content
    view = SavedView.objects.for_workspace(tenant.workspace).get()
    assert auditor.post(url(tenant, f"views/{view.pk}/delete/")).status_code == 404
    admin.post(url(tenant, "views/"), {**draft, "name": "Mine", "is_shared": ""} | {})
    admin.post(url(tenant, f"views/{view.pk}/delete/"))
    assert b"Timeouts" not in auditor.get(url(tenant)).content
    assert tenant.client("member").post(url(tenant, "views/"), draft).status_code == 403


def test_an_odd_view_keeps_nobody_from_the_schedules(tenant: Tenant) -> None:
    """Ours: the form looks among the shared views for the one whose filters it has."""
    admin, auditor = tenant.client("admin"), tenant.client("auditor")
    draft = {"page": "log", "name": "Od\x00d", "query": "&" * 4000, "is_shared": "on"}
    assert admin.post(url(tenant, "views/"), draft).status_code == 302
    assert SavedView.objects.for_workspace(tenant.workspace).get().name == "Odd"
    form = auditor.get(url(tenant, "schedules/"), {"tool": "search"})
    assert form.status_code == 200
    assert b"tool=search" in form.content


def test_a_private_view_is_its_owners_alone(tenant: Tenant) -> None:
    """Ours."""
    draft = {"page": "reports", "name": "Secret plans", "query": "tool=x"}
    tenant.client("admin").post(url(tenant, "views/"), draft)
    assert b"Secret plans" in tenant.client("admin").get(url(tenant, "reports/")).content
    assert b"Secret plans" not in tenant.client("auditor").get(url(tenant, "reports/")).content


def test_a_sign_off_is_an_entry_with_the_numbers_of_its_time(tenant: Tenant) -> None:
    """Ours: and what comes later changes nothing of it."""
    filled(tenant)
    client = tenant.client("auditor")
    until = timezone.now()
    draft = {
        "since": (until - timedelta(days=1)).isoformat(),
        "until": until.isoformat(),
        "note": "nothing odd",
    }
    assert client.post(url(tenant, "reviews/"), draft).status_code == 302
    row = SignOff.objects.for_workspace(tenant.workspace).get()
    assert (row.totals["calls"], row.totals["failed"], row.totals["refused"]) == (4, 1, 1)
    entry = AuditEntry.objects.for_workspace(tenant.workspace).get(pk=row.entry_id)
    assert entry.action == Action.REPORT_SIGNED_OFF
    assert entry.details["totals"]["calls"] == 4
    a_call(tenant)
    assert b"nothing odd" in client.get(url(tenant, "reviews/")).content
    row.refresh_from_db()
    assert row.totals["calls"] == 4


def test_a_sign_off_needs_a_time_that_has_passed(tenant: Tenant) -> None:
    """Ours."""
    client = tenant.client("auditor")
    for since, until in (
        *(("", ""), ("x", "y"), ("2026-01-02", "2026-01-01"), ("2026-01-01", "2999-01-01")),
    ):
        answer = client.post(url(tenant, "reviews/"), {"since": since, "until": until})
        assert answer.status_code == 422
    assert not SignOff.objects.for_workspace(tenant.workspace).exists()
