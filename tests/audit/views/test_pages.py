"""The pages of the log, through the doors that people use."""

from __future__ import annotations

import re
from typing import Any
from uuid import UUID, uuid4

import pytest

from audit.actions import Action, Outcome
from audit.exports import FORMATS
from audit.models import AuditEntry
from chat.models import SharedChat
from tests.audit.tampering import tamper
from tests.audit.views.log_pages import SECRET_ARGUMENT, a_call, a_refusal, opened, url
from tests.factories import Tenant, TwoTenants
from workspaces.changes import record_changed, record_created, record_deleted
from workspaces.models import Invitation

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("role", "status"), [("owner", 200), ("admin", 200), ("auditor", 200), ("member", 403)]
)
def test_admins_and_auditors_see_the_log(tenant: Tenant, role: str, status: int) -> None:
    """SEC-07: a plain member does not."""
    a_call(tenant)
    assert tenant.client(role).get(url(tenant)).status_code == status


def test_the_list_shows_calls_refusals_and_their_numbers(tenant: Tenant) -> None:
    """Ours."""
    a_call(tenant)
    a_call(tenant, outcome=Outcome.TIMEOUT)
    a_refusal(tenant)
    answer = tenant.client("auditor").get(url(tenant))
    totals = answer.context["totals"]
    assert (totals.calls, totals.failed, totals.refused) == (3, 1, 1)
    assert abs(totals.p95_ms - 12) <= 1
    chart = answer.context["chart"]
    assert {one["key"]: sum(one["values"]) for one in chart["series"]} == {
        "ok": 1,
        "failed": 1,
        "cancelled": 0,
        "refused": 1,
    }
    assert len(chart["labels"]) == len(chart["series"][0]["values"])
    assert b"delete_everything" in answer.content


@pytest.mark.parametrize(
    ("query", "number"),
    [
        ("outcome=timeout", 1),
        ("outcome=refused", 1),
        ("outcome=ok", 1),
        ("tool=delete_everything", 1),
        ("tool=nothing", 0),
        ("server=notes", 5),
        ("action=tool_call.finished", 2),
        ("user=nobody", 0),
        ("range=1h", 6),
        ("range=all", 6),
        ("range=custom&since=2020-01-01T00:00&until=2020-02-01T00:00", 0),
    ],
)
def test_filters_narrow_the_list(tenant: Tenant, query: str, number: int) -> None:
    """Ours. Five entries of calls and one of signing in."""
    a_call(tenant)
    a_call(tenant, outcome=Outcome.TIMEOUT)
    a_refusal(tenant)
    answer = tenant.sign_in("auditor").get(f"{url(tenant)}?show=entries&{query}")
    assert len(answer.context["entries"]) == number


@pytest.mark.parametrize(
    "query",
    [
        *("range=soon", "action=nothing", "outcome=perfect", "range=custom&since=yesterday"),
        *("range=custom&since=2021-01-01T00:00&until=2020-01-01T00:00", "before=x", "after=%00"),
        *("user=%00", "tool=" + "x" * 5000, "ordering=id);--"),
    ],
)
def test_a_wrong_filter_is_told_and_never_an_error(tenant: Tenant, query: str) -> None:
    """SEC-05: no value of an address becomes part of a query's structure."""
    assert tenant.client("auditor").get(f"{url(tenant)}?{query}").status_code == 200


def test_pages_go_back_and_forth_by_key(tenant: Tenant) -> None:
    """Ours: each entry is on exactly one page, also when new ones arrive meanwhile."""
    written = [a_refusal(tenant).pk for _ in range(120)]
    client = tenant.client("auditor")
    seen: list[UUID] = []
    where = url(tenant)
    while where:
        answer = client.get(where, headers={"HX-Request": "true"})
        seen += [entry.pk for entry in answer.context["entries"]]
        where = answer.context["older_url"]
        a_refusal(tenant)
    assert [pk for pk in seen if pk in set(written)] == written[::-1]
    back = client.get(answer.context["newer_url"])
    assert len(back.context["entries"]) == 50


