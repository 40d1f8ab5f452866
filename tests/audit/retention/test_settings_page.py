"""The page of the log's settings: what is kept, legal holds, and erasing on request."""

from __future__ import annotations

import re
from typing import Any

import pytest

from audit.bodies.masking import MOST_PATHS
from audit.models import AuditEntry, AuditPolicy, LegalHold, PendingErasure
from audit.retention import erasing
from config.celery import app
from tests.audit.retention.aged_entries import note, sealed
from tests.factories import Tenant, make_tenant

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("checkpoint_file")]


def url(tenant: Tenant, rest: str = "") -> str:
    return f"/w/{tenant.workspace.slug}/audit/settings/{rest}"


VALUES = {
    "keep_days": "90",
    "body_bytes": "65536",
    "masked_paths": "$.arguments.ssn\n",
    "detectors": ["email"],
}


def test_owners_change_the_settings_and_that_is_an_entry(tenant: Tenant) -> None:
    """SEC-105: with what was before and after."""
    owner = tenant.client("owner")
    assert owner.post(url(tenant), VALUES).status_code == 302
    assert owner.post(url(tenant), {**VALUES, "keep_days": "30"}).status_code == 302
    policy = AuditPolicy.objects.for_workspace(tenant.workspace).get()
    assert (policy.keep_days, policy.masked_paths, policy.detectors) == (
        30,
        ["$.arguments.ssn"],
        ["email"],
    )
    changes = AuditEntry.objects.for_workspace(tenant.workspace).filter(action="config.changed")
    last = changes.latest("id")
    assert (last.details["kind"], last.details["before"], last.details["after"]) == (
        "audit settings",
        {"keep_days": 90},
        {"keep_days": 30},
    )
    page = owner.get(url(tenant)).content.decode()
    assert 'value="30"' in page


def test_the_question_before_an_erasure_names_whom_it_is_for(tenant: Tenant) -> None:
    """REL-3341: the page puts what was typed where the question names its field."""
    page = tenant.client("owner").get(url(tenant)).content.decode()
    [form] = re.findall(r"<form[^>]*/erase/.*?</form>", page, re.S)
    assert "everything {email} did" in form
    assert 'name="email"' in form


def test_auditors_read_the_settings_in_words(tenant: Tenant) -> None:
    """Ours: what they cannot change is no form that looks as if they could."""
    tenant.client("owner").post(url(tenant), VALUES)
    page = tenant.client("auditor").get(url(tenant)).content.decode()
    for words in ("90 days", "as long as their entries", "64 KB", "$.arguments.ssn"):
        assert words in page
    assert "Only owners of the workspace change these." in page
    assert 'name="keep_days"' not in page


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("keep_days", "0", "1 or more"),
        ("keep_entries", "5", "1000 or more"),
        ("masked_paths", "customer.ssn", "is not a path"),
        ("masked_paths", "$.a[?@.b]", "has a filter"),
        ("detectors", "shoe-size", "not one of the available choices"),
        ("body_bytes", "7", "not one of the available choices"),
    ],
)
def test_what_makes_no_sense_is_said_at_the_field(
    tenant: Tenant, field: str, value: str, words: str
) -> None:
    """Ours: and nothing is stored."""
    answer = tenant.client("owner").post(url(tenant), {**VALUES, field: value})
    assert answer.status_code == 422
    assert words in answer.content.decode()
    assert not AuditPolicy.unscoped.exists()


def test_what_the_service_refuses_is_said_at_the_field(tenant: Tenant) -> None:
    """REL-1270."""
    paths = "\n".join(f"$.a{number}" for number in range(MOST_PATHS + 1))
    answer = tenant.client("owner").post(url(tenant), {**VALUES, "masked_paths": paths})
    assert answer.status_code == 422
    assert "paths can be masked" in str(answer.context["policy_form"].errors["masked_paths"])


def test_nothing_is_said_to_go_while_a_hold_stands(tenant: Tenant) -> None:
    """REL-1270: neither when settings are saved, nor where it is asked first, and never while everything is kept."""
    sealed(tenant, [40, 1])
    owner = tenant.client("owner")
    free = owner.post(url(tenant), VALUES, follow=True).content.decode()
    assert "What is kept too long is deleted within the hour." in free
    kept = {**VALUES, "keep_days": "", "keep_entries": "", "keep_bodies_days": ""}
    assert "goes within the hour" not in owner.post(url(tenant), kept, follow=True).content.decode()
    owner.post(url(tenant, "hold/"), {"reason": "Matter 7"})
    values = {**VALUES, "keep_days": "30"}
    asked = owner.post(url(tenant), values).content.decode()
    assert "removed for good as soon as the legal hold is released" in asked
    held = owner.post(url(tenant), {**values, "is_agreed": "1"}, follow=True).content.decode()
    assert "Nothing is removed while the legal hold stands." in held
    assert "within the hour" not in asked + held


