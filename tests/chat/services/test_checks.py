"""Checks of buds: test questions that run in a sandbox, through the true engine and gate."""

from __future__ import annotations

import json
from typing import Any

import pytest

from audit.actions import Action
from audit.models import AuditEntry, OutsideWrite
from chat.models import Bud, CheckRun
from chat.services import check_runs
from chat.services.bud_versions import duplicate_bud
from chat.services.bud_yaml import apply_bud, write_bud
from chat.services.buds import create_bud, update_bud
from chat.services.check_runs import start_run
from chat.services.checks import add_check, checks_of, remove_check, update_check
from chat.services.conversations import erase_conversation
from mcp_servers.models import McpTool
from tests.chat.conftest import Chat
from tests.chat.services.checking import (
    begin,
    check,
    finish,
    head_of,
    results,
    run_one,
)
from tests.factories import TwoTenants
from workspaces.errors import Conflict, InvalidInput, NotFound, PermissionDenied
from workspaces.models import Membership

pytestmark = pytest.mark.django_db


@pytest.mark.both_engines
def test_a_check_passes_or_says_in_a_sentence_why_not(chat: Chat) -> None:
    """REL-600: expected calls with some of their arguments, words, and words that must not be there."""
    check(
        chat, calls=[{"tool": "counting.echo", "arguments": {"text": "hi"}}], contains=["HI  there"]
    )
    check(chat, calls=[{"tool": "slow"}], contains=["bye"], excludes=["there"])
    check(chat, calls=[{"tool": "echo", "arguments": {"text": "other"}}])
    for _ in range(3):
        chat.model.call(("counting__echo", {"text": "hi"}))
        chat.model.say("hi there")
    # One after the other, since the script has one order.
    for result in results(_in_order(chat)):
        assert result.answer == "hi there"
    run = CheckRun.objects.for_workspace(chat.tenant.workspace).get()
    assert (run.status, run.total, run.passed, run.version) == ("completed", 3, 1, 1)
    first, second, third = results(run)
    assert (first.status, first.faults) == ("passed", [])
    assert second.faults == [
        "It should have called slow, but it called counting.echo.",
        "The answer does not contain “bye”.",
        "The answer contains “there”, which it should not.",
    ]
    assert third.faults == ["It called echo, but not with the expected value for “text”."]
    assert [call["result"] for call in first.calls] == ["hi"]
    assert chat.server.calls == [("echo", {"text": "hi"})] * 3


def _in_order(chat: Chat) -> CheckRun:

    before, check_runs.AT_ONCE = check_runs.AT_ONCE, 1  # type: ignore[misc]  # for the script's sake
    try:
        return finish(chat, begin(chat))
    finally:
        check_runs.AT_ONCE = before  # type: ignore[misc]  # as above


def test_only_those_who_may_edit_a_bud_touch_its_checks(chat: Chat) -> None:
    """SEC-404."""
    made = check(chat)
    tenant = chat.tenant
    actor = tenant.actor("member")
    with pytest.raises(PermissionDenied):
        add_check(bud=chat.bud, values={"question": "x", "contains": ["x"]}, actor=actor)
    with pytest.raises(PermissionDenied):
        update_check(check=made, values={"question": "y"}, actor=actor)
    with pytest.raises(PermissionDenied):
        remove_check(check=made, actor=actor)
    with pytest.raises(PermissionDenied):
        start_run(bud=chat.bud, person=tenant.member, actor=actor)


