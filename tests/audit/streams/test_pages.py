"""The pages of streams and alerts: who sees, who changes, what is never shown."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone
from django.utils.dateparse import parse_datetime
from django.utils.html import strip_tags

from audit.models import AlertRule, AuditEntry, AuditStream, StreamState
from tests.factories import Tenant, signed_in
from workspaces.models import Installation, User
from workspaces.restore_detection import note_restore
from workspaces.words.formats import moment

pytestmark = pytest.mark.django_db
STREAMS = "/w/a/audit/streams/"
ALERTS = "/w/a/audit/alerts/"
STREAM = {"name": "sink", "target": "https://sink.example.org/", "start": "now"}
RULE = {
    "name": "slow",
    "condition": "timeout",
    "threshold": "5",
    "window_minutes": "15",
    "least_calls": "10",
    "remind_hours": "24",
}


@pytest.mark.parametrize("url", [STREAMS, ALERTS])
def test_who_sees_the_log_sees_the_page_and_owners_change_it(tenant: Tenant, url: str) -> None:
    """SEC-105: an auditor reads, and finds nothing to press."""
    for role, can_see, can_change in [
        ("owner", True, True),
        ("admin", True, False),
        ("auditor", True, False),
        ("member", False, False),
    ]:
        answer = tenant.client(role).get(url)
        assert answer.status_code == (200 if can_see else 403), role
        assert (f'action="{url}add/' in answer.content.decode()) == can_change, role


def test_a_stream_from_the_first_form_to_its_end(tenant: Tenant) -> None:
    """SEC-93: the secret is shown once, headers never."""
    client = tenant.client("owner")
    made = client.post(f"{STREAMS}add/webhook/", {**STREAM, "headers": "X-Key: canary-key"})
    assert made.status_code == 200
    assert "whsec_" in made.content.decode()
    stream = AuditStream.objects.for_workspace(tenant.workspace).get()
    page = client.get(STREAMS).content.decode()
    assert "sink.example.org" in page
    assert "whsec_" not in page
    settings = client.get(f"{STREAMS}{stream.pk}/").content.decode()
    assert "canary-key" not in settings
    edited = {"name": "other", "target": STREAM["target"], "headers": ""}
    assert client.post(f"{STREAMS}{stream.pk}/", edited).status_code == 302
    stream.refresh_from_db()
    assert stream.name == "other"
    assert stream.headers is not None
    assert stream.headers.reveal_json("a test") == {"X-Key": "canary-key"}
    for verb in ("pause", "resume", "from-now", "from-beginning"):
        assert client.post(f"{STREAMS}{stream.pk}/{verb}/").status_code == 302
    assert "whsec_" in client.post(f"{STREAMS}{stream.pk}/secret/").content.decode()
    assert client.get(f"{STREAMS}{stream.pk}/secret/").headers["Location"] == STREAMS
    assert client.post(f"{STREAMS}{stream.pk}/nonsense/").status_code == 404
    assert client.get(STREAMS, headers={"HX-Request": "true"}).content.decode().count("<html") == 0
    assert client.post(f"{STREAMS}{stream.pk}/delete/").status_code == 302
    assert not AuditStream.objects.for_workspace(tenant.workspace).exists()
    changes = AuditEntry.objects.for_workspace(tenant.workspace).filter(action="config.changed")
    assert changes.count() == 8


def test_who_has_mended_a_sink_need_not_wait(tenant: Tenant) -> None:
    """REL-2004: the page says what failed and when it goes on, and offers to try now; REST does, too."""
    client = tenant.client("owner")
    client.post(f"{STREAMS}add/webhook/", STREAM)
    stream = AuditStream.objects.for_workspace(tenant.workspace).get()
    assert "/retry/" not in client.get(STREAMS).content.decode()
    failing = StreamState.objects.filter(stream=stream)
    later = timezone.now() + timedelta(minutes=14)
    for address in (f"{STREAMS}{stream.pk}/retry/", f"/api/audit-streams/{stream.pk}/retry/"):
        failing.update(failures=9, last_error="It could not be reached.", next_attempt_at=later)
        page = client.get(STREAMS).content.decode()
        for shown in ("It could not be reached.", "Next attempt 13", f"{stream.pk}/retry/"):
            assert shown in page
        assert "/retry/" not in tenant.client("auditor").get(STREAMS).content.decode()
        shown_by_rest = client.get(f"/api/audit-streams/{stream.pk}/").json()
        assert shown_by_rest["next_attempt_at"] is not None
        assert tenant.client("admin").post(address).status_code == 403
        assert client.post(address).status_code in (200, 302)
        assert failing.get().next_attempt_at <= timezone.now()  # type: ignore[operator]
        assert "/retry/" not in client.get(STREAMS).content.decode()


def test_the_page_says_since_when_a_stream_fails(tenant: Tenant) -> None:
    """REL-2092: the page, REST and the overview; of one that sends again, when it failed last."""
    client = tenant.client("owner")
    client.post(f"{STREAMS}add/webhook/", STREAM)
    stream = AuditStream.objects.for_workspace(tenant.workspace).get()
    failing = StreamState.objects.filter(stream=stream)
    now = timezone.now()
    since, last = now - timedelta(hours=26), now - timedelta(minutes=7)
    page = client.get(STREAMS).content.decode()
    assert "last failure" not in page
    assert "fail" not in page
    failing.update(failures=9, last_error="No.", failing_since=since, last_failed_at=last)
    page = client.get(STREAMS).content.decode()
    text = re.sub(r"\s+", " ", strip_tags(page))
    assert (
        f"No. 9 attempts in a row have failed since {moment(since)} (1 day, 2 hours), the last on {moment(last)}."
        in text
    )
    shown = client.get(f"/api/audit-streams/{stream.pk}/").json()
    assert parse_datetime(shown["failing_since"]) == since
    assert parse_datetime(shown["last_failed_at"]) == last
    overview = client.get("/w/a/audit/overview/").content.decode()
    assert "The stream “sink” cannot send. It has failed for 1\xa0day, 2\xa0hours." in overview
    failing.update(failures=1, failing_since=last)
    text = re.sub(r"\s+", " ", strip_tags(client.get(STREAMS).content.decode()))
    assert f"No. It failed on {moment(last)}." in text
    failing.update(failures=0, last_error="", failing_since=None)
    page = client.get(STREAMS).content.decode()
    assert "last failure 7\xa0minutes ago" in page
    assert client.get(f"/api/audit-streams/{stream.pk}/").json()["failing_since"] is None


def test_pages_say_that_nothing_is_sent_after_a_restore(tenant: Tenant, superuser: User) -> None:
    """REL-2007: streams were called sending, and offered to try now, while all of them wait for the owner's word."""
    client = tenant.client("owner")
    client.post(f"{STREAMS}add/webhook/", STREAM)
    Installation.objects.get_or_create()
    held = "restored from a backup"
    pages = [f"/w/a/audit/{name}" for name in ("streams/", "alerts/", "overview/")]
    for page in pages:
        assert held not in client.get(page).content.decode()
    note_restore()
    later = timezone.now() + timedelta(minutes=14)
    StreamState.objects.update(failures=1, next_attempt_at=later)
    for page in pages:
        html = client.get(page).content.decode()
        assert held in html
        assert "streams send" not in html
    rows = client.get(STREAMS, headers={"HX-Request": "true"}).content.decode()
    assert "/retry/" not in rows
    assert "Next attempt" not in rows
    client.force_login(superuser)
    html = client.get("/platform/audit/streams/").content.decode()
    assert held in html
    assert 'href="/platform/state/' in html


