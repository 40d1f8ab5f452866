"""What a process carries from step to step of a turn is what it would read."""

from __future__ import annotations

from typing import Any

import pytest

from chat.engine import step_task
from chat.engine.context_window import ContextWindow
from chat.engine.history import history_of, read_past
from chat.engine.requests import actor_of
from tests.chat.conftest import Chat


@pytest.fixture
def read_beside(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """For each step: the history that it was given and that of the rows, with the calls before and who asks."""
    steps: list[Any] = []
    read_task = step_task.read_task

    def looked_at(lease: Any, step: int, opened: Any = None) -> Any:
        was_read = lease.carried.past is None
        task = read_task(lease, step, opened)
        there = read_past(task.turn, ContextWindow(), step=step)
        assert history_of(lease.carried.past, task.turn) == history_of(there, task.turn)
        assert task.earlier == there.earlier
        assert task.actor == actor_of(task.turn)
        steps.append(was_read)
        return task

    monkeypatch.setattr("chat.engine.asking.read_task", looked_at)
    return steps


def test_what_is_carried_is_what_would_be_read(chat: Chat, read_beside: list[Any]) -> None:
    """REL-350: messages, calls with what they brought, unknown tools, counts; and who asks, with which rights."""
    chat.model.say("Hello")
    chat.ask("Are you there?")
    chat.model.call(("counting__echo", {"text": "one"}), ("counting__echo", {"text": "two"}))
    chat.model.call(("counting__echo", {"text": "one"}), ("no_such_tool", {}))
    chat.model.call(("counting__fail", {}))
    chat.model.say("That is all")
    turn = chat.ask("Echo")
    assert turn.status == "completed", turn.error_message
    # The first step of a turn reads, the others go on from it.
    assert read_beside == [True, True, False, False, False]
