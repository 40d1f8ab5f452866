"""A server or a tool goes while a call of it waits for a person: nobody has to answer what cannot be done any more."""

from __future__ import annotations

import pytest

from audit.models import AuditEntry
from chat.engine.calls import refuse_call
from chat.engine.leases import Lease
from chat.engine.waiting import go_on_in_place
from chat.services.withdrawn_tools import release_calls
from mcp_servers.models import ApprovalOverride, McpServer
from mcp_servers.registry.services import (
    delete_server,
    set_approval_override,
    set_server_active,
    set_tool_enabled,
)
from tests.chat.conftest import Chat
from tests.chat.services.questions import wait_for_question
from tests.chat.services.waiting_calls import tool_of, waiting_call
from workspaces.changes import tracked_change


def withdraw(chat: Chat, how: str) -> None:
    """Have an administrator take the tool away."""
    tool, actor = tool_of(chat.calls()[0]), chat.tenant.actor("admin")
    if how == "server deleted":
        delete_server(server=tool.server, actor=actor)
    elif how == "server off":
        set_server_active(server=tool.server, is_active=False, actor=actor)
    elif how == "tool blocked":
        set_approval_override(tool=tool, override=ApprovalOverride.DENY, actor=actor)
    elif how == "tool changed":
        with tracked_change(tool, actor=actor):
            tool.definition_hash = "0" * 64
            tool.save(update_fields=["definition_hash"])
    else:
        set_tool_enabled(tool=tool, is_enabled=False, actor=actor)


@pytest.mark.parametrize(
    ("how", "reason"),
    [
        ("server deleted", "it or its server was removed"),
        ("server off", "The server of this tool is switched off."),
        ("tool off", "This tool is switched off."),
        ("tool blocked", "blocked"),
        ("tool changed", "changed"),
    ],
)
def test_a_call_whose_tool_is_taken_away_waits_for_nobody(
    chat: Chat, how: str, reason: str
) -> None:
    """REL-2211: its card says why at once, so does the log, and the answer goes on."""
    call = waiting_call(chat)
    chat.model.say("all right")
    withdraw(chat, how)
    chat.watching.turn("completed")
    assert chat.server.calls == []
    [card] = chat.snapshot()["tool_calls"]
    assert card["status"] == "refused"
    assert reason in card["error"]
    assert card["error"] in chat.model.requests[1]["messages"][-1]["content"]
    actions = AuditEntry.objects.for_workspace(chat.tenant.workspace).filter(call_id=call.pk)
    assert list(actions.order_by("id").values_list("action", flat=True)) == [
        "approval.requested",
        "tool_call.refused",
    ]


def test_a_call_whose_tool_is_still_there_goes_on_waiting(chat: Chat) -> None:
    """REL-2211: and what was missed at first is found by the next look."""
    waiting_call(chat)
    assert release_calls() == 0
    servers = McpServer.objects.for_workspace(chat.tenant.workspace)
    servers.filter(pk=tool_of(chat.calls()[0]).server_id).update(is_active=False)
    chat.model.say("all right")
    assert release_calls() == 1
    chat.watching.turn("completed")
    assert release_calls() == 0


@pytest.mark.parametrize("how", ["server deleted", "server off"])
def test_what_a_server_asked_ends_with_it(asked: Chat, how: str) -> None:
    """REL-2212: the question is taken back in each era, and the answer goes on."""
    wait_for_question(asked)
    withdraw(asked, how)
    asked.watching.turn("completed")
    assert [row.status for row in asked.asked()] == ["cancelled"]
    assert asked.server.done == []


def test_a_call_that_ends_while_its_servers_question_waits_leaves_no_turn_waiting(
    in_place: Chat,
) -> None:
    """REL-2212: as where the connection ends; it is told later that the question is closed."""
    wait_for_question(in_place)
    [call] = in_place.calls()
    turn = in_place.reload(call.turn)
    lease = Lease(turn.pk, turn.conversation_id, turn.workspace_id, turn.lease_token)
    refuse_call(lease, call.pk, message="The connection ended.")
    assert in_place.reload(turn).status == "running"
    go_on_in_place(lease, call.pk)
    assert in_place.calls()[0].status == "refused"
