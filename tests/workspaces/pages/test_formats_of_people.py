"""Time zone and formats are settings of the person: every page of theirs follows them."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from html import unescape
from typing import Any

import pytest
from django.core import mail
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from audit.models import AuditEntry
from tests.factories import PASSWORD, Tenant
from workspaces.models import Membership
from workspaces.people.profiles import change_profile
from workspaces.people.tokens import issue_token
from workspaces.words.formats import Formats

pytestmark = pytest.mark.django_db

PAGE = "/account/formats/"
CHOICE = {
    "time_zone": "Asia/Tokyo",
    "date_format": "DD/MM/YYYY",
    "clock": "12",
    "number_format": "1.234,5",
}


def carried(client: Client, path: str) -> Any:
    """What the page tells the browser of the choice."""
    found = re.search(r'<html[^>]* data-formats="([^"]*)"', client.get(path).content.decode())
    return json.loads(unescape(found[1])) if found else None


def profile(client: Client, tenant: Tenant, **body: Any) -> Any:
    headers = {"X-Workspace": tenant.workspace.slug}
    return client.post(
        "/api/profile/", json.dumps(body), content_type="application/json", headers=headers
    )


def test_every_page_carries_the_choice(tenant: Tenant) -> None:
    """REL-851: chat, pages and settings, wherever the person signs in; nothing, where nothing was chosen."""
    slug = tenant.workspace.slug
    pages = (f"/w/{slug}/", f"/w/{slug}/servers/", f"/w/{slug}/audit/", PAGE)
    client = tenant.client("admin")
    for path in pages:
        assert carried(client, path) is None
    assert client.post(PAGE, CHOICE).status_code == 302
    for path in pages:
        assert carried(tenant.client("admin"), path) == CHOICE
    assert carried(tenant.client("member"), PAGE) is None
    assert client.post(PAGE, {"clock": "24"}).status_code == 302
    assert carried(client, PAGE) == {"clock": "24"}


def test_the_page_shows_how_it_looks(tenant: Tenant) -> None:
    """REL-851: what is chosen is marked, and an example stands below it."""
    client = tenant.client("member")
    client.post(PAGE, {**CHOICE, "time_zone": "Europe/Zurich"})
    page = client.get(PAGE).content.decode()
    assert '<option value="Europe/Zurich" selected>Zurich</option>' in page
    assert re.search(r'value="DD/MM/YYYY"[^>]* checked', page)
    assert re.search(r"\d\d/\d\d/\d{4}, \d+:\d\d [AP]M · 1\.234,5", page)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("time_zone", "Middle/Earth"),
        ("date_format", "YY"),
        ("clock", "13"),
        ("number_format", "1'234.5"),
    ],
)
def test_an_unknown_choice_is_told_at_its_field(tenant: Tenant, field: str, value: str) -> None:
    """REL-852: on the page and over REST, and what was chosen stays."""
    client = tenant.client("member")
    client.post(PAGE, CHOICE)
    refused = client.post(PAGE, {**CHOICE, field: value})
    assert refused.status_code == 422
    assert "Select a valid choice." in refused.content.decode()
    answer = profile(client, tenant, **{"name": "Ada", field: value})
    assert answer.status_code in {400, 422}
    assert [one["attr"] for one in answer.json()["errors"]] == [field]
    tenant.member.refresh_from_db()
    assert Formats.of(tenant.member).chosen == CHOICE
    assert tenant.member.name != "Ada"


def test_programs_read_and_change_the_choice(tenant: Tenant) -> None:
    """REL-852: what is left out stays, "" goes back to the browser's, and a time zone may be in any letters."""
    client = tenant.client("member")
    body = profile(client, tenant, **{**CHOICE, "time_zone": "asia/tokyo"}).json()
    assert {name: body[name] for name in CHOICE} == CHOICE
    body = profile(client, tenant, clock="").json()
    assert {name: body[name] for name in CHOICE} == {**CHOICE, "clock": ""}
    tenant.owner.refresh_from_db()
    assert Formats.of(tenant.owner).chosen == {}


def test_pages_are_written_in_the_persons_time_zone(tenant: Tenant) -> None:
    """REL-853: before any script runs, and for nobody else."""
    change_profile(user=tenant.admin, **CHOICE)
    slug = tenant.workspace.slug
    client = tenant.sign_in("admin")
    entry = AuditEntry.objects.for_workspace(tenant.workspace).latest("created_at")
    with_choice = client.get(f"/w/{slug}/audit/").content.decode()
    without = tenant.client("owner").get(f"/w/{slug}/audit/").content.decode()
    at = entry.created_at.isoformat()
    assert re.search(
        rf'{re.escape(at)}" data-local="second">\d\d/\d\d/\d{{4}}, [\d:]+ [AP]M<', with_choice
    )
    utc = entry.created_at.astimezone(UTC)
    assert f"{utc.day} {utc:%b %Y, %H:%M:%S}<" in without


