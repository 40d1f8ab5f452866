"""From one workspace to another: no menu ends without a way to the rest."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from django.db import OperationalError, connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from tests.factories import Tenant, make_tenant
from tests.paging import rows_of_all_pages
from workspaces import context
from workspaces.actors import Role
from workspaces.models import Membership, Workspace
from workspaces.workspace_choices import MOST_IN_MENU

pytestmark = pytest.mark.django_db
ALL = "/account/workspaces/"


def join_many(tenant: Tenant, who: str, number: int, role: Role = Role.MEMBER) -> list[Workspace]:
    """Workspaces that come before the person's own by name."""
    made = Workspace.objects.bulk_create(
        Workspace(name=f"A {place:03}", slug=f"a-{place:03}") for place in range(number)
    )
    Membership.objects.bulk_create(
        Membership(workspace=one, user=tenant.people[who], role=role.value) for one in made
    )
    return made


def boot_of(client: Client, tenant: Tenant) -> Any:
    """What the chat's page knows at its start."""
    page = client.get(f"/w/{tenant.workspace.slug}/").content.decode()
    found = re.search(r'<script id="boot"[^>]*>(.*?)</script>', page, re.DOTALL)
    assert found is not None
    return json.loads(found[1])


def test_a_menu_that_does_not_hold_all_workspaces_leads_to_the_page_of_all(tenant: Tenant) -> None:
    """REL-910: in the chat and on pages; the workspace one is in is always in the menu."""
    client = tenant.client("member")
    assert boot_of(client, tenant)["urls"]["workspaces"] is None
    join_many(tenant, "member", MOST_IN_MENU)
    boot = boot_of(client, tenant)
    assert boot["urls"]["workspaces"] == ALL
    assert [one["slug"] for one in boot["workspaces"]][:2] == [tenant.workspace.slug, "a-000"]
    assert len(boot["workspaces"]) == MOST_IN_MENU
    page = client.get(reverse("mcp_servers:servers", args=[tenant.workspace.slug])).content.decode()
    menu = page.partition('id="workspace-menu"')[2].partition("</nav>")[0]
    assert f'href="{ALL}"' in menu
    assert 'aria-current="true"' in menu


def test_no_page_lacks_its_menu_because_the_database_was_away(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REL-2994: a condition with operators takes any error for a no, so what it asks is a condition of its own."""

    def fail(*_: object) -> None:
        raise OperationalError("the connection is lost")

    client = tenant.client("member")
    client.raise_request_exception = False
    monkeypatch.setattr(context, "choices_of", fail)
    page = client.get(reverse("mcp_servers:servers", args=[tenant.workspace.slug]))
    assert page.status_code == 503


def test_the_admins_menu_leads_to_all_workspaces_if_it_holds_some_only(tenant: Tenant) -> None:
    """REL-910."""
    client = tenant.client("admin")
    join_many(tenant, "admin", MOST_IN_MENU, Role.ADMIN)
    client.get(f"/w/{tenant.workspace.slug}/admin/")
    assert f'href="{ALL}"' not in client.get("/admin/").content.decode()
    one = Workspace.objects.create(name="A later one", slug="a-later")
    Membership.objects.create(workspace=one, user=tenant.admin, role=Role.OWNER.value)
    assert f'href="{ALL}"' in client.get("/admin/").content.decode()


def test_all_workspaces_come_page_by_page_and_are_found_by_name(tenant: Tenant) -> None:
    """REL-910: with one's role; those of others are in no list, and the platform's owner sees all."""
    other = make_tenant("elsewhere")
    join_many(tenant, "admin", 205)
    client = tenant.client("admin")

    def read(page: Any) -> list[str]:
        return [one.workspace.slug for one in page.context["entrances"]]

    assert len(rows_of_all_pages(client, ALL, "entrances", "ways")) == 206
    assert read(client.get(ALL, {"q": "A 20"})) == ["a-200", "a-201", "a-202", "a-203", "a-204"]
    found = client.get(ALL, {"q": tenant.workspace.name}).context["entrances"]
    assert [(one.role, one.opens_admin) for one in found] == [("Admin", True)]
    assert read(client.get(ALL, {"q": other.workspace.name})) == []
    tenant.admin.is_superuser = True
    tenant.admin.save()
    found = client.get(ALL, {"q": other.workspace.name}).context["entrances"]
    assert [(one.role, one.opens_admin) for one in found] == [("", True)]
    assert client.get(ALL, {"after": "nonsense"}).status_code == 200


def test_the_page_of_all_workspaces_costs_no_statement_more_for_many(tenant: Tenant) -> None:
    """REL-910."""
    client = tenant.client("member")
    client.get(ALL)
    with CaptureQueriesContext(connection) as few:
        client.get(ALL)
    join_many(tenant, "member", 20)
    with CaptureQueriesContext(connection) as many:
        client.get(ALL)
    assert len(many) == len(few)
