"""The reports page and what hangs on it: right numbers, ways into the log, nothing for those who may not."""

from __future__ import annotations

import random
import re
from datetime import timedelta
from urllib.parse import parse_qs, urlsplit
from uuid import uuid4

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from audit import rollups
from audit.actions import Action, Outcome, RefusedBy
from audit.filters import read_filter
from audit.models import AuditEntry, SavedView, SignOff
from audit.reports import entries_of, matching
from audit.reports.figures import change_of
from audit.reports.report import BY, Figure, report_of
from audit.services import EntryDraft, Ref, record
from bench.invented_log import generate
from tests.audit.sealed import seal_all
from tests.audit.test_pages import SECRET_ARGUMENT, a_call, a_refusal, url
from tests.factories import CANARY, Tenant, TwoTenants, UserFactory
from workspaces.actors import Actor, Source

pytestmark = pytest.mark.django_db


def filled(tenant: Tenant) -> None:
    """Three calls, one refusal, one approval; half of it counted, half in the tail."""
    a_call(tenant)
    a_call(tenant, outcome=Outcome.TIMEOUT)
    seal_all(tenant.workspace.pk)
    rollups.roll_up(tenant.workspace.pk)
    a_call(tenant, tool="other")
    a_refusal(tenant)


def test_the_page_says_what_happened(tenant: Tenant) -> None:
    """Ours: counted and not yet counted entries together."""
    filled(tenant)
    answer = tenant.client("auditor").get(url(tenant, "reports/"))
    assert answer.status_code == 200
    figures = {one["name"]: one["value"] for one in answer.context["figures"]}
    assert (figures["calls"], figures["failed"], figures["refused"]) == ("4", "1", "1")
    lines = {one["label"]: sum(one["values"]) for one in answer.context["over_time"]["series"]}
    assert lines == {"Succeeded": 2, "Failed or cancelled": 1, "Refused": 1}
    assert answer.context["tools"][0]["row"].tool == "echo"
    assert [row["row"].layer for row in answer.context["refusals"]] == ["policy"]
    assert SECRET_ARGUMENT.encode() not in answer.content


def test_the_same_numbers_are_read_over_rest(two_workspaces: TwoTenants) -> None:
    """REL-671: with the page's filters; of the own workspace alone, and for those who may see the log."""
    tenant = two_workspaces.a
    filled(tenant)
    filled(two_workspaces.b)
    path, headers = "/api/audit-reports/", {"X-Workspace": tenant.workspace.slug}
    client = tenant.client("auditor")
    report = client.get(path, {"by": "tool"}, headers=headers).json()
    figures = {one["name"]: one["now"] for one in report["figures"]}
    assert (figures["calls"], figures["failed"], figures["refused"]) == (4, 1, 1)
    assert sum(sum(line["values"]) for line in report["over_time"]) == 4
    assert len(report["pieces"]) == len(report["over_time"][0]["values"])
    assert report["tools"][0]["tool"] == "echo"
    assert [one["layer"] for one in report["refusals"]] == ["policy"]
    one_tool = client.get(path, {"q": "tool:other", "range": "24h"}, headers=headers).json()
    assert next(one["now"] for one in one_tool["figures"] if one["name"] == "calls") == 1
    for wrong in (
        {"by": "colour"},
        {"range": "custom"},
        {"q": "outcome:purple"},
        {"q": "sort:duration"},
    ):
        answer = client.get(path, wrong, headers=headers)
        assert answer.status_code == 422, wrong
        assert next(iter(wrong)) in answer.content.decode()
    assert tenant.client("member").get(path, headers=headers).status_code == 403


def test_each_way_of_stacking_has_all_calls(tenant: Tenant) -> None:
    """Ours."""
    filled(tenant)
    client = tenant.client("auditor")
    for by in BY:
        chart = client.get(url(tenant, f"reports/?by={by}")).context["over_time"]
        total = sum(sum(one["values"]) for one in chart["series"]) if chart else 0
        assert total == (0 if by in {"bud", "model"} else 4), by