def test_shorter_times_are_stored_once_an_owner_has_read_how_much_goes(tenant: Tenant) -> None:
    """REL-2527: in numbers. Settings by which no more goes than before are stored at once."""
    sealed(tenant, [40, 35, 20, 15, 12, 1])
    owner = tenant.client("owner")
    values = {**VALUES, "keep_days": "30", "keep_bodies_days": "10"}
    page = owner.post(url(tenant), values)
    goes = page.context["goes"]
    assert (goes.entries, goes.bodies, goes.is_at_least) == (2, 3, False)
    text = page.content.decode()
    assert "2 entries of the log" in text
    assert "the arguments and results of 3 entries that stay" in text
    assert not AuditPolicy.unscoped.exists()
    given = dict(page.context["hidden"])
    assert owner.post(url(tenant), {**given, "is_agreed": "1"}).status_code == 302
    assert AuditPolicy.objects.for_workspace(tenant.workspace).get().keep_bodies_days == 10
    assert owner.post(url(tenant), {**values, "keep_days": "39"}).status_code == 302
    assert owner.post(url(tenant), {**values, "keep_days": "18"}).context["goes"].entries == 3


@pytest.mark.parametrize(("role", "status"), [("admin", 200), ("auditor", 200), ("member", 403)])
def test_others_read_or_not_and_change_nothing(tenant: Tenant, role: str, status: int) -> None:
    """SEC-105: auditors cannot write anything."""
    client = tenant.client(role)
    assert client.get(url(tenant)).status_code == status
    assert client.post(url(tenant), VALUES).status_code == 403
    assert client.post(url(tenant, "hold/"), {"reason": "x"}).status_code == 403
    email = tenant.member.email
    assert client.post(url(tenant, "erase/"), {"email": email, "reason": "x"}).status_code == 403
    assert not AuditPolicy.unscoped.exists()
    assert not LegalHold.unscoped.exists()


def test_holds_and_erasure_on_the_page(tenant: Tenant) -> None:
    """Ours: the whole way, with what goes wrong in plain words."""
    entry = note(tenant)
    owner = tenant.client("owner")
    assert owner.post(url(tenant, "hold/"), {"reason": "Matter 7"}).status_code == 302
    again = owner.post(url(tenant, "hold/"), {"reason": "Matter 8"}, follow=True)
    assert "There is a legal hold already." in again.content.decode()
    wanted = {"email": tenant.member.email.upper(), "reason": "Request 12"}
    assert (
        "is in place, so nothing may be erased"
        in owner.post(url(tenant, "erase/"), wanted).content.decode()
    )
    hold = LegalHold.unscoped.get()
    assert owner.post(url(tenant, f"hold/{hold.pk}/release/")).status_code == 302
    other = make_tenant("other")
    note(other)
    for email in ("nobody@example.org", other.member.email):
        nobody = owner.post(url(tenant, "erase/"), {**wanted, "email": email})
        assert "by a person with this address" in nobody.content.decode()
    assert owner.post(url(tenant, "erase/"), wanted).status_code == 302
    row = AuditEntry.objects.for_workspace(tenant.workspace).get(pk=entry.pk)
    assert row.result_preview == ""


def test_the_page_needs_no_queue_for_a_long_erasure(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REL-1391: what is left is on record, so nothing is lost with Redis."""
    note(tenant)

    def refuse(*_: Any, **__: Any) -> None:
        raise ConnectionError

    monkeypatch.setattr(app, "send_task", refuse)
    monkeypatch.setattr("celery.app.task.Task.apply_async", refuse)
    monkeypatch.setattr(erasing, "_erase_some", lambda _pending: 0)
    wanted = {"email": tenant.member.email, "reason": "Request 12"}
    answer = tenant.client("owner").post(url(tenant, "erase/"), wanted, follow=True)
    assert "The rest follows in the background." in answer.content.decode()
    assert PendingErasure.unscoped.exists()