@pytest.mark.django_db(transaction=True)
def test_a_mail_is_written_for_whoever_gets_it(tenant: Tenant, time_machine: Any) -> None:
    """REL-854: the mail about a changed password says when, by the clock of the account's person."""
    time_machine.move_to(datetime(2026, 11, 26, 14, 5, tzinfo=UTC), tick=False)
    body = {"oldpassword": PASSWORD, "password1": "another-word-42", "password2": "another-word-42"}
    change_profile(user=tenant.member, **CHOICE)
    for role in ("member", "owner"):
        tenant.client(role).post("/accounts/password/change/", body)
    texts = [message.body for message in mail.outbox]
    assert len(texts) == 2
    assert "Time: 26/11/2026, 11:05 PM (Asia/Tokyo)" in texts[0]
    assert "Time: 26 Nov 2026, 14:05 UTC" in texts[1]


def test_files_and_rest_are_for_programs(tenant: Tenant) -> None:
    """REL-855: ISO 8601 in UTC and plain numbers, whatever was chosen."""
    slug = tenant.workspace.slug

    def read(path: str, role: str = "admin") -> str:
        answer = tenant.client(role).get(path, headers={"X-Workspace": slug})
        assert answer.status_code == 200, path
        content = b"".join(answer) if answer.streaming else answer.content
        return content.decode()

    same = ("/admin/export/workspaces/membership/", "/api/members/")
    before = [read(path) for path in same]
    assert "+00:00" in before[0]
    change_profile(user=tenant.admin, **CHOICE)
    assert [read(path) for path in same] == before
    change_profile(user=tenant.auditor, **CHOICE)
    log = read(f"/w/{slug}/audit/export.csv?range=all", "auditor").splitlines()
    assert len(log) > 1
    assert all(re.search(r"\d{4}-\d\d-\d\dT[\d:.]+\+00:00", line) for line in log[1:])


def test_the_admin_writes_moments_as_the_person_chose(tenant: Tenant) -> None:
    """REL-857, REL-2442: in lists, and with the numbers of its first page; otherwise the browser writes them as it does."""
    membership = Membership.objects.for_workspace(tenant.workspace).get(user=tenant.member)
    when = datetime(2026, 11, 26, 23, 5, tzinfo=UTC)
    Membership.objects.for_workspace(tenant.workspace).filter(pk=membership.pk).update(
        created_at=when
    )
    path = "/admin/workspaces/membership/"
    assert "26 Nov 2026, 23:05" in tenant.client("admin").get(path).content.decode()
    change_profile(user=tenant.admin, **CHOICE)
    page = tenant.client("admin").get(path).content.decode()
    assert "27/11/2026, 8:05 AM" in page
    assert "26 Nov 2026" not in page
    assert 'id="page" data-formats="{' in page
    without = tenant.client("owner").get(path).content.decode()
    moment = (
        '<time datetime="2026-11-26T23:05:00+00:00" data-local="minute">26 Nov 2026, 23:05</time>'
    )
    assert moment in without
    scripts = tenant.client("admin").get("/admin/jsi18n/")
    assert scripts.status_code == 200
    assert '"DATETIME_FORMAT": "' in scripts.content.decode()


def test_moments_that_a_form_only_shows_are_written_by_the_browser(tenant: Tenant) -> None:
    """REL-2465: as those of lists are. Here each field is only read."""
    token, _plain = issue_token(
        workspace=tenant.workspace,
        user=tenant.member,
        name="script",
        scopes=["chat"],
        expires_at=timezone.now() + timedelta(days=1),
        actor=tenant.actor("member"),
    )
    path = reverse("admin:workspaces_apitoken_change", args=[token.pk])
    page = tenant.client("admin").get(path).content.decode()
    assert f'<time datetime="{token.expires_at.isoformat()}" data-local="minute">' in page


def test_no_page_asks_the_database_more_for_it(tenant: Tenant) -> None:
    """REL-853: the choice comes with the person's row."""
    paths = (f"/w/{tenant.workspace.slug}/servers/", f"/w/{tenant.workspace.slug}/audit/", PAGE)
    client = tenant.client("admin")
    for path in paths:
        client.get(path)
        with CaptureQueriesContext(connection) as without:
            client.get(path)
        change_profile(user=tenant.admin, **CHOICE)
        with CaptureQueriesContext(connection) as with_choice:
            client.get(path)
        assert len(with_choice) == len(without), path
        change_profile(user=tenant.admin, **dict.fromkeys(CHOICE, ""))
