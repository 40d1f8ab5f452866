"""A turn from the message to the answer, with a real HTTP model and a real MCP server."""

from __future__ import annotations

import threading
from unittest.mock import patch
from uuid import UUID

import pytest
from django.test import override_settings

from audit.models import AuditEntry
from chat.engine import calls, leases, steps, turns, waiting
from chat.models import Message, ModelProvider, Turn
from chat.services.conversations import erase_conversation
from chat.services.turns import retry_turn, stop_turn
from chat.values import TurnStatus
from mcp_servers.client.decisions import PolicyDecision
from tests.chat.conftest import Chat
from tests.fakes.scripted_model import Answer, chunk
from tests.patience import PATIENCE
from tests.threads import Threads
from workspaces.database import database_now
from workspaces.errors import Conflict, InvalidInput, PermissionDenied
from workspaces.models import Membership


def entries(chat: Chat) -> list[str]:
    rows = AuditEntry.objects.for_workspace(chat.tenant.workspace).order_by("id")
    return [row.action for row in rows if row.action.startswith(("tool_call", "approval"))]


@pytest.mark.both_engines
def test_an_answer_streams_and_is_stored(chat: Chat) -> None:
    """Ours: what was streamed is what is stored, and usage is counted."""
    chat.model.say("The sky is blue today")
    turn = chat.ask("What colour is the sky?")
    assert turn.status == TurnStatus.COMPLETED
    assert chat.answer() == "The sky is blue today"
    assert chat.watching.text() == "The sky is blue today"
    assert (turn.prompt_tokens, turn.completion_tokens) == (7, 5)
    sent = chat.model.requests[0]
    assert sent["messages"][-1] == {"role": "user", "content": "What colour is the sky?"}
    assert {tool["function"]["name"] for tool in sent["tools"]} >= {"counting__echo"}


@pytest.mark.both_engines
def test_a_tool_call_goes_through_the_gate_and_its_result_to_the_model(chat: Chat) -> None:
    """SEC-56, SEC-102: requested is committed before the call, finished before the model reads."""
    chat.model.call(("counting__echo", {"text": "hi"}))
    chat.model.say("It said hi")
    turn = chat.ask()
    assert turn.status == TurnStatus.COMPLETED
    assert chat.server.calls == [("echo", {"text": "hi"})]
    assert entries(chat) == ["tool_call.requested", "tool_call.finished"]
    message = chat.model.requests[1]["messages"][-1]
    assert message["role"] == "tool"
    assert "hi" in message["content"]
    assert chat.answer() == "It said hi"


@pytest.mark.both_engines
def test_calls_of_one_step_run_side_by_side_and_answer_in_the_order_asked(chat: Chat) -> None:
    """REL-07: one fails, one is slow; the others finish, and results keep their order."""
    chat.model.call(
        ("counting__slow", {"seconds": 0.6}),
        ("counting__fail", {"text": "no"}),
        ("counting__echo", {"text": "quick"}),
    )
    chat.model.say("done")
    turn = chat.ask()
    assert turn.status == TurnStatus.COMPLETED
    assert [call.status for call in chat.calls()] == ["succeeded", "failed", "succeeded"]
    listed = [m for m in chat.model.requests[1]["messages"] if m["role"] == "tool"]
    assert "done" in listed[0]["content"]
    assert "no" in listed[1]["content"]
    assert "quick" in listed[2]["content"]
    slow, _, quick = chat.calls()
    assert quick.started_at is not None
    assert slow.finished_at is not None
    assert quick.started_at < slow.finished_at


def test_progress_reaches_those_who_watch(chat: Chat) -> None:
    """Ours: a slow tool says how far it is."""
    chat.model.call(("counting__slow", {"seconds": 0.4}))
    chat.model.say("done")
    chat.ask()
    seen = [e for e in chat.watching.events if e["type"] == "tool_call.progress"]
    assert seen
    assert seen[-1]["total"] == 4


@pytest.mark.both_engines
def test_a_message_with_the_same_client_id_is_stored_once(chat: Chat) -> None:
    """REL-01: fifty identical sends give one message, one turn, and the same ids."""
    chat.model.say("once")
    with Threads(8) as pool:
        sent = list(pool.map(lambda _: chat.send("hello", client_id="same"), range(50)))
    assert len({(s.message.pk, s.turn.pk) for s in sent}) == 1
    assert sum(s.is_new for s in sent) == 1
    chat.watching.turn("completed")
    rows = Message.objects.for_workspace(chat.tenant.workspace)
    assert rows.filter(role="user").count() == 1
    assert len(chat.model.requests) == 1


