"""What was decided on a call. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID


class Effect(StrEnum):
    """What policy says about a call."""

    AUTO = "auto"
    CONFIRM = "confirm"
    DENY = "deny"


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleDecision:
    """What the workspace's call rules say about a call, and which of them says it."""

    effect: Effect
    rule_id: UUID
    rule_name: str
    reason: str
    needs_second_person: bool = False

    @property
    def rule(self) -> str:
        """As the log names it."""
        return f"{CALL_RULE}{self.rule_id}"


CALL_RULE = "call_rule."
"""What the log's name of a call rule begins with; its id follows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyDecision:
    """What is to happen, which rule says so, and why in plain words."""

    effect: Effect
    rule: str
    reason: str
    needs_second_person: bool = False
    """Only somebody else may allow the call: an admin or owner of the workspace."""
    rule_name: str = ""
    """Of the workspace's call rule that decided; empty: none did."""
