"""Filters of alert rules: the log's language, what a rule counts by it, and the way into the log."""

from __future__ import annotations

import html
import json
import re
from datetime import timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from django.core import mail
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from audit.actions import Action, Outcome, RefusedBy
from audit.alerts import delivery, evaluation
from audit.alerts.conditions import measure
from audit.alerts.words import condition_of
from audit.models import Alert, AlertDelivery, AlertRule, AuditEntry, Notice
from audit.services import EntryDraft, record
from tests.audit.alerts.entries import write
from tests.audit.alerts.rules import CALL, CONDITION, make_rule
from tests.factories import Tenant, TwoTenants
from workspaces.actors import Source
from workspaces.errors import InvalidInput

pytestmark = pytest.mark.django_db
REFUSED = Action.TOOL_CALL_REFUSED
RULES = "/api/alert-rules/"
BODY = {"name": "x", "condition": "timeout", "threshold": 1, "window_minutes": 15}
FORM = {**BODY, "least_calls": 1, "remind_hours": 0}


def value_of(rule: AlertRule) -> float:
    return measure(rule, timezone.now())


def ask(tenant: Tenant, path: str, body: Any, verb: str = "post", role: str = "owner") -> Any:
    headers = {"X-Workspace": tenant.workspace.slug}
    call = getattr(tenant.client(role), verb)
    return call(path, body, content_type="application/json", headers=headers)


@pytest.mark.parametrize(
    ("condition", "query", "found", "others"),
    [
        (CONDITION.TIMEOUT, "tool:read", {"tool": "read"}, {"tool": "write"}),
        (CONDITION.TIMEOUT, "server:files tool:read", {"server": "files", "tool": "read"}, {}),
        (CONDITION.TIMEOUT, "duration:>5s", {"duration_ms": 6_000}, {"duration_ms": 5_000}),
        (CONDITION.TIMEOUT, "source:chat person:member", {}, {"by": "admin"}),
        (CONDITION.CONNECTION, "server:files", {"server": "files"}, {"server": "mail"}),
        (CONDITION.ENTRIES, "outcome:failed tool:read", {"tool": "read"}, {"tool": "write"}),
        (CONDITION.ENTRIES, "q=tool%3Aread&range=24h", {"tool": "read"}, {"tool": "write"}),
    ],
)
def test_a_rule_counts_what_its_filter_finds(
    tenant: Tenant, condition: str, query: str, found: dict[str, Any], others: dict[str, Any]
) -> None:
    """REL-1170: typed, or as an address of the log has it."""
    outcome = Outcome.TRANSPORT_ERROR if condition == CONDITION.CONNECTION else Outcome.TIMEOUT
    rule = make_rule(tenant, condition, query=query)
    if others:
        write(tenant, CALL, outcome=outcome, **others)
    assert value_of(rule) == 0
    write(tenant, CALL, outcome=outcome, **found)
    assert value_of(rule) == 1


def test_rates_refusals_and_waiting_approvals_are_filtered_too(tenant: Tenant) -> None:
    """REL-1170: of an error rate, both the failed calls and all calls."""
    rate = make_rule(tenant, CONDITION.ERROR_RATE, query="tool:read", least_calls=2)
    by_policy = make_rule(tenant, CONDITION.REFUSAL, query="refused:policy")
    waiting = make_rule(tenant, CONDITION.APPROVAL, query="tool:read", window_minutes=10)
    for tool, outcome in (
        *(("read", Outcome.TIMEOUT), ("read", Outcome.OK)),
        *(("write", Outcome.OK), ("write", Outcome.OK)),
    ):
        write(tenant, CALL, outcome=outcome, tool=tool)
    for layer in (RefusedBy.POLICY, RefusedBy.QUOTA):
        write(tenant, REFUSED, refused_by=layer)
    for tool in ("read", "write"):
        write(tenant, Action.APPROVAL_REQUESTED, tool=tool)
    assert value_of(rate) == 50
    assert value_of(by_policy) == 1
    assert measure(waiting, timezone.now() + timedelta(minutes=11)) == 1


