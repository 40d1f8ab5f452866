"""How a run of checks goes: one at a time, without harm, and to its end, whatever happens to it."""

from __future__ import annotations

import threading
from datetime import timedelta

import pytest
from django.db import transaction
from django.urls import reverse
from django.utils import timezone

from audit.actions import Action
from audit.models import AuditEntry, OutsideWrite
from chat.models import Bud, CheckResult, CheckRun, Conversation, Turn
from chat.models.checks import ResultStatus, RunStatus
from chat.services import check_runs
from chat.services.buds import update_bud
from chat.services.check_runs import KEEP_RUNS, advance_all, cancel_run, start_run
from mcp_servers.models import McpTool
from mcp_servers.registry.services.call_rules import CallRuleDraft, create_call_rule
from tests.chat.conftest import Chat
from tests.chat.services.checking import (
    begin,
    check,
    finish,
    head_of,
    results,
    run_one,
    wait_for_turn,
)
from tests.locks import until_somebody_waits
from tests.paging import rows_of_all_pages
from tests.patience import PATIENCE
from tests.threads import Threads
from workspaces.errors import Conflict

pytestmark = pytest.mark.django_db


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
    wait_for_turn(result.conversation_id, run)


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
    wait_for_turn(result.conversation_id, run)


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
