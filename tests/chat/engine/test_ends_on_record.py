"""Calls whose end the log knows although their row does not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from asgiref.sync import async_to_sync

from audit.actions import Action, Outcome, RefusedBy
from audit.models import AuditBody, AuditEntry
from audit.services import EntryDraft, record, spool
from chat.engine import runner
from chat.engine.requests import actor_for_log, request_of
from chat.models import ToolCall, Turn
from chat.services.resolutions import expire_resolutions, resolve_call, settle_known
from chat.services.turns import stop_turn
from chat.values import Resolution
from mcp_servers.client.canonical import canonical_json
from mcp_servers.gate import call_tool
from mcp_servers.gate.recorded import RESULT_GONE
from mcp_servers.models import ApprovalOverride, McpTool
from mcp_servers.registry import services
from tests.chat.conftest import Chat

Leave = Callable[[str], ToolCall]


@pytest.fixture
def leave(chat: Chat) -> Leave:
    """Has a call made through the gate by a process that dies before it updates the call's row."""

    def make(tool_name: str) -> ToolCall:
        chat.model.call((f"counting__{tool_name}", {"text": "paid"}))
        tools = McpTool.objects.for_workspace(chat.tenant.workspace)
        tool = tools.get(name=tool_name)
        services.set_approval_override(
            tool=tool, override=ApprovalOverride.CONFIRM, actor=chat.tenant.actor()
        )
        sent = chat.send()
        chat.watching.turn("waiting_for_approval")
        services.set_approval_override(
            tool=tool, override=ApprovalOverride.AUTO, actor=chat.tenant.actor()
        )
        call = chat.calls()[0]
        turns = Turn.objects.for_workspace(chat.tenant.workspace).filter(pk=sent.turn.pk)
        turns.update(status="running", lease_until=None, lease_token=41)
        call.status = "running"
        call.save()
        turn = turns.get()
        async_to_sync(call_tool)(request_of(call, turn, chat.bud, actor_for_log(turn)))
        chat.watching.forget()
        return call

    return make


def ends(chat: Chat) -> list[str]:
    rows = AuditEntry.objects.for_workspace(chat.tenant.workspace).order_by("pk")
    return list(rows.filter(action=Action.TOOL_CALL_FINISHED).values_list("outcome", flat=True))


@pytest.mark.parametrize("tool_name", ["plain", "echo"])
def test_who_takes_the_turn_over_takes_the_end_from_the_log(
    chat: Chat, leave: Leave, tool_name: str
) -> None:
    """REL-201, REL-04: nobody is asked, nothing is made again, and the model reads the result."""
    call = leave(tool_name)
    chat.model.say("all right")
    runner.wake(call.turn_id, chat.tenant.workspace.pk)
    chat.watching.turn("completed")
    settled = chat.calls()[0]
    assert (settled.status, settled.error) == ("succeeded", "")
    assert settled.result is not None
    assert settled.result["content"] == [{"type": "text", "text": "paid"}]
    assert chat.results()[-1] == "paid"
    assert chat.server.names() == [tool_name]
    assert ends(chat) == ["ok"]


def test_a_result_that_the_log_did_not_keep_is_told_as_gone(chat: Chat, leave: Leave) -> None:
    """REL-201: that it is done is known all the same."""
    call = leave("plain")
    AuditBody.unscoped.filter(workspace_id=chat.tenant.workspace.pk).update(is_cut=True)
    chat.model.say("all right")
    runner.wake(call.turn_id, chat.tenant.workspace.pk)
    chat.watching.turn("completed")
    assert chat.calls()[0].status == "succeeded"
    assert chat.results()[-1] == RESULT_GONE
    assert chat.server.names() == ["plain"]