def test_a_rule_of_before_looks_at_its_server_and_tool_still(tenant: Tenant) -> None:
    """REL-1170: the filter narrows it further, and its form shows all of it as one text."""
    rule = make_rule(tenant, CONDITION.TIMEOUT, server_name="my files", query="person:member")
    write(tenant, CALL, outcome=Outcome.TIMEOUT, server="mail")
    write(tenant, CALL, outcome=Outcome.TIMEOUT, server="my files", by="admin")
    assert value_of(rule) == 0
    write(tenant, CALL, outcome=Outcome.TIMEOUT, server="my files")
    assert value_of(rule) == 1
    client, path = tenant.client("owner"), f"/w/{tenant.workspace.slug}/audit/alerts/{rule.pk}/"
    shown = html.unescape(client.get(path).content.decode())
    assert 'server:"my files" person:member' in shown
    client.post(path, {**FORM, "query": 'server:"my files" person:member'})
    rule.refresh_from_db()
    assert (rule.server_name, rule.query) == ("", 'server:"my files" person:member')
    assert value_of(rule) == 1


@pytest.mark.parametrize(
    ("condition", "query", "message"),
    [
        (CONDITION.TIMEOUT, "tol:read", "Did you mean “tool”?"),
        (CONDITION.TIMEOUT, "since:7d", "A rule has its own time window"),
        (CONDITION.TIMEOUT, "sort:tool", "A rule only counts"),
        (CONDITION.TIMEOUT, "outcome:refused", "Leave outcome: out"),
        (CONDITION.TIMEOUT, "refused:quota", "Leave refused: out"),
        (CONDITION.TIMEOUT, "action:config.changed", "counts no entries of that action"),
        (CONDITION.ENTRIES, "action:alert.raised", "counts no entries of that action"),
        (CONDITION.ENTRIES, "", "Say which entries"),
        (CONDITION.SPENDING, "tool:read", "takes no filter"),
        (CONDITION.TAMPERING, "tool:read", "takes no filter"),
        (CONDITION.TIMEOUT, 'tool:"x', "quotation mark"),
    ],
)
def test_what_does_not_fit_is_told_at_the_filter(
    tenant: Tenant, condition: str, query: str, message: str
) -> None:
    """REL-1171: on the page, over REST, and before a preview."""
    client = tenant.client("owner")
    add = f"/w/{tenant.workspace.slug}/audit/alerts/add/"
    for more in ({}, {"preview": "1"}):
        page = client.post(add, {**FORM, **more, "condition": condition, "query": query})
        assert page.status_code == 422
        form = page.content.decode()
        assert message in html.unescape(form)
        assert re.search(r'name="query"[^>]*aria-invalid="true"', form)
    for path in (RULES, f"{RULES}preview/"):
        answer = ask(tenant, path, {**BODY, "condition": condition, "query": query})
        assert answer.status_code == 422
        told_there = [one["detail"] for one in answer.json()["errors"] if one["attr"] == "query"]
        assert message in " ".join(told_there)
    assert not AlertRule.objects.for_workspace(tenant.workspace).exists()


def test_a_filter_that_contradicts_the_server_of_the_rule_is_refused(tenant: Tenant) -> None:
    """REL-1171: it would never find anything."""
    with pytest.raises(InvalidInput) as refused:
        make_rule(tenant, CONDITION.TIMEOUT, server_name="files", query="server:mail")
    assert "The rule is for “files” already" in refused.value.fields["query"][0]


def test_no_rule_searches_what_calls_sent_and_gave(tenant: Tenant) -> None:
    """SEC-574: owners who are no auditors would else learn by counting what they may not read."""
    for query in ("hunter2", '"hunter2"', "words=hunter2", "tool:read hunter2"):
        for condition in (CONDITION.TIMEOUT, CONDITION.ENTRIES):
            body = {**BODY, "condition": condition, "query": query}
            for path in (RULES, f"{RULES}preview/"):
                answer = ask(tenant, path, body)
                assert answer.status_code == 422
                assert "can't search for words" in answer.content.decode()
    rule = make_rule(tenant, CONDITION.TIMEOUT, query="tool:read")
    AlertRule.objects.for_workspace(tenant.workspace).update(query="tool:read hunter2")
    rule.refresh_from_db()
    write(tenant, CALL, outcome=Outcome.TIMEOUT, tool="read", arguments=b'{"note": "hunter2"}')
    assert value_of(rule) == 0