def test_only_auditors_read_bodies_and_reading_is_recorded(tenant: Tenant) -> None:
    """SEC-105: an admin sees that a call was made, not what was in it."""
    entry = a_call(tenant)
    assert (
        SECRET_ARGUMENT.encode()
        not in tenant.client("admin").get(url(tenant, f"{entry.pk}/")).content
    )
    assert opened(tenant) == 0
    shown = tenant.client("auditor").get(url(tenant, f"{entry.pk}/"))
    assert SECRET_ARGUMENT.encode() in shown.content
    assert len(shown.context["related"]) == 2
    assert opened(tenant) == 1


def test_the_list_never_holds_bodies(tenant: Tenant) -> None:
    """SEC-93: not even for auditors."""
    a_call(tenant)
    answer = tenant.client("auditor").get(url(tenant))
    assert SECRET_ARGUMENT.encode() not in answer.content


def test_another_workspaces_entry_is_not_found(two_workspaces: TwoTenants) -> None:
    """SEC-01, SEC-02: and answers like one that does not exist."""
    a, b = two_workspaces.a, two_workspaces.b
    entry = a_call(b)
    client = a.client("auditor")
    foreign = client.get(url(a, f"{entry.pk}/"))
    missing = client.get(url(a, f"{uuid4()}/"))
    assert foreign.status_code == missing.status_code == 404
    assert client.get(url(b)).status_code == 404


@pytest.mark.parametrize("extension", ["csv", "jsonl"])
def test_an_export_is_recorded_and_an_auditors_right(tenant: Tenant, extension: str) -> None:
    """SEC-105."""
    a_call(tenant)
    assert tenant.client("admin").get(url(tenant, f"export.{extension}")).status_code == 403
    answer = tenant.client("auditor").get(url(tenant, f"export.{extension}?tool=echo"))
    body = b"".join(answer)
    assert SECRET_ARGUMENT.encode() in body
    assert b"export.created" not in body
    rows = AuditEntry.objects.for_workspace(tenant.workspace)
    entry = rows.get(action=Action.EXPORT_CREATED.value)
    assert entry.details == {"format": extension, "filters": {"tool": "echo"}}
    assert entry.actor_id == tenant.auditor.pk


def test_an_export_of_an_unknown_kind_is_not_found(tenant: Tenant) -> None:
    """Ours."""
    assert tenant.client("auditor").get(url(tenant, "export.exe")).status_code == 404


def test_the_admin_shows_entries_and_changes_none(tenant: Tenant) -> None:
    """SEC-100: no button, no form, no address changes the log."""
    entry = a_call(tenant)
    client = tenant.client("admin")
    assert client.get("/admin/audit/auditentry/").status_code == 200
    page = client.get(f"/admin/audit/auditentry/{entry.pk}/change/")
    assert page.status_code == 200
    assert SECRET_ARGUMENT.encode() not in page.content
    for path in ("add/", f"{entry.pk}/delete/"):
        assert client.post(f"/admin/audit/auditentry/{path}", {"post": "yes"}).status_code == 403
    assert client.post(f"/admin/audit/auditentry/{entry.pk}/change/", {}).status_code == 403


def test_who_cannot_export_is_told_who_can(tenant: Tenant) -> None:
    """Ours: an owner without the auditor's right reads why, and finds the people; an auditor gets the files."""
    path = f"/w/{tenant.workspace.slug}/audit/"
    owner = tenant.client("owner").get(path).content.decode()
    assert "Only auditors export the log" in owner
    assert f'/w/{tenant.workspace.slug}/people/"' in owner
    assert "export.csv" not in owner
    auditor = tenant.client("auditor").get(path).content.decode()
    assert "Only auditors export the log" not in auditor
    assert "export.csv" in auditor