def test_numbers_of_tables_are_grouped_like_those_of_the_tiles(tenant: Tenant) -> None:
    """REL-793: on the log's pages; a file for programs keeps plain numbers."""
    now = timezone.now()
    list(generate(tenant.workspace.pk, 6_000, since=now - timedelta(days=2), until=now))
    record(
        EntryDraft(
            action=Action.TOOL_CALL_FINISHED,
            actor=tenant.actor("member"),
            workspace_id=tenant.workspace.pk,
            outcome=Outcome.OK,
            call_id=uuid4(),
            duration_ms=123_456,
        )
    )
    client = tenant.client("auditor")
    for path in ("reports/?range=7d", "overview/", "?range=7d", "settings/"):
        page = client.get(url(tenant, path)).content.decode()
        shown = re.sub(r"<(script|datalist|option)\b.*?</\1>|<[^>]*>", " ", page, flags=re.S)
        without_years = re.sub(r"\b20\d\d\b", "", shown)
        assert not re.findall(r"(?<![\w.,:-])\d{4,}(?![\w:-])", without_years), path
    assert "123,456 ms" in client.get(url(tenant, "reports/?range=7d")).content.decode()
    file = b"".join(client.get(url(tenant, "export.csv?range=7d&show=entries")))
    assert b"123456" in file
    assert b"123,456" not in file


def test_a_narrowed_report_counts_what_the_log_lists(tenant: Tenant) -> None:
    """Ours: the same filter, the same number, and each number leads to its entries."""
    filled(tenant)
    client = tenant.client("auditor")
    for query in ("server=notes", "tool=echo", "source=web", "server=notes&tool=echo", "tool=none"):
        report = client.get(url(tenant, f"reports/?{query}"))
        listed = client.get(url(tenant) + f"?range=7d&{query}")
        calls = next(one for one in report.context["figures"] if one["name"] == "calls")
        assert int(calls["value"]) == listed.context["totals"].calls, query
        refused = next(one for one in report.context["figures"] if one["name"] == "refused")
        behind = client.get(refused["url"])
        assert len(behind.context["entries"]) == int(refused["value"]), query


def test_the_counters_and_the_entries_make_the_same_report(tenant: Tenant) -> None:
    """Ours: both ways of counting, over generated entries of ten days."""
    now = timezone.now()
    list(generate(tenant.workspace.pk, 600, since=now - timedelta(days=10), until=now))
    client = tenant.client("auditor")
    counted = client.get(url(tenant, "reports/?range=30d")).context
    # "task" is none of anybody's names: every entry of a call matches "source" once each.
    parts = [
        client.get(url(tenant, f"reports/?range=30d&source={source}")).context
        for source in ("chat", "api", "task", "gateway", "web")
    ]

    def value(context: object, name: str) -> int:
        figures = context["figures"]  # type: ignore[index]
        found = next(one for one in figures if one["name"] == name)
        return int(found["value"].replace(",", ""))

    for name in ("calls", "failed", "refused", "asked", "changes"):
        assert value(counted, name) == sum(value(part, name) for part in parts)
    assert value(counted, "calls") > 100
    assert {row["row"].tool for row in counted["tools"]}
    waits = [row["number"] for row in counted["approvals"][-2:]]
    assert "–" not in waits


def test_generated_entries_are_sealed_and_counted(tenant: Tenant) -> None:
    """Ours: as if they had come one by one."""
    from audit.verification.online import verify

    now = timezone.now()
    list(generate(tenant.workspace.pk, 250, since=now - timedelta(days=2), until=now))
    assert rollups.rolled_up_to(tenant.workspace.pk) == 250
    assert rollups.behind() == []
    report = verify(tenant.workspace.pk, actor=tenant.actor("auditor"))
    assert report.result in {"whole", "incomplete"}, "no checkpoint speaks of it yet"


