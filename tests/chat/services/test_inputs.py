"""Servers ask people while a turn's calls run: parked or in place, answered from anywhere, never lost."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from uuid_utils.compat import uuid7

from audit.actions import Action
from audit.errors import AuditUnavailable
from audit.models import AuditEntry
from chat.engine import runner, turns
from chat.models import ToolCall, Turn
from chat.services.approvals import decide
from chat.services.conversations import erase_conversation
from chat.services.inputs import answer_input, expire_inputs
from chat.services.resolutions import resolve_call
from chat.services.turns import stop_turn
from chat.values import Decision, Resolution
from mcp_servers.client.connections import runtime
from mcp_servers.client.inputs import InputAction
from mcp_servers.gate.admission import GatedCall
from mcp_servers.models import InputRequest, McpTool, ToolPermission
from mcp_servers.registry.elicitation import complete_url_inputs
from tests.chat.conftest import NEW, OLD, Chat, chat_in_era
from tests.chat.services.questions import ADA, BOOK, answer, wait_for_question
from tests.factories import Tenant
from tests.fakes.asking_server import AskingServer
from tests.fakes.scripted_model import ScriptedModel
from workspaces.database import database_now
from workspaces.errors import Conflict, InvalidInput, PermissionDenied
from workspaces.models import Membership


def turn_of(chat: Chat) -> Turn:
    return Turn.objects.for_workspace(chat.tenant.workspace).get(conversation=chat.conversation)


def test_a_form_is_answered_and_the_call_goes_on(asked: Chat) -> None:
    """SEC-69: in each era the question names its server and tool, the answer reaches the tool, and stays readable."""
    row = wait_for_question(asked)
    shown = asked.watching.question()
    assert (shown["server"]["name"], shown["tool"]) == ("asking", "book_table")
    assert asked.snapshot()["conversation"]["status"] == "waiting"
    assert asked.calls()[0].status == "waiting_for_input"
    answer(asked, row, content=ADA)
    asked.watching.turn("completed")
    assert asked.server.done == [("book_table", {"when": "noon", **ADA})]
    assert asked.calls()[0].status == "succeeded"
    [kept] = asked.snapshot()["input_requests"]
    assert (kept["status"], kept["answer"]) == ("accepted", ADA)
    content = asked.model.requests[1]["messages"][-1]["content"]
    assert "Ada, 3 at the garden, noon" in content


@pytest.mark.parametrize(("action", "words"), [("decline", "declined"), ("cancel", "cancelled")])
def test_a_question_can_be_declined(asked: Chat, action: str, words: str) -> None:
    """SEC-69: the server hears which of the two it was, and the turn goes on."""
    row = wait_for_question(asked)
    answer(asked, row, action)
    asked.watching.turn("completed")
    assert asked.server.done == []
    assert words in asked.model.requests[1]["messages"][-1]["content"]


def test_what_does_not_fit_is_told_by_field_and_can_be_corrected(asked: Chat) -> None:
    """Ours: a wrong answer changes nothing; the question stays open."""
    row = wait_for_question(asked)
    with pytest.raises(InvalidInput) as caught:
        answer(asked, row, content={"name": "Ada", "guests": 99, "seat": "roof"})
    assert set(caught.value.fields) == {"content.guests", "content.seat"}
    answer(asked, row, content=ADA)
    asked.watching.turn("completed")
    with pytest.raises(Conflict):
        answer(asked, row, content=ADA)


def test_only_the_person_who_was_asked_can_answer(parked: Chat) -> None:
    """SEC-64, SEC-69: not even an administrator answers for somebody."""
    row = wait_for_question(parked)
    with pytest.raises(PermissionDenied):
        answer_input(request=row, action=InputAction.DECLINE, actor=parked.tenant.actor("admin"))
    assert parked.asked()[0].status == "pending"


def test_stop_takes_the_question_back(asked: Chat) -> None:
    """REL-09: the question is withdrawn, the call cancelled, and a late answer refused."""
    row = wait_for_question(asked)
    stop_turn(turn=turn_of(asked), actor=asked.actor)
    asked.watching.turn("cancelled")
    assert asked.calls()[0].status == "cancelled"
    assert asked.watching.question("cancelled")["id"] == str(row.pk)
    with pytest.raises(Conflict):
        answer(asked, row, content=ADA)
    assert asked.server.done == []


def test_a_stopped_call_has_its_end_in_the_log(asked: Chat) -> None:
    """SEC-56: also where nobody ran it any more, *requested* and *finished* are a pair."""
    wait_for_question(asked)
    stop_turn(turn=turn_of(asked), actor=asked.actor)
    asked.watching.turn("cancelled")
    assert log_of(asked) == [REQUESTED, CANCELLED]


REQUESTED = ("tool_call.requested", "")
CANCELLED = ("tool_call.finished", "cancelled")
UNKNOWN = ("tool_call.finished", "outcome_unknown")


def log_of(chat: Chat) -> list[tuple[str, str]]:
    """How the audit log tells of the first call."""
    entries = AuditEntry.objects.for_workspace(chat.tenant.workspace).filter(
        call_id=chat.calls()[0].pk, action__startswith="tool_call"
    )
    return list(entries.order_by("id").values_list("action", "outcome"))


def die_while_running(chat: Chat, **call: Any) -> Turn:
    """Leave the turn as a process does that died in the middle of a call."""
    wait_for_question(chat)
    rows = ToolCall.objects.for_workspace(chat.tenant.workspace)
    rows.filter(pk=chat.calls()[0].pk).update(status="running", **call)
    turn = turn_of(chat)
    Turn.objects.for_workspace(chat.tenant.workspace).filter(pk=turn.pk).update(
        status="running", lease_until=database_now() - timedelta(seconds=1)
    )
    return chat.reload(turn)


@pytest.mark.parametrize("fields", [{}, {"checkpoint": None}], ids=["checkpoint", "none"])
@pytest.mark.parametrize("is_noticed_late", [False, True], ids=["by hand", "at take-over"])
def test_a_call_whose_process_died_has_its_end_in_the_log_once_it_is_stopped(
    parked: Chat, fields: dict[str, Any], is_noticed_late: bool
) -> None:
    """SEC-56: stopped by hand, or by whoever takes the turn over and finds that it was to stop."""
    turn = die_while_running(parked, **fields)
    if is_noticed_late:
        rows = Turn.objects.for_workspace(parked.tenant.workspace).filter(pk=turn.pk)
        rows.update(stop_requested_at=database_now())
        assert turns.take(turn.pk, parked.tenant.workspace.pk) is None
    else:
        stop_turn(turn=turn, actor=parked.actor)
    assert parked.reload(turn).status == "cancelled"
    assert log_of(parked) == [REQUESTED, CANCELLED]
    assert [one.status for one in parked.asked()] == ["cancelled"]


def test_a_call_that_is_not_repeated_after_a_crash_has_its_end_in_the_log(parked: Chat) -> None:
    """SEC-56: as unknown, which is what the call says too."""
    turn = die_while_running(parked, checkpoint=None, annotations={})
    assert turns.take(turn.pk, parked.tenant.workspace.pk) is not None
    assert parked.calls()[0].status == "outcome_unknown"
    assert log_of(parked) == [REQUESTED, UNKNOWN]


def test_a_parked_call_of_a_former_member_has_its_end_in_the_log(parked: Chat) -> None:
    """SEC-56, SEC-64: it is not gone on with, and that is on record: who may not, and how the call ended."""
    row = wait_for_question(parked)
    Membership.objects.for_workspace(parked.tenant.workspace).filter(
        user_id=row.asked_of_id
    ).delete()
    rows = InputRequest.objects.for_workspace(parked.tenant.workspace)
    rows.filter(pk=row.pk).update(expires_at=database_now() - timedelta(seconds=1))
    expire_inputs()
    parked.watching.turn("failed")
    assert parked.calls()[0].status == "refused"
    assert log_of(parked) == [REQUESTED, ("tool_call.refused", ""), CANCELLED]


def test_a_parked_call_of_a_revoked_token_has_its_end_in_the_log(parked: Chat) -> None:
    """SEC-56, SEC-64: the same where the turn cannot even be read for anybody any more."""
    row = wait_for_question(parked)
    Turn.objects.for_workspace(parked.tenant.workspace).filter(pk=turn_of(parked).pk).update(
        token_id=uuid7()
    )
    answer(parked, row, content=ADA)
    parked.watching.turn("failed")
    assert parked.server.done == []
    assert log_of(parked) == [REQUESTED, CANCELLED]


def test_a_result_that_could_not_be_recorded_is_withheld(
    parked: Chat, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SEC-56: the call is "outcome unknown" for people and the model, and so it is on record once that works again."""
    row = wait_for_question(parked)

    def refuse(*_: object) -> None:
        raise AuditUnavailable

    monkeypatch.setattr(GatedCall, "write_finished", refuse)
    parked.watching.forget()
    answer(parked, row, content=ADA)
    parked.watching.until(lambda event: "outcome_unknown" in str(event))
    parked.watching.turn("waiting_for_input")
    assert len(parked.server.done) == 1
    call = parked.calls()[0]
    assert call.status == "outcome_unknown"
    resolve_call(call=call, resolution=Resolution.GIVE_UP, actor=parked.actor)
    parked.watching.turn("completed")
    content = parked.model.requests[1]["messages"][-1]["content"]
    assert "Ada" not in content
    assert "Do not repeat it" in content
    assert UNKNOWN in log_of(parked)