def test_a_filter_finds_nothing_of_another_workspace(two_workspaces: TwoTenants) -> None:
    """SEC-575: neither in its count nor in its preview; ids of theirs find nothing."""
    a, b = two_workspaces.a, two_workspaces.b
    theirs = write(b, CALL, outcome=Outcome.TIMEOUT, tool="read")
    for query in ("tool:read", f"entry:{theirs.pk}", f"person:{b.member.pk}"):
        assert value_of(make_rule(a, CONDITION.ENTRIES, query=query)) == 0
        answer = ask(a, f"{RULES}preview/", {**BODY, "condition": "entries", "query": query})
        assert answer.json()["value"] == 0
    named = make_rule(a, CONDITION.ENTRIES, query=f"person:{b.member.pk}")
    assert b.member.email not in condition_of(named)


def test_an_alert_says_what_was_filtered_and_leads_to_it(tenant: Tenant) -> None:
    """REL-1172: in mail, webhook, bell and log; the page of the log shows what was counted."""
    rule = make_rule(
        tenant,
        CONDITION.TIMEOUT,
        query="tool:read person:member",
        emails=["oncall@example.org"],
        webhook_url="https://hooks.example.org/x",
    )
    mine = write(tenant, CALL, outcome=Outcome.TIMEOUT, tool="read")
    write(tenant, CALL, outcome=Outcome.TIMEOUT, tool="write")
    evaluation.evaluate(rule, timezone.now())
    words = "At least 1 timeout within 15 minutes (Tool: read · Name of the actor: member*)"
    payload = AlertDelivery.objects.for_workspace(tenant.workspace).get(channel="webhook").payload
    assert payload["data"]["condition"] == words
    assert payload["data"]["filter"] == "tool:read person:member"
    AlertDelivery.objects.for_workspace(tenant.workspace).filter(channel="webhook").delete()
    delivery.deliver_due()
    [message] = mail.outbox
    assert words in message.body
    notice = Notice.objects.for_workspace(tenant.workspace).first()
    assert notice is not None
    assert words in notice.text
    raised = AuditEntry.objects.for_workspace(tenant.workspace).get(action="alert.raised")
    assert raised.details["filter"] == "tool:read person:member"
    later = write(tenant, CALL, outcome=Outcome.TIMEOUT, tool="read")
    for url in (payload["data"]["url"], str(message.body).split("\n\n")[1], notice.url):
        address = urlsplit(url)
        given = {name: value for name, [value] in parse_qs(address.query).items()}
        assert given["outcome"] == "timeout"
        page = tenant.client("owner").get(address.path, given)
        assert [entry.pk for entry in page.context["entries"]] == [mine.pk]
    page = tenant.client("owner").get(f"/w/{tenant.workspace.slug}/audit/alerts/")
    shown = html.unescape(page.content.decode())
    assert words in shown
    link = re.search(r'href="([^"]*outcome=timeout[^"]*)"', shown)
    assert link is not None
    now = tenant.client("owner").get(link[1])
    assert {entry.pk for entry in now.context["entries"]} == {mine.pk, later.pk}
    listed = ask(tenant, "/api/alerts/", None, verb="get").json()["results"]
    assert "outcome=timeout" in listed[0]["log_url"]


def test_alerts_on_entries_do_not_raise_themselves(tenant: Tenant) -> None:
    """REL-1173: what alerts write is not counted, so an end is an end."""
    rule = make_rule(tenant, CONDITION.ENTRIES, query="kind:system", window_minutes=10)
    record(
        EntryDraft(
            action=Action.SERVER_ERROR,
            actor=tenant.actor("member", Source.TASK).system(
                label="health", source=Source.TASK, workspace_id=tenant.workspace.pk
            ),
            workspace_id=tenant.workspace.pk,
        )
    )
    now = timezone.now()
    assert evaluation.evaluate(rule, now) is not None
    for minutes in (11, 12, 13):
        assert evaluation.evaluate(rule, now + timedelta(minutes=minutes)) is None
    assert Alert.objects.for_workspace(tenant.workspace).count() == 1


