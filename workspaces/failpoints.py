"""Named places where a test may have the process die, stop, wait or fail; nothing at all outside tests.

`failpoint(Failpoint.X)` costs one look at an empty dictionary. Nothing in the product arms one: tests do, in their own
process with `armed()`, in one that they start with `arm_from()`, so no setting of an installation can.
"""

from __future__ import annotations

import os
import re
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import Final


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


class FailpointHit(Exception):
    """What the action "raise" raises: nobody foresees it."""


Action = Callable[[], None]


@dataclass(slots=True)
class _Armed:
    action: Action
    hit: int
    """At which coming-by it acts; from then on never again."""
    seen: int = 0


_armed: dict[Failpoint, _Armed] = {}
_lock: Final = threading.Lock()
_SPEC: Final = re.compile(
    r"(?P<name>[a-z_.]+)=(?P<action>kill|stop|raise|delay)(?:~(?P<seconds>[\d.]+))?(?:@(?P<hit>\d+))?"
)


def failpoint(name: Failpoint) -> None:
    """Do what a test has armed here; nothing otherwise."""
    if _armed:
        _come_by(name)


@contextmanager
def armed(actions: Mapping[Failpoint, Action], *, hit: int = 1) -> Iterator[None]:
    """In a test's own process: do these things, once each, at the `hit`-th coming-by."""
    with _lock:
        _armed.update({name: _Armed(action, hit) for name, action in actions.items()})
    try:
        yield
    finally:
        with _lock:
            for name in actions:
                _armed.pop(name, None)


def arm_from(text: str) -> None:
    """In a process that a test has started: `name=action~seconds@hit`, several with commas between.

    `kill` and `stop` send the process SIGKILL and SIGSTOP, with seconds that much later while it goes on; `delay` holds
    up the thread; `raise` raises FailpointHit.

    Raises:
        ValueError: not of this form, or an unknown name.
    """
    for part in filter(None, text.split(",")):
        found = _SPEC.fullmatch(part.strip())
        if found is None:
            raise ValueError(f"{part!r} is no failpoint")
        action = _action(found["action"], float(found["seconds"] or 0))
        _armed[Failpoint(found["name"])] = _Armed(action, int(found["hit"] or 1))


def _action(name: str, seconds: float) -> Action:
    if name == "raise":
        return _raise
    if name == "delay":
        return lambda: time.sleep(seconds)
    number = signal.SIGKILL if name == "kill" else signal.SIGSTOP

    def send() -> None:
        os.kill(os.getpid(), number)
        time.sleep(0.1)  # a process stands still a moment after it was told to

    def send_later() -> None:
        threading.Timer(seconds, send).start()

    return send_later if seconds else send


def _raise() -> None:
    raise FailpointHit


def _come_by(name: Failpoint) -> None:
    with _lock:
        found = _armed.get(name)
        if found is None:
            return
        found.seen += 1
        acts = found.seen == found.hit
    if acts:
        found.action()