def test_a_deleted_conversation_leaves_no_answers_and_no_permissions(parked: Chat) -> None:
    """SEC-62, SEC-69: also not what is still open; of sampling only the cost stays, for the daily budget."""
    row = wait_for_question(parked)
    answer(parked, row, content=ADA)
    parked.watching.turn("completed")
    parked.watching.forget()
    wait_for_question(parked)
    rows = InputRequest.objects.for_workspace(parked.tenant.workspace)
    sampled = rows.get(pk=row.pk)
    sampled.pk = uuid7()
    sampled._state.adding = True
    sampled.kind, sampled.tokens_used, sampled.message = "sampling", 42, "Rhyme about Ada"
    sampled.answer = "{}"
    sampled.save(force_insert=True)
    ToolPermission.objects.create(
        workspace=parked.tenant.workspace,
        user=parked.tenant.member,
        tool=McpTool.objects.for_workspace(parked.tenant.workspace).get(name="book_table"),
        conversation_id=parked.conversation.pk,
    )
    erase_conversation(conversation=parked.conversation, actor=parked.actor)
    [kept] = rows
    assert (kept.tokens_used, kept.kind, kept.message) == (42, "sampling", "")
    assert (kept.answer, kept.params, kept.schema) == (None, {}, {})
    assert (kept.conversation_id, kept.turn_id) == (None, None)
    assert not ToolPermission.objects.for_workspace(parked.tenant.workspace).exists()
    entries = AuditEntry.objects.for_workspace(parked.tenant.workspace)
    assert entries.filter(action="tool_call.finished").count() == 2
    assert entries.filter(action=Action.PERMISSION_FORGOTTEN.value).count() == 1