def test_opening_the_page_takes_a_fixed_number_of_queries(tenant: Tenant) -> None:
    """Ours: whatever there is to show."""
    client = tenant.client("auditor")

    def queries() -> int:
        with CaptureQueriesContext(
            connection,
        ) as captured:
            assert client.get(url(tenant, "reports/")).status_code == 200
        return len(captured)

    filled(tenant)
    queries()
    few = queries()
    for _ in range(12):
        a_call(tenant, tool=f"tool {random.random()}")
        a_refusal(tenant)
    assert queries() <= few + 2
    assert few <= 75


def test_a_wrong_address_is_told_and_never_an_error(tenant: Tenant) -> None:
    """SEC-05."""
    client = tenant.client("auditor")
    for query in ("range=soon", "by=nothing", "range=custom&since=x", "user=%00"):
        assert client.get(url(tenant, f"reports/?{query}")).status_code == 200


def test_a_page_without_entries_says_so(tenant: Tenant) -> None:
    """Ours."""
    page = tenant.client("auditor").get(url(tenant, "reports/?range=24h&tool=none"))
    assert b"Nothing fits these filters" in page.content


def test_members_and_other_tenants_see_no_report(two_workspaces: TwoTenants) -> None:
    """SEC-01, SEC-07."""
    filled(two_workspaces.a)
    filled(two_workspaces.b)
    assert (
        two_workspaces.a.client("member").get(url(two_workspaces.a, "reports/")).status_code == 403
    )
    page = two_workspaces.a.client("auditor").get(url(two_workspaces.a, "reports/"))
    assert CANARY.encode() not in page.content
    assert page.context["figures"][0]["value"] == "4"


@pytest.mark.parametrize(
    ("now", "before", "words"),
    [
        (15, 10, "50% more than in the period before"),
        (5, 10, "50% less than in the period before"),
        (10, 10, "same as before"),
        (3, 0, "up from 0"),
        (None, 10, "no earlier data"),
        (500, 10, "50 times more than in the period before"),
    ],
)
def test_changes_are_told_in_words(now: int | None, before: int, words: str) -> None:
    """Ours: a sign alone says nothing to a screen reader."""
    assert change_of(Figure(now=now, before=before), is_bad=True)["words"] == words


# Saved views and reviews


def test_a_view_is_kept_shared_and_deleted_by_its_owner(tenant: Tenant) -> None:
    """Ours."""
    admin, auditor = tenant.client("admin"), tenant.client("auditor")
    draft = {"page": "log", "name": "Timeouts", "query": "outcome=timeout", "is_shared": "on"}
    answer = admin.post(url(tenant, "views/"), draft)
    assert answer["Location"].endswith("/audit/?outcome=timeout")
    assert b"Timeouts" in auditor.get(url(tenant)).content
    view = SavedView.objects.for_workspace(tenant.workspace).get()
    assert auditor.post(url(tenant, f"views/{view.pk}/delete/")).status_code == 404
    admin.post(url(tenant, "views/"), {**draft, "name": "Mine", "is_shared": ""} | {})
    admin.post(url(tenant, f"views/{view.pk}/delete/"))
    assert b"Timeouts" not in auditor.get(url(tenant)).content
    assert tenant.client("member").post(url(tenant, "views/"), draft).status_code == 403


def test_a_private_view_is_its_owners_alone(tenant: Tenant) -> None:
    """Ours."""
    draft = {"page": "reports", "name": "Secret plans", "query": "tool=x"}
    tenant.client("admin").post(url(tenant, "views/"), draft)
    assert b"Secret plans" in tenant.client("admin").get(url(tenant, "reports/")).content
    assert b"Secret plans" not in tenant.client("auditor").get(url(tenant, "reports/")).content


