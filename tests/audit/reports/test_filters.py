"""Filters as people type them, and everything that takes them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.utils import timezone

from audit.filters import KEYS, read_filter
from audit.models import AuditEntry, ReportSchedule
from audit.reviews.stored_filters import filter_of
from tests.audit.views.log_pages import SECRET_ARGUMENT, a_call, a_refusal, url
from tests.factories import Tenant

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)
ID = "0192f0c0-0000-7000-8000-000000000000"


def fields_of(text: str) -> dict[str, str]:
    return {name: value for name, value in read_filter({"q": text}, now=NOW).typed.items() if value}


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("", {}),
        ("tool:mail.send outcome:refused", {"tool": "mail.send", "outcome": "refused"}),
        ("TOOL:Send", {"tool": "Send"}),
        ('bud:"Help desk"', {"bud": "Help desk"}),
        (r'bud:"a \"b\" \\ c"', {"bud": r"a " + '"b"' + r" \ c"}),
        ("person:ada", {"label": "ada*"}),
        ("person:ada@x.example", {"label": "ada@x.example"}),
        (f"person:{ID}", {"user": ID}),
        ("who:ada", {"label": "ada*"}),
        ("since:7d", {"range": "custom", "since": "7d"}),
        ("since:2026-11-01 until:1d", {"range": "custom", "since": "2026-11-01", "until": "1d"}),
        (
            "refused:quota kind:user source:web",
            {"refused_by": "quota", "kind": "user", "source": "web"},
        ),
        ("duration:>2s", {"duration_min": "2001"}),
        ("duration:<=500", {"duration_max": "500"}),
        ("duration:500ms", {"duration_min": "500", "duration_max": "500"}),
        ("arguments:100..", {"arguments_size_min": "100"}),
        ("result:100..200", {"result_size_min": "100", "result_size_max": "200"}),
        (f"call:{ID} sort:duration", {"call": ID, "sort": "duration"}),
        ('two words "http://x:1"', {"words": "two words http://x:1"}),
    ],
)
def test_what_is_typed_is_read(text: str, values: dict[str, str]) -> None:
    """REL-402, REL-2446."""
    assert fields_of(text) == values
    assert read_filter({"q": text}, now=NOW).errors == ()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("tol:x", "“tol” is no filter. Did you mean “tool”?"),
        ("http://x", "put it in quotation marks"),
        ("outcome:refusd", "Did you mean “refused”?"),
        ("action:nothing-like-it", "has no value"),
        (
            "outcome:ok-ish",
            "It is one of: cancelled, ended, failed, outcome_unknown, refused, succ",
        ),
        ("tool:a tool:b", "is given twice"),
        ("bud:", "needs a value"),
        ('"open', "A quotation mark is missing"),
        ('tool:"a', "A quotation mark is missing"),
        ('a"b', "A quotation mark is missing"),
        ("since:last-week", "is not a date and time, such as 2026-11-26"),
        ("since:1d until:3d", "must be before"),
        ("duration:long", "takes a number"),
        ("duration:<0", "less than 0"),
        ("duration:..", "takes a number"),
        ("result:5s", "takes a number"),
        (f"duration:>{2**63}", "whole number"),
        ("call:123", "is not an id"),
        ("ip:1.2", "is not an address"),
        ("tool:" + "x" * 300, "at most 256 characters"),
        ("x" * 300, "at most 256 characters"),
        ("x " * 1500, "too long"),
        ("x " * 51, "more than 50 filters"),
        ("since:99999w", ""),
    ],
)
def test_a_typo_is_told_and_the_text_stays(text: str, message: str) -> None:
    """REL-402: nothing is silently ignored, and nothing raises."""
    wanted = read_filter({"q": text}, now=NOW)
    assert message in " ".join(wanted.text_errors)
    assert bool(wanted.text) is bool(message)
    assert set(wanted.text_errors) <= set(wanted.errors)


def test_every_filter_can_be_typed() -> None:
    """REL-402: whatever name is offered is read."""
    for name, key in KEYS.items():
        values = [ID, "1.2.3.4", "7d", "500", "ok", "web", "user", "time", "policy", "auth.failed"]
        assert any(not read_filter({"q": f"{name}:{value}"}, now=NOW).errors for value in values)
        assert key.help


def test_an_age_stays_one_in_what_is_kept() -> None:
    """REL-402: a saved view of the last seven days moves on."""
    wanted = read_filter({"q": "since:7d tool:x"}, now=NOW)
    assert wanted.since == NOW - timedelta(days=7)
    later = NOW + timedelta(days=1)
    kept = dict(part.split("=") for part in wanted.as_query().split("&"))
    assert read_filter(kept, now=later).since == later - timedelta(days=7)


def test_yesterday_is_a_day_as_dates_are() -> None:
    """REL-2446: in UTC, and it moves on with the days."""
    wanted = read_filter({"q": "since:yesterday until:Today"}, now=NOW)
    assert wanted.errors == ()
    midnight = NOW.replace(hour=0, minute=0, second=0, microsecond=0)
    assert (wanted.since, wanted.until) == (midnight - timedelta(days=1), midnight)


pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("address", "text", "values"),
    [
        ({"user": ID}, "person:ada", {"label": "ada*"}),
        ({"label": "ada*"}, f"person:{ID}", {"user": ID}),
        ({"duration_max": "100"}, "duration:>500", {"duration_min": "501"}),
        ({"arguments_size_min": "9"}, "arguments:<5", {"arguments_size_max": "4"}),
        ({"user": ID, "duration_max": "9"}, "tool:a", {"user": ID, "duration_max": "9"}),
    ],
)
def test_a_typed_filter_takes_the_place_of_the_one_in_the_address(
    address: dict[str, str], text: str, values: dict[str, str]
) -> None:
    """REL-1263: also where the address says it with another parameter."""
    typed = read_filter({**address, "q": text}, now=NOW).typed
    assert {name: typed[name] for name in typed if typed[name] and name != "tool"} == values


def test_the_page_reads_what_is_typed_and_shows_it_as_chips(tenant: Tenant) -> None:
    """REL-402: each can be removed, and what stands in the address is kept."""
    a_call(tenant)
    a_refusal(tenant)
    page = tenant.client("auditor").get(url(tenant), {"q": "tool:echo", "server": "notes"})
    assert len(page.context["rows"]) == 1
    chips = {chip["label"]: chip for chip in page.context["chips"]}
    assert {label: chip["value"] for label, chip in chips.items()} == {
        "Server": "notes",
        "Tool": "echo",
    }
    without = tenant.client("auditor").get(chips["Tool"]["url"])
    assert len(without.context["rows"]) == 2


def test_a_moment_is_shown_in_words(tenant: Tenant) -> None:
    """REL-768: as the fields beside it have it, not as the address does."""
    asked = {"range": "custom", "since": "2026-11-25T09:49:18.637960Z"}
    page = tenant.client("auditor").get(url(tenant), asked)
    assert [chip["value"] for chip in page.context["chips"]] == ["25 Nov 2026, 09:49 UTC"]


def test_a_chosen_person_has_their_name_whenever_they_did_something(tenant: Tenant) -> None:
    """Ours: also in a time in which they did nothing; who is not in the log stays an id."""
    a_call(tenant)
    entry = AuditEntry.objects.for_workspace(tenant.workspace).exclude(actor_id=None).first()
    assert entry is not None
    nothing_yet = {"range": "custom", "since": "2000-01-01", "until": "2000-01-02"}
    for person, name in ((str(entry.actor_id), entry.actor_label), (ID, ID)):
        page = tenant.client("auditor").get(url(tenant), {**nothing_yet, "user": person})
        assert page.context["rows"] == []
        chips = {chip["label"]: chip["value"] for chip in page.context["chips"]}
        assert chips["Person"] == name
        assert f'<option value="{person}" selected>{name}</option>' in page.content.decode()


def test_a_wrong_filter_is_told_at_the_field(tenant: Tenant) -> None:
    """REL-402."""
    page = tenant.client("auditor").get(url(tenant), {"q": "outcom:refused <b>"})
    text = page.content.decode()
    assert 'aria-invalid="true"' in text
    assert 'value="outcom:refused &lt;b&gt;"' in text
    assert "“outcom” is no filter. Did you mean “outcome”?" in text


def test_people_who_may_not_search_words_are_told(tenant: Tenant) -> None:
    """SEC-105: and find nothing by them."""
    a_call(tenant)
    page = tenant.client("admin").get(url(tenant), {"q": SECRET_ARGUMENT})
    assert page.context["rows"] == []
    assert b"Only auditors can search for words in arguments and results, so" in page.content


def test_rest_takes_the_same_text(tenant: Tenant) -> None:
    """REL-402: and says what is wrong with it."""
    a_call(tenant)
    a_refusal(tenant)
    client = tenant.client("auditor")

    def found(text: str, **more: str) -> list[str]:
        answer = client.get("/api/audit-entries/", {"q": text, **more})
        assert answer.status_code == 200, answer.content
        return [row["action"] for row in answer.json()["results"]]

    assert found("tool:echo") == ["tool_call.finished", "tool_call.requested"]
    assert found("outcome:refused") == ["tool_call.refused"]
    assert found("since:1h server:notes", action="tool_call.finished") == ["tool_call.finished"]
    assert len(found(SECRET_ARGUMENT)) == 2
    answer = tenant.client("admin").get("/api/audit-entries/", {"q": SECRET_ARGUMENT})
    assert answer.json()["results"] == []
    for wrong in ("tol:x", "since:soon", "sort:duration", '"open'):
        answer = client.get("/api/audit-entries/", {"q": wrong})
        assert answer.status_code == 400
        assert b'"q"' in answer.content


def test_a_file_is_never_made_of_more_than_was_asked_for(tenant: Tenant) -> None:
    """REL-402: a wrong filter makes no file, and none is recorded."""
    a_call(tenant)
    a_refusal(tenant)
    client = tenant.client("auditor")
    file = client.get(url(tenant, "export.jsonl"), {"q": "tool:echo"})
    assert b"".join(file).count(b"\n") == 2
    for wrong in ({"q": "tol:echo"}, {"outcome": "perfect"}, {"duration_min": "x"}):
        answer = client.get(url(tenant, "export.jsonl"), wrong)
        assert answer.status_code == 400
        assert answer.content
    rows = AuditEntry.objects.for_workspace(tenant.workspace)
    assert rows.filter(action="export.created").count() == 1


@pytest.mark.parametrize(
    "query",
    [
        "tool:echo outcome:ok",
        "tool=echo&outcome=ok",
        "q=tool:echo+outcome:ok&show=entries&range=7d",
    ],
)
def test_a_schedule_takes_an_address_or_a_text(query: str) -> None:
    """REL-402."""
    wanted = filter_of(query, now=NOW)
    assert (wanted.tool, wanted.outcome, wanted.errors) == ("echo", "ok", ())


def test_a_schedule_says_what_it_does_not_take(tenant: Tenant) -> None:
    """REL-402."""
    for query in ("tol:x", "since:7d", "sort:duration", "tool=a&tol=b"):
        assert filter_of(query, now=timezone.now()).errors, query
    fields = {"name": "Refused", "format": "csv", "cadence": "daily", "delivery": "mail"}
    more = {"recipients": [str(tenant.auditor.pk)]}
    client = tenant.client("auditor")
    wrong = client.post(url(tenant, "schedules/"), {**fields, **more, "query": "outcom:refused"})
    assert wrong.status_code == 422
    assert "Did you mean “outcome”?".encode() in wrong.content
    client.post(url(tenant, "schedules/"), {**fields, **more, "query": "outcome:refused"})
    assert ReportSchedule.objects.for_workspace(tenant.workspace).count() == 1


def test_a_filter_of_an_address_that_does_not_exist_is_told() -> None:
    """REL-761: it is not left out silently."""
    wanted = read_filter({"tol": "x", "tool": "read"}, now=NOW)
    assert wanted.errors == ("There is no filter “tol”.",)
    assert wanted.tool == "read"
    known = {"q": "", "before": "1", "after": "", "by": "tool", "format": "csv"}
    assert read_filter(known, now=NOW).errors == ()
