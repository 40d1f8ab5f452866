"""The page of one call, its REST twin, the live list, typed filters of reports, and views of schedules."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import timedelta
from typing import Any
from unittest.mock import patch
from uuid import uuid4

import pytest
import time_machine
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from audit.actions import Action, Outcome, RefusedBy
from audit.models import AuditEntry, ReportSchedule, SavedView
from audit.reports import entries
from audit.reports.providers import rule_in_words
from audit.services import Ref, record
from audit.views import filtering
from bench.invented_log import generate
from tests.audit.reports.call_drafts import draft_of
from tests.audit.views.log_pages import SECRET_ARGUMENT, a_call, a_refusal, opened, url
from tests.factories import Tenant, TwoTenants
from tests.other_keys import having
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
    sentence, rule = "This tool can delete or overwrite data.", "<code>hints.destructive</code>"
    assert text.index(sentence) < text.index(rule)
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


def test_bodies_whose_key_is_gone_are_told_as_such(tenant: Tenant) -> None:
    """REL-2095: what the entry itself shows of them was shown as all of it."""
    call = approved_call(tenant)
    auditor = tenant.client("auditor")
    entry = AuditEntry.objects.for_workspace(tenant.workspace).filter(call_id=call).first()
    assert entry is not None
    pages = [url(tenant, f"calls/{call}/"), url(tenant, f"{entry.pk}/")]
    words = "kept under an encryption key that is gone"
    for page in pages:
        assert words not in auditor.get(page).content.decode()
        with having():
            assert words in auditor.get(page).content.decode()


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
    body = tenant.client("auditor").get(where, headers=head).json()
    assert (body["state"], body["outcome"], body["duration_ms"]) == ("ended", "ok", 1_200)
    assert SECRET_ARGUMENT in body["arguments"]
    assert len(body["entries"]) == 4
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
    assert (b"data-live-label" in page) is is_live


def test_a_live_list_brings_its_numbers_along(tenant: Tenant) -> None:
    """REL-790: in one answer, which costs the same whatever the log holds, and nothing while nothing is new."""
    client = tenant.client("auditor")
    where = url(tenant, "?range=7d")

    def fetched(etag: str = "") -> tuple[Any, int]:
        head = {"HX-Request": "true"} | ({"If-None-Match": etag} if etag else {})
        with CaptureQueriesContext(connection) as captured:
            answer = client.get(where, headers=head)
        return answer, len(captured)

    def tiles(answer: Any) -> list[str]:
        return re.findall(r"<dd>([^<]*)</dd>", answer.content.decode())

    with time_machine.travel("2026-03-04T10:00:30Z", tick=False):
        a_call(tenant)
        first, _ = fetched()
        assert tiles(first)[1] == "1"
        assert [part in first.content for part in (b'id="chart"', b'id="entries"')] == [True, True]
        again, quiet = fetched(first["ETag"])
        assert (again.status_code, again.content) == (304, b"")
        a_call(tenant, outcome=Outcome.TIMEOUT)
        second, few = fetched(first["ETag"])
        assert tiles(second)[1:3] == ["2", "1"]
        assert quiet < few <= 22
        now = timezone.now()
        list(generate(tenant.workspace.pk, 2_000, since=now - timedelta(days=5), until=now))
        third, many = fetched(second["ETag"])
        assert many <= few
        assert "," in tiles(third)[0]
    with time_machine.travel("2026-03-04T10:02:00Z", tick=False):
        assert fetched(third["ETag"])[0].status_code == 200


def test_one_outcome_has_one_word_on_every_page(tenant: Tenant) -> None:
    """REL-791: the list, the call, the entry, the filters and what may be typed."""
    a_call(tenant)
    client = tenant.client("auditor")
    end = AuditEntry.objects.for_workspace(tenant.workspace).get(action="tool_call.finished")
    for path in ("", "?show=entries", f"calls/{end.call_id}/", f"{end.pk}/"):
        page = client.get(url(tenant, path)).content.decode()
        tags = re.findall(r'data-tone="ok">([^<]*)<', page)
        assert set(tags) == {"Succeeded"}, path
    refused = a_refusal(tenant)
    for path in ("", f"{refused.pk}/", "reports/"):
        shown = client.get(url(tenant, path)).content.decode()
        words = re.sub(r"<(script|option)\b.*?</\1>|<[^>]*>", " ", shown, flags=re.S)
        assert not re.search(r"\bpolicy\b|\bquarantine\b", words), path
        assert re.search(r"A rule forbids it\.|\bRule\b", words), path
    log = client.get(url(tenant, "?q=outcome:succeeded"))
    assert {chip["value"] for chip in log.context["chips"]} == {"Succeeded"}
    assert log.context["totals"].calls == 1
    assert "succeeded" in log.context["known"]["values"]["outcome"]
    assert "ok" not in log.context["known"]["values"]["outcome"]


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
    for missing in (str(foreign.pk), str(uuid4())):
        answer = client.post(url(tenant, "schedules/"), {**body, "view": missing})
        assert answer.status_code == 422
        assert "mail.send" not in answer.context["draft"].query
    assert client.post(url(tenant, "schedules/"), {**body, "view": str(mine.pk)}).status_code == 302
    made = ReportSchedule.objects.for_workspace(tenant.workspace).get()
    assert made.query == mine.query


def test_an_entry_says_if_its_call_has_more_entries_than_it_shows(tenant: Tenant) -> None:
    """REL-914: and leads to all of them; one's own page says so, too."""
    call = uuid4()
    asked = draft_of(tenant, Action.TOOL_CALL_REQUESTED, call_id=call)
    first = record(asked)
    record(replace(asked, action=Action.TOOL_CALL_FINISHED, outcome=Outcome.OK))
    record(replace(asked, action=Action.TOOL_CALL_FINISHED, outcome=Outcome.OK))
    page, own = url(tenant, f"{first.pk}/"), f"/w/{tenant.workspace.slug}/activity/{first.pk}/"
    text = "These are the first 2 entries of the call."
    assert text not in tenant.client("auditor").get(page).content.decode()
    with patch.object(entries, "MOST_RELATED", 2):
        found = tenant.client("auditor").get(page)
        assert text in tenant.client("member").get(own).content.decode()
    assert text in found.content.decode()
    listed = tenant.client("auditor").get(found.context["whole_call_url"])
    assert len(listed.context["rows"]) == 3


