"""Checks of buds: test questions that run in a sandbox, through the true engine and gate."""

from __future__ import annotations

import json
import threading
from datetime import timedelta
from typing import Any

import pytest
from django.db import transaction
from django.urls import reverse
from django.utils import timezone

from audit.actions import Action
from audit.models import AuditEntry, OutsideWrite
from chat.models import Bud, CheckResult, CheckRun, Conversation, Turn
from chat.models.checks import ResultStatus, RunStatus
from chat.services import check_runs
from chat.services.bud_versions import duplicate_bud
from chat.services.bud_yaml import apply_bud, write_bud
from chat.services.buds import create_bud, update_bud
from chat.services.check_runs import KEEP_RUNS, advance_all, cancel_run, start_run
from chat.services.checks import add_check, checks_of, remove_check, update_check
from chat.services.conversations import erase_conversation
from mcp_servers.models import McpTool
from mcp_servers.registry.services.call_rules import CallRuleDraft, create_call_rule
from tests.chat.conftest import Chat
from tests.chat.services.checking import (
    _wait_for_turn,
    begin,
    check,
    finish,
    head_of,
    results,
    run_one,
)
from tests.factories import TwoTenants
from tests.locks import until_somebody_waits
from tests.paging import rows_of_all_pages
from tests.patience import PATIENCE
from tests.threads import Threads
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
    from chat.services import check_runs

    before, check_runs.AT_ONCE = check_runs.AT_ONCE, 1  # type: ignore[misc]  # for the script's sake
    try:
        return finish(chat, begin(chat))
    finally:
        check_runs.AT_ONCE = before  # type: ignore[misc]  # as above


@pytest.mark.both_engines
def test_a_writing_tool_is_never_called_and_its_recording_answers(chat: Chat) -> None:
    """SEC-403: the server never hears of the call, and the log says that it was refused."""
    check(
        chat,
        calls=[{"tool": "counting.destroy", "arguments": {"what": "it"}}],
        contains=["gone"],
        recordings=[
            {"tool": "destroy", "result": "some other"},
            {"tool": "destroy", "arguments": {"what": "it"}, "result": "destroyed it for ever"},
        ],
    )
    chat.model.call(("counting__destroy", {"what": "it"}))
    chat.model.say("It is gone")
    result = run_one(chat)
    assert (result.status, result.faults) == ("passed", [])
    assert result.notes == ["counting.destroy was not called. Its recorded result was used."]
    assert chat.server.calls == []
    assert chat.model.requests[1]["messages"][-1]["content"] == "destroyed it for ever"
    logged = AuditEntry.objects.for_workspace(chat.tenant.workspace)
    refused = logged.filter(action=Action.TOOL_CALL_REFUSED.value, rule="trial.changes")
    assert refused.count() == 1
    assert not logged.filter(action=Action.TOOL_CALL_REQUESTED.value).exists()


@pytest.mark.parametrize("how", ["no recording", "allowed by an administrator", "untrusted"])
def test_without_a_recording_the_call_is_refused_and_the_check_says_so(
    chat: Chat, how: str
) -> None:
    """SEC-403: not even where an administrator lets it run unasked; and an untrusted server's word counts for nothing."""
    tool = "destroy"
    if how == "allowed by an administrator":
        rows = McpTool.objects.for_workspace(chat.tenant.workspace).filter(name="destroy")
        rows.update(approval_override="auto")
    if how == "untrusted":
        tool = "echo"
        chat.row.trusts_annotations = False
        chat.row.save()
    check(chat, contains=["no"], recordings=[{"tool": tool, "arguments": {"what": "else"}}])
    given = {"what": "it"} if tool == "destroy" else {"text": "it"}
    chat.model.call((f"counting__{tool}", given))
    chat.model.say("no")
    result = run_one(chat)
    assert chat.server.calls == []
    assert result.status == "passed", "the answer is what was expected"
    assert result.notes == [
        f"counting.{tool} was not called, because it may change data and the check has no recorded result for it."
    ]
    assert "no recorded result" in chat.model.requests[1]["messages"][-1]["content"]


@pytest.mark.parametrize("effect", ["deny", "confirm"])
def test_call_rules_hold_in_checks(chat: Chat, effect: str) -> None:
    """SEC-548: nobody is asked during a check, so what asks is refused, too."""
    draft = CallRuleDraft(name="Careful", effect=effect, servers=["counting"], tools=["echo"])
    create_call_rule(workspace=chat.tenant.workspace, draft=draft, actor=chat.tenant.actor())
    check(chat, contains=["no"])
    chat.model.call(("counting__echo", {"text": "hi"}))
    chat.model.say("no")
    assert run_one(chat).status == "passed"
    assert chat.server.calls == []
    assert "“Careful”" in chat.model.requests[1]["messages"][-1]["content"]