def test_the_menu_of_files_says_what_the_filters_narrow(tenant: Tenant) -> None:
    """REL-1723: not the verifiable export, which holds the whole log."""
    page = " ".join(
        tenant.client("auditor").get(url(tenant, "?tool=echo")).content.decode().split()
    )
    filtered, whole = page.split("The whole log, to verify it")
    assert filtered.count("?tool=echo") >= filtered.count("audit/export.") == 5
    assert "proof.jsonl" not in filtered
    assert "proof.jsonl" in whole
    assert "python3 trellis_verify.py trellis-proof-" in whole
    assert "export.csv" not in whole


def test_the_list_says_what_was_added_and_what_removed(tenant: Tenant) -> None:
    """REL-1672, REL-3032: of one that was changed it names the fields, with how switches stand; a kind without names is told once."""
    actor = tenant.actor("admin")
    row = Invitation(workspace=tenant.workspace, email="new@example.org", role="member")
    record_created(row, actor=actor)
    record_changed(row, actor=actor, before={"role": "member"}, after={"role": "admin"})
    switched = {"is_on": True, "until": None, "is_shut": False}
    record_changed(row, actor=actor, before=dict.fromkeys(switched, ""), after=switched)
    record_deleted(row, actor=actor)
    nameless = SharedChat(workspace=tenant.workspace, owner=tenant.member)
    changed = dict.fromkeys(("note", "text", "readers", "audience"), "a")
    record_changed(nameless, actor=actor, before=dict.fromkeys(changed, ""), after=changed)
    page = " ".join(tenant.client("auditor").get(url(tenant)).content.decode().split())
    shown = re.findall(
        r'> ?((?:shared chat|invitation)[^<]*?) ?</span> (?:<span class="help[^"]*">([^<]+))?', page
    )
    assert shown == [
        ("shared chat", "note, text, readers …"),
        (f"invitation {row}", "removed"),
        (f"invitation {row}", "is on: yes, until: –, is shut: no"),
        (f"invitation {row}", "role"),
        (f"invitation {row}", "added"),
    ]


def test_a_filter_that_finds_nothing_says_how_names_are_compared(tenant: Tenant) -> None:
    """REL-1670: else the beginning of a tool's name looks as if nobody had called it."""
    a_call(tenant, tool="delete_note")
    client, hint = tenant.client("auditor"), "Names are compared whole."
    assert hint in client.get(url(tenant, "?q=tool:delete")).content.decode()
    assert hint not in client.get(url(tenant, "?q=tool:delete*")).content.decode()


@pytest.mark.parametrize(
    ("value", "action"),
    [
        ('"a text"', "tool_call.finished"),
        ("[1, 2]", "config.changed"),
        ("7", "approval.granted"),
        ('{"after": [1], "before": "x"}', "log.verified"),
        ('{"after": [1], "before": "x"}', "config.changed"),
    ],
)
def test_an_entry_that_somebody_changed_can_be_looked_at(
    tenant: Tenant, value: str, action: str
) -> None:
    """REL-1936: whatever JSON was put into it past Trellis, since it is the evidence; on every page and in every file."""
    end = a_call(tenant)
    tamper(
        "UPDATE audit_auditentry SET details = %s, approval = %s, annotations = %s,"
        " redactions = %s, action = %s WHERE id = %s",
        *(value, value, value, value, action, end.pk),
    )
    client = tenant.client("auditor")
    for path in (
        *(f"{end.pk}/", "?range=all", "?range=all&show=entries", f"calls/{end.call_id}/"),
        *("reports/?range=all", "overview/", *(f"export.{name}" for name in FORMATS)),
    ):
        answer: Any = client.get(url(tenant, path))
        assert answer.status_code == 200, path
        assert b"".join(answer), path
    own = tenant.client("member").get(f"/w/{tenant.workspace.slug}/activity/{end.pk}/")
    assert own.status_code == 200
