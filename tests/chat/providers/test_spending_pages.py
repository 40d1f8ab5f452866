"""Spending limits on pages, over REST, in a workspace's file and in alerts."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from audit.alerts.conditions import measure
from audit.alerts.words import condition_of
from audit.models import AlertRule, AuditEntry
from chat.models import MemberSpendingLimit, MonthlySpending, SpendingPolicy
from chat.providers.months import current_month
from config.workspace_files import WorkspaceTarget, apply_file, write_workspace
from tests.factories import MembershipFactory, Tenant, UserFactory
from workspaces.database import database_now
from workspaces.errors import InvalidInput
from workspaces.models import User
from workspaces.yaml_text import read_yaml

pytestmark = pytest.mark.django_db


def spend(tenant: Tenant, *people: User, tokens: int = 0, cost: str = "0", zone: str = "") -> None:
    """Rows of this month, as requests leave them."""
    month = current_month(zone).key
    values = {"workspace": tenant.workspace, "month": month, "requests": 1}
    for person in people:
        MonthlySpending.objects.create(
            **values, subject=person.pk, person=person, tokens=tokens, cost=Decimal(cost)
        )
    MonthlySpending.objects.create(
        **values,
        subject=tenant.workspace.pk,
        tokens=tokens * len(people),
        cost=Decimal(cost) * len(people),
    )


def page(tenant: Tenant, path: str, role: str = "admin") -> str:
    answer = tenant.client(role).get(f"/w/{tenant.workspace.slug}/{path}")
    assert answer.status_code == 200
    return " ".join(answer.content.decode().split())


def post(client: Any, path: str, body: dict[str, Any]) -> Any:
    return client.post(path, body, content_type="application/json")


def api(tenant: Tenant, role: str = "admin") -> Any:
    return tenant.client(role, headers={"X-Workspace": tenant.workspace.slug})


def test_an_admin_sets_limits_on_a_page_and_a_member_sees_their_month(tenant: Tenant) -> None:
    """REL-1087, REL-1080: with what is left; others read nothing of it. REL-2462: browsers write the month's begin."""
    spend(tenant, tenant.member, tokens=900, cost="8.1", zone="Europe/Zurich")
    path = f"/w/{tenant.workspace.slug}/spending/"
    given = {"member_cost": "10", "warn_percent": "80", "time_zone": "Europe/Zurich"}
    assert tenant.client("admin").post(path, given).status_code == 302
    policy = SpendingPolicy.objects.for_workspace(tenant.workspace).get()
    assert (policy.member_cost, policy.cost, policy.time_zone) == (10, None, "Europe/Zurich")
    own = page(tenant, "usage/", "member")
    assert "8.10 of 10.00 US dollars · 81% used" in own
    assert "Left: 1.90" in own
    begin = r'data-local="day" data-zone="Europe/Zurich">1 \w+ \d+</time> \(Europe/Zurich\)'
    assert re.search(begin, own)
    listed = page(tenant, "spending/")
    assert "Who uses most" in listed
    assert tenant.member.display_name in listed
    assert tenant.client("member").get(path).status_code == 403
    assert tenant.client("member").post(path, given).status_code == 403
    wrong = tenant.client("admin").post(path, {**given, "time_zone": "Nowhere", "cost": "-1"})
    assert wrong.status_code == 422


def test_an_admin_gives_one_member_a_limit_of_their_own_on_a_page(tenant: Tenant) -> None:
    """REL-1087, REL-1080: another one, none, or that of all again."""
    membership = tenant.member.memberships.get()
    path = f"/w/{tenant.workspace.slug}/spending/members/{membership.pk}/"
    client = tenant.client("admin")
    rows = MemberSpendingLimit.objects.for_workspace(tenant.workspace)
    assert client.post(path, {"which": "own"}).status_code == 422
    assert client.post(path, {"which": "own", "tokens": "50"}).status_code == 302
    assert (rows.get().tokens, rows.get().cost) == (50, None)
    assert client.post(path, {"which": "none"}).status_code == 302
    assert rows.get().tokens is None
    assert client.post(path, {"which": "usual"}).status_code == 302
    assert not rows.exists()


def test_the_page_asks_the_same_for_every_number_of_members(tenant: Tenant) -> None:
    """REL-1087: nobody's month is read by itself."""
    client = tenant.client("admin")
    path = f"/w/{tenant.workspace.slug}/spending/"
    client.get(path)
    asked = []
    for count in (1, 20):
        for _ in range(count):
            MembershipFactory.create(workspace=tenant.workspace, user=UserFactory.create())
        with CaptureQueriesContext(connection) as captured:
            client.get(path)
        asked.append(len(captured))
    assert asked[0] == asked[1]


