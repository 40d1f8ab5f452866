"""The page of one call, its REST twin, the live list, typed filters of reports, and views of schedules."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from uuid import uuid4

import pytest

from audit.actions import Action, Outcome, RefusedBy
from audit.models import ReportSchedule, SavedView
from audit.reports.providers import rule_in_words
from audit.services import record
from tests.audit.test_calls import draft_of
from tests.audit.test_pages import SECRET_ARGUMENT, a_call, opened, url
from tests.factories import Tenant, TwoTenants
from workspaces.actors import Source

pytestmark = pytest.mark.django_db


def approved_call(tenant: Tenant) -> Any:
    """Record a call that an admin approved; gives its id."""
    call = uuid4()
    asked = draft_of(
        tenant,
        Action.APPROVAL_REQUESTED,
        call_id=call,
        arguments=f'{{"text": "{SECRET_ARGUMENT}"}}'.encode(),
        rule="hints.destructive",
    )
    record(asked)
    granted = replace(asked, action=Action.APPROVAL_GRANTED, actor=tenant.actor("admin"))
    record(replace(granted, approval={"approver": tenant.admin.email}))
    record(replace(asked, action=Action.TOOL_CALL_REQUESTED))
    record(
        replace(
            asked,
            action=Action.TOOL_CALL_FINISHED,
            outcome=Outcome.OK,
            result=b'{"text": "delivered"}',
            duration_ms=1_200,
        )
    )
    return call


def test_a_calls_page_reads_from_who_asked_to_how_it_is_sealed(tenant: Tenant) -> None:
    """REL-440."""
    call = approved_call(tenant)
    page = tenant.client("auditor").get(url(tenant, f"calls/{call}/"))
    text = page.content.decode()
    places = [
        text.index(part)
        for part in (
            *("Who asked", tenant.member.email, "What was sent", SECRET_ARGUMENT),
            *("What allowed or stopped it", "Approval given", tenant.admin.email),
            *("What came back", "delivered", "How it is sealed", "Technical details"),
        )
    ]
    assert places == sorted(places)
    assert str(page.context["outcome"]) == "Succeeded"
    assert len(page.context["entries"]) == 4


def test_a_rule_is_told_as_the_approval_card_told_it(tenant: Tenant) -> None:
    """REL-526: the sentence stands first, and the rule's id is among the details; where it came from is in words."""
    call = approved_call(tenant)
    text = tenant.client("admin").get(url(tenant, f"calls/{call}/")).content.decode()
    told, rule = "This tool can delete or overwrite data.", "<code>hints.destructive</code>"
    assert text.index(told) < text.index(rule)
    assert "on a page" in text
    assert f"through {Source.WEB.value}" not in text
    assert rule_in_words("rule.of.an.older.version") == ""


def test_bodies_are_for_auditors_and_reading_them_is_an_entry(tenant: Tenant) -> None:
    """REL-440: an admin sees the story without what was sent."""
    call = approved_call(tenant)
    where = url(tenant, f"calls/{call}/")
    seen = tenant.client("admin").get(where)
    assert seen.status_code == 200
    assert SECRET_ARGUMENT not in seen.content.decode()
    assert opened(tenant) == 0
    assert tenant.client("member").get(where).status_code == 403
    tenant.client("auditor").get(where)
    assert opened(tenant) == 1


def test_a_refused_call_says_that_nothing_was_sent(tenant: Tenant) -> None:
    """REL-440."""
    call = uuid4()
    record(
        draft_of(
            tenant,
            Action.TOOL_CALL_REFUSED,
            call_id=call,
            refused_by=RefusedBy.QUOTA,
            rule="quota.day",
            details={"reason": "The quota of 5 calls a day is used up."},
        )
    )
    text = tenant.client("auditor").get(url(tenant, f"calls/{call}/")).content.decode()
    assert "The quota of 5 calls a day is used up." in text
    assert "Nothing was sent" in text
    assert "quota.day" in text


def test_each_row_of_the_log_and_of_reports_leads_to_its_call(tenant: Tenant) -> None:
    """REL-440."""
    entry = a_call(tenant)
    where = url(tenant, f"calls/{entry.call_id}/")
    client = tenant.client("auditor")
    for page in ("", "reports/", f"{entry.pk}/"):
        assert f'href="{where}"' in client.get(url(tenant, page)).content.decode(), page


def test_programs_read_a_call_as_the_page_does(two_workspaces: TwoTenants) -> None:
    """REL-440."""
    tenant, other = two_workspaces.a, two_workspaces.b
    call = approved_call(tenant)
    where = f"/api/audit-calls/{call}/"
    head = {"X-Workspace": tenant.workspace.slug}
    told = tenant.client("auditor").get(where, headers=head).json()
    assert (told["state"], told["outcome"], told["duration_ms"]) == ("ended", "ok", 1_200)
    assert SECRET_ARGUMENT in told["arguments"]
    assert len(told["entries"]) == 4
    assert tenant.client("admin").get(where, headers=head).json()["arguments"] is None
    foreign = other.client("auditor").get(where, headers={"X-Workspace": other.workspace.slug})
    assert foreign.status_code == 404


@pytest.mark.parametrize(
    ("query", "is_live"),
    [("", True), ("?sort=duration", False), ("?order=asc", False), ("?range=all", True)],
)
def test_only_a_list_with_the_newest_first_can_be_live(
    tenant: Tenant, query: str, is_live: bool
) -> None:
    """REL-441."""
    a_call(tenant)
    page = tenant.client("auditor").get(url(tenant, query)).content
    assert (b"data-live=" in page) is is_live


def test_reports_take_the_filters_that_the_log_takes(tenant: Tenant) -> None:
    """REL-442: and lead into the log with the same."""
    a_call(tenant)
    a_call(tenant, tool="other", outcome=Outcome.TIMEOUT)
    client = tenant.client("auditor")
    page = client.get(url(tenant, "reports/?q=tool:other+outcome:failed"))
    calls = next(one for one in page.context["figures"] if one["name"] == "calls")
    assert calls["value"] == "1"
    assert "tool=other" in calls["url"]
    assert {chip["value"] for chip in page.context["chips"]} == {"other", "Failed in any way"}
    wrong = client.get(url(tenant, "reports/?q=tol:other")).content.decode()
    assert "Did you mean “tool”?" in wrong
    assert (
        "A report has no order." in client.get(url(tenant, "reports/?q=sort:tool")).content.decode()
    )


def test_a_schedule_takes_the_filters_of_a_view_by_its_name(two_workspaces: TwoTenants) -> None:
    """REL-443: one's own or a shared one, and no other workspace's."""
    tenant, other = two_workspaces.a, two_workspaces.b
    mine, foreign = (
        SavedView.objects.create(
            workspace=one.workspace,
            owner=one.auditor,
            page=SavedView.Page.LOG.value,
            name="Refused mails",
            query="tool=mail.send&outcome=refused&range=7d",
        )
        for one in (tenant, other)
    )
    client = tenant.client("auditor")
    assert b"Refused mails" in client.get(url(tenant, "schedules/")).content
    body = {
        "name": "Weekly",
        "format": "csv",
        "cadence": "weekly",
        "delivery": "mail",
        "recipients": [str(tenant.auditor.pk)],
    }
    assert (
        client.post(url(tenant, "schedules/"), {**body, "view": str(foreign.pk)}).status_code == 404
    )
    assert client.post(url(tenant, "schedules/"), {**body, "view": str(mine.pk)}).status_code == 302
    made = ReportSchedule.objects.for_workspace(tenant.workspace).get()
    assert made.query == mine.query