def test_a_run_is_in_no_list_and_leaves_nothing_but_its_results(chat: Chat) -> None:
    """REL-601: no chat, no search result, no copy of the bud, and the log knows each change."""
    check(chat)
    chat.model.say("hi, unmistakably")
    OutsideWrite.objects.all().delete()
    run = begin(chat)
    client, head = chat.tenant.client("admin"), {"X-Workspace": chat.tenant.workspace.slug}

    def is_nowhere() -> None:
        assert client.get("/api/conversations/", headers=head).json()["results"] == []
        assert client.get("/api/search/?q=unmistakably", headers=head).json() == []
        buds = client.get("/api/buds/", headers=head).json()["results"]
        assert [one["id"] for one in buds] == [str(chat.bud.pk)]

    is_nowhere()
    finish(chat, run)
    is_nowhere()
    assert not Bud.objects.for_workspace(chat.tenant.workspace).filter(is_draft=True).exists()
    mine = Conversation.objects.for_workspace(chat.tenant.workspace).filter(owner=chat.tenant.admin)
    assert not mine.exists()
    assert not OutsideWrite.objects.exists()
    assert results(run)[0].answer == "hi, unmistakably"


def test_a_draft_is_checked_as_it_stands_in_the_editor(chat: Chat) -> None:
    """REL-601: what is unsaved counts as no version, and what is the same as saved counts as that."""
    check(chat)
    chat.model.say("hi")
    result = run_one(chat, values={"system_prompt": "Be a draft"}, provider_id=chat.bud.provider_id)
    assert result.run.version is None
    assert chat.model.requests[0]["messages"][0]["content"] == "Be a draft"
    assert Bud.objects.for_workspace(chat.tenant.workspace).fetch(chat.bud.pk).system_prompt == ""
    chat.model.say("hi")
    same = run_one(chat, values={"system_prompt": ""}, provider_id=chat.bud.provider_id)
    assert same.run.version == 1


def test_one_run_at_a_time_and_it_can_be_cancelled(chat: Chat) -> None:
    """REL-602."""
    check(chat, "First")
    check(chat, "Second")
    check(chat, "Third")
    hold = threading.Event()
    for _ in range(2):
        chat.model.say("not yet", hold=hold)
    run = begin(chat)
    with pytest.raises(Conflict):
        begin(chat)
    states = [one.status for one in results(run)]
    assert states == ["running", "running", "waiting"], "two at once"
    cancel_run(run=run, actor=chat.tenant.actor("admin"))
    hold.set()
    assert run.status == "cancelled"
    assert {one.status for one in results(run)} == {"cancelled"}
    assert not Bud.objects.for_workspace(chat.tenant.workspace).filter(is_draft=True).exists()
    assert not Turn.objects.for_workspace(chat.tenant.workspace).exists()
    assert advance_all(chat.tenant.workspace.pk) == 0


@pytest.mark.postgresql
def test_two_workers_do_not_judge_the_same_answer(chat: Chat) -> None:
    """REL-701: who claims a step while another does waits for them, and gets nothing."""
    hold = threading.Event()
    chat.model.say("hi", hold=hold)
    check(chat)
    run = begin(chat)
    [result] = results(run)

    def claim() -> bool:
        return check_runs._claim(result, ResultStatus.RUNNING, ResultStatus.JUDGING)

    with Threads(1) as threads:
        with transaction.atomic():
            assert claim()
            other = threads.submit(claim)
            until_somebody_waits()
        assert other.result(PATIENCE) is False
    hold.set()
    assert result.conversation_id is not None
    _wait_for_turn(result.conversation_id, run)


def test_an_answer_that_waited_long_for_a_worker_is_judged(chat: Chat) -> None:
    """REL-1393: another worker gives up what is judged only if nobody has judged for long, whenever it was asked."""
    hold = threading.Event()
    chat.model.say("hi", hold=hold)
    check(chat)
    run = begin(chat)
    [result] = results(run)
    rows = CheckResult.objects.for_workspace(run.workspace_id).filter(pk=result.pk)
    rows.update(begun_at=timezone.now() - timedelta(hours=1))
    assert check_runs._claim(result, ResultStatus.RUNNING, ResultStatus.JUDGING)
    advance_all()
    assert rows.get().status == "judging"
    rows.update(updated_at=timezone.now() - timedelta(minutes=3))
    advance_all()
    assert rows.get().faults == ["The check was interrupted. Run the checks again."]
    hold.set()
    assert result.conversation_id is not None
    _wait_for_turn(result.conversation_id, run)