@pytest.mark.both_engines
def test_a_second_message_waits_for_the_answer_to_the_first(chat: Chat) -> None:
    """Ours: while a turn runs, another message is refused in plain words and nothing is lost."""
    hold = threading.Event()
    chat.model.say("one two", hold=hold)
    chat.send("first")
    chat.watching.until(lambda e: e["type"] == "text.delta")
    with pytest.raises(Conflict, match="wait until the answer is complete"):
        chat.send("second")
    hold.set()
    chat.watching.turn("completed")


@pytest.mark.both_engines
def test_stop_ends_the_model_and_keeps_what_was_said(chat: Chat) -> None:
    """REL-09: stop is a row; the model's connection is closed, the text so far stays."""
    hold = threading.Event()
    chat.model.say("some words that never end", hold=hold)
    sent = chat.send()
    chat.watching.until(lambda e: e["type"] == "text.delta" and "never" in chat.watching.text())
    stop_turn(turn=sent.turn, actor=chat.actor)
    chat.watching.turn("cancelled")
    # Before it is let go: a model that goes on may be done before it learns that nobody listens.
    assert chat.model.closed.wait(PATIENCE)
    hold.set()
    assert chat.answer().startswith("some words")
    assert chat.snapshot()["messages"][-1]["status"] == "stopped"


@pytest.mark.both_engines
def test_stop_cancels_the_running_call_on_the_server(chat: Chat) -> None:
    """REL-09: the MCP server hears of the cancellation, and the log says how the call ended."""
    chat.model.call(("counting__slow", {"seconds": 20}))
    sent = chat.send()
    chat.watching.until(lambda e: e["type"] == "tool_call.progress")
    stop_turn(turn=sent.turn, actor=chat.actor)
    chat.watching.turn("cancelled")
    assert chat.calls()[0].status == "cancelled"
    finished = AuditEntry.objects.for_workspace(chat.tenant.workspace).get(
        action="tool_call.finished"
    )
    assert finished.outcome == "cancelled"


@pytest.mark.both_engines
def test_a_stop_asked_for_in_another_process_is_noticed(chat: Chat) -> None:
    """REL-09: the holder reads the row; no nudge is needed."""
    hold = threading.Event()
    chat.model.say("one two three", hold=hold)
    sent = chat.send()
    chat.watching.until(lambda e: e["type"] == "text.delta")
    Turn.objects.for_workspace(chat.tenant.workspace).filter(pk=sent.turn.pk).update(
        stop_requested_at=database_now()
    )
    chat.watching.turn("cancelled")
    hold.set()


@pytest.mark.both_engines
def test_a_stopped_turn_goes_on_when_asked_to(chat: Chat) -> None:
    """REL-08: the answer begins anew; partial text is replaced, not doubled."""
    hold = threading.Event()
    chat.model.say("half an answer", hold=hold)
    sent = chat.send()
    chat.watching.until(lambda e: e["type"] == "text.delta")
    stop_turn(turn=sent.turn, actor=chat.actor)
    chat.watching.turn("cancelled")
    hold.set()
    chat.watching.forget()
    chat.model.say("a whole answer")
    retry_turn(turn=sent.turn, actor=chat.actor)
    chat.watching.turn("completed")
    assert [m["text"] for m in chat.snapshot()["messages"]] == ["go", "a whole answer"]


def test_only_what_was_offered_can_be_called(chat: Chat) -> None:
    """SEC-66: an invented tool is an error for the model, and nothing leaves."""
    chat.model.call(("counting__invented", {}), ("echo", {"text": "x"}))
    chat.model.say("sorry")
    turn = chat.ask()
    assert turn.status == TurnStatus.COMPLETED
    assert chat.server.calls == []
    listed = [m["content"] for m in chat.model.requests[1]["messages"] if m["role"] == "tool"]
    assert all("There is no tool named" in text for text in listed)


@pytest.mark.both_engines
def test_broken_arguments_are_told_to_the_model_with_the_schema(chat: Chat) -> None:
    """Ours: a model that returns broken JSON is told so, and can do better."""
    chat.model.call(("counting__echo", '{"text": "unfinished'))
    chat.model.call(("counting__echo", {"text": "better"}))
    chat.model.say("done")
    turn = chat.ask()
    assert turn.status == TurnStatus.COMPLETED
    assert chat.server.calls == [("echo", {"text": "better"})]
    content = chat.model.requests[1]["messages"][-1]["content"]
    assert "schema" in content


def test_arguments_that_do_not_fit_are_refused_at_the_gate(chat: Chat) -> None:
    """SEC-76: the refusal is an entry, and the model can correct itself."""
    chat.model.call(("counting__echo", {"text": 7}))
    chat.model.say("done")
    chat.ask()
    assert chat.server.calls == []
    assert entries(chat) == ["tool_call.refused"]


