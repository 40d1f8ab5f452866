"""May a tool be called, and must somebody be asked first? Pure.

Deny wins. What a server says about its own tools counts only as far as it makes things stricter, unless an
administrator trusts the server. Names and descriptions never decide.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from mcp_servers.client.decisions import CALL_RULE, PolicyDecision, RuleDecision
from mcp_servers.client.values import Effect, ToolFacts
from workspaces.words.texts import gettext_noop as _

_MOST_NAMES: Final = 3
_LONGEST_NAME: Final = 100


UNTRUSTED_CONTENT: Final = "turn.untrusted_content"
TRIAL: Final = "trial.changes"
ASKS_ALWAYS: Final = "user.ask"
SECOND_PERSON: Final = "approval.second_person"
OUTSIDE_WAS_READ: Final = _("content from outside was read")

_ALWAYS_BUT: Final = _("You chose to always allow this tool, but this call still asks.")
_ASKED_FOR: Final = frozenset({"tool.confirm", "action.confirm", ASKS_ALWAYS})

SENTENCES: Final[dict[str, str]] = {
    "tool.confirm": _("An administrator wants this tool to ask first."),
    "tool.auto": _("An administrator lets this tool run without asking."),
    "user.always": _("You chose to always allow this tool."),
    ASKS_ALWAYS: _("You chose to be asked each time before this tool runs."),
    "server.inactive": _("The server of this tool is switched off."),
    "tool.removed": _("The server no longer offers this tool."),
    "tool.disabled": _("This tool is switched off."),
    "tool.quarantined": _(
        "This tool is new or has changed. An administrator has to accept it first."
    ),
    "tool.deny": _("An administrator has blocked this tool."),
    "action.unreadable": _("Trellis can't tell which action this call runs."),
    "hints.contradict": _("The server calls this tool both read-only and destructive."),
    "hints.destructive": _("This tool can delete or overwrite data."),
    "hints.absent": _("The server does not say whether this tool changes data."),
    "hints.writes": _("This tool changes data."),
    "hints.untrusted": _(
        "The server says that this tool only reads data, but the workspace does not trust its word."
    ),
    "hints.read_only": _("This tool only reads data."),
    "tool.unsound": _("This tool cannot be used as its server describes it."),
    "action.deny": _("An administrator has blocked the action that this call runs."),
    "action.confirm": _("An administrator wants the action that this call runs to ask first."),
    "hints.action": _("The server does not say what the action of this call does."),
    "action.auto": _("An administrator lets the action of this call run without asking."),
    TRIAL: _("Only tools that just read can be called here. This one may change data."),
    UNTRUSTED_CONTENT: _(
        "Content from outside was read before, which can mislead the assistant, and this call can change things or send data out."
    ),
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
        asked = _untrusted(facts)
        return replace(asked, reason=f"{_ALWAYS_BUT} {asked.reason}")
    return _auto("user.always")


def apply_rule(
    decision: PolicyDecision, facts: ToolFacts, ruled: RuleDecision | None
) -> PolicyDecision:
    """Put what the workspace's call rules say above the decision. They loosen only what is asked as a matter of course."""
    if ruled is None or decision.effect is Effect.DENY:
        return decision
    if ruled.effect is Effect.AUTO:
        if not may_remember(decision):
            return decision
        if facts.is_steerable:
            return _untrusted(facts)
    reason = ruled.reason
    if ruled.effect is Effect.CONFIRM and facts.is_steerable:
        reason = f"{reason} {_source(facts)}"
    return PolicyDecision(
        effect=ruled.effect,
        rule=ruled.rule,
        reason=reason,
        needs_second_person=ruled.needs_second_person,
        rule_name=ruled.rule_name,
    )


def tighten(decision: PolicyDecision, *, asks_always: bool) -> PolicyDecision:
    """Take a person's own "ask always" into account."""
    if asks_always and decision.effect is Effect.AUTO:
        return _confirm(ASKS_ALWAYS)
    return decision


def is_asked_for(rule: str) -> bool:
    """Whether somebody wants this question put each time: an administrator, a call rule, or the person."""
    return rule in _ASKED_FOR or rule.startswith(CALL_RULE)


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
        return _deny("tool.unsound", _("This tool cannot be used: ") + facts.problem)
    if not facts.is_enabled:
        return _deny("tool.disabled")
    if facts.is_quarantined:
        return _deny("tool.quarantined")
    if facts.override is Effect.DENY:
        return _deny("tool.deny")
    if facts.action_effect is Effect.DENY:
        return _deny(
            "action.deny",
            _("An administrator has blocked the action %(action)s.") % {"action": facts.action},
        )
    return None


def _by_action(facts: ToolFacts) -> PolicyDecision:
    """An action that nobody decided about asks, whatever the tool says of itself and whatever is set for it."""
    if not facts.action:
        return _confirm("action.unreadable")
    runs = _("This call runs the action %(action)s.") % {"action": facts.action}
    if facts.action_effect is Effect.CONFIRM:
        return _confirm(
            "action.confirm", _("%(runs)s An administrator wants it to ask first.") % {"runs": runs}
        )
    if facts.action_effect is not Effect.AUTO:
        return _confirm(
            "hints.action", _("%(runs)s The server does not say what that does.") % {"runs": runs}
        )
    return _auto(
        "action.auto", _("%(runs)s An administrator lets it run without asking.") % {"runs": runs}
    )


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
        could = _("This call can send data to %(unknown_destinations)s.") % {
            "unknown_destinations": _listed(facts.unknown_destinations)
        }
    elif facts.is_indirect:
        could = _(
            "This call runs the action %(action)s, which can change things or send data out."
        ) % {"action": facts.action}
    else:
        could = _("This tool can change things or send data out.")
    return _confirm(UNTRUSTED_CONTENT, f"{could} {_source(facts)}")


def _source(facts: ToolFacts) -> str:
    source = facts.untrusted_source or OUTSIDE_WAS_READ
    return _(
        "You are asked because %(source)s: content from outside can mislead the assistant."
    ) % {"source": source}


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