def test_a_servers_own_word_that_a_link_is_done_wakes_the_turn(parked: Chat) -> None:
    """MCP specification, "URL mode": nobody has to confirm by hand what the server has confirmed."""
    row = wait_for_question(parked, ("asking__sign_new", {}))
    rows = InputRequest.objects.for_workspace(parked.tenant.workspace)
    rows.filter(pk=row.pk).update(elicitation_id="e-1")
    assert complete_url_inputs(parked.row.pk, "e-1")
    parked.watching.turn("completed")
    assert parked.watching.question("accepted")


def test_a_question_that_nobody_answers_runs_out(parked: Chat) -> None:
    """Ours: the server hears that there is no answer, and the turn ends by itself."""
    row = wait_for_question(parked)
    rows = InputRequest.objects.for_workspace(parked.tenant.workspace)
    rows.filter(pk=row.pk).update(expires_at=database_now() - timedelta(seconds=1))
    assert expire_inputs() == 1
    parked.watching.turn("completed")
    assert parked.watching.question("expired")
    assert "cancelled" in parked.model.requests[1]["messages"][-1]["content"]


def test_a_parked_question_outlives_the_process(parked: Chat) -> None:
    """REL-02: nothing runs while it waits; a new process goes on from the checkpoint, and asks nothing twice."""
    row = wait_for_question(parked)
    assert turn_of(parked).lease_until is None
    runtime.shutdown(3.0)
    parked.watching.close()
    parked.watching = type(parked.watching)(parked.conversation.pk)
    answer(parked, row, content=ADA)
    parked.watching.turn("completed")
    assert parked.server.done == [("book_table", {"when": "noon", **ADA})]
    assert len(parked.asked()) == 1


