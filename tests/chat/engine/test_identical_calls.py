"""The same call several times: within a step, and step after step."""

from __future__ import annotations

from typing import Any

import pytest

from audit.models import AuditEntry
from chat.services.approvals import decide
from chat.values import Decision
from mcp_servers.models import ApprovalOverride, McpServer, McpTool
from mcp_servers.registry import services
from tests.chat.conftest import Chat


def override(chat: Chat, name: str, value: ApprovalOverride) -> None:
    tool = McpTool.objects.for_workspace(chat.tenant.workspace).get(name=name)
    services.set_approval_override(tool=tool, override=value, actor=chat.tenant.actor())


def results(chat: Chat) -> list[tuple[str, str, bool]]:
    return [(call.status, call.model_text, call.was_cached) for call in chat.calls()]


def test_five_identical_readings_in_one_step_are_made_once(chat: Chat) -> None:
    """REL-202, SEC-71: no loop; each has its own card, its own entries and the result."""
    chat.model.call(*[("counting__echo", {"text": "same"})] * 5)
    chat.model.say("done")
    assert chat.ask().status == "completed"
    assert chat.server.names() == ["echo"]
    assert {(status, text) for status, text, _ in results(chat)} == {("succeeded", "same")}
    assert sorted(cached for _, _, cached in results(chat)) == [False, True, True, True, True]
    entries = AuditEntry.objects.for_workspace(chat.tenant.workspace)
    for action in ("tool_call.requested", "tool_call.finished"):
        assert entries.filter(action=action).count() == 5
    assert entries.filter(details__has_key="cached_at").count() == 4


def test_an_error_is_given_to_all_as_well(chat: Chat) -> None:
    """REL-202."""
    chat.model.call(*[("counting__fail", {"text": "no luck"})] * 3)
    chat.model.say("done")
    chat.ask()
    assert chat.server.names() == ["fail"]
    assert [status for status, _, _ in results(chat)] == ["failed"] * 3


@pytest.mark.parametrize(
    ("name", "is_trusted"), [("plain", True), ("destroy", True), ("echo", False)]
)
def test_what_is_not_known_to_just_read_is_made_as_often_as_asked(
    chat: Chat, name: str, is_trusted: bool
) -> None:
    """REL-202: somebody may want it several times, and a server's word counts only if it is trusted."""
    McpServer.objects.for_workspace(chat.tenant.workspace).update(trusts_annotations=is_trusted)
    override(chat, name, ApprovalOverride.AUTO)
    given: dict[str, Any] = {"what": "it"} if name == "destroy" else {"text": "it"}
    chat.model.call(*[(f"counting__{name}", given)] * 5)
    chat.model.say("done")
    assert chat.ask().status == "completed"
    assert chat.server.names() == [name] * 5


def test_other_arguments_are_another_call(chat: Chat) -> None:
    """REL-202."""
    chat.model.call(*[("counting__echo", {"text": text}) for text in ("a", "b", "a")])
    chat.model.say("done")
    chat.ask()
    assert sorted(given["text"] for _, given in chat.server.calls) == ["a", "b"]
    assert [text for _, text, _ in results(chat)] == ["a", "b", "a"]


def test_readings_that_are_approved_one_by_one_are_made_once(chat: Chat) -> None:
    """REL-202: each has its approval; the second is given what the first has brought."""
    override(chat, "echo", ApprovalOverride.CONFIRM)
    chat.model.call(*[("counting__echo", {"text": "same"})] * 2)
    chat.send()
    chat.watching.turn("waiting_for_approval")
    first, second = chat.calls()
    decide(call=first, decision=Decision.APPROVED, actor=chat.actor)
    chat.watching.until(
        lambda event: (
            event["type"] == "tool_call.changed"
            and event["tool_call"]["id"] == str(first.pk)
            and event["tool_call"]["status"] == "succeeded"
        )
    )
    chat.model.say("done")
    decide(call=second, decision=Decision.APPROVED, actor=chat.actor)
    chat.watching.turn("completed")
    assert chat.server.names() == ["echo"]
    assert [(status, text) for status, text, _ in results(chat)] == [("succeeded", "same")] * 2


def test_the_same_call_in_one_step_after_the_other_is_cut(chat: Chat) -> None:
    """REL-202, SEC-71: steps are counted, however often each of them asks."""
    for _ in range(4):
        chat.model.call(*[("counting__echo", {"text": "same"})] * 2)
    turn = chat.ask()
    assert turn.status == "failed"
    assert "kept repeating the same call" in turn.error_message
    assert len(chat.model.requests) == 4
    assert chat.server.names() == ["echo"] * 3