def test_a_sign_off_is_an_entry_with_the_numbers_of_its_time(tenant: Tenant) -> None:
    """Ours: and what comes later changes nothing of it."""
    filled(tenant)
    client = tenant.client("auditor")
    until = timezone.now()
    draft = {
        "since": (until - timedelta(days=1)).isoformat(),
        "until": until.isoformat(),
        "note": "nothing odd",
    }
    assert client.post(url(tenant, "reviews/"), draft).status_code == 302
    row = SignOff.objects.for_workspace(tenant.workspace).get()
    assert (row.totals["calls"], row.totals["failed"], row.totals["refused"]) == (4, 1, 1)
    entry = AuditEntry.objects.for_workspace(tenant.workspace).get(pk=row.entry_id)
    assert entry.action == Action.REPORT_SIGNED_OFF
    assert entry.details["totals"]["calls"] == 4
    a_call(tenant)
    assert b"nothing odd" in client.get(url(tenant, "reviews/")).content
    row.refresh_from_db()
    assert row.totals["calls"] == 4


def test_a_sign_off_needs_a_time_that_has_passed(tenant: Tenant) -> None:
    """Ours."""
    client = tenant.client("auditor")
    for since, until in (
        *(("", ""), ("x", "y"), ("2026-01-02", "2026-01-01"), ("2026-01-01", "2999-01-01")),
    ):
        answer = client.post(url(tenant, "reviews/"), {"since": since, "until": until})
        assert answer.status_code == 422
    assert not SignOff.objects.for_workspace(tenant.workspace).exists()


# Searching


def test_words_are_searched_only_by_those_who_may_read_them(tenant: Tenant) -> None:
    """SEC-105: an admin cannot guess what calls held by asking for it; nor by exporting or the page's numbers."""
    a_call(tenant)
    query = f"?range=1h&show=entries&words={SECRET_ARGUMENT}"
    assert len(tenant.client("auditor").get(url(tenant) + query).context["entries"]) == 2
    assert tenant.client("auditor").get(url(tenant) + query).context["overview"].entries == 2
    for words in (SECRET_ARGUMENT, "nothing-of-it"):
        seen = tenant.client("admin").get(url(tenant) + f"?range=1h&words={words}")
        assert seen.context["entries"] == []
        assert seen.context["overview"].entries == 0
    assert not tenant.client("auditor").get(url(tenant) + "?words=nothing-of-it").context["entries"]


SORTS = ["time", "action", "server", "tool", "outcome", "duration", "arguments_size", "result_size"]


def test_pages_of_every_order_hold_each_entry_once_both_ways(tenant: Tenant) -> None:
    """Ours: also where many entries have the same value; and as many as the page says and a file has lines."""
    now = timezone.now() - timedelta(hours=2)
    list(generate(tenant.workspace.pk, 120, since=now - timedelta(hours=10), until=now))
    client = tenant.client("auditor")
    for sort in SORTS:
        for order in ("", "asc"):
            query = f"range=24h&show=entries&source=chat&sort={sort}&order={order}"
            forwards, last, where = [], "", f"{url(tenant)}?{query}"
            while where:
                answer = client.get(where, headers={"HX-Request": "true"})
                forwards.append([entry.pk for entry in answer.context["entries"]])
                last, where = where, answer.context["older_url"]
            whole = [pk for page in forwards for pk in page]
            assert len(whole) == len(set(whole)) > 20
            file = b"".join(client.get(url(tenant, f"export.jsonl?{query}")))
            assert file.count(b"\n") == len(whole)
            where = client.get(last, headers={"HX-Request": "true"}).context["newer_url"]
            back = []
            while where:
                answer = client.get(where, headers={"HX-Request": "true"})
                back.append([entry.pk for entry in answer.context["entries"]])
                where = answer.context["newer_url"]
            assert [pk for page in back[::-1] for pk in page] == whole[: -len(forwards[-1])]


FORGED = [
    *("[]", "[1]", '["x","y"]', '["2026-01-01","z"]', "{}", "null", "[" * 50),
    '[{"a":1},"2026-01-01T00:00:00Z","00000000-0000-0000-0000-000000000000"]',
]