def test_each_change_of_a_check_is_in_the_log(chat: Chat) -> None:
    """REL-604."""
    OutsideWrite.objects.all().delete()
    made = check(chat)
    admin = chat.tenant.actor("admin")
    update_check(check=made, values={"contains": ["hello"]}, actor=admin)
    remove_check(check=made, actor=admin)
    logged = AuditEntry.objects.for_workspace(chat.tenant.workspace)
    entries = logged.filter(details__kind="check").order_by("created_at", "id")
    assert entries.count() == 3
    assert not OutsideWrite.objects.exists()


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({}, "question"),
        ({"question": " "}, "question"),
        ({"question": "x"}, "calls"),
        ({"question": "x", "contains": [""]}, "contains.0"),
        ({"question": "x", "calls": [{"tool": ""}]}, "calls.0.tool"),
        ({"question": "x", "calls": [{"tool": "a", "arguments": []}]}, "calls.0.arguments"),
        ({"question": "x\x00", "contains": ["x"]}, "question"),
        ({"question": "x", "contains": ["x"], "more": 1}, "more"),
    ],
)
def test_a_wrong_check_names_its_field(chat: Chat, values: dict[str, Any], field: str) -> None:
    """REL-604."""
    with pytest.raises(InvalidInput) as raised:
        add_check(bud=chat.bud, values=values, actor=chat.tenant.actor("admin"))
    assert field in raised.value.fields


def test_nobody_replaces_a_change_of_a_check_that_they_have_not_seen(chat: Chat) -> None:
    """REL-1387: over REST the second one is told, and nothing changes; a change of nothing is no change."""
    values = {"question": "Two?", "contains": ["two"]}
    made = add_check(bud=chat.bud, values=values, actor=chat.tenant.actor("admin"))
    admin = chat.tenant.actor("admin")
    assert made.version == 1
    first = update_check(check=made, values={"contains": ["2"]}, base_version=1, actor=admin)
    assert (first.version, first.contains) == (2, ["2"])
    with pytest.raises(Conflict) as refused:
        update_check(check=made, values={"criterion": "It is."}, base_version=1, actor=admin)
    assert refused.value.details == {"version": 2}
    same = update_check(check=made, values={"contains": ["2"]}, base_version=2, actor=admin)
    assert same.version == 2
    # What is not said to be seen is added to what is stored, and not to what was read before.
    later = update_check(check=made, values={"criterion": "It is."}, actor=admin)
    assert (later.version, later.contains) == (3, ["2"])
    remove_check(check=later, actor=admin)
    with pytest.raises(NotFound):
        update_check(check=made, values={"criterion": "No."}, actor=admin)


def test_programs_give_the_version_of_a_check(chat: Chat) -> None:
    """REL-1387."""
    client, head = chat.tenant.client("admin"), head_of(chat.tenant)
    made = add_check(
        bud=chat.bud,
        values={"question": "Two?", "contains": ["two"]},
        actor=chat.tenant.actor("admin"),
    )
    one = f"/api/checks/{made.pk}/"

    def change(**values: Any) -> Any:
        return client.patch(one, values, content_type="application/json", headers=head)

    assert client.get(one, headers=head).json()["version"] == 1
    assert change(contains=["2"], version=1).json()["version"] == 2
    refused = change(criterion="It is.", version=1)
    assert refused.status_code == 409
    assert "Someone else changed this check" in refused.json()["errors"][0]["detail"]
    assert client.get(one, headers=head).json()["criterion"] == ""
    assert change(criterion="It is.").json()["version"] == 3


def test_programs_do_what_the_editor_does(chat: Chat) -> None:
    """REL-604: checks are added, changed, run, read and removed over REST."""
    tenant = chat.tenant
    client, head = tenant.client("admin"), head_of(tenant)
    where = f"/api/buds/{chat.bud.pk}/"
    json_body: dict[str, Any] = {"content_type": "application/json", "headers": head}
    wrong = client.post(f"{where}checks/", {"question": "Hi"}, **json_body)
    assert wrong.status_code == 422
    assert [one["attr"] for one in wrong.json()["errors"]] == ["calls"]
    assert client.post(f"{where}check-runs/", {}, **json_body).status_code == 422
    sent = {"question": "Hi", "contains": ["hi"], "calls": [{"tool": "echo"}]}
    made = client.post(f"{where}checks/", sent, **json_body)
    assert made.status_code == 201
    one = f"/api/checks/{made.json()['id']}/"
    changed = client.patch(one, {"calls": []}, **json_body).json()
    assert (changed["calls"], changed["contains"]) == ([], ["hi"])
    assert client.get(f"{where}checks/", headers=head).json() == [changed]
    chat.model.say("hi there")
    began = client.post(f"{where}check-runs/", {}, **json_body)
    assert began.status_code == 201
    assert client.post(f"{where}check-runs/", {}, **json_body).status_code == 409
    run = CheckRun.objects.for_workspace(tenant.workspace).get()
    finish(chat, run)
    body = client.get(f"/api/check-runs/{run.pk}/", headers=head).json()
    assert (body["status"], body["passed"], body["total"], body["version"]) == (
        "completed",
        1,
        1,
        1,
    )
    assert body["results"][0]["answer"] == "hi there"
    listed = client.get(f"{where}check-runs/", headers=head).json()["results"]
    assert [row["id"] for row in listed] == [str(run.pk)]
    member = tenant.client("member")
    for path in (f"{where}checks/", f"{where}check-runs/", one, f"/api/check-runs/{run.pk}/"):
        assert member.get(path, headers=head).status_code == 403, path
    assert client.delete(one, headers=head).status_code == 204
    assert client.get(f"{where}checks/", headers=head).json() == []
    assert results(run)[0].bud_check_id is None, "its result stays"