def test_what_goes_between_a_file_and_a_server_is_not_shown_by_the_log_either(
    chat: Chat, leave: Leave
) -> None:
    """REL-201, SEC-72: the transfer is shown as done, and its content reaches neither card nor model."""
    call = leave("plain")
    call.builtin = "send_artifact_to_mcp"
    call.save(update_fields=["builtin"])
    chat.model.say("all right")
    runner.wake(call.turn_id, chat.tenant.workspace.pk)
    chat.watching.turn("completed")
    settled = chat.calls()[0]
    assert (settled.status, settled.model_text) == ("succeeded", RESULT_GONE)
    assert "paid" not in str(settled.result)
    assert chat.server.names() == ["plain"]


def test_a_stopped_turn_shows_what_the_log_has_of_its_calls(chat: Chat, leave: Leave) -> None:
    """REL-201, REL-09: the person reads that it was done, not that nobody knows."""
    call = leave("plain")
    stop_turn(turn=chat.reload(call.turn), actor=chat.actor)
    assert chat.calls()[0].status == "succeeded"
    assert ends(chat) == ["ok"]


def learn(chat: Chat, call: ToolCall) -> None:
    """Have the end come in from the spool, which kept it while the database was away."""
    body: dict[str, Any] = {"content": [{"type": "text", "text": "paid"}], "message": ""}
    spool.spool(
        EntryDraft(
            action=Action.TOOL_CALL_FINISHED,
            actor=chat.actor,
            workspace_id=call.workspace_id,
            call_id=call.pk,
            outcome=Outcome.OK,
            result=canonical_json(body),
        )
    )
    assert spool.replay() == 1


def test_the_sweep_settles_what_the_log_has_learned(chat: Chat, unknown: ToolCall) -> None:
    """REL-201: the turn goes on by itself, once."""
    assert settle_known() == 0
    learn(chat, unknown)
    chat.model.say("all right")
    assert settle_known() == 1
    chat.watching.turn("completed")
    assert chat.calls()[0].status == "succeeded"
    assert chat.results()[-1] == "paid"
    assert settle_known() == 0


@pytest.mark.parametrize("resolution", list(Resolution))
def test_a_decision_that_comes_after_the_log_has_learned_runs_nothing(
    chat: Chat, unknown: ToolCall, resolution: Resolution
) -> None:
    """REL-201, REL-05: between the sweeps as well."""
    learn(chat, unknown)
    chat.model.say("all right")
    settled = resolve_call(call=unknown, resolution=resolution, actor=chat.actor)
    assert (settled.pk, settled.status) == (unknown.pk, "succeeded")
    chat.watching.turn("completed")
    assert [call.status for call in chat.calls()] == ["succeeded"]
    assert chat.server.calls == []


def test_time_that_runs_out_gives_up_nothing_that_is_done(chat: Chat, unknown: ToolCall) -> None:
    """REL-201, REL-11."""
    learn(chat, unknown)
    ToolCall.objects.for_workspace(chat.tenant.workspace).update(resolution_due_at=None)
    chat.model.say("all right")
    expire_resolutions()
    chat.watching.turn("completed")
    assert chat.calls()[0].status == "succeeded"


def test_a_call_that_was_refused_too_late_to_be_told_was_not_sent(
    chat: Chat, unknown: ToolCall
) -> None:
    """REL-201, SEC-101: the log says that nothing left, so it failed and is not unknown."""
    record(
        EntryDraft(
            action=Action.TOOL_CALL_REFUSED,
            actor=chat.actor,
            workspace_id=unknown.workspace_id,
            call_id=unknown.pk,
            refused_by=RefusedBy.AUDIT,
            rule="audit.unavailable",
        )
    )
    chat.model.say("all right")
    assert settle_known() == 1
    chat.watching.turn("completed")
    assert chat.calls()[0].status == "failed"
    assert chat.server.calls == []


def test_an_unknown_end_in_the_log_settles_nothing(chat: Chat, unknown: ToolCall) -> None:
    """REL-05: the person still decides where the log does not know either."""
    assert ends(chat) == ["outcome_unknown"]
    assert settle_known() == 0
    assert chat.calls()[0].status == "outcome_unknown"
