"""A person decides about a call: once, for exactly what was shown."""

from __future__ import annotations

from datetime import timedelta

import pytest

from audit.alerts.conditions import measure
from audit.models import AlertRule, AuditEntry
from audit.reports.calls import CallState, call_of
from audit.reports.providers import rule_in_words
from chat.models import ToolCall
from chat.services.approvals import decide, expire_approvals
from chat.services.turns import stop_turn
from chat.values import Decision, Remember
from mcp_servers.client.connections import runtime
from mcp_servers.client.errors import InvalidArguments
from mcp_servers.models import McpTool, ToolPermission
from tests.chat.conftest import Chat, Watching
from tests.chat.services.waiting_calls import tool_of, waiting_call
from tests.threads import Threads
from workspaces.database import database_now
from workspaces.errors import Conflict, DomainError, PermissionDenied


def test_nothing_runs_before_a_person_says_yes(chat: Chat) -> None:
    """SEC-63: a destructive tool waits; approved, it runs once with the arguments shown."""
    call = waiting_call(chat)
    assert chat.server.calls == []
    assert call.approval_rule
    chat.model.say("gone")
    decide(call=call, decision=Decision.APPROVED, actor=chat.actor)
    chat.watching.turn("completed")
    assert chat.server.calls == [("destroy", {"what": "the world"})]
    actions = AuditEntry.objects.for_workspace(chat.tenant.workspace).filter(call_id=call.pk)
    assert list(actions.order_by("id").values_list("action", flat=True)) == [
        "approval.requested",
        "approval.granted",
        "tool_call.requested",
        "tool_call.finished",
    ]


def test_a_refusal_reaches_the_model_with_its_reason(chat: Chat) -> None:
    """SEC-64: refused is final, and the model reads why."""
    call = waiting_call(chat)
    chat.model.say("all right")
    decide(call=call, decision=Decision.REFUSED, actor=chat.actor, note="I still need it")
    chat.watching.turn("completed")
    assert chat.server.calls == []
    assert "I still need it" in chat.model.requests[1]["messages"][-1]["content"]
    with pytest.raises(Conflict):
        decide(call=call, decision=Decision.APPROVED, actor=chat.actor)


def test_edited_arguments_are_what_is_sent(chat: Chat) -> None:
    """SEC-60: what was approved is what runs, and the log says that it was edited."""
    call = waiting_call(chat)
    chat.model.say("done")
    decide(call=call, decision=Decision.APPROVED, actor=chat.actor, arguments={"what": "a crumb"})
    chat.watching.turn("completed")
    assert chat.server.calls == [("destroy", {"what": "a crumb"})]
    card = chat.snapshot()["tool_calls"][0]
    assert card["approval"]["edited"] is True
    assert card["proposed_arguments"] == {"what": "the world"}


def test_edited_arguments_that_do_not_fit_are_refused_and_the_call_waits_on(chat: Chat) -> None:
    """Ours: a slip in the editor costs nothing."""
    call = waiting_call(chat)
    with pytest.raises(InvalidArguments):
        decide(call=call, decision=Decision.APPROVED, actor=chat.actor, arguments={"what": 5})
    assert chat.calls()[0].status == "waiting_for_approval"


def test_of_two_who_decide_one_wins(chat: Chat) -> None:
    """REL-10, SEC-64: a race gives one decision; the other is told."""
    call = waiting_call(chat)
    chat.model.say("done")

    def attempt(decision: Decision) -> bool:
        try:
            decide(call=call, decision=decision, actor=chat.actor)
        except DomainError:
            return False
        return True

    with Threads(6) as pool:
        results = list(pool.map(attempt, [Decision.APPROVED, Decision.REFUSED] * 3))
    assert sum(results) == 1
    chat.watching.turn("completed")
    assert len(chat.server.calls) <= 1


def test_nobody_else_decides(chat: Chat) -> None:
    """SEC-07, SEC-64: another member, even an admin, cannot approve a person's call."""
    call = waiting_call(chat)
    for role in ("owner", "admin", "auditor"):
        with pytest.raises(PermissionDenied):
            decide(call=call, decision=Decision.APPROVED, actor=chat.tenant.actor(role))
    assert chat.server.calls == []


def test_an_approval_runs_out(chat: Chat) -> None:
    """REL-10, SEC-60: by the database's clock; the model is told, and nothing ran."""
    call = waiting_call(chat)
    past = database_now() - timedelta(seconds=1)
    ToolCall.objects.for_workspace(chat.tenant.workspace).update(approval_expires_at=past)
    with pytest.raises(Conflict, match="is over"):
        decide(call=call, decision=Decision.APPROVED, actor=chat.actor)
    chat.model.say("too late")
    assert expire_approvals() == 1
    chat.watching.turn("completed")
    assert chat.server.calls == []
    assert chat.calls()[0].status == "refused"
    actions = AuditEntry.objects.for_workspace(chat.tenant.workspace).values_list("action")
    assert ("approval.expired",) in list(actions)