def test_checks_travel_in_the_buds_file_and_with_a_copy(two_workspaces: TwoTenants) -> None:
    """REL-606: a file without checks leaves those that are there; one with an empty list takes them away."""
    tenant, other = two_workspaces.a, two_workspaces.b
    admin = tenant.actor("admin")
    bud = create_bud(
        workspace_id=tenant.workspace.pk, actor=admin, values={"slug": "w", "name": "W"}
    )
    recorded = {"tool": "s.put", "arguments": {}, "result": "done", "is_error": False}
    values = {
        "question": "Put it\naway",
        "calls": [{"tool": "s.put", "arguments": {"n": 1}}],
        "recordings": [recorded],
    }
    add_check(bud=bud, values=values, actor=admin)
    add_check(bud=bud, values={"question": "Hello", "criterion": "It greets"}, actor=admin)
    text = write_bud(bud)

    def apply(instructions: str) -> Bud:
        made, _ = apply_bud(
            instructions,
            workspace_id=other.workspace.pk,
            person=other.admin,
            actor=other.actor("admin"),
        )
        return made

    there = apply(text)
    assert write_bud(there) == text
    kept = [one.pk for one in checks_of(there)]
    assert [one.pk for one in checks_of(apply(text))] == kept, "the same checks stay"
    without = text[: text.index("checks:")]
    assert [one.pk for one in checks_of(apply(without))] == kept
    assert checks_of(apply(f"{without}checks: []\n")) == []
    with pytest.raises(InvalidInput) as raised:
        apply(f"{without}checks: [{{question: Hi}}]\n")
    assert "checks.0" in raised.value.fields
    copied = duplicate_bud(bud=bud, actor=admin)
    assert [one.shape for one in checks_of(copied)] == [one.shape for one in checks_of(bud)]


def kept(chat: Chat, role: str, call_id: Any) -> Any:
    """Press the button on the call's page."""
    where = f"/w/{chat.tenant.workspace.slug}/buds/keep/{call_id}/"
    return chat.tenant.client(role).post(where)


def test_a_call_of_the_log_is_kept_as_a_check_and_runs(chat: Chat) -> None:
    """REL-607: with the question, the tool, its arguments, and what the writing tool gave."""
    tenant = chat.tenant
    McpTool.objects.for_workspace(tenant.workspace).filter(name="destroy").update(
        approval_override="auto"
    )
    chat.model.call(("counting__destroy", {"what": "it"}))
    chat.model.say("Done")
    chat.ask("Destroy it")
    call = chat.calls()[0]
    assert chat.server.names() == ["destroy"]
    # Whoever edits buds and reads what was said; an administrator alone does not read it.
    page = f"/w/{tenant.workspace.slug}/audit/calls/{call.pk}/"
    assert b"Keep as a test" not in tenant.client("admin").get(page).content
    assert kept(chat, "admin", call.pk).status_code == 403
    assert kept(chat, "auditor", call.pk).status_code == 403
    assert kept(chat, "member", call.pk).status_code == 403
    Membership.objects.for_workspace(tenant.workspace).filter(user=tenant.admin).update(
        is_auditor=True
    )
    assert b"Keep as a test" in tenant.client("admin").get(page).content
    answer = kept(chat, "admin", call.pk)
    assert answer.url.endswith(f"/buds/{chat.bud.pk}/#checks")
    made = checks_of(chat.bud)[0]
    assert made.question == "Destroy it"
    assert made.calls == [{"tool": "counting.destroy", "arguments": {"what": "it"}}]
    assert [one["result"] for one in made.recordings] == ["destroyed it"]
    logged = AuditEntry.objects.for_workspace(tenant.workspace)
    assert logged.filter(action=Action.BODY_OPENED.value, details__call=str(call.pk)).exists()
    chat.model.clear()
    chat.model.call(("counting__destroy", {"what": "it"}))
    chat.model.say("Done")
    assert run_one(chat).status == "passed"
    assert chat.server.names() == ["destroy"], "the check has not called it again"