@pytest.mark.parametrize("address", ["alerts/add/", "streams/add/webhook/"])
def test_the_address_of_a_form_leads_to_its_page(tenant: Tenant, address: str) -> None:
    """REL-1782: after a refused save it stands in the browser, and who opens it again was told of forms."""
    page = f"/w/{tenant.workspace.slug}/audit/{address}"
    client = tenant.client("owner")
    assert client.post(page, {"name": ""}).status_code == 422
    assert client.get(page).headers["Location"] == f"{page.split('add/', maxsplit=1)[0]}"
    assert client.head(page).status_code == 302
    assert tenant.client("member").get(page).status_code == 403


@pytest.mark.parametrize(
    ("kind", "wrong"),
    [
        ("webhook", {"target": "javascript:alert(1)"}),
        ("webhook", {"headers": "no colon"}),
        ("webhook", {"headers": "Host: x"}),
        ("webhook", {"name": ""}),
        ("webhook", {"start": "yesterday"}),
        ("otlp", {"target": "http://user@host/"}),
        ("syslog", {"target": "https://host/"}),
        ("syslog", {"target": "host:6514", "ca_certificates": "x"}),
        ("syslog", {"target": "host:6514", "ca_certificates": "für"}),
        ("syslog", {"target": "host:6514", "client_certificate": "x", "client_key": "\x00"}),
    ],
)
def test_what_cannot_be_used_is_said_at_its_field(
    tenant: Tenant, kind: str, wrong: dict[str, str]
) -> None:
    answer = tenant.client("owner").post(f"{STREAMS}add/{kind}/", {**STREAM, **wrong})
    assert answer.status_code == 422
    assert "errorlist" in answer.content.decode()
    assert not AuditStream.objects.for_workspace(tenant.workspace).exists()