def test_a_forged_page_key_is_ignored(tenant: Tenant) -> None:
    """SEC-05."""
    a_call(tenant)
    client = tenant.client("auditor")
    for key in FORGED:
        for sort in ("time", "duration", "tool"):
            answer = client.get(
                url(tenant), {"after": key, "sort": sort}, headers={"HX-Request": "true"}
            )
            assert answer.status_code == 200
            assert answer.context["entries"], (key, sort)


FOUND = {
    "source=web": 6,
    "source=api": 0,
    "refused_by=policy": 1,
    "refused_by=policy&rule=deny": 1,
    "rule=de*": 1,
    "duration_min=12&duration_max=12": 2,
    "duration_min=13": 0,
    "kind=user": 6,
    "role=member": 6,
    "request=test": 5,
    "bud=none": 0,
    "call=00000000-0000-0000-0000-000000000000": 0,
    "arguments_size_min=1": 4,
}


def test_every_field_can_be_asked_for(tenant: Tenant) -> None:
    """Ours: and the number on the page is the number of lines of the file."""
    a_call(tenant)
    a_call(tenant, outcome=Outcome.TIMEOUT)
    a_refusal(tenant)
    client = tenant.client("auditor")
    # One moment for all: each export is itself an entry.
    until = timezone.now().isoformat().replace("+00:00", "Z")
    for query, number in FOUND.items():
        asked = f"range=custom&show=entries&until={until}&{query}"
        answer = client.get(f"{url(tenant)}?{asked}")
        assert len(answer.context["entries"]) == number, query
        assert answer.context["overview"].entries == number, query
        file = client.get(url(tenant, f"export.jsonl?{asked}"))
        assert b"".join(file).count(b"\n") == number, query


WRONG = [
    *("duration_min=x", "duration_min=-1", "duration_min=²", "duration_max=" + "9" * 40),
    *("call=1", "ip=x", "source=y", "sort=z"),
]


def test_a_wrong_value_is_told(tenant: Tenant) -> None:
    """SEC-05."""
    client = tenant.client("auditor")
    for query in WRONG:
        answer = client.get(f"{url(tenant)}?{query}")
        assert answer.status_code == 200
        assert answer.context["filter_errors"], query


# Own activity, the platform


def test_members_see_their_own_entries_and_bodies(tenant: Tenant) -> None:
    """Ours: and nobody else's."""
    mine = a_call(tenant)
    others = record(
        EntryDraft(
            action=Action.TOOL_CALL_REFUSED,
            actor=tenant.actor("admin"),
            workspace_id=tenant.workspace.pk,
            refused_by=RefusedBy.POLICY,
            tool=Ref(id=None, name="of-the-admin"),
        )
    )
    client = tenant.client("member")
    home = f"/w/{tenant.workspace.slug}/activity/"
    page = client.get(home)
    assert {entry.actor_id for entry in page.context["entries"]} == {tenant.member.pk}
    assert b"of-the-admin" not in page.content
    assert SECRET_ARGUMENT.encode() in client.get(f"{home}{mine.pk}/").content
    assert client.get(f"{home}{others.pk}/").status_code == 404
    assert home.encode() in client.get(home).content


def test_the_platforms_page_is_its_owners_and_holds_no_bodies(two_workspaces: TwoTenants) -> None:
    """REL-721: metadata of all workspaces, bodies of none; each number leads to its entries."""
    filled(two_workspaces.a)
    for role in ("owner", "admin", "auditor"):
        assert two_workspaces.a.client(role).get("/platform/audit/").status_code == 404
    owner = UserFactory.create(email="root@example.org", is_superuser=True)
    client = two_workspaces.a.client("owner")
    client.force_login(owner, backend="allauth.account.auth_backends.AuthenticationBackend")
    page = client.get("/platform/audit/")
    assert page.status_code == 200
    assert two_workspaces.b.workspace.name in page.content.decode()
    assert SECRET_ARGUMENT.encode() not in page.content
    links = re.findall(r'class="figure-link" href="([^"]+)">(\d+)<', page.content.decode())
    log = url(two_workspaces.a)
    outcomes = ("", "&amp;outcome=ended", "&amp;outcome=failed")
    assert [link for link, _ in links] == [f"{log}?range=7d{outcome}" for outcome in outcomes]
    for link, count in links:  # of sealed entries, and the log has newer ones
        listed = client.get(link.replace("&amp;", "&"))
        assert listed.context["overview"].entries >= int(count) > 0
    entry = AuditEntry.objects.for_workspace(two_workspaces.a.workspace).exclude(
        arguments_size=None
    )[0]
    seen = client.get(url(two_workspaces.a, f"{entry.pk}/"))
    assert seen.status_code == 200
    assert SECRET_ARGUMENT.encode() not in seen.content


