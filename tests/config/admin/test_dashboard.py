"""The admin's overview: numbers with links, first steps in an empty workspace, and only what one may open."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote_plus
from zoneinfo import ZoneInfo

import pytest
from django.contrib import admin
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from uuid_utils.compat import uuid7

from audit.actions import Action, Outcome, RefusedBy
from audit.models import AuditEntry
from audit.services import EntryDraft, record
from chat.models import ModelProvider
from chat.models.spending import MonthlySpending
from config.admin import dashboard
from mcp_servers.pages.admin.common import OfServerAdmin
from tests.factories import Tenant, make_tenant
from tests.mcp_servers.factories import http_server
from workspaces.models import Invitation, Membership, User
from workspaces.pages.model_admin import MadeElsewhere
from workspaces.templatetags.people import breaking_addresses

pytestmark = pytest.mark.django_db
MOST_STATEMENTS = 28
"""Of the page's own numbers, whatever a workspace holds."""


def tiles(tenant: Tenant, role: str = "admin") -> dict[str, dashboard.Tile]:
    found = dashboard.read(tenant.workspace, tenant.actor(role))
    return {tile.label: tile for tile in found.tiles}


def test_an_empty_workspace_shows_what_to_do_first() -> None:
    """REL-394: each step leads to its page, and the list goes once all are done."""
    tenant = make_tenant("new")
    steps = dashboard.read(tenant.workspace, tenant.actor("owner")).steps
    assert [step.is_done for step in steps][:3] == [False, False, False]
    page = tenant.client("owner").get("/admin/").content.decode()
    for step in steps:
        assert step.is_done or f'href="{step.url}"' in page
        assert tenant.client("owner").get(step.url).status_code == 200
    ModelProvider.objects.create(
        workspace=tenant.workspace, name="p", base_url="https://models.example.org"
    )
    assert dashboard.read(tenant.workspace, tenant.actor("owner")).steps[0].is_done


def test_an_empty_workspace_has_no_wall_of_zeros() -> None:
    """REL-394: the first steps stand in place of the numbers until one of them is done."""
    tenant = make_tenant("new")
    owner = tenant.actor("owner")
    Membership.objects.for_workspace(tenant.workspace).exclude(user=tenant.owner).delete()
    assert dashboard.read(tenant.workspace, owner).done == 0
    assert dashboard.read(tenant.workspace, owner).tiles == ()
    ModelProvider.objects.create(
        workspace=tenant.workspace, name="p", base_url="https://models.example.org"
    )
    assert dashboard.read(tenant.workspace, owner).tiles


def test_every_number_leads_to_its_page(tenant: Tenant) -> None:
    """REL-394: and is that workspace's own."""
    http_server(tenant, "https://tools.example.org/mcp")
    other = make_tenant("other")
    http_server(other, "https://other.example.org/mcp")
    for outcome in (Outcome.OK, Outcome.TOOL_ERROR):
        record(
            EntryDraft(
                action=Action.TOOL_CALL_FINISHED,
                actor=tenant.actor(),
                workspace_id=tenant.workspace.pk,
                call_id=uuid7(),
                outcome=outcome,
            )
        )
    shown = tiles(tenant)
    assert shown["Servers"].value == "1"
    assert shown["Tool calls today"].value == "2"
    assert shown["Failed today"].value == "1"
    assert shown["Failed today"].is_bad
    assert shown["Refused today"].value == "0"
    assert tiles(other)["Tool calls today"].value == "0"
    client = tenant.client()
    for tile in shown.values():
        page = client.get(tile.url)
        assert page.status_code == 200, tile.label
        assert not page.context.get("filter_text_errors"), tile.label


def test_an_address_on_a_tile_breaks_where_people_pause(tenant: Tenant) -> None:
    """REL-3195: a tile is narrower than most addresses. Numbers stay whole."""
    month = int(timezone.now().strftime("%Y%m"))
    for person in (None, tenant.member):
        MonthlySpending.objects.create(
            workspace=tenant.workspace,
            month=month,
            subject=person.pk if person else tenant.workspace.pk,
            person=person,
            tokens=1_000,
        )
    page = tenant.client().get("/admin/").content.decode()
    name, host = tenant.member.email.split("@")
    assert f"most by {name}@<wbr>{host.replace('.', '<wbr>.')}<" in page
    assert breaking_addresses("12.50 by <b>") == "12.50 by &lt;b&gt;"


def test_a_number_counts_what_its_page_lists(tenant: Tenant) -> None:
    """REL-1269: refused calls without refused resources, calls that still wait, invitations that are open."""
    for action in (Action.TOOL_CALL_REFUSED, Action.RESOURCE_READ_REFUSED):
        draft = EntryDraft(
            action=action,
            actor=tenant.actor(),
            workspace_id=tenant.workspace.pk,
            refused_by=RefusedBy.POLICY,
        )
        record(draft)
    draft = EntryDraft(
        action=Action.APPROVAL_REQUESTED, actor=tenant.actor(), workspace_id=tenant.workspace.pk
    )
    record(draft)
    of = {"workspace": tenant.workspace, "invited_by": tenant.owner}
    until = timezone.now() + timedelta(days=1)
    for email, ended in (("new@example.org", None), ("old@example.org", timezone.now())):
        Invitation.objects.create(
            **of, email=email, token_hash=email, expires_at=until, revoked_at=ended
        )
    shown, client = tiles(tenant), tenant.client()
    listed = client.get(shown["Refused today"].url).context["overview"]
    assert shown["Refused today"].value == str(listed.entries) == "1"
    waiting = shown["Calls that wait for approval"]
    assert waiting.value == "0"
    assert client.get(waiting.url).context["waiting"] == []
    invitations = shown["Open invitations"]
    rows = client.get(invitations.url).context["invitations"]
    assert [one.email for one, _ in rows] == ["new@example.org"]
    assert invitations.value == "1"