def test_a_pending_approval_survives_a_restart(chat: Chat) -> None:
    """REL-10: the wait is a row; after a restart any process goes on from it."""
    call = waiting_call(chat)
    runtime.shutdown(2.0)
    chat.watching.close()
    chat.watching = Watching(chat.conversation.pk)
    assert chat.snapshot()["tool_calls"][0]["status"] == "waiting_for_approval"
    chat.model.say("gone")
    decide(call=call, decision=Decision.APPROVED, actor=chat.actor)
    chat.watching.turn("completed")
    assert chat.server.calls == [("destroy", {"what": "the world"})]


@pytest.mark.parametrize("is_gone", [False, True])
def test_stopping_a_waiting_turn_ends_the_wait(chat: Chat, is_gone: bool) -> None:
    """SEC-1091: nothing is left to approve, and the log does not say that the call waits."""
    call = waiting_call(chat)
    if is_gone:  # as a stop finds it that comes before the card has ended
        tool_of(call).server.delete()
    stop_turn(turn=call.turn, actor=chat.actor)
    assert chat.reload(call.turn).status == "cancelled"
    with pytest.raises(Conflict):
        decide(call=call, decision=Decision.APPROVED, actor=chat.actor)
    auditor = chat.tenant.actor("auditor")
    row = call_of(chat.tenant.workspace.pk, call.pk, actor=auditor, now=database_now())
    assert (row.state, row.end and row.end.rule) == (CallState.REFUSED, "approval.withdrawn")
    assert "It was stopped" in rule_in_words("approval.withdrawn")
    kind = AlertRule.Condition.APPROVAL.value
    rule = AlertRule(workspace=chat.tenant.workspace, condition=kind, window_minutes=60)
    assert measure(rule, database_now() + timedelta(hours=2)) == 0


def test_two_waiting_calls_are_decided_one_by_one(chat: Chat) -> None:
    """REL-07: the approved one runs, the turn waits for the other, results keep their order."""
    chat.model.call(("counting__destroy", {"what": "a"}), ("counting__destroy", {"what": "b"}))
    chat.send()
    chat.watching.turn("waiting_for_approval")
    first, second = chat.calls()
    chat.watching.forget()
    decide(call=second, decision=Decision.APPROVED, actor=chat.actor)
    chat.watching.turn("waiting_for_approval")
    assert chat.server.calls == [("destroy", {"what": "b"})]
    chat.model.say("done")
    decide(call=first, decision=Decision.REFUSED, actor=chat.actor)
    chat.watching.turn("completed")
    listed = [m["content"] for m in chat.model.requests[1]["messages"] if m["role"] == "tool"]
    assert "refused" in listed[0]
    assert "destroyed b" in listed[1]


@pytest.mark.parametrize(
    ("change", "decision", "remember"),
    [
        ("deleted", Decision.APPROVED, Remember.NOT),
        ("deleted", Decision.APPROVED, Remember.CONVERSATION),
        ("deleted", Decision.REFUSED, Remember.NOT),
        ("changed", Decision.APPROVED, Remember.NOT),
        ("changed", Decision.APPROVED, Remember.CONVERSATION),
    ],
)
def test_deciding_about_what_is_not_there_any_more_ends_the_wait(
    chat: Chat, change: str, decision: Decision, remember: Remember
) -> None:
    """REL-2155: nothing is called or granted, the log and the card say why, and the answer goes on."""
    call = waiting_call(chat)
    tool, tools = tool_of(call), McpTool.objects.for_workspace(chat.tenant.workspace)
    if change == "deleted":
        tool.server.delete()  # as a decision finds it that comes before the card has ended
    else:
        tools.filter(pk=tool.pk).update(definition_hash="0" * 64)
    chat.model.say("all right")
    decide(call=call, decision=decision, actor=chat.actor, remember=remember)
    chat.watching.turn("completed")
    assert chat.server.calls == []
    [card] = chat.snapshot()["tool_calls"]
    assert card["status"] == "refused"
    assert card["error"]
    assert card["error"] in chat.model.requests[1]["messages"][-1]["content"]
    actions = AuditEntry.objects.for_workspace(chat.tenant.workspace).filter(call_id=call.pk)
    assert list(actions.order_by("id").values_list("action", flat=True)) == [
        "approval.requested",
        "tool_call.refused",
    ]
    assert not ToolPermission.objects.for_workspace(chat.tenant.workspace).exists()