def test_a_run_that_cannot_go_on_keeps_no_other(
    chat: Chat, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REL-1393: whatever is wrong with it."""
    chat.model.say("hi there")
    check(chat)
    run = begin(chat)
    advance, seen = check_runs.advance_run, []

    def fails_first(one: CheckRun) -> None:
        seen.append(one.pk)
        if len(seen) == 1:
            raise ValueError("a shape of another version")
        advance(one)

    monkeypatch.setattr(check_runs, "advance_run", fails_first)
    assert advance_all() == 0
    finish(chat, run)
    assert run.status == "completed"


def test_a_check_that_takes_too_long_has_failed(chat: Chat) -> None:
    """REL-602: a time limit of its own, and the run goes on."""
    check(chat)
    hold = threading.Event()
    chat.model.say("never ending", hold=hold)
    run = begin(chat)
    late = timezone.now() - timedelta(hours=1)
    CheckResult.objects.for_workspace(run.workspace_id).filter(run=run).update(begun_at=late)
    finish(chat, run)
    hold.set()
    assert results(run)[0].faults == ["There was no answer within 3 minutes."]
    assert (run.status, run.passed) == ("completed", 0)


def test_a_bud_that_gives_no_answer_fails_with_the_reason(chat: Chat) -> None:
    """REL-600."""
    check(chat)
    chat.model.fail(401)
    result = run_one(chat)
    assert result.status == "failed"
    assert result.faults[0].startswith("The bud gave no whole answer.")


def test_a_run_ends_when_its_person_may_not_edit_the_bud_any_more(chat: Chat) -> None:
    """SEC-404: rights count as they are when something is asked."""
    check(chat)
    tenant = chat.tenant
    update_bud(bud=chat.bud, actor=tenant.actor("admin"), values={"members_may_edit": True})
    chat.bud.refresh_from_db()
    hold = threading.Event()
    chat.model.say("hi there", hold=hold)
    run = start_run(bud=chat.bud, person=tenant.member, actor=tenant.actor("member"))
    update_bud(bud=chat.bud, actor=tenant.actor("admin"), values={"members_may_edit": False})
    advance_all(tenant.workspace.pk)
    run.refresh_from_db()
    hold.set()
    assert run.status == "cancelled"
    assert "may not edit" in run.note


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


def test_old_runs_are_forgotten(chat: Chat) -> None:
    """REL-605."""
    check(chat)
    CheckRun.objects.bulk_create(
        CheckRun(workspace=chat.tenant.workspace, bud=chat.bud, status="completed")
        for _ in range(KEEP_RUNS + 5)
    )
    chat.model.say("hi")
    finish(chat, begin(chat))
    assert CheckRun.objects.for_workspace(chat.tenant.workspace).count() == KEEP_RUNS


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


def test_contents_of_a_run_are_for_its_person_and_for_auditors(chat: Chat) -> None:
    """SEC-405: others who may edit the bud read the verdict, and nothing that tools gave with somebody's rights."""
    check(chat, contains=["nothing like it"])
    chat.model.call(("counting__echo", {"text": "a secret of the runner"}))
    chat.model.say("a secret of the runner")
    run = finish(chat, begin(chat))
    where, head = f"/api/check-runs/{run.pk}/", head_of(chat.tenant)
    mine = chat.tenant.client("admin").get(where, headers=head).json()
    assert "secret of the runner" in str(mine)
    update_bud(bud=chat.bud, actor=chat.tenant.actor("admin"), values={"members_may_edit": True})
    theirs = chat.tenant.client("member").get(where, headers=head).json()
    assert "secret of the runner" not in str(theirs)
    assert theirs["results"][0]["faults"] == ["The answer does not contain “nothing like it”."]
    assert theirs["results"][0]["calls"][0]["tool"] == "counting.echo"


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

    def apply(told: str) -> Bud:
        made, _ = apply_bud(
            told, workspace_id=other.workspace.pk, person=other.admin, actor=other.actor("admin")
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


def test_runs_of_checks_come_page_by_page_to_the_last(chat: Chat) -> None:
    """REL-913: on the bud's page and over REST."""
    tenant = chat.tenant
    rows = [
        CheckRun(workspace=tenant.workspace, bud=chat.bud, status=RunStatus.COMPLETED.value)
        for _ in range(45)
    ]
    CheckRun.objects.bulk_create(rows)
    newest_first = [row.pk for row in sorted(rows, key=lambda one: one.pk, reverse=True)]
    client = tenant.client("admin")
    page = reverse("chat:bud_quality", args=[tenant.workspace.slug, chat.bud.pk])
    assert [run.pk for run in rows_of_all_pages(client, page, "runs", "ways")] == newest_first
    assert client.get(page, {"after": "nonsense"}).context["address_faults"]
    url, found = f"/api/buds/{chat.bud.pk}/check-runs/?page_size=20", []
    while url:
        listed = client.get(url, headers=head_of(tenant)).json()
        found += [row["id"] for row in listed["results"]]
        url = listed["next"]
    assert found == [str(pk) for pk in newest_first]