def test_the_same_call_over_and_over_is_cut(chat: Chat) -> None:
    """SEC-71: a loop of identical calls ends with a clear reason."""
    for _ in range(6):
        chat.model.call(("counting__echo", {"text": "again"}))
    turn = chat.ask()
    assert turn.status == TurnStatus.FAILED
    assert "same call" in turn.error_message
    assert len(chat.server.calls) == 3


def test_steps_are_limited(chat: Chat, settings: object) -> None:
    """SEC-71: a turn ends at its limit of steps, and says so."""
    from django.conf import settings as django_settings

    few = django_settings.TRELLIS.model_copy(update={"turn_max_steps": 2})
    for number in range(3):
        chat.model.call(("counting__echo", {"text": str(number)}))
    with override_settings(TRELLIS=few):
        turn = chat.ask()
    assert turn.status == TurnStatus.FAILED
    assert turn.error_code == "limit_reached"
    assert "2 steps" in turn.error_message


def test_a_switched_off_tool_is_gone_at_once(chat: Chat) -> None:
    """Ours: an admin switches a tool off, and the next request does not offer it."""
    from mcp_servers.registry.services import set_tool_enabled
    from tests.mcp_servers.factories import tool_of

    set_tool_enabled(
        tool=tool_of(chat.row, "echo"), is_enabled=False, actor=chat.tenant.actor("admin")
    )
    chat.model.say("no tools")
    chat.ask()
    names = {tool["function"]["name"] for tool in chat.model.requests[0]["tools"]}
    assert "counting__echo" not in names
    assert "counting__plain" in names


@pytest.mark.both_engines
def test_rights_are_asked_for_again_when_the_turn_runs(chat: Chat) -> None:
    """SEC-09, SEC-14: somebody removed meanwhile gets no answer and calls no tool."""
    with override_settings():
        sent = None
        Membership.objects.for_workspace(chat.tenant.workspace).filter(
            user=chat.tenant.member
        ).delete()
        sent = chat.send()
    chat.watching.turn("failed")
    assert chat.model.requests == []
    assert chat.reload(sent.turn).error_code == "forbidden"


def test_another_member_cannot_stop_it(chat: Chat) -> None:
    """SEC-07: a turn is stopped by who asked."""
    hold = threading.Event()
    chat.model.say("one two", hold=hold)
    sent = chat.send()
    with pytest.raises(PermissionDenied):
        stop_turn(turn=sent.turn, actor=chat.tenant.actor("admin"))
    hold.set()
    chat.watching.turn("completed")


def test_empty_and_endless_messages_are_refused(chat: Chat) -> None:
    """SEC-76, REL-2311: the fault is named, and nothing is stored."""
    for text in (
        "",
        "   ",
        " \u200b\n\ufeff",
        "\u200d\ufe0f\u3164\u2800",
        "x" * 100_001,
        "nul\x00",
        "half \ud800",
    ):
        with pytest.raises(InvalidInput):
            chat.send(text)
    with pytest.raises(InvalidInput):
        chat.send("fine", client_id="no spaces allowed")
    with pytest.raises(InvalidInput):
        chat.send("fine", client_id="x" * 64 + "\n")
    assert Message.objects.for_workspace(chat.tenant.workspace).count() == 0


@pytest.mark.both_engines
def test_a_stop_that_came_before_the_wait_ends_the_turn(chat: Chat) -> None:
    """REL-09: asked for in another process while the turn was about to park; approving it later runs nothing."""
    chat.model.call(("counting__destroy", {"what": "x"}))
    hold = threading.Event()
    original = waiting.ask_for_approval

    def stop_first(lease: leases.Lease, call_id: UUID, decision: PolicyDecision) -> None:
        Turn.objects.for_workspace(lease.workspace_id).filter(pk=lease.turn_id).update(
            stop_requested_at=database_now()
        )
        original(lease, call_id, decision)
        hold.set()

    with patch.object(waiting, "ask_for_approval", stop_first):
        chat.send()
        assert hold.wait(PATIENCE)
        chat.watching.turn("cancelled")
    assert chat.calls()[0].status == "cancelled"
    assert chat.server.calls == []


def test_an_invented_name_does_not_spoil_the_conversation(chat: Chat) -> None:
    """SEC-65: what goes back to the model is a name that its API takes."""
    chat.model.call(("counting.echo now!", {"text": "x"}))
    chat.model.say("sorry")
    chat.ask()
    sent = chat.model.requests[1]["messages"][-2]["tool_calls"][0]["function"]["name"]
    assert sent == "counting_echo_now_"
    assert chat.calls()[0].function_name == "counting.echo now!"


