"""The list of the log with one row for each call."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from audit.actions import Action, Outcome, RefusedBy
from audit.models import AuditEntry
from audit.reports.calls import LOST_AFTER, CallState, row_of
from audit.reports.searching import FEW
from audit.services import record
from bench.invented_log import generate
from tests.audit.reports.call_drafts import draft_of
from tests.audit.views.log_pages import SECRET_ARGUMENT, a_call, a_refusal, url
from tests.factories import Tenant, TwoTenants

pytestmark = pytest.mark.django_db
SORTS = ["time", "action", "server", "tool", "outcome", "duration", "arguments_size", "result_size"]


def rows_of(client: Client, where: str) -> list[Any]:
    return list(client.get(where, headers={"HX-Request": "true"}).context["rows"])


def test_a_call_is_one_row_with_everything_that_happened_to_it(tenant: Tenant) -> None:
    """REL-400."""
    call = uuid4()
    asked = draft_of(tenant, Action.APPROVAL_REQUESTED, call_id=call)
    record(asked)
    record(replace(asked, action=Action.APPROVAL_GRANTED, actor=tenant.actor("admin")))
    record(replace(asked, action=Action.TOOL_CALL_REQUESTED))
    end = record(
        replace(
            asked, action=Action.TOOL_CALL_FINISHED, outcome=Outcome.TIMEOUT, duration_ms=30_400
        )
    )
    page = tenant.client("auditor").get(f"{url(tenant)}?server=mail")
    (row,) = page.context["rows"]
    assert (str(row.title), str(row.outcome), row.tone) == ("Tool call", "Timed out", "bad")
    assert (row.took, row.page_of) == ("30 s", end.pk)
    assert row.entry.actor_label == tenant.member.email, "who asked, not who approved"
    assert [one.action for one in row.entries] == [
        *("approval.requested", "approval.granted", "tool_call.requested", "tool_call.finished")
    ]
    assert tenant.admin.email.encode() in page.content
    assert page.content.count(b"data-unfold") == 1


def test_a_refused_call_says_why(tenant: Tenant) -> None:
    """REL-400: in its own words if it has any, else by the layer that refused it."""
    text = "The quota of 5 calls a day is used up."
    record(
        draft_of(
            tenant,
            Action.TOOL_CALL_REFUSED,
            call_id=uuid4(),
            refused_by=RefusedBy.QUOTA,
            details={"reason": text},
        )
    )
    record(
        draft_of(tenant, Action.TOOL_CALL_REFUSED, call_id=uuid4(), refused_by=RefusedBy.QUARANTINE)
    )
    rows = rows_of(tenant.client("auditor"), f"{url(tenant)}?server=mail")
    assert [str(row.reason) for row in rows] == ["The tool is held for review.", text]
    assert {(str(row.outcome), row.tone) for row in rows} == {("Refused", "warn")}


@pytest.mark.parametrize(
    ("actions", "state"),
    [
        (["approval.requested"], CallState.WAITING),
        (["approval.requested", "approval.refused"], CallState.NOT_APPROVED),
        (["approval.requested", "approval.expired"], CallState.NOT_APPROVED),
        (["approval.requested", "approval.granted", "tool_call.refused"], CallState.REFUSED),
        (["tool_call.requested"], CallState.RUNNING),
        (["tool_call.requested", "input.requested"], CallState.WAITING),
        (["tool_call.requested", "input.requested", "input.answered"], CallState.RUNNING),
        (["tool_call.requested", "tool_call.finished"], CallState.ENDED),
        (["prompt_get.refused"], CallState.REFUSED),
    ],
)
def test_the_state_of_a_call_is_told_by_its_entries(actions: list[str], state: CallState) -> None:
    """REL-400."""
    start = timezone.now()
    entries = [
        AuditEntry(action=action, created_at=start + timedelta(seconds=place), call_id=uuid4())
        for place, action in enumerate(actions)
    ]
    assert row_of(entries[0], reversed(entries), now=start).state is state
    if state is CallState.RUNNING:
        later = start + LOST_AFTER + timedelta(minutes=1)
        assert row_of(entries[0], entries, now=later).state is CallState.LOST


def test_an_end_that_became_known_later_counts(tenant: Tenant) -> None:
    """REL-400: over "unknown", whichever was written first."""
    call = uuid4()
    end = draft_of(tenant, Action.TOOL_CALL_FINISHED, call_id=call)
    record(replace(end, action=Action.TOOL_CALL_LEARNED, outcome=Outcome.OK))
    record(replace(end, outcome=Outcome.OUTCOME_UNKNOWN))
    (row,) = rows_of(tenant.client("auditor"), f"{url(tenant)}?server=mail")
    assert str(row.outcome) == "Succeeded"


def test_a_call_is_shown_if_one_of_its_entries_fits(tenant: Tenant) -> None:
    """REL-400: whole, once; and entries that belong to no call stay rows of their own."""
    a_call(tenant)
    a_call(tenant, outcome=Outcome.TIMEOUT)
    a_refusal(tenant)
    client = tenant.sign_in("auditor")
    for query, lengths in {
        "outcome=timeout": [2],
        "action=tool_call.requested": [2, 2],
        "action=tool_call.finished": [2, 2],
        "duration_min=1": [2, 2],
        f"words={SECRET_ARGUMENT}": [2, 2],
        "server=notes": [0, 2, 2],
        "range=all": [0, 0, 2, 2],
        "tool=nothing": [],
    }.items():
        rows = rows_of(client, f"{url(tenant)}?{query}")
        assert [len(row.entries) for row in rows] == lengths, query


def test_words_of_calls_stay_with_those_who_may_read_them(tenant: Tenant) -> None:
    """SEC-105: one row for a call tells an admin no more than the entries do."""
    a_call(tenant)
    where = f"{url(tenant)}?words={SECRET_ARGUMENT}"
    assert rows_of(tenant.client("admin"), where) == []
    assert len(rows_of(tenant.client("auditor"), where)) == 1
    whole = tenant.client("auditor").get(url(tenant))
    assert SECRET_ARGUMENT.encode() not in whole.content


def test_frequent_words_are_found_in_each_entry_of_a_call(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REL-400: the words are asked of the entry at hand, not of the one that it is compared with."""
    monkeypatch.setattr("audit.reports.searching.FREQUENT", 0)
    end = a_call(tenant)
    client = tenant.client("auditor")
    (row,) = rows_of(client, f"{url(tenant)}?words=done")
    assert row.at == end.created_at, "only its end holds the word"
    assert len(rows_of(client, f"{url(tenant)}?words={SECRET_ARGUMENT}")) == 1


