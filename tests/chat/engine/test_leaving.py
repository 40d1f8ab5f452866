"""A person leaves while their turn is under way, and comes back."""

from __future__ import annotations

import pytest

from chat.models import QueuedMessage
from chat.services.approvals import decide
from chat.services.turns import send_or_queue
from chat.values import Decision, WhenBusy
from tests.chat.conftest import Chat
from workspaces.actors import Role
from workspaces.changes import record_created
from workspaces.errors import Conflict
from workspaces.models import Membership
from workspaces.people.services import remove_member
from workspaces.people.suspending import suspend_member


def leave(chat: Chat) -> None:
    """An owner ends the membership."""
    rows = Membership.objects.for_workspace(chat.tenant.workspace)
    remove_member(membership=rows.get(user=chat.tenant.member), actor=chat.tenant.actor("owner"))


def come_back(chat: Chat) -> None:
    """The person becomes a member again."""
    membership = Membership.objects.create(
        workspace=chat.tenant.workspace, user=chat.tenant.member, role=Role.MEMBER.value
    )
    record_created(membership, actor=chat.tenant.actor("owner"))


def test_a_waiting_call_and_a_queued_message_end_with_the_membership(chat: Chat) -> None:
    """SEC-273: back again, the person can approve nothing of before, and nothing of it is sent."""
    chat.model.call(("counting__destroy", {"what": "a"}))
    sent = chat.send()
    chat.watching.turn("waiting_for_approval")
    send_or_queue(
        conversation=chat.conversation,
        client_id="later",
        text="and then",
        actor=chat.actor,
        when_busy=WhenBusy.QUEUE,
    )
    leave(chat)
    turn = chat.reload(sent.turn)
    assert (turn.status, turn.can_retry) == ("cancelled", False)
    assert "left the workspace" in turn.notice
    come_back(chat)
    [call] = chat.calls()
    with pytest.raises(Conflict):
        decide(call=call, decision=Decision.APPROVED, actor=chat.actor)
    assert not QueuedMessage.objects.for_workspace(chat.tenant.workspace).exists()
    assert chat.server.calls == []


def test_a_running_turn_is_stopped(chat: Chat) -> None:
    """SEC-273: whoever holds it ends it; what the model says after that calls nothing."""
    chat.model.call(("counting__slow", {"seconds": 30}))
    sent = chat.send()
    chat.watching.until(
        lambda event: (
            event["type"] == "tool_call.changed" and event["tool_call"]["status"] == "running"
        )
    )
    leave(chat)
    come_back(chat)
    chat.watching.turn("cancelled")
    assert chat.reload(sent.turn).status == "cancelled"


def test_a_suspension_ends_the_turn_and_keeps_what_waits(chat: Chat) -> None:
    """REL-520: the queued message is neither sent nor lost, and the person reads why the answer stopped."""
    chat.model.call(("counting__slow", {"seconds": 30}))
    sent = chat.send()
    chat.watching.until(
        lambda event: (
            event["type"] == "tool_call.changed" and event["tool_call"]["status"] == "running"
        )
    )
    send_or_queue(
        conversation=chat.conversation,
        client_id="later",
        text="and then",
        actor=chat.actor,
        when_busy=WhenBusy.QUEUE,
    )
    rows = Membership.objects.for_workspace(chat.tenant.workspace)
    membership = rows.get(user=chat.tenant.member)
    suspend_member(membership=membership, actor=chat.tenant.actor("owner"))
    chat.watching.turn("cancelled")
    assert chat.reload(sent.turn).status == "cancelled"
    assert QueuedMessage.objects.for_workspace(chat.tenant.workspace).count() == 1
