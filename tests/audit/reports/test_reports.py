"""The reports page and what hangs on it: right numbers, ways into the log, nothing for those who may not."""

from __future__ import annotations

import random
import re
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qs, parse_qsl, quote, urlencode, urlsplit
from uuid import uuid4
from zoneinfo import ZoneInfo

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from pypdfium2 import PdfDocument

from audit import rollups
from audit.actions import Action, Outcome, RefusedBy
from audit.exports.ocsf import event_of
from audit.exports.report_files import report_document
from audit.filters import read_filter
from audit.models import AuditEntry, AuditTombstone, SignOff
from audit.reports import entries_of, facts, matching
from audit.reports.call_totals import calls_between
from audit.reports.figures import change_of
from audit.reports.overview import platform_rows
from audit.reports.report import BY, Figure, report_of
from audit.rollups import reading
from audit.rollups.pieces import begin_of
from audit.rollups.reading import TimeRange
from audit.services import EntryDraft, record
from bench.invented_log import generate
from mcp_servers.models import HealthCheck
from tests.audit.reports.filling import filled
from tests.audit.sealed import seal_all
from tests.audit.views.log_pages import SECRET_ARGUMENT, a_call, a_refusal, url
from tests.factories import CANARY, Tenant, TwoTenants
from tests.mcp_servers.factories import http_server
from workspaces.actors import Actor, Source

pytestmark = pytest.mark.django_db


