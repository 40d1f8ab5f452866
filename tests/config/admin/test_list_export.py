"""Lists of the admin as files."""

from __future__ import annotations

import csv
import io
import re
from typing import Any

import pytest
from django.contrib.admin import site
from django.contrib.admin.utils import label_for_field
from django.test import RequestFactory
from django.urls import reverse
from django.utils import timezone

from audit.models import AuditEntry
from mcp_servers.models import HealthCheck
from tests.factories import Tenant, make_tenant
from tests.mcp_servers.factories import http_server

pytestmark = pytest.mark.django_db


@pytest.fixture
def tenant() -> Tenant:
    """A workspace with a person in each role."""
    return make_tenant("acme")


def exported(answer: Any) -> list[list[str]]:
    text = b"".join(answer.streaming_content).decode("utf-8-sig")
    return list(csv.reader(io.StringIO(text)))


def address(model: str, query: str = "") -> str:
    return f"{reverse('admin:export_list', args=['workspaces', model])}{query}"


def test_a_list_is_taken_as_a_file_as_it_is_filtered_and_sorted(tenant: Tenant) -> None:
    """REL-816: with its columns in words, all of its pages, and an entry of who took it."""
    client = tenant.client("admin")
    listed = client.get(reverse("admin:workspaces_membership_changelist") + "?role__exact=member")
    assert address("membership", "?role__exact=member") in listed.content.decode()
    answer = client.get(address("membership", "?role__exact=member&o=-6"))
    assert answer.headers["Content-Type"] == "text/csv"
    head, *rows = exported(answer)
    assert head == ["User", "Address", "Role", "Right to audit", "Access", "Created"]
    other_way = exported(client.get(address("membership", "?role__exact=member&o=6")))
    assert other_way == [head, *reversed(rows)]
    names = [row[0] for row in rows]
    assert tenant.member.email in names
    assert tenant.owner.email not in names
    assert {row[2] for row in rows} == {"Member"}
    entries = AuditEntry.objects.for_workspace(tenant.workspace).filter(action="export.list")
    entry = entries.get(details__filters__o="-6")
    assert entry.actor_label == tenant.admin.email
    assert entry.details["name"] == "People, all fields"
    assert entry.details["rows"] == len(rows)
    log = client.get(reverse("audit:entries", args=[tenant.workspace.slug])).content.decode()
    assert "list People, all fields" in log
    assert entry.details["filters"]["role__exact"] == "member"


def test_a_cell_that_a_spreadsheet_would_run_is_made_harmless(tenant: Tenant) -> None:
    """REL-816."""
    tenant.member.email = "=cmd@example.org"
    tenant.member.save(update_fields=["email"])
    rows = exported(tenant.client("admin").get(address("membership")))
    assert "'=cmd@example.org" in [row[0] for row in rows]


def test_whoever_may_not_see_a_list_gets_no_file_of_it(tenant: Tenant) -> None:
    """REL-816: and the log has exports of its own, which take the right to export."""
    assert tenant.client("member").get(address("membership")).status_code in (302, 403, 404)
    admin = tenant.client("admin")
    log = reverse("admin:export_list", args=["audit", "auditentry"])
    assert admin.get(log).status_code == 404
    assert admin.get(address("nothing")).status_code == 404
    assert not AuditEntry.objects.for_workspace(tenant.workspace).filter(action="export.list")


def test_an_address_that_does_not_fit_leads_to_the_list_which_tells_it(tenant: Tenant) -> None:
    """REL-816."""
    answer = tenant.client("admin").get(address("membership", "?nonsense=1"), follow=True)
    assert "The address had a filter that does not exist" in answer.content.decode()


def test_a_list_of_the_platform_is_in_the_platforms_log(tenant: Tenant) -> None:
    """REL-816: a workspace's log says nothing of other workspaces' people."""
    tenant.owner.is_superuser = True
    tenant.owner.save(update_fields=["is_superuser"])
    rows = exported(tenant.client("owner").get(address("user", "?q=acme")))
    assert tenant.member.email in {row[0] for row in rows}
    entry = AuditEntry.objects.across_workspaces().get(action="export.list")
    assert (entry.workspace_id, entry.details["name"]) == (None, "Users")


def test_columns_and_filters_are_named_in_words(tenant: Tenant, rf: RequestFactory) -> None:
    """REL-2724: a yes or no of a list is not called as its field is, on the page and in its file."""
    request = rf.get("/")
    request.user = tenant.owner
    for model, shown in site._registry.items():
        filters = [one for one in shown.get_list_filter(request) if isinstance(one, str)]
        for column in (*shown.get_list_display(request), *filters):
            name = str(label_for_field(column, model, shown))
            assert not re.match(r"(is|has) |.*_", name), f"{model.__name__}: {name}"
    page = reverse("admin:chat_bud_changelist")
    listed = tenant.client("admin").get(page, {"is_archived__exact": 0}).context["cl"]
    assert [one.title for one in listed.filter_specs] == ["archived"]
    tenant.owner.is_superuser = True
    tenant.owner.save(update_fields=["is_superuser"])
    head, row = exported(tenant.client("owner").get(address("workspace")))
    assert dict(zip(head, row, strict=True))["Open"] == "yes"


def test_what_a_list_has_no_value_for_is_empty_in_its_file(tenant: Tenant) -> None:
    """REL-2547, REL-2653: the list shows a dash there, as all pages do. A spreadsheet would take it for a value."""
    server = http_server(tenant, "https://tools.example.org/mcp")
    HealthCheck.objects.create(
        workspace=tenant.workspace, server=server, is_ok=False, checked_at=timezone.now()
    )
    for model in ("mcpserver", "healthcheck"):
        page = reverse(f"admin:mcp_servers_{model}_changelist")
        text = tenant.client("admin").get(page).content.decode()
        assert re.search(r"<td[^>]*>\s*–\s*<", text), model
        assert not re.search(r"<td[^>]*>\s*(-|None)\s*<", text), model
        address = reverse("admin:export_list", args=["mcp_servers", model])
        head, row = exported(tenant.client("admin").get(address))
        shown = dict(zip(head, row, strict=True))
        assert (shown["Latency"], shown.get("Protocol revision", "")) == ("", "")
        assert "'-" not in row