def test_a_crash_while_a_parked_call_waits_beside_others_loses_nothing(parked: Chat) -> None:
    """REL-02: a process that died without a word leaves a lease that runs out; the next one parks again."""
    row = wait_for_question(parked)
    rows = Turn.objects.for_workspace(parked.tenant.workspace)
    rows.filter(pk=turn_of(parked).pk).update(
        status="running", lease_until=database_now() - timedelta(seconds=1)
    )
    parked.watching.forget()
    runner.wake(turn_of(parked).pk, parked.tenant.workspace.pk)
    parked.watching.turn("waiting_for_input")
    assert [one.status for one in parked.asked()] == ["pending"]
    answer(parked, row, content=ADA)
    parked.watching.turn("completed")
    assert len(parked.server.done) == 1


def test_a_call_that_waited_in_place_is_repeated_after_a_crash_if_that_is_harmless(
    in_place: Chat,
) -> None:
    """REL-08: the open request is gone with its process; a tool that only reads is called again, and asks anew."""
    row = wait_for_question(in_place)
    turn = turn_of(in_place)
    rows = Turn.objects.for_workspace(in_place.tenant.workspace)
    rows.filter(pk=turn.pk).update(
        lease_until=database_now() - timedelta(seconds=1), lease_token=turn.lease_token + 1
    )
    taken = turns.take(turn.pk, in_place.tenant.workspace.pk)
    assert taken is not None
    _, work = taken
    assert isinstance(work, turns.CallTools)
    row.refresh_from_db()
    assert row.status == "cancelled"


def test_other_calls_of_the_step_are_not_held_up(asked: Chat) -> None:
    """REL-07: while one call asks, its neighbour runs to its end."""
    asked.model.call(BOOK, ("asking__slow_echo", {"text": "quick"}))
    asked.model.say("done")
    asked.send()
    question = asked.watching.question()
    asked.watching.until(
        lambda e: e["type"] == "tool_call.changed" and e["tool_call"]["status"] == "succeeded"
    )
    asked.watching.turn("waiting_for_input")
    rows = InputRequest.objects.for_workspace(asked.tenant.workspace)
    answer(asked, rows.fetch(UUID(question["id"])), content=ADA)
    asked.watching.turn("completed")
    listed = [m["content"] for m in asked.model.requests[1]["messages"] if m["role"] == "tool"]
    assert "Ada" in listed[0]
    assert "quick" in listed[1]