def test_pages_hold_each_call_once_in_every_order(tenant: Tenant) -> None:
    """REL-400: forwards and back, while calls end and new ones come."""
    now = timezone.now() - timedelta(hours=2)
    list(generate(tenant.workspace.pk, 250, since=now - timedelta(hours=10), until=now))
    rows = AuditEntry.objects.for_workspace(tenant.workspace).filter(source="chat")
    calls = set(rows.exclude(call_id=None).values_list("call_id", flat=True))
    others = set(rows.filter(call_id=None).values_list("pk", flat=True))
    client = tenant.client("auditor")
    for sort in SORTS:
        for order in ("", "asc"):
            seen: list[UUID] = []
            pages, where, last = 0, f"{url(tenant)}?source=chat&sort={sort}&order={order}", ""
            while where:
                answer = client.get(where, headers={"HX-Request": "true"})
                found = answer.context["entries"]
                seen += [entry.call_id or entry.pk for entry in found]
                last, where, pages = where, answer.context["older_url"], pages + 1
            assert len(seen) == len(set(seen)), sort
            assert pages > 1 or sort != "time"
            if sort in {"time", "action"}:
                assert set(seen) == calls | others, sort
            where = client.get(last, headers={"HX-Request": "true"}).context["newer_url"]
            back: list[UUID] = []
            while where:
                answer = client.get(where, headers={"HX-Request": "true"})
                page = [entry.call_id or entry.pk for entry in answer.context["entries"]]
                back, where = page + back, answer.context["newer_url"]
            assert back == seen[: len(back)], sort


def test_a_call_that_ends_meanwhile_keeps_its_place(tenant: Tenant) -> None:
    """REL-400."""
    drafts = [draft_of(tenant, Action.TOOL_CALL_REQUESTED, call_id=uuid4()) for _ in range(60)]
    for draft in drafts:
        record(draft)
    client = tenant.client("auditor")
    first = client.get(f"{url(tenant)}?server=mail", headers={"HX-Request": "true"})
    for draft in drafts:
        record(replace(draft, action=Action.TOOL_CALL_FINISHED, outcome=Outcome.OK))
    second = client.get(first.context["older_url"], headers={"HX-Request": "true"})
    seen = [entry.call_id for page in (first, second) for entry in page.context["entries"]]
    assert seen == [draft.call_id for draft in reversed(drafts)]


def test_a_page_of_calls_takes_as_many_statements_with_10000_rows(tenant: Tenant) -> None:
    """REL-401."""
    client = tenant.client("auditor")
    where = f"{url(tenant)}?range=all"

    def statements() -> int:
        with CaptureQueriesContext(connection) as captured:
            assert len(rows_of(client, where)) > 0
        return len(captured)

    now = timezone.now()
    list(generate(tenant.workspace.pk, 50, since=now - timedelta(days=5), until=now))
    rows_of(client, where)
    few = statements()
    list(generate(tenant.workspace.pk, 10_000, since=now - timedelta(days=5), until=now))
    assert statements() == few <= 15