@pytest.mark.parametrize(
    "condition", sorted(set(CONDITION.values) - {CONDITION.TAMPERING, CONDITION.SPENDING})
)
def test_a_look_is_one_bounded_statement_whatever_the_filter(
    tenant: Tenant, condition: str
) -> None:
    """REL-1174: and every statement says of which workspace and since when."""
    rule = make_rule(tenant, condition, query="tool:read person:ada duration:>500")
    with CaptureQueriesContext(connection) as queries:
        value_of(rule)
    [query] = [one["sql"] for one in queries]
    assert '"workspace_id" = ' in query
    assert '"created_at" >= ' in query


def test_a_preview_says_what_a_rule_would_count_and_keeps_nothing(tenant: Tenant) -> None:
    """REL-1175: on the forms and over REST, for whoever may make the rule.

    REL-1732: what it counted opens beside the form.
    """
    for tool in ("read", "read", "write"):
        write(tenant, CALL, outcome=Outcome.TIMEOUT, tool=tool)
    body = {**BODY, "threshold": 2, "query": "tool:read"}
    answer = ask(tenant, f"{RULES}preview/", body).json()
    assert (answer["value"], answer["threshold"], answer["would_alert"]) == (2, 2, True)
    where = urlsplit(answer["log_url"])
    seen = tenant.client("owner").get(f"{where.path}?{where.query}")
    assert len(seen.context["entries"]) == 2
    assert ask(tenant, f"{RULES}preview/", {**body, "threshold": 3}).json()["would_alert"] is False
    assert ask(tenant, f"{RULES}preview/", body, role="admin").status_code == 403
    client, alerts = tenant.client("owner"), f"/w/{tenant.workspace.slug}/audit/alerts/"
    form = {**FORM, "preview": "1", "query": "tool:read", "threshold": 3}
    page = client.post(f"{alerts}add/", form)
    assert page.status_code == 200
    assert "Now: 2 timeouts. This rule would stay quiet until 3 timeouts." in page.content.decode()
    assert 'target="_blank" rel="noopener">Show in the log' in page.content.decode()
    assert not AlertRule.objects.for_workspace(tenant.workspace).exists()
    rule = make_rule(tenant, CONDITION.TIMEOUT, threshold=7)
    page = client.post(f"{alerts}{rule.pk}/", {**form, "threshold": 2})
    assert "Now: 2 timeouts. This rule would alert, at 2 timeouts or more." in page.content.decode()
    rule.refresh_from_db()
    assert rule.threshold == 7
    changes = AuditEntry.objects.for_workspace(tenant.workspace).filter(action="config.changed")
    assert changes.get().details["verb"] == "created", "of the rule itself"


def test_the_form_completes_filters_as_the_log_does(tenant: Tenant) -> None:
    """REL-1176: names and values that the log holds; a time and an order are not offered."""
    write(tenant, CALL, outcome=Outcome.OK, server="files", tool="read")
    rule = make_rule(tenant, CONDITION.TIMEOUT)
    alerts = f"/w/{tenant.workspace.slug}/audit/alerts/"
    for path in (alerts, f"{alerts}{rule.pk}/"):
        page = tenant.client("owner").get(path).content.decode()
        assert 'data-filter-text="known-filters"' in page
        found = re.search(r'<script id="known-filters"[^>]*>(.*?)</script>', page)
        assert found is not None
        known = json.loads(found[1])
        assert known["values"]["tool"] == ["read"]
        names = {name for name, _help in known["keys"]}
        assert {"tool", "server", "person", "outcome"} <= names
        assert not names & {"since", "until", "sort"}
    seen = tenant.client("auditor").get(alerts).content.decode()
    assert "known-filters" not in seen


def test_a_changed_filter_is_an_entry(tenant: Tenant) -> None:
    """REL-1170: with what it was before."""
    rule = make_rule(tenant, CONDITION.TIMEOUT, query="tool:read")
    answer = ask(tenant, f"{RULES}{rule.pk}/", {"query": "tool:write"}, verb="patch")
    assert answer.json()["rule"]["query"] == "tool:write"
    changed = AuditEntry.objects.for_workspace(tenant.workspace).filter(action="config.changed")
    entry = changed.order_by("-id")[0]
    assert entry.details["before"] == {"query": "tool:read"}
    assert entry.details["after"] == {"query": "tool:write"}
