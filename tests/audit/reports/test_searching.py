"""Which entries a filter of the log finds, in every order and on every page."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from uuid_utils.compat import uuid7

from audit.actions import Outcome
from audit.reports.searching import is_frequent
from bench.invented_log import generate
from tests.audit.views.log_pages import SECRET_ARGUMENT, a_call, a_refusal, url
from tests.factories import Tenant

pytestmark = pytest.mark.django_db


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
    "tool=delete_*": 1,
    "tool=delete_": 0,
    "q=tool:delete*": 1,
    "q=tool:e*": 4,
    "q=tool:*": 5,
    "server=*": 5,
    "server=no*&tool=echo": 4,
    "server=no": 0,
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
    """REL-1671, REL-1721: and the number on the page is the number of lines of the file."""
    a_call(tenant)
    a_call(tenant, outcome=Outcome.TIMEOUT)
    a_refusal(tenant)
    client = tenant.sign_in("auditor")
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


@pytest.mark.postgresql
def test_a_long_log_tells_by_a_few_pages_that_very_many_entries_hold_the_words(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ours: its index of words gives all entries at once; what is in few, or in another workspace, is still asked of it."""
    for _ in range(12):
        a_call(tenant)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE audit_auditentry")
    # Earlier tests leave empty pages in the table, so all pages are read here.
    for name, value in (("LONG_LOG", 1), ("VERY_MANY", 5), ("_SAMPLED_PAGES", 1_000_000)):
        monkeypatch.setattr(f"audit.reports.searching.{name}", value)
    for workspace_id, words, is_in_many in (
        (tenant.workspace.pk, "done", True),
        (tenant.workspace.pk, "nowhere", False),
        (uuid7(), "done", False),
    ):
        with CaptureQueriesContext(connection) as asked:
            assert is_frequent(workspace_id, words) is is_in_many
        assert len(asked) == (2 if is_in_many else 3), words