def test_an_approved_call_does_not_wait_for_its_neighbours_answer(in_place: Chat) -> None:
    """REL-07: approved while another call of the step waits in place, it runs at once."""
    rows = McpTool.objects.for_workspace(in_place.tenant.workspace).filter(name="slow_echo")
    rows.update(approval_override="confirm")
    in_place.model.call(BOOK, ("asking__slow_echo", {"text": "quick"}))
    in_place.model.say("done")
    in_place.send()
    question = in_place.watching.question()
    in_place.watching.until(
        lambda e: (
            e["type"] == "tool_call.changed" and e["tool_call"]["status"] == "waiting_for_approval"
        )
    )
    call = next(one for one in in_place.calls() if one.status == "waiting_for_approval")
    decide(call=call, decision=Decision.APPROVED, actor=in_place.actor)
    in_place.watching.until(
        lambda e: e["type"] == "tool_call.changed" and e["tool_call"]["status"] == "succeeded"
    )
    assert in_place.asked()[0].status == "pending"
    inputs = InputRequest.objects.for_workspace(in_place.tenant.workspace)
    answer(in_place, inputs.fetch(UUID(question["id"])), content=ADA)
    in_place.watching.turn("completed")


@pytest.mark.parametrize("tool", ["asking__sign_new"])
def test_a_link_waits_for_the_persons_word(parked: Chat, tool: str) -> None:
    """SEC-69: the whole address and its host are told; nothing is fetched by us."""
    row = wait_for_question(parked, (tool, {}))
    shown = parked.watching.question()
    assert (shown["kind"], shown["url_host"]) == ("url", "sign.example")
    answer(parked, row)
    parked.watching.turn("completed")
    assert "accept" in parked.model.requests[1]["messages"][-1]["content"]


def test_a_secret_is_warned_of_and_never_shown_again(asked: Chat) -> None:
    """SEC-69: the row warns, and what was answered is masked in every picture of it."""
    row = wait_for_question(asked, ("asking__log_in", {}))
    assert "password" in asked.watching.question()["warnings"][0]
    answer(asked, row, content={"password": "hunter2-canary"})
    asked.watching.turn("completed")
    assert "hunter2-canary" not in str(asked.snapshot())
    assert "hunter2-canary" not in str(asked.watching.events)


def test_a_snapshot_and_the_events_after_it_are_a_snapshot(asked: Chat) -> None:
    """REL-04: also for what servers ask."""
    before = asked.snapshot()
    row = wait_for_question(asked)
    middle = asked.snapshot()
    answer(asked, row, content=ADA)
    asked.watching.turn("completed")
    after = asked.snapshot()
    for start in (before, middle):
        rows = {one["id"]: one for one in start["input_requests"]}
        calls = {one["id"]: one for one in start["tool_calls"]}
        numbers = [event["seq"] for event in asked.watching.events if "seq" in event]
        assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
        for event in asked.watching.events:
            if event.get("seq", 0) <= start["seq"]:
                continue
            if event["type"] == "input_request.changed":
                rows[event["input_request"]["id"]] = event["input_request"]
            if event["type"] == "tool_call.changed":
                calls[event["tool_call"]["id"]] = event["tool_call"]
        assert list(rows.values()) == after["input_requests"]
        assert list(calls.values()) == after["tool_calls"]


@pytest.mark.parametrize(("era", "tool"), [(OLD, "sign_old"), (NEW, "sign_new")])
def test_a_question_that_was_put_to_nobody_is_in_the_chat_with_the_reason(
    era: str, tool: str, tenant: Tenant, model: ScriptedModel, asking: AskingServer
) -> None:
    """REL-2154: the person reads what the server wanted. What they were not to open is not there; nothing waits."""
    chat = chat_in_era(era, tenant, model, asking)
    model.call((f"asking__{tool}", {"url": "http://sign.example/contract"}))
    model.say("done")
    chat.send()
    shown = chat.watching.question("refused")
    chat.watching.turn("completed")
    [kept] = chat.snapshot()["input_requests"]
    for row in (kept, shown):
        assert (row["status"], row["message"]) == ("refused", "Please sign the contract.")
        assert row["warnings"] == ["its link is not an https one."]
        assert row["call_id"] == str(chat.calls()[0].pk)
        assert "http:" not in str(row)
    with pytest.raises(Conflict):
        answer(chat, chat.asked()[0], "decline")
    assert Action.INPUT_REFUSED.value in {
        entry.action for entry in AuditEntry.objects.for_workspace(tenant.workspace)
    }
    chat.watching.close()