def test_pages_say_that_entries_are_not_counted_yet(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REL-1931: the log, the report, its PDF file, REST and the start page; a sign-off keeps no number that lacks some."""
    monkeypatch.setattr(reading, "MOST_LIVE", 1)
    for _ in range(4):
        a_call(tenant)
    seal_all(tenant.workspace.pk)
    entries = AuditEntry.objects.for_workspace(tenant.workspace).count()
    text = f"{entries - 1} of the newest entries are not counted yet"
    auditor = tenant.client("auditor")
    for path in ("", "reports/"):
        page = re.sub(r"\s+", " ", auditor.get(url(tenant, path)).content.decode())
        assert text in page, path
    found = auditor.get(
        "/api/audit-reports/", headers={"X-Workspace": tenant.workspace.slug}
    ).json()
    assert found["missing"] == entries - 1
    now = timezone.now()
    assert calls_between(tenant.workspace.pk, now, now).missing == entries - 1
    monkeypatch.setattr(reading, "MOST_LIVE", 0)
    a_call(tenant)  # sealed by nobody, so that no counter can hold it
    waiting = AuditEntry.objects.for_workspace(tenant.workspace).count()
    document = report_document(
        tenant.workspace, read_filter({}, now=now), actor=tenant.actor("auditor"), now=now
    )
    assert document.period.endswith(f"{waiting} of the newest entries are not counted yet")
    form = {"since": "2026-01-01T00:00", "until": "2026-01-02T00:00"}
    answer = auditor.post(url(tenant, "reviews/"), form)
    assert "The newest entries are not counted yet." in answer.content.decode()
    assert not SignOff.objects.for_workspace(tenant.workspace).exists()


def test_the_page_says_what_happened(tenant: Tenant) -> None:
    """Ours: counted and not yet counted entries together."""
    filled(tenant)
    answer = tenant.client("auditor").get(url(tenant, "reports/"))
    assert answer.status_code == 200
    figures = {one["name"]: one["value"] for one in answer.context["figures"]}
    assert (figures["calls"], figures["failed"], figures["refused"]) == ("4", "1", "1")
    lines = {one["label"]: sum(one["values"]) for one in answer.context["over_time"]["series"]}
    assert lines == {"Succeeded": 2, "Failed": 1, "Cancelled": 0, "Refused": 1}
    assert answer.context["tools"][0]["row"].tool == "echo"
    assert [row["row"].layer for row in answer.context["refusals"]] == ["policy"]
    assert SECRET_ARGUMENT.encode() not in answer.content


@pytest.mark.parametrize("is_sealed", [False, True])
def test_a_call_that_somebody_stopped_counts_as_failed_nowhere(
    tenant: Tenant, is_sealed: bool
) -> None:
    """REL-2521: the report, the log, the list of calls behind them, the start pages, REST and OCSF agree."""
    entries = [a_call(tenant, outcome=one) for one in Outcome]
    if is_sealed:
        seal_all(tenant.workspace.pk)
        rollups.roll_up(tenant.workspace.pk)
    auditor, now, failed = tenant.client("auditor"), timezone.now(), len(Outcome) - 2
    page = auditor.get(url(tenant, "reports/")).context
    assert next(one["value"] for one in page["figures"] if one["name"] == "failed") == str(failed)
    assert page["tools"][0]["row"].failed == failed
    ends = {"Succeeded": 1, "Failed": failed, "Cancelled": 1, "Refused": 0}
    assert {one["label"]: sum(one["values"]) for one in page["over_time"]["series"]} == ends
    for query in ("", "?duration_min=0"):
        log = auditor.get(url(tenant, query)).context["overview"]
        assert log.totals.failed == failed, query
        assert {one.label: sum(one.values) for one in log.chart.series} == ends, query
    rows = entries_of(tenant.workspace.pk, actor=tenant.actor("owner"))
    wanted = read_filter({"outcome": "failed", "range": "24h"}, now=now)
    assert matching(rows, wanted, actor=tenant.actor("owner")).count() == failed
    assert calls_between(tenant.workspace.pk, now, now).failed == failed
    path, headers = "/api/audit-reports/", {"X-Workspace": tenant.workspace.slug}
    figures = auditor.get(path, headers=headers).json()["figures"]
    assert next(one["now"] for one in figures if one["name"] == "failed") == failed
    if is_sealed:
        hours = TimeRange.around(now - timedelta(hours=1), now)
        assert platform_rows(hours)[tenant.workspace.pk].failed == failed
    stopped = next(one for one in entries if one.outcome == Outcome.CANCELLED)
    event = event_of(stopped)
    assert (event["status_id"], event["severity_id"]) == (99, 1)


def test_the_same_numbers_are_read_over_rest(two_workspaces: TwoTenants) -> None:
    """REL-671, REL-2307: with the page's filters; of the own workspace alone, and for those who may see the log."""
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
    # REL-2307: one fault is one error.
    (error,) = client.get(path, {"range": "year"}, headers=headers).json()["errors"]
    assert (error["attr"], error["detail"]) == ("range", "Use one of: 1h, 24h, 7d, 30d, all.")
    assert tenant.client("member").get(path, headers=headers).status_code == 403


@pytest.mark.both_engines
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
    list(generate(tenant.workspace.pk, 2_600, since=now - timedelta(hours=23), until=now))
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


@pytest.mark.both_engines
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


@pytest.mark.both_engines
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


@pytest.mark.both_engines
@pytest.mark.parametrize("zone", ["UTC", "Europe/Vienna", "America/Los_Angeles", "Asia/Kolkata"])
def test_every_piece_of_time_has_what_a_recount_finds_in_it(tenant: Tenant, zone: str) -> None:
    """REL-1177: by minutes, hours, days, weeks and months, from counters and from entries."""
    now = datetime(2026, 11, 20, 13, 7, 11, tzinfo=UTC)
    list(generate(tenant.workspace.pk, 900, since=now - timedelta(days=500), until=now))
    list(generate(tenant.workspace.pk, 200, since=now - timedelta(hours=3), until=now))
    actor = tenant.actor("auditor")
    rows = entries_of(tenant.workspace.pk, actor=actor)
    tools = rows.filter(action=Action.TOOL_CALL_FINISHED.value).values_list("tool_name", flat=True)
    tool = Counter(tools).most_common(1)[0][0]
    units: dict[str, str] = {}
    found = Counter[bool]()
    for hours in (1, 40, 24 * 30, 24 * 7, 24 * 200, 24 * 500):
        for narrowed in ({}, {"tool": tool}):
            since = (now - timedelta(hours=hours)).isoformat()
            wanted = read_filter({"range": "custom", "since": since, **narrowed}, now=now)
            narrow = matching(rows, replace(wanted, since=None, until=None), actor=actor)
            report = report_of(
                tenant.workspace.pk, narrow, wanted, by="outcome", now=now, zone=ZoneInfo(zone)
            )
            span = report.span
            ended = (Action.TOOL_CALL_FINISHED.value, Action.TOOL_CALL_REFUSED.value)
            inside = narrow.filter(
                action__in=ended, created_at__gte=span.since, created_at__lt=span.until
            )
            recount = Counter(
                begin_of(at, span.unit, span.zone)
                for at in inside.values_list("created_at", flat=True)
            )
            drawn = [
                sum(numbers)
                for numbers in zip(*(line.values for line in report.over_time), strict=True)
            ]
            assert drawn == [recount[piece] for piece in report.pieces], (hours, narrowed)
            assert sum(drawn) == sum(recount.values())
            found[bool(narrowed)] += sum(drawn)
            units[span.unit] = str(span.zone)
    assert found[False] > found[True] > 0
    is_whole = zone != "Asia/Kolkata"
    assert units == {
        "minute": zone,
        "hour": zone,
        **dict.fromkeys(["day", "week", "month"], zone if is_whole else "UTC"),
    }


@pytest.mark.both_engines
def test_an_hour_whose_entries_were_removed_keeps_its_numbers(tenant: Tenant) -> None:
    """REL-1178: only counters know of it then, so it is drawn by hours."""
    workspace_id = tenant.workspace.pk
    noon = datetime(2026, 11, 10, 12, tzinfo=UTC)
    now = noon + timedelta(days=1)
    list(generate(workspace_id, 80, since=noon, until=noon + timedelta(minutes=55)))
    list(generate(workspace_id, 20, since=now - timedelta(minutes=30), until=now))
    rows = entries_of(workspace_id, actor=tenant.actor("auditor"))
    values = {
        "range": "custom",
        "since": noon.isoformat(),
        "until": (noon + timedelta(hours=1)).isoformat(),
    }
    wanted = read_filter(values, now=now)

    def read() -> tuple[str, int]:
        report = report_of(workspace_id, rows, wanted, by="outcome", now=now)
        return report.span.unit, sum(
            value or 0 for line in report.over_time for value in line.values
        )

    unit, calls = read()
    assert unit == "minute"
    assert calls > 0
    AuditTombstone.objects.create(
        chain_id=workspace_id, kind="entries", first_seq=1, last_seq=80, reason="age"
    )
    with connection.cursor() as cursor:  # what retention does behind its tombstone
        cursor.execute(
            "DELETE FROM audit_auditentry WHERE id IN "
            "(SELECT entry_id FROM audit_auditseal WHERE seq <= 80)"
        )
    assert read() == ("hour", calls)


def test_the_page_says_by_what_and_where_it_is_drawn(tenant: Tenant) -> None:
    """REL-1178, REL-2341: an hour by minutes, a year by weeks and with the year, in the person's time zone."""
    now = timezone.now()
    list(generate(tenant.workspace.pk, 300, since=now - timedelta(days=360), until=now))
    list(generate(tenant.workspace.pk, 50, since=now - timedelta(minutes=50), until=now))
    person = tenant.auditor
    person.time_zone = "Europe/Vienna"
    person.save(update_fields=["time_zone"])
    client = tenant.client("auditor")
    hour = (answer := client.get(url(tenant, "reports/?range=1h"))).context
    assert hour["drawn_by"] == "per minute, Europe/Vienna"
    assert all(re.fullmatch(r"\d\d:\d\d", label) for label in hour["over_time"]["labels"])
    written = '<time [^>]*data-local="minute" data-zone="Europe/Vienna">[^<]+</time> to <time'
    assert re.search(written, answer.content.decode())
    since = (now - timedelta(days=360)).isoformat()
    year = client.get(url(tenant, f"reports/?range=custom&since={quote(since)}")).context
    assert year["drawn_by"] == "per week from Monday, Europe/Vienna"
    assert all(re.fullmatch(r"\d+ \w{3} \d{4}", label) for label in year["over_time"]["labels"])
    assert 51 <= len(year["over_time"]["labels"]) <= 53
    assert len(year["over_time"]["starts"]) == len(year["over_time"]["labels"])
    assert (year["over_time"]["zone"], year["over_time"]["has_year"]) == ("Europe/Vienna", True)


def test_no_number_of_other_changes_hides_a_definition_that_changed(tenant: Tenant) -> None:
    """REL-877: page and file list definitions alone, and say how many older ones they leave out."""

    def changed(name: str, after: dict[str, object]) -> None:
        record(
            EntryDraft(
                action=Action.CONFIG_CHANGED,
                actor=tenant.actor("admin"),
                workspace_id=tenant.workspace.pk,
                details={"kind": "tool", "name": name, "before": {}, "after": after},
            )
        )

    most = facts.MOST_CHANGES
    for number in range(most + 2):
        changed(f"tool-{number}", {"definition_hash": f"{number}"})
    for number in range(most + 1):
        changed(f"tool-{number}", {"is_enabled": False})
    page = tenant.client("auditor").get(url(tenant, "reports/"))
    names = [change.tool for change in page.context["changes"].newest]
    assert names == [f"tool-{number}" for number in range(most + 1, 1, -1)]
    text = page.content.decode()
    assert "2 older ones are in the log." in text
    assert "action=config.changed" in page.context["changes_url"]
    report = tenant.client("auditor").get(url(tenant, "reports.pdf"))
    document = PdfDocument(report.content)
    printed = "".join(page.get_textpage().get_text_bounded() for page in document)
    assert "2 more are not in this file." in printed


@pytest.mark.both_engines
def test_generated_entries_are_sealed_and_counted(tenant: Tenant) -> None:
    """Ours: as if they had come one by one."""
    from audit.verification.online import verify

    now = timezone.now()
    list(generate(tenant.workspace.pk, 250, since=now - timedelta(days=2), until=now))
    assert rollups.rolled_up_to(tenant.workspace.pk) == 250
    assert rollups.uncounted_chains() == []
    report = verify(tenant.workspace.pk, actor=tenant.actor("auditor"))
    assert report.result in {"whole", "incomplete"}, "no checkpoint speaks of it yet"


@pytest.mark.both_engines
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


@pytest.mark.both_engines
@pytest.mark.parametrize(
    ("tile", "query"), [("calls", "ended"), ("failed", "failed"), ("refused", "refused")]
)
def test_a_number_leads_to_exactly_its_entries(tenant: Tenant, tile: str, query: str) -> None:
    """Ours: what a report counts is what the list behind it shows."""
    for action, outcome, layer in (
        (Action.TOOL_CALL_FINISHED, Outcome.OK, None),
        (Action.TOOL_CALL_FINISHED, Outcome.TIMEOUT, None),
        (Action.TOOL_CALL_FINISHED, Outcome.TOOL_ERROR, None),
        (Action.TOOL_CALL_FINISHED, Outcome.CANCELLED, None),
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


@pytest.mark.both_engines
@pytest.mark.parametrize("action", ["", "tool_call.finished", "tool_call.refused"])
@pytest.mark.parametrize(
    "outcome", ["", "ended", "failed", "refused", "ok", "timeout", "cancelled"]
)
def test_a_number_of_a_filtered_report_leads_to_its_entries_only(
    tenant: Tenant, outcome: str, action: str
) -> None:
    """REL-1261: a number does not lead past the report's own filters."""
    for kind, ended, layer in (
        (Action.TOOL_CALL_FINISHED, Outcome.OK, None),
        (Action.TOOL_CALL_FINISHED, Outcome.TIMEOUT, None),
        (Action.TOOL_CALL_FINISHED, Outcome.TOOL_ERROR, None),
        (Action.TOOL_CALL_FINISHED, Outcome.CANCELLED, None),
        (Action.TOOL_CALL_REFUSED, None, RefusedBy.POLICY),
        (Action.RESOURCE_READ_FINISHED, Outcome.TIMEOUT, None),
        (Action.RESOURCE_READ_REFUSED, None, RefusedBy.POLICY),
        (Action.APPROVAL_REQUESTED, None, None),
        (Action.CONFIG_CHANGED, None, None),
    ):
        draft = EntryDraft(
            action=kind,
            outcome=ended,
            refused_by=layer,
            actor=tenant.actor("member"),
            workspace_id=tenant.workspace.pk,
        )
        record(draft)
    chosen = urlencode({"range": "24h", "outcome": outcome, "action": action})
    page = tenant.client("auditor").get(url(tenant, f"reports/?{chosen}"))
    rows = entries_of(tenant.workspace.pk, actor=tenant.actor("owner"))
    for figure in page.context["figures"]:
        if figure["name"] not in {"calls", "failed", "refused", "asked", "changes"}:
            continue
        if not figure["url"]:
            assert figure["value"] == "0", figure
            continue
        given = dict(parse_qsl(urlsplit(figure["url"]).query))
        wanted = read_filter(given, now=timezone.now())
        assert not wanted.errors
        found = matching(rows, wanted, actor=tenant.actor("owner")).count()
        assert figure["value"] == str(found), figure


def test_what_is_of_the_whole_workspace_leads_past_the_filters(tenant: Tenant) -> None:
    """REL-1261: the strips of servers count every tool's failures, whatever the report is filtered by."""
    server = http_server(tenant, "https://tools.example.org/mcp", name="garden")
    HealthCheck.objects.create(
        workspace=tenant.workspace, server=server, checked_at=timezone.now(), is_ok=False
    )
    page = tenant.client("auditor").get(url(tenant, "reports/?range=24h&tool=echo"))
    [strip] = page.context["strips"]
    query = parse_qs(urlsplit(strip["url"]).query)
    assert (query["server"], query["action"]) == ([server.name], ["server.error"])
    assert "tool" not in query


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
        assert figures["people"] == "2", query


def a_change(tenant: Tenant, actor: Actor) -> None:
    record(EntryDraft(action=Action.CONFIG_CHANGED, actor=actor, workspace_id=tenant.workspace.pk))