@pytest.mark.sqlite
def test_the_entries_of_a_call_are_found_by_it_on_sqlite(tenant: Tenant) -> None:
    """REL-401: neither statement reads the workspace to find a call's entries, whatever the filter."""
    a_call(tenant)
    client = tenant.client("auditor")
    for query in (
        "range=24h",
        "tool=echo",
        "action=tool_call.finished",
        f"user={tenant.member.pk}",
    ):
        with CaptureQueriesContext(connection) as captured:
            rows_of(client, f"{url(tenant)}?{query}")
        asked = [one["sql"] for one in captured if "call_id" in one["sql"].partition("WHERE")[2]]
        assert len(asked) == 2, query
        for sql in asked:
            with connection.cursor() as cursor:
                cursor.execute(f"EXPLAIN QUERY PLAN {sql}")
                plan = [str(row[-1]) for row in cursor.fetchall()]
            assert any("audit_of_call (call_id=? AND workspace_id=?" in one for one in plan), plan


def test_calls_of_two_workspaces_are_kept_apart(two_workspaces: TwoTenants) -> None:
    """SEC-01: also if they had one id."""
    call = uuid4()
    for tenant in (two_workspaces.a, two_workspaces.b):
        record(draft_of(tenant, Action.TOOL_CALL_REQUESTED, call_id=call))
    (row,) = rows_of(two_workspaces.a.client("auditor"), f"{url(two_workspaces.a)}?server=mail")
    assert [one.workspace_id for one in row.entries] == [two_workspaces.a.workspace.pk]


def test_a_person_sees_the_calls_of_their_own(tenant: Tenant) -> None:
    """SEC-105: in their activity, with their own entries only."""
    asked = draft_of(tenant, Action.APPROVAL_REQUESTED, call_id=uuid4())
    record(asked)
    record(replace(asked, action=Action.APPROVAL_GRANTED, actor=tenant.actor("admin")))
    record(replace(asked, action=Action.TOOL_CALL_REQUESTED))
    activity = f"/w/{tenant.workspace.slug}/activity/?tool=send"
    (row,) = rows_of(tenant.client("member"), activity)
    assert [one.action for one in row.entries] == ["approval.requested", "tool_call.requested"]
    (row,) = rows_of(tenant.client("admin"), activity)
    assert [one.action for one in row.entries] == ["approval.granted"]


def test_around_an_entry_are_the_minute_before_and_after(tenant: Tenant) -> None:
    """REL-403: from its page, and from its call in the list."""
    end = a_call(tenant)
    a_refusal(tenant)
    client = tenant.client("auditor")
    (row,) = [one for one in rows_of(client, f"{url(tenant)}?tool=echo") if one.entries]
    page = client.get(url(tenant, f"{end.pk}/"))
    for where in (row.around, page.context["around_url"]):
        wanted = client.get(where).context
        assert not wanted["filter_errors"]
        assert not wanted["shows_calls"]
        assert {"tool_call.requested", "tool_call.finished", "tool_call.refused"} <= {
            entry.action for entry in wanted["entries"]
        }
        length = wanted["until"] - wanted["since"]
        assert timedelta(minutes=2) <= length < timedelta(minutes=3)
    alone = client.get(row.alone).context["entries"]
    assert {entry.call_id for entry in alone} == {end.call_id}
    assert len(alone) == 2


def test_every_id_of_an_entry_leads_to_the_entries_with_it(tenant: Tenant) -> None:
    """REL-403: and in one's own activity, where there is no log to see, to nothing."""
    end = a_call(tenant)
    client = tenant.client("auditor")
    page = client.get(url(tenant, f"{end.pk}/"))
    facts = {fact.label: fact for _, rows in page.context["facts"] for fact in rows}
    for label in ("Actor", "Server", "Tool", "Call", "Entry"):
        found = client.get(facts[label].url).context
        assert not found["filter_errors"], label
        assert end.call_id in {entry.call_id for entry in found["entries"]}, label
    opened = AuditEntry.objects.for_workspace(tenant.workspace).get(action="body.opened")
    facts_opened = client.get(url(tenant, f"{opened.pk}/")).context["facts"]
    linked = {fact.label: fact.url for _, rows in facts_opened for fact in rows}
    assert str(end.pk) in linked["entry"]
    assert str(end.call_id) in linked["call"]
    own = tenant.client("member").get(f"/w/{tenant.workspace.slug}/activity/{end.pk}/")
    assert not any(fact.url for _, rows in own.context["facts"] for fact in rows)


