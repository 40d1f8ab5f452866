"""What the doctor finds: one line for each part."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class State(StrEnum):
    """How a part is."""

    OK = "ok"
    LOOK = "look"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One line of the doctor's report."""

    part: str
    state: State
    text: str
    advice: str = ""
    """What to do; empty if nothing has to be done."""


def ok(part: str, text: str) -> Finding:
    """Make the line of a part that is well."""
    return Finding(part=part, state=State.OK, text=text)


def look(part: str, text: str, advice: str) -> Finding:
    """Make the line of a part that somebody should look at."""
    return Finding(part=part, state=State.LOOK, text=text, advice=advice)


def failed(part: str, text: str, advice: str) -> Finding:
    """Make the line of a part that does not work."""
    return Finding(part=part, state=State.FAILED, text=text, advice=advice)
