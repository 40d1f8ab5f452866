"""The log for programs."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from audit.actions import Action, Outcome
from audit.models import AuditEntry
from tests.audit.views.log_pages import SECRET_ARGUMENT, a_call, a_refusal, opened
from tests.factories import Tenant, TwoTenants
from tests.mcp_servers.factories import http_server
from workspaces.people.tokens import issue_token

pytestmark = pytest.mark.django_db
URL = "/api/audit-entries/"


def test_entries_are_listed_without_bodies_and_filtered(tenant: Tenant) -> None:
    """SEC-93."""
    a_call(tenant)
    a_call(tenant, outcome=Outcome.TIMEOUT)
    a_refusal(tenant)
    client = tenant.client("auditor")
    listed = client.get(URL)
    assert SECRET_ARGUMENT.encode() not in listed.content
    assert {row["action"] for row in listed.json()["results"]} >= {"tool_call.requested"}
    found = client.get(URL, {"outcome": "timeout"}).json()["results"]
    assert [row["outcome"] for row in found] == ["timeout"]
    assert client.get(URL, {"outcome": "perfect"}).status_code == 400


@pytest.mark.parametrize(
    ("query", "count"),
    [
        ({"rule": "deny"}, 1),
        ({"rule": "de*"}, 1),
        ({"tool": "delete*"}, 1),
        ({"tool": "delete"}, 0),
        ({"server": "not*"}, 1),
        ({"rule": "den"}, 0),
        ({"kind": "system"}, 0),
        ({"label": "*"}, 1),
        ({"duration_min": 1}, 0),
        ({"ip": "192.0.2.1"}, 0),
    ],
)
def test_the_filters_of_the_page_narrow_the_list(
    tenant: Tenant, query: dict[str, str], count: int
) -> None:
    """REL-1671: under the same names."""
    a_refusal(tenant)
    wanted = {"tool": "delete_everything", **query}
    assert len(tenant.client("auditor").get(URL, wanted).json()["results"]) == count


@pytest.mark.parametrize(
    "query", [{"ip": "nowhere"}, {"kind": "ghost"}, {"duration_min": 2**63}, {"turn": "x"}]
)
def test_a_filter_that_does_not_fit_is_told(tenant: Tenant, query: dict[str, str]) -> None:
    """SEC-05."""
    assert tenant.client("auditor").get(URL, query).status_code == 400


def test_one_entry_shows_bodies_to_auditors_only(tenant: Tenant) -> None:
    """SEC-105."""
    entry = a_call(tenant)
    seen = tenant.client("admin").get(f"{URL}{entry.pk}/").json()
    assert seen["arguments_preview"] is None
    assert opened(tenant) == 0
    seen = tenant.client("auditor").get(f"{URL}{entry.pk}/").json()
    assert SECRET_ARGUMENT in seen["arguments_preview"]
    assert opened(tenant) == 1


def test_members_and_other_tenants_see_nothing(two_workspaces: TwoTenants) -> None:
    """SEC-01, SEC-07."""
    entry = a_call(two_workspaces.b)
    assert two_workspaces.a.client("member").get(URL).status_code == 403
    auditor = two_workspaces.a.client("auditor")
    assert auditor.get(f"{URL}{entry.pk}/").status_code == 404
    assert two_workspaces.b.workspace.slug.encode() not in auditor.get(URL).content


@pytest.mark.parametrize("method", ["post", "put", "patch", "delete"])
def test_the_log_cannot_be_changed(tenant: Tenant, method: str) -> None:
    """SEC-100, SEC-105: no method changes it, not for the owner either."""
    entry = a_call(tenant)
    before = list(AuditEntry.objects.for_workspace(tenant.workspace).values())
    client = tenant.client("owner")
    for url in (URL, f"{URL}{entry.pk}/"):
        assert getattr(client, method)(url, {}, content_type="application/json").status_code == 405
    after = AuditEntry.objects.for_workspace(tenant.workspace).exclude(
        action=Action.AUTH_SIGNED_IN.value
    )
    assert list(after.values()) == before


def test_a_token_needs_the_scope_and_its_owner_the_right(tenant: Tenant) -> None:
    """SEC-18: a scope never gives more than the person has."""

    def client(role: str, scope: str) -> Client:
        _, plain = issue_token(
            workspace=tenant.workspace,
            user=tenant.people[role],
            name="script",
            scopes=[scope],
            expires_at=timezone.now() + timedelta(days=1),
            actor=tenant.actor(role),
        )
        return Client(headers={"Authorization": f"Bearer {plain}"})

    assert client("auditor", "audit:read").get(URL).status_code == 200
    assert client("auditor", "chat").get(URL).status_code == 403
    assert client("member", "audit:read").get(URL).status_code == 403


MOMENTS = (
    "2026-01-01T00:00:00%2B20:02",
    "0001-01-01T00:00:00%2B10:00",
    "9999-12-31T23:59:59-10:00",
    "2026-13-01T00:00:00Z",
    "yesterday",
)


@pytest.mark.parametrize("moment", MOMENTS)
def test_no_moment_in_an_address_is_a_fault_of_ours(tenant: Tenant, moment: str) -> None:
    """SEC-76: offsets that databases refuse, years at their ends, and what is no moment: read as UTC, or refused."""
    client = tenant.client("owner", raise_request_exception=False)
    slug = tenant.workspace.slug
    page = reverse("audit:entries", args=[slug])
    server = http_server(tenant, "https://moments.example.org/mcp")
    trace = reverse("mcp_servers:trace_news", args=[slug, server.pk])
    for url in (URL, page, trace):
        for name in ("since", "until"):
            query = (
                f"{url}?{name}={moment}&range=custom" if url == page else f"{url}?{name}={moment}"
            )
            assert client.get(query).status_code in {200, 400, 422}, query