def test_a_list_of_filters_says_that_it_is_cut_and_the_search_field_completes_all(
    tenant: Tenant,
) -> None:
    """REL-914."""
    for tool in ("alpha", "beta", "gamma"):
        record(replace(draft_of(tenant, Action.TOOL_CALL_REQUESTED), tool=Ref(id=None, name=tool)))
    client = tenant.client("admin")
    text = "These are the first 2. Type others in the search field above."
    assert text not in client.get(url(tenant)).content.decode()
    with patch.object(filtering, "MOST_IN_LIST", 2):
        page = client.get(url(tenant))
        chosen = client.get(url(tenant), {"tool": "gamma"}).content.decode()
    assert text in page.content.decode()
    assert page.context["known"]["values"]["tool"] == ["alpha", "beta", "gamma"]
    assert '<option value="gamma" selected' in chosen


def test_the_search_field_says_that_it_does_not_complete_all_and_takes_the_others(
    tenant: Tenant,
) -> None:
    """REL-948: of names of tools, and of people."""
    for tool in ("alpha", "beta", "gamma"):
        record(replace(draft_of(tenant, Action.TOOL_CALL_REQUESTED), tool=Ref(id=None, name=tool)))
    client = tenant.client("admin")
    text = "The field completes the first 2 values of each name. You can type every other one."
    assert text not in client.get(url(tenant)).content.decode()
    with patch.object(entries, "MAX_CHOICES", 2), patch("audit.reports.MAX_CHOICES", 2):
        page = client.get(url(tenant))
        typed = client.get(url(tenant), {"q": "tool:gamma"})
        person = client.get(url(tenant), {"q": f"person:{tenant.member.email[:6]}"})
    assert text in page.content.decode()
    assert page.context["known"]["values"]["tool"] == ["alpha", "beta"]
    assert [row.entry.tool_name for row in typed.context["rows"]] == ["gamma"]
    assert {row.entry.tool_name for row in person.context["rows"]} == {"alpha", "beta", "gamma"}
