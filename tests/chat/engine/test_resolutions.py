"""Calls of unknown outcome: a person says what becomes of them."""

from __future__ import annotations

from datetime import timedelta

import pytest

from audit.models import AuditEntry
from chat.models import ToolCall
from chat.services.approvals import decide
from chat.services.resolutions import expire_resolutions, resolve_call
from chat.services.turns import stop_turn
from chat.values import Decision, Resolution
from tests.chat.conftest import Chat
from workspaces.actors import Source
from workspaces.database import database_now
from workspaces.errors import Conflict, PermissionDenied


@pytest.mark.parametrize(
    ("resolution", "status", "words"),
    [
        (Resolution.MARK_DONE, "marked_done", "took effect"),
        (Resolution.GIVE_UP, "given_up", "Do not repeat it"),
    ],
)
def test_it_is_taken_as_done_or_given_up(
    chat: Chat, unknown: ToolCall, resolution: Resolution, status: str, words: str
) -> None:
    """REL-05: the model hears the person's word and note, nothing is called, and it is on record."""
    chat.model.say("all right")
    resolve_call(call=unknown, resolution=resolution, note="I looked.", actor=chat.actor)
    chat.watching.turn("completed")
    assert chat.calls()[0].status == status
    assert words in chat.results()[-1]
    assert "I looked." in chat.results()[-1]
    assert chat.server.calls == []
    entry = AuditEntry.objects.for_workspace(chat.tenant.workspace).get(action="tool_call.resolved")
    assert entry.details == {"as": resolution.value, "note": "I looked."}
    with pytest.raises(Conflict):
        resolve_call(call=chat.calls()[0], resolution=Resolution.RUN_AGAIN, actor=chat.actor)


def test_running_it_again_is_a_new_call_with_an_approval_of_its_own(
    chat: Chat, unknown: ToolCall
) -> None:
    """REL-05, SEC-63: asked about anew, made once, and its result stands for the first."""
    again = resolve_call(call=unknown, resolution=Resolution.RUN_AGAIN, actor=chat.actor)
    chat.watching.turn("waiting_for_approval")
    assert again.pk != unknown.pk
    assert again.repeats_id == unknown.pk
    assert chat.server.calls == []
    chat.model.say("done now")
    decide(call=again, decision=Decision.APPROVED, actor=chat.actor)
    chat.watching.turn("completed")
    assert [call.status for call in chat.calls()] == ["repeated", "succeeded"]
    assert len(chat.server.calls) == 1
    assert "boom" in chat.results()[-1]


def test_it_is_the_askers_to_decide(chat: Chat, unknown: ToolCall) -> None:
    """SEC-64: not an administrator's, and not after the turn has ended."""
    with pytest.raises(PermissionDenied):
        resolve_call(
            call=unknown,
            resolution=Resolution.MARK_DONE,
            actor=chat.tenant.actor("admin", source=Source.CHAT),
        )
    stop_turn(turn=unknown.turn, actor=chat.actor)
    assert chat.calls()[0].status == "outcome_unknown"
    with pytest.raises(Conflict):
        resolve_call(call=unknown, resolution=Resolution.RUN_AGAIN, actor=chat.actor)


def test_it_does_not_wait_for_ever(chat: Chat, unknown: ToolCall) -> None:
    """REL-11: given up by the database's clock, and the turn goes on."""
    rows = ToolCall.objects.for_workspace(chat.tenant.workspace).filter(pk=unknown.pk)
    rows.update(resolution_due_at=database_now() - timedelta(seconds=1))
    chat.model.say("so be it")
    assert expire_resolutions() == 1
    chat.watching.turn("completed")
    assert chat.calls()[0].status == "given_up"


def test_a_stop_does_not_invite_the_model_to_repeat_what_was_sent(chat: Chat) -> None:
    """REL-04, REL-09: where the holder is dead, nobody knows how the call ended, and the log says so too."""
    call = chat.lose_holder_of_call()
    stop_turn(turn=chat.reload(call.turn), actor=chat.actor)
    stopped = chat.calls()[0]
    assert stopped.status == "cancelled"
    assert "Do not repeat it" in stopped.model_text
    ends = AuditEntry.objects.for_workspace(chat.tenant.workspace).filter(
        action="tool_call.finished"
    )
    assert [entry.outcome for entry in ends] == ["outcome_unknown"]
