"""Named places where a test may have the process die, stop, wait or fail; nothing at all outside tests.

Nothing in the product arms one: `tests/chaos/failpoints.py` does, in processes of its own, so no setting of an installation can.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum


class Failpoint(StrEnum):
    """Every name. The crash test goes through all of them, and one that it never comes by fails it."""

    SEND_BEFORE_COMMIT = "send.before_commit"
    """A person's message and its turn are written, not committed."""
    SEND_AFTER_COMMIT = "send.after_commit"
    QUEUE_BEFORE_COMMIT = "queue.before_commit"
    """A message has been taken out of the queue, and its turn begun."""
    TAKE_BEFORE_COMMIT = "take.before_commit"
    TAKE_AGAIN_BEFORE_COMMIT = "take.again_before_commit"
    """What a dead process left is settled, not committed."""
    TAKE_AFTER_COMMIT = "take.after_commit"
    RENEWED = "lease.renewed"
    STEP_BEGUN = "step.begun"
    """The message that the model's answer goes into is committed."""
    PARTIAL_SAVED = "step.partial_saved"
    STEP_BEFORE_COMMIT = "step.before_commit"
    STEP_AFTER_COMMIT = "step.after_commit"
    CALL_BEGUN = "call.begun"
    GATE_BEFORE_REQUESTED = "gate.before_requested"
    GATE_APPROVAL_USED = "gate.approval_used"
    """The approval is consumed, *requested* is not written, nothing is committed."""
    GATE_AFTER_REQUESTED = "gate.after_requested"
    GATE_BEFORE_SEND = "gate.before_send"
    GATE_AFTER_SEND = "gate.after_send"
    """The request is with the transport; give its bytes a moment to leave."""
    GATE_AFTER_ANSWER = "gate.after_answer"
    GATE_BEFORE_FINISHED = "gate.before_finished"
    GATE_AFTER_FINISHED = "gate.after_finished"
    CALL_BEFORE_COMMIT = "call.before_commit"
    CALL_AFTER_COMMIT = "call.after_commit"
    ASK_BEFORE_COMMIT = "ask.before_commit"
    """A call is put before a person."""
    ASK_AFTER_COMMIT = "ask.after_commit"
    PARK_BEFORE_COMMIT = "park.before_commit"
    """A turn that waits for people is let go."""
    PARK_AFTER_COMMIT = "park.after_commit"
    DECIDE_BEFORE_COMMIT = "decide.before_commit"
    DECIDE_AFTER_COMMIT = "decide.after_commit"
    END_BEFORE_COMMIT = "end.before_commit"
    END_AFTER_COMMIT = "end.after_commit"
    RELEASE_BEFORE_COMMIT = "release.before_commit"
    """A turn is handed back by a process that ends."""
    RELEASE_AFTER_COMMIT = "release.after_commit"


when_passed: Callable[[Failpoint], None] | None = None
"""Told of each failpoint that is passed."""


def failpoint(name: Failpoint) -> None:
    """Do what a test has armed here; nothing otherwise."""
    if when_passed is not None:
        when_passed(name)