@pytest.mark.both_engines
def test_half_a_character_from_the_model_harms_nobody(chat: Chat) -> None:
    """SEC-76: a lone surrogate and a NUL in a stream are replaced; everybody keeps watching."""
    broken = b'data: {"choices":[{"index":0,"delta":{"content":"a\\ud83d\\u0000b"},"finish_reason":"stop"}]}\n\n'
    chat.model.give(Answer([broken, b"data: [DONE]\n\n"]))
    turn = chat.ask()
    assert turn.status == TurnStatus.COMPLETED
    assert chat.answer() == "a\ufffd\ufffdb"


def test_a_provider_that_is_switched_off_has_no_stand_in(chat: Chat) -> None:
    """SEC-11: the conversation does not go to another provider."""
    ModelProvider.objects.for_workspace(chat.tenant.workspace).update(is_active=False)
    turn = chat.ask()
    assert turn.error_code == "provider_switched_off"
    assert chat.model.requests == []


@pytest.mark.both_engines
def test_deleting_a_conversation_stops_what_runs_in_it(chat: Chat) -> None:
    """Ours: no error, no call, nothing left; the audit log keeps what happened."""
    hold = threading.Event()
    chat.model.say("one two three", hold=hold)
    chat.send()
    chat.watching.until(lambda e: e["type"] == "text.delta")
    erase_conversation(conversation=chat.conversation, actor=chat.actor)
    hold.set()
    assert Turn.objects.for_workspace(chat.tenant.workspace).count() == 0


@pytest.mark.both_engines
def test_a_dead_holder_is_taken_over_and_its_call_is_not_repeated(chat: Chat) -> None:
    """REL-04: a destructive call whose process died is "outcome unknown", never sent again, and a person's to judge."""
    chat.lose_call()
    assert chat.server.calls == []
    assert chat.calls()[0].status == "outcome_unknown"
    assert len(chat.model.requests) == 1


@pytest.mark.both_engines
def test_a_harmless_call_of_a_dead_holder_is_repeated(chat: Chat) -> None:
    """REL-04: read-only by a trusted server may run again."""
    hold = threading.Event()
    chat.model.call(("counting__echo", {"text": "again"}))
    chat.model.say("one two", hold=hold)
    sent = chat.send()
    chat.watching.until(lambda e: e["type"] == "text.delta")
    lease = leases.Lease(sent.turn.pk, chat.conversation.pk, chat.tenant.workspace.pk, 1)
    Turn.objects.for_workspace(chat.tenant.workspace).filter(pk=sent.turn.pk).update(
        lease_until=None, lease_token=7
    )
    with pytest.raises(leases.LeaseLost):
        leases.renew(lease)
    stale = steps.Partial(lease, chat.calls()[0].message_id, "stale", "")
    assert steps.save_partials([stale]) == set()
    hold.set()


@pytest.mark.both_engines
def test_the_old_holder_of_a_lease_writes_nothing(chat: Chat) -> None:
    """REL-03: after a take-over the old token is refused everywhere."""
    chat.model.call(("counting__plain", {"text": "x"}))
    sent = chat.send()
    chat.watching.turn("waiting_for_approval")
    old = leases.Lease(sent.turn.pk, chat.conversation.pk, chat.tenant.workspace.pk, 999)
    for write in (
        lambda: turns.finish(old, TurnStatus.COMPLETED),
        lambda: calls.start_call(old, chat.calls()[0].pk),
        lambda: steps.start_step(old, 1),
    ):
        with pytest.raises(leases.LeaseLost):
            write()
    assert chat.reload(sent.turn).status == "waiting_for_approval"


def test_a_model_that_breaks_off_can_be_retried(chat: Chat) -> None:
    """REL-32: a cut stream keeps the beginning, says what happened, and Retry works."""
    chat.model.give(Answer([chunk({"content": "Half of"})]))
    turn = chat.ask()
    assert turn.status == TurnStatus.FAILED
    assert turn.error_code == "provider_stalled"
    assert turn.can_retry
    assert chat.answer() == "Half of"
    chat.model.say("All of it")
    chat.watching.forget()
    retry_turn(turn=turn, actor=chat.actor)
    chat.watching.turn("completed")
    assert chat.answer() == "All of it"


@pytest.mark.both_engines
def test_the_turn_runs_on_when_nobody_watches(chat: Chat) -> None:
    """REL-22: closing the tab does not stop a turn."""
    hold = threading.Event()
    chat.model.say("still here", hold=hold)
    sent = chat.send()
    chat.watching.until(lambda e: e["type"] == "text.delta")
    chat.watching.close()
    hold.set()
    from tests.chat.conftest import Watching

    chat.watching = Watching(chat.conversation.pk)
    if chat.reload(sent.turn).status != "completed":
        chat.watching.turn("completed")
    assert chat.answer() == "still here"
