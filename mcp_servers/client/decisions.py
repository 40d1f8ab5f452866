"""What was decided on a call. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Effect(StrEnum):
    """What policy says about a call."""

    AUTO = "auto"
    CONFIRM = "confirm"
    DENY = "deny"


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyDecision:
    """What is to happen, which rule says so, and why in plain words."""

    effect: Effect
    rule: str
    reason: str