@pytest.mark.sqlite
@pytest.mark.parametrize("name", ["request", "trace"])
def test_what_few_entries_have_is_found_by_its_index_on_sqlite(tenant: Tenant, name: str) -> None:
    """REL-1863: SQLite takes an index of values that are not empty where the statement says so."""
    client = tenant.client("auditor")
    now = timezone.now()
    list(generate(tenant.workspace.pk, 2_000, since=now - timedelta(days=5), until=now))
    with CaptureQueriesContext(connection) as captured:
        assert not rows_of(client, f"{url(tenant)}?range=all&{name}=nosuch")
    narrowed = [one["sql"] for one in captured if f'"{name}_id" = ' in one["sql"]]
    assert narrowed
    for sql in narrowed:
        with connection.cursor() as cursor:
            cursor.execute(f"EXPLAIN QUERY PLAN {sql}")
            plan = [str(row[-1]) for row in cursor.fetchall()]
        assert any(f"INDEX audit_at_{name} (" in one for one in plan), (sql, plan)


@pytest.mark.parametrize("rule", ["deny", "nosuch"])
def test_a_filter_that_finds_few_reads_the_log_once_for_all_numbers(
    tenant: Tenant, rule: str
) -> None:
    """REL-1864: no index knows it, so each further number would read the whole log again; in reports, too."""
    client = tenant.client("auditor")
    a_refusal(tenant)
    with CaptureQueriesContext(connection) as captured:
        answer = client.get(f"{url(tenant)}?range=all&rule={rule}")
    assert answer.context["overview"].entries == (rule == "deny")
    assert answer.context["totals"].refused == (rule == "deny")
    narrowed = [one["sql"] for one in captured if '"rule" = ' in one["sql"]]
    assert len(narrowed) == 2, "the page, and its numbers"
    with CaptureQueriesContext(connection) as captured:
        answer = client.get(f"{url(tenant)}reports/?range=all&rule={rule}")
    assert answer.context["is_empty"] == (rule != "deny")
    narrowed = [one["sql"] for one in captured if '"rule" = ' in one["sql"]]
    assert len(narrowed) == 3, "its numbers, the slowest calls, and changed definitions"


def test_a_filter_that_finds_many_is_counted_in_few_statements(tenant: Tenant) -> None:
    """REL-1932: each of them reads all that the filter finds."""
    client = tenant.client("auditor")
    now = timezone.now()
    list(generate(tenant.workspace.pk, 4_000, since=now - timedelta(days=5), until=now))
    with CaptureQueriesContext(connection) as captured:
        answer = client.get(f"{url(tenant)}?range=all&result_size_min=2")
    rows = AuditEntry.objects.for_workspace(tenant.workspace).filter(result_size__gt=1)
    assert answer.context["overview"].entries == rows.count() > FEW
    assert answer.context["totals"].calls == rows.filter(action="tool_call.finished").count()
    narrowed = [one["sql"] for one in captured if '"result_size" >' in one["sql"]]
    assert len(narrowed) == 5, "the page, whether they are few, totals, percentile and chart"
    with CaptureQueriesContext(connection) as captured:
        client.get(f"{url(tenant)}reports/?range=all&result_size_min=2")
    narrowed = [one["sql"] for one in captured if '"result_size" >' in one["sql"]]
    assert len(narrowed) <= 12, "most of them for this time and for the one before"


def test_calls_by_duration_are_counted_by_the_counters(tenant: Tenant) -> None:
    """REL-1933: they know how many entries have a duration, so that no entries are read for the numbers."""
    client = tenant.client("auditor")
    now = timezone.now()
    list(generate(tenant.workspace.pk, 2_000, since=now - timedelta(days=5), until=now))
    a_call(tenant)
    rows = AuditEntry.objects.for_workspace(tenant.workspace).filter(duration_ms__isnull=False)
    for query, fits in (
        ("", {}),
        ("&server=notes", {"server_name": "notes"}),
        ("&tool=read_notes&outcome=ok", {"tool_name": "read_notes", "outcome": "ok"}),
    ):
        with CaptureQueriesContext(connection) as captured:
            answer = client.get(f"{url(tenant)}?range=all&sort=duration{query}")
        assert answer.context["overview"].entries == rows.filter(**fits).count() > 1, query
        assert answer.context["totals"].calls == rows.filter(**fits).count(), query
        counted = [one["sql"] for one in captured if 'COUNT("audit_auditentry"' in one["sql"]]
        hours = [sql for sql in counted if '"created_at" ' in sql.partition("WHERE")[2]]
        assert hours == counted, "those at both edges alone"