def test_all_faults_of_a_stream_are_told_at_once(tenant: Tenant) -> None:
    """REL-947: whatever is wrong with each field; also where an edit leads to another host."""
    client = tenant.client("owner")

    def faults(answer: Any) -> set[str]:
        assert answer.status_code == 422
        shown = answer.context.get("form")
        forms = [one["form"] for one in answer.context.get("forms", [])] or [shown]
        return {name for form in forms for name in form.errors}

    wrong = {"name": "", "target": "nonsense", "headers": "no colon", "start": "yesterday"}
    assert faults(client.post(f"{STREAMS}add/webhook/", wrong)) == set(wrong)
    wrong = {
        "name": "",
        "target": "https://host/",
        "ca_certificates": "x",
        "client_certificate": "x",
    }
    assert faults(client.post(f"{STREAMS}add/syslog/", {**wrong, "start": "now"})) == set(wrong)
    client.post(f"{STREAMS}add/webhook/", {**STREAM, "headers": "X-Key: secret"})
    stream = AuditStream.objects.for_workspace(tenant.workspace).get()
    moved = {"name": "", "target": "https://elsewhere.example.org/", "headers": ""}
    assert faults(client.post(f"{STREAMS}{stream.pk}/", moved)) == {"name", "headers"}
    stream.refresh_from_db()
    assert stream.target == STREAM["target"]


def test_kinds_that_do_not_exist_are_not_found(tenant: Tenant) -> None:
    assert tenant.client("owner").post(f"{STREAMS}add/pigeon/", STREAM).status_code == 404


def test_a_rule_from_the_first_form_to_its_end(tenant: Tenant) -> None:
    client = tenant.client("owner")
    assert client.post(f"{ALERTS}recommended/").status_code == 302
    many = AlertRule.objects.for_workspace(tenant.workspace).count()
    assert client.post(f"{ALERTS}add/", RULE).status_code == 302
    rule = AlertRule.objects.for_workspace(tenant.workspace).get(name="slow")
    hooked: dict[str, Any] = {
        **RULE,
        "webhook_url": "https://hook.example.org/",
        "emails": "a@b.org",
    }
    assert "whsec_" in client.post(f"{ALERTS}{rule.pk}/", hooked).content.decode()
    assert "whsec_" not in client.get(f"{ALERTS}{rule.pk}/").content.decode()
    assert client.post(f"{ALERTS}{rule.pk}/", hooked).status_code == 302
    for verb in ("off", "on"):
        assert client.post(f"{ALERTS}{rule.pk}/{verb}/").status_code == 302
    assert "slow" in client.get(ALERTS).content.decode()
    assert client.post(f"{ALERTS}{rule.pk}/delete/").status_code == 302
    assert AlertRule.objects.for_workspace(tenant.workspace).count() == many
    for field, value in [("threshold", "0"), ("emails", "no address"), ("webhook_url", "x")]:
        assert client.post(f"{ALERTS}add/", {**RULE, field: value}).status_code == 422


def test_the_platforms_streams_are_its_owners(tenant: Tenant, superuser: User) -> None:
    """SEC-01: an owner of a workspace does not find them."""
    url = "/platform/audit/streams/"
    assert tenant.client("owner").get(url).status_code == 404
    client = signed_in(superuser)
    assert client.get(url).status_code == 200
    assert "whsec_" in client.post(f"{url}add/webhook/", STREAM).content.decode()
    stream = AuditStream.objects.across_workspaces().get()
    assert stream.workspace_id is None
    assert tenant.client("owner").post(f"{STREAMS}{stream.pk}/pause/").status_code == 404
    assert client.post(f"{url}{stream.pk}/delete/").status_code == 302
