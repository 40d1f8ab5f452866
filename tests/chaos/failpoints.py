"""Arming failpoints in a process that a test has started."""

from __future__ import annotations

import os
import re
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from workspaces.process import failpoints
from workspaces.process.failpoints import Failpoint


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


def arm_from(text: str) -> None:
    """Arm `name=action~seconds@hit`, several with commas between.

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
    if _armed:
        failpoints.when_passed = _come_by


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
