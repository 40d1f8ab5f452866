"""What the doctor finds: one line for each part."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class FindingState(StrEnum):
    """How a part is."""

    OK = "ok"
    LOOK = "look"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class DoctorFinding:
    """One line of the doctor's report."""

    part: str
    state: FindingState
    text: str
    advice: str = ""
    """What to do; empty if nothing has to be done."""


def ok(part: str, text: str) -> DoctorFinding:
    """Make the line of a part that is well."""
    return DoctorFinding(part=part, state=FindingState.OK, text=text)


def look(part: str, text: str, advice: str) -> DoctorFinding:
    """Make the line of a part that somebody should look at."""
    return DoctorFinding(part=part, state=FindingState.LOOK, text=text, advice=advice)


def failed(part: str, text: str, advice: str) -> DoctorFinding:
    """Make the line of a part that does not work."""
    return DoctorFinding(part=part, state=FindingState.FAILED, text=text, advice=advice)