def test_limits_are_set_and_read_over_rest(tenant: Tenant) -> None:
    """REL-1087: with the same rules as on the pages."""
    spend(tenant, tenant.member, tokens=900, cost="1")
    admin, member = api(tenant), api(tenant, "member")
    body = {"tokens": 1000, "member_tokens": 1800, "time_zone": "UTC"}
    answer = post(admin, "/api/spending-limits/", body).json()
    assert answer["workspace"]["limit"] == {"cost": None, "tokens": 1000}
    assert (answer["workspace"]["percent"], answer["warn_percent"]) == (90, 80)
    assert answer["member_limit"] == {"cost": None, "tokens": 1800}
    assert admin.get("/api/spending-limits/").json() == answer
    for wrong in ({"tokens": -1}, {"cost": "x"}, {"warn_percent": 0}):
        assert post(admin, "/api/spending-limits/", wrong).status_code in {400, 422}
    assert post(admin, "/api/spending-limits/", {"time_zone": "Nowhere"}).status_code == 422
    rows = {one["email"]: one for one in admin.get("/api/member-spending/").json()["results"]}
    mine = rows[tenant.member.email]
    assert (mine["percent"], mine["has_own_limit"]) == (50, False)
    address = f"/api/member-spending/{mine['id']}/limit/"
    assert post(admin, address, {"which": "own"}).status_code in {400, 422}
    changed = post(admin, address, {"which": "own", "tokens": 900}).json()
    assert (changed["is_reached"], changed["has_own_limit"]) == (True, True)
    own = member.get("/api/usage/").json()["this_month"]
    assert (own["limit"]["tokens"], own["spent"]["tokens"], own["is_reached"]) == (900, 900, True)
    for refused in ("/api/spending-limits/", "/api/member-spending/"):
        assert member.get(refused).status_code == 403


def test_an_answer_that_is_sent_back_takes_no_limit_away(tenant: Tenant) -> None:
    """REL-2079: it says the limits in other words, and what is left out would have no limit."""
    admin = api(tenant)
    limit = post(admin, "/api/spending-limits/", {"tokens": 1000}).json()
    limit["workspace"]["limit"]["tokens"] = 2000
    refused = post(admin, "/api/spending-limits/", limit)
    assert refused.status_code == 400
    assert {one["attr"] for one in refused.json()["errors"]} >= {"workspace", "member_limit"}
    assert "There are: cost, tokens" in refused.json()["errors"][0]["detail"]
    kept = admin.get("/api/spending-limits/").json()
    assert kept["workspace"]["limit"]["tokens"] == 1000


def test_the_overview_and_the_reports_show_the_month(tenant: Tenant) -> None:
    """REL-1087: how much is used, and by whom most."""
    spend(tenant, tenant.member, tokens=900, cost="8.1")
    SpendingPolicy.objects.create(workspace=tenant.workspace, cost=10)
    overview = tenant.client("admin").get("/admin/").content.decode().replace("<wbr>", "")
    assert "Spent this month" in overview
    assert "81% of a limit used: This workspace" in overview
    assert tenant.member.email in overview
    reports = page(tenant, "audit/reports/")
    assert "8.10 of 10.00 US dollars" in reports


def test_an_alert_watches_how_much_is_used(tenant: Tenant) -> None:
    """REL-1086: in per cent, for mails and webhooks."""
    spend(tenant, tenant.member, tokens=900)
    rule = AlertRule(workspace=tenant.workspace, condition="spending", threshold=80)
    assert measure(rule, database_now()) == 0
    SpendingPolicy.objects.create(workspace=tenant.workspace, tokens=1000)
    assert measure(rule, database_now()) == 90
    assert condition_of(rule) == "At least 80% of a monthly spending limit used"


def test_a_workspaces_file_has_its_limits(tenant: Tenant) -> None:
    """REL-1087: a second time it changes nothing, and people who are no members are a fault."""
    place = WorkspaceTarget(tenant.workspace, tenant.actor("owner"))
    document = {
        "spending": {
            "workspace": {"cost": 100},
            "member": {"tokens": 5000},
            "warn_percent": 70,
            "time_zone": "Europe/Zurich",
            "members": {tenant.member.email: {"cost": 2.5}, tenant.auditor.email: {}},
        }
    }
    apply_file(place, document)
    written: Any = read_yaml(write_workspace(place))
    assert written["spending"] == document["spending"]
    entries = AuditEntry.objects.for_workspace(tenant.workspace).count()
    assert apply_file(place, written).diff == ""
    assert AuditEntry.objects.for_workspace(tenant.workspace).count() == entries
    apply_file(place, {"spending": {"members": {tenant.member.email: None}}})
    rows = MemberSpendingLimit.objects.for_workspace(tenant.workspace)
    assert [row.person for row in rows] == [tenant.auditor]
    with pytest.raises(InvalidInput) as wrong:
        apply_file(place, {"spending": {"members": {"x@example.org": {"cost": 1}}}})
    assert list(wrong.value.fields) == ["spending.members.x@example.org"]