def test_links_of_the_page_keep_its_time(tenant: Tenant) -> None:
    """Ours."""
    filled(tenant)
    page = tenant.client("auditor").get(url(tenant, "reports/?range=24h&tool=echo"))
    links = re.findall(r'class="figure-link" href="([^"]+)"', page.content.decode())
    assert links
    for link in links:
        query = parse_qs(urlsplit(link.replace("&amp;", "&")).query)
        assert query["range"] == ["custom"]
        assert query["tool"] == ["echo"]
        assert query["since"] < query["until"]


@pytest.mark.parametrize(
    ("tile", "query"), [("calls", "ended"), ("failed", "failed"), ("refused", "refused")]
)
def test_a_number_leads_to_exactly_its_entries(tenant: Tenant, tile: str, query: str) -> None:
    """Ours: what a report counts is what the list behind it shows."""
    for action, outcome, layer in (
        (Action.TOOL_CALL_FINISHED, Outcome.OK, None),
        (Action.TOOL_CALL_FINISHED, Outcome.TIMEOUT, None),
        (Action.TOOL_CALL_FINISHED, Outcome.TOOL_ERROR, None),
        (Action.TOOL_CALL_REFUSED, None, RefusedBy.POLICY),
        (Action.APPROVAL_REFUSED, None, None),
        (Action.TOOL_CALL_REQUESTED, None, None),
    ):
        record(
            EntryDraft(
                action=action,
                outcome=outcome,
                refused_by=layer,
                actor=tenant.actor("member"),
                workspace_id=tenant.workspace.pk,
            )
        )
    wanted = read_filter({"outcome": query, "range": "24h"}, now=timezone.now())
    rows = entries_of(tenant.workspace.pk, actor=tenant.actor("owner"))
    found = matching(rows, wanted, actor=tenant.actor("owner"))
    report = report_of(
        tenant.workspace.pk,
        matching(rows, read_filter({}, now=timezone.now()), actor=tenant.actor("owner")),
        read_filter({"range": "24h"}, now=timezone.now()),
        by="outcome",
        now=timezone.now(),
    )
    assert report.figures[tile].now == found.count() > 0


def test_active_people_are_people(tenant: Tenant) -> None:
    """SEC-246: parts of the system appear in the log, and are nobody; counted and not yet counted alike."""
    for role in ("member", "admin", "member"):
        a_change(tenant, tenant.actor(role))
    for label in ("alerts", "audit log", "unknown (past the services)"):
        part = Actor.system(label=label, source=Source.TASK, workspace_id=tenant.workspace.pk)
        a_change(tenant, part)
    seal_all(tenant.workspace.pk, 4)
    rollups.roll_up(tenant.workspace.pk)
    for query in ("", "?kind=config.changed"):
        answer = tenant.client("auditor").get(url(tenant, f"reports/{query}"))
        figures = {one["name"]: one["value"] for one in answer.context["figures"]}
        assert figures["people"] == "3", query  # with whoever looks: signing in is an entry


def a_change(tenant: Tenant, actor: Actor) -> None:
    record(EntryDraft(action=Action.CONFIG_CHANGED, actor=actor, workspace_id=tenant.workspace.pk))