def test_it_asks_the_same_few_statements_however_much_there_is(tenant: Tenant) -> None:
    """REL-394: counted, not listed."""
    actor = tenant.actor()
    dashboard.read(tenant.workspace, actor)
    with CaptureQueriesContext(
        connection,
    ) as few:
        dashboard.read(tenant.workspace, actor)
    for number in range(20):
        http_server(tenant, f"https://tools-{number}.example.org/mcp", name=f"server-{number}")
        Invitation.objects.create(
            workspace=tenant.workspace,
            email=f"p{number}@example.org",
            role="member",
            token_hash=f"{number:064}",
            expires_at=timezone.now() + timedelta(days=1),
            invited_by=tenant.people["admin"],
        )
    with CaptureQueriesContext(connection) as many:
        dashboard.read(tenant.workspace, actor)
    assert len(many) == len(few) <= MOST_STATEMENTS


def test_pages_stand_under_what_people_do(tenant: Tenant) -> None:
    """REL-394, REL-2467: and nothing of the platform for those who do not own it."""
    page = tenant.client("admin").get("/admin/").content.decode()
    headings = re.findall(r"<h3>([^<]+)</h3>\s*<ul>", page)
    assert headings == ["People", "Buds and models", "Tools", "Rules", "Log"]
    assert "People, all fields" in page
    assert "Memberships" not in page


def test_an_owner_of_the_platform_has_its_pages(tenant: Tenant) -> None:
    owner = tenant.people["owner"]
    User.objects.filter(pk=owner.pk).update(is_superuser=True)
    page = tenant.client("owner").get("/admin/").content.decode()
    assert "Audit of the platform" in page
    assert "/admin/workspaces/workspace/" in page


def test_an_owner_without_a_workspace_is_led_to_making_one(client: Client) -> None:
    """REL-2252: After `createsuperuser` the first page leads to a new workspace, and its maker owns it. The admin lists the platform's pages."""
    client.force_login(User.objects.create_superuser(email="first@trellis.example", password=None))
    page = client.get("/").content.decode()
    assert "has to invite" not in page
    assert 'href="/admin/workspaces/workspace/add/"' in page
    admin = client.get("/admin/").content.decode()
    for path in ("/platform/state/", "/platform/providers/", "/platform/audit/"):
        assert f'href="{path}"' in admin
        assert client.get(path).status_code == 200
    made = client.post(
        "/admin/workspaces/workspace/add/", {"name": "Garden", "slug": "garden", "is_active": "on"}
    )
    assert made.status_code == 302
    assert client.get("/w/garden/people/invite/").status_code == 200
    assert client.get("/w/garden/").status_code == 200  # the chat, which is for members
    again = {"name": "Meadow", "slug": "meadow", "is_active": "on"}
    assert client.post("/admin/workspaces/workspace/add/", again).status_code == 302
    assert [one.workspace.slug for one in Membership.objects.across_workspaces()] == ["garden"]


@pytest.mark.parametrize(
    ("time_zone", "begins"),
    [
        ("UTC", "2026-11-26T00:00:00+00:00"),
        ("America/New_York", "2026-11-25T05:00:00+00:00"),
        ("Asia/Kolkata", "2026-11-25T18:00:00+00:00"),
    ],
)
def test_today_begins_where_the_person_is(
    tenant: Tenant, time_machine: Any, time_zone: str, begins: str
) -> None:
    """REL-857: at the whole hour of UTC by which the log is counted, so number and link agree."""
    time_machine.move_to(datetime(2026, 11, 26, 1, 5, tzinfo=UTC))
    with timezone.override(ZoneInfo(time_zone)):
        url = tiles(tenant)["Tool calls today"].url
    assert f"since={quote_plus(begins)}" in url


def test_last_week_is_told_up_to_the_hour_that_was_counted(
    tenant: Tenant, time_machine: Any
) -> None:
    """REL-1269: hours are counted whole, so at five past one it is what there was until two."""
    for day, hour, minute in ((19, 1, 50), (19, 2, 10), (26, 1, 1)):
        time_machine.move_to(datetime(2026, 11, day, hour, minute, tzinfo=UTC))
        draft = EntryDraft(
            action=Action.TOOL_CALL_FINISHED,
            actor=tenant.actor(),
            workspace_id=tenant.workspace.pk,
            outcome=Outcome.OK,
        )
        record(draft)
    time_machine.move_to(datetime(2026, 11, 26, 1, 5, tzinfo=UTC))
    note = tiles(tenant)["Tool calls today"].note
    assert note == "1 a week ago, up to this hour"


def test_a_page_asks_once_whether_its_person_is_an_admin(tenant: Tenant) -> None:
    """Ours: Django, the theme and the header each want to know."""
    client = tenant.client("admin")
    with CaptureQueriesContext(connection) as asked:
        assert client.get("/admin/").status_code == 200
    start = 'SELECT "workspaces_membership"."id" AS "id" FROM "workspaces_membership"'
    # With row-level security, how far the page reaches goes ahead of it in the same message.
    assert sum(query["sql"].rpartition("; ")[2].startswith(start) for query in asked) == 1


def test_a_list_that_nobody_adds_to_says_what_fills_it() -> None:
    """REL-2634: for each list of the admin but the log's own, which is never empty."""
    elsewhere = (MadeElsewhere, OfServerAdmin)
    silent = [
        type(shown).__name__
        for model, shown in admin.site._registry.items()
        if isinstance(shown, elsewhere) and not shown.where_from and model is not AuditEntry
    ]
    assert silent == []
