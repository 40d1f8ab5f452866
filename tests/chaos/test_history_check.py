"""The history checker finds what it is there for: each broken promise, in an otherwise sound history."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

import pytest
from uuid_utils.compat import uuid7

from tests.chaos.history_check import (
    FINISHED,
    REFUSED,
    REQUESTED,
    ApprovalFacts,
    CallFacts,
    Effect,
    History,
    MessageFacts,
    TurnFacts,
    find_violations,
)

CONVERSATION, TURN, ASKED, STEP0, STEP1, CALL, APPROVAL = (uuid7() for _ in range(7))


def message(pk: UUID, parent: UUID | None, place: int, **fields: Any) -> MessageFacts:
    values: dict[str, Any] = {
        "role": "assistant",
        "status": "complete",
        "step": max(0, place - 2),
        "client_id": None,
        "calls_asked": 0,
        **fields,
    }
    return MessageFacts(
        id=pk,
        conversation_id=CONVERSATION,
        turn_id=TURN,
        parent_id=parent,
        order_key=place,
        **values,
    )


@dataclass(frozen=True)
class CheckerInput:
    """All that the checker is given."""

    history: History
    accepted: tuple[tuple[UUID, str], ...]
    effects: tuple[Effect, ...]

    def rules(self) -> set[str]:
        found = find_violations(self.history, accepted=self.accepted, effects=self.effects)
        return {one.rule for one in found}

    def of_history(self, **fields: Any) -> CheckerInput:
        return replace(self, history=replace(self.history, **fields))

    def call(self, **fields: Any) -> CheckerInput:
        return self.of_history(calls=[replace(self.history.calls[0], **fields)])

    def turn(self, **fields: Any) -> CheckerInput:
        return self.of_history(turns=[replace(self.history.turns[0], **fields)])

    def message(self, number: int, **fields: Any) -> CheckerInput:
        rows = list(self.history.messages)
        rows[number] = replace(rows[number], **fields)
        return self.of_history(messages=rows)


SOUND = CheckerInput(
    History(
        messages=[
            message(ASKED, None, 1, role="user", client_id="one", step=0),
            message(STEP0, ASKED, 2, calls_asked=1),
            message(STEP1, STEP0, 3),
        ],
        turns=[
            TurnFacts(
                id=TURN,
                conversation_id=CONVERSATION,
                user_message_id=ASKED,
                status="completed",
                is_leased=False,
                is_lease_live=False,
            )
        ],
        calls=[
            CallFacts(
                id=CALL,
                turn_id=TURN,
                message_id=STEP0,
                position=0,
                status="succeeded",
                tool="destroy",
                arguments={"what": "x"},
                is_harmless=False,
                approval_id=APPROVAL,
            )
        ],
        approvals=[ApprovalFacts(id=APPROVAL, call_id=CALL, is_used=True)],
        entries=[(CALL, REQUESTED), (CALL, FINISHED)],
    ),
    accepted=((CONVERSATION, "one"),),
    effects=(Effect("destroy", {"what": "x"}),),
)

BROKEN: Mapping[str, Callable[[], CheckerInput]] = {
    "message.lost": lambda: replace(SOUND, accepted=((CONVERSATION, "another"),)),
    "message.twice": lambda: SOUND.message(2, client_id="one"),
    "message.streaming": lambda: SOUND.message(2, status="streaming"),
    "message.unanswered": lambda: SOUND.turn(user_message_id=uuid7()),
    "message.place": lambda: SOUND.message(2, order_key=2),
    "message.order": lambda: SOUND.message(0, order_key=9),
    "turn.stuck": lambda: SOUND.turn(status="queued"),
    "turn.unheld": lambda: SOUND.turn(status="running", is_leased=True),
    "turn.lease": lambda: SOUND.turn(is_leased=True, is_lease_live=True),
    "turn.unanswered": lambda: SOUND.message(2, status="stopped"),
    "turn.several": lambda: SOUND.of_history(
        turns=[
            replace(SOUND.history.turns[0], id=uuid7(), status="waiting_for_approval")
            for _ in range(2)
        ]
    ),
    "steps.gap": lambda: SOUND.message(2, step=5),
    "calls.gap": lambda: SOUND.of_history(calls=[]),
    "call.open": lambda: SOUND.call(status="outcome_unknown"),
    "call.forgotten": lambda: replace(
        SOUND.call(status="queued"),
        history=replace(
            SOUND.call(status="queued").history,
            turns=SOUND.turn(status="waiting_for_approval").history.turns,
        ),
    ),
    "log.open": lambda: SOUND.of_history(entries=[(CALL, REQUESTED)]),
    "log.finished": lambda: SOUND.of_history(
        entries=[(CALL, REQUESTED), (CALL, FINISHED), (CALL, FINISHED)]
    ),
    "log.requested": lambda: SOUND.of_history(
        entries=[(CALL, REQUESTED), (CALL, REQUESTED), (CALL, FINISHED)]
    ),
    "log.missing": lambda: SOUND.of_history(entries=[(CALL, REQUESTED)]),
    "approval.several": lambda: SOUND.of_history(
        approvals=[ApprovalFacts(id=uuid7(), call_id=CALL, is_used=True) for _ in range(2)]
    ),
    "approval.wasted": lambda: SOUND.of_history(entries=[]),
    "approval.unused": lambda: SOUND.of_history(
        approvals=[ApprovalFacts(id=APPROVAL, call_id=CALL, is_used=False)]
    ),
    "effect.unrequested": lambda: replace(
        SOUND, effects=(*SOUND.effects, Effect("destroy", {"what": "y"}))
    ),
    "effect.doubled": lambda: replace(SOUND, effects=SOUND.effects * 2),
    "effect.missing": lambda: replace(SOUND, effects=()),
}


def test_a_sound_history_has_no_violations() -> None:
    """REL-50: what went right is not accused, also where a harmless call was made twice."""
    assert SOUND.rules() == set()
    again = SOUND.of_history(entries=[(CALL, REQUESTED), (CALL, REQUESTED), (CALL, FINISHED)])
    unsure = SOUND.of_history(entries=[(CALL, REQUESTED), (CALL, REFUSED)])
    assert "log.open" not in unsure.rules()
    harmless = again.call(is_harmless=True)
    assert replace(harmless, effects=SOUND.effects * 2).rules() == set()


@pytest.mark.parametrize("rule", BROKEN)
def test_a_broken_promise_is_found(rule: str) -> None:
    """REL-50: each rule of the checker can fail, and names what broke it."""
    assert rule in BROKEN[rule]().rules()