def test_a_call_whose_chat_is_gone_is_not_kept(chat: Chat) -> None:
    """REL-607: over REST, too; the reason is told."""
    tenant = chat.tenant
    chat.model.call(("counting__echo", {"text": "hi"}))
    chat.model.say("hi")
    chat.ask()
    call_id = chat.calls()[0].pk
    Membership.objects.for_workspace(tenant.workspace).filter(user=tenant.admin).update(
        is_auditor=True
    )
    client, head = tenant.client("admin"), head_of(tenant)
    body: dict[str, Any] = {"content_type": "application/json", "headers": head}
    made = client.post("/api/checks/from-call/", {"call_id": str(call_id)}, **body)
    assert made.status_code == 201
    assert made.json()["recordings"] == [], "a reading tool is really called"
    erase_conversation(conversation=chat.conversation, actor=chat.actor)
    gone = client.post("/api/checks/from-call/", {"call_id": str(call_id)}, **body)
    assert gone.status_code == 409
    assert kept(chat, "admin", call_id).status_code == 302


def test_versions_and_the_quality_page_say_how_many_passed(chat: Chat) -> None:
    """REL-601: of the version that was checked, when it was last checked to the end."""
    check(chat)
    chat.model.say("hi")
    run_one(chat)
    tenant = chat.tenant
    update_bud(bud=chat.bud, actor=tenant.actor("admin"), values={"system_prompt": "Be rude"})
    chat.bud.refresh_from_db()
    chat.model.say("bye")
    run_one(chat)
    client, where = tenant.client("admin"), f"/w/{tenant.workspace.slug}/buds/{chat.bud.pk}/"
    versions = client.get(f"{where}versions/").context["versions"]
    found = [(one["version"].number, one["checked"].passed) for one in versions]
    assert found == [(2, 0), (1, 1)]
    text = client.get(f"{where}versions/").content.decode()
    assert "0 of 1 passed" in text
    assert "1 of 1 passed" in text
    assert "1 of 1" in client.get(f"{where}quality/").content.decode()


def test_the_editor_runs_what_stands_in_its_form(chat: Chat) -> None:
    """REL-601, REL-604: faults of the form are told, and nothing runs then."""
    check(chat)
    client = chat.tenant.client("admin")
    where = f"/w/{chat.tenant.workspace.slug}/buds/{chat.bud.pk}/check/"
    form = {
        "name": "Bud",
        "slug": "bud",
        "avatar": "🌱",
        "colour": "grey",
        "tool_protocol": "auto",
        "visibility": "workspace",
        "model": f"{chat.bud.provider_id}|",
        "system_prompt": "From the form",
        "mcp_config": json.dumps({"servers": [str(chat.row.pk)]}),
    }
    assert client.post(where, {**form, "name": ""}).status_code == 422
    chat.model.say("hi")
    answer = client.post(where, form)
    assert answer.status_code == 200, answer.content
    assert answer.json()["run"]["version"] is None
    assert client.post(where, form).status_code == 409
    run = CheckRun.objects.for_workspace(chat.tenant.workspace).get()
    finish(chat, run)
    assert chat.model.requests[0]["messages"][0]["content"] == "From the form"
    assert chat.tenant.client("member").post(where, form).status_code == 403
