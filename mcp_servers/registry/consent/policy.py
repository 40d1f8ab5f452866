"""May a tool be called, and must somebody be asked first? Pure.

Deny wins. What a server says about its own tools counts only as far as it makes things stricter, unless an
administrator trusts the server. Names and descriptions never decide.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from mcp_servers.client.decisions import PolicyDecision
from mcp_servers.client.values import Effect, ToolFacts

_MOST_NAMES: Final = 3
_LONGEST_NAME: Final = 100


UNTRUSTED_CONTENT: Final = "turn.untrusted_content"
TRIAL: Final = "trial.changes"
OUTSIDE_WAS_READ: Final = "content from outside was read"

SENTENCES: Final[dict[str, str]] = {
    "tool.confirm": "An administrator wants this tool to ask first.",
    "tool.auto": "An administrator lets this tool run without asking.",
    "user.always": "You chose to always allow this tool.",
    "server.inactive": "The server of this tool is switched off.",
    "tool.removed": "The server no longer offers this tool.",
    "tool.disabled": "This tool is switched off.",
    "tool.quarantined": "This tool changed. An administrator has to accept the new version first.",
    "tool.deny": "An administrator has blocked this tool.",
    "action.unreadable": "Trellis can't tell which action this call runs.",
    "hints.contradict": "The server calls this tool both read-only and destructive.",
    "hints.destructive": "This tool can delete or overwrite data.",
    "hints.absent": "The server does not say whether this tool changes data.",
    "hints.writes": "This tool changes data.",
    "hints.untrusted": "The server says that this tool only reads data, but the workspace does not trust its word.",
    "hints.read_only": "This tool only reads data.",
    "tool.unsound": "This tool cannot be used as its server describes it.",
    "action.deny": "An administrator has blocked the action that this call runs.",
    "action.confirm": "An administrator wants the action that this call runs to ask first.",
    "hints.action": "The server does not say what the action of this call does.",
    "action.auto": "An administrator lets the action of this call run without asking.",
    TRIAL: "This was a check of a bud, which never calls tools that may change data.",
    UNTRUSTED_CONTENT: "Content from outside was read before, which can mislead the assistant, and this call can change things or send data out.",
}
"""What each rule says to people, without the names that a single decision adds."""


def decide(facts: ToolFacts) -> PolicyDecision:
    """Decide on a call of this tool. Rules are tried from the strictest down; the first that fits decides."""
    decision = _decide(facts)
    if decision.effect is Effect.DENY or not facts.is_steerable:
        return decision
    if decision.effect is Effect.AUTO:
        return _untrusted(facts)
    return replace(decision, reason=f"{decision.reason} {_source(facts)}")


def _decide(facts: ToolFacts) -> PolicyDecision:
    refusal = _refusal(facts)
    if refusal is not None:
        return refusal
    if facts.override is Effect.CONFIRM:
        return _confirm("tool.confirm")
    if facts.is_indirect:
        return _by_action(facts)
    if facts.override is Effect.AUTO:
        return _auto("tool.auto")
    return _by_annotations(facts)


def relax(decision: PolicyDecision, facts: ToolFacts, *, is_remembered: bool) -> PolicyDecision:
    """Take a person's own "always" into account; it answers for them only where they would have been asked as a matter of course."""
    if not is_remembered or not may_remember(decision):
        return decision
    if facts.is_steerable:
        return _untrusted(facts)
    return _auto("user.always")


def may_remember(decision: PolicyDecision) -> bool:
    """Whether a person may answer this question once and for all: not one that an administrator or a risk puts."""
    return decision.effect is Effect.CONFIRM and may_remember_rule(decision.rule)


def may_remember_rule(rule: str) -> bool:
    """The same, of the rule that a question was put by."""
    return rule.startswith("hints.")


def _refusal(facts: ToolFacts) -> PolicyDecision | None:
    if not facts.is_server_active:
        return _deny("server.inactive")
    if facts.is_removed:
        return _deny("tool.removed")
    if facts.problem:
        return _deny("tool.unsound", "This tool cannot be used: " + facts.problem)
    if not facts.is_enabled:
        return _deny("tool.disabled")
    if facts.is_quarantined:
        return _deny("tool.quarantined")
    if facts.override is Effect.DENY:
        return _deny("tool.deny")
    if facts.action_effect is Effect.DENY:
        return _deny("action.deny", f"An administrator has blocked the action {facts.action}.")
    return None


def _by_action(facts: ToolFacts) -> PolicyDecision:
    """An action that nobody decided about asks, whatever the tool says of itself and whatever is set for it."""
    if not facts.action:
        return _confirm("action.unreadable")
    runs = f"This call runs the action {facts.action}."
    if facts.action_effect is Effect.CONFIRM:
        return _confirm("action.confirm", f"{runs} An administrator wants it to ask first.")
    if facts.action_effect is not Effect.AUTO:
        return _confirm("hints.action", f"{runs} The server does not say what that does.")
    return _auto("action.auto", f"{runs} An administrator lets it run without asking.")


def _by_annotations(facts: ToolFacts) -> PolicyDecision:
    hints = facts.annotations
    if hints.destructive is True:
        if hints.read_only is True:
            return _confirm("hints.contradict")
        return _confirm("hints.destructive")
    if hints.read_only is not True:
        if hints.read_only is None and hints.destructive is None:
            return _confirm("hints.absent")
        return _confirm("hints.writes")
    if not facts.trusts_annotations:
        return _confirm("hints.untrusted")
    return _auto("hints.read_only")


def _untrusted(facts: ToolFacts) -> PolicyDecision:
    if facts.only_reads:
        could = f"This call can send data to {_listed(facts.unknown_destinations)}."
    elif facts.is_indirect:
        could = (
            f"This call runs the action {facts.action}, which can change things or send data out."
        )
    else:
        could = "This tool can change things or send data out."
    return _confirm(UNTRUSTED_CONTENT, f"{could} {_source(facts)}")


def _source(facts: ToolFacts) -> str:
    source = facts.untrusted_source or OUTSIDE_WAS_READ
    return f"You are asked because {source}: content from outside can mislead the assistant."


def _listed(names: tuple[str, ...]) -> str:
    shown = ", ".join(name[:_LONGEST_NAME] for name in names[:_MOST_NAMES])
    left = len(names) - _MOST_NAMES
    return f"{shown} and {left} more" if left > 0 else shown


def _auto(rule: str, reason: str = "") -> PolicyDecision:
    return PolicyDecision(effect=Effect.AUTO, rule=rule, reason=reason or SENTENCES[rule])


def _confirm(rule: str, reason: str = "") -> PolicyDecision:
    return PolicyDecision(effect=Effect.CONFIRM, rule=rule, reason=reason or SENTENCES[rule])


def _deny(rule: str, reason: str = "") -> PolicyDecision:
    return PolicyDecision(effect=Effect.DENY, rule=rule, reason=reason or SENTENCES[rule])
