"""What an alert says, in mails, webhooks and the bell. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from audit.models import AlertRule

_UNITS: Final = {
    AlertRule.Condition.CONNECTION: ("connection failure", "connection failures"),
    AlertRule.Condition.TIMEOUT: ("timeout", "timeouts"),
    AlertRule.Condition.ERROR_RATE: ("% of the calls failed", "% of the calls failed"),
    AlertRule.Condition.REFUSAL: ("refused call", "refused calls"),
    AlertRule.Condition.QUOTA: ("call over a quota", "calls over a quota"),
    AlertRule.Condition.TAMPERING: ("finding in the log itself", "findings in the log itself"),
    AlertRule.Condition.APPROVAL: ("approval waiting", "approvals waiting"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """One message."""

    subject: str
    text: str


def condition_of(rule: AlertRule) -> str:
    """The rule as a sentence."""
    what = f"At least {_amount(rule, rule.threshold)}"
    where = " · ".join(name for name in (rule.server_name, rule.tool_name) if name)
    tail = f", of {where}" if where else ""
    span = _span(rule.window_minutes)
    if rule.condition == AlertRule.Condition.APPROVAL:
        return f"{what} for {span} or longer{tail}"
    return f"{what} within {span}{tail}"


def told(rule: AlertRule, workspace: str, *, kind: str, value: float) -> Told:
    """The message for "raised", "reminder" or "ended"."""
    amount = _amount(rule, value)
    if kind == "ended":
        return Told(
            subject=_line(f"Back to normal: {rule.name} ({workspace})"),
            text=f"{_line(rule.name)} in {_line(workspace)} is back to normal.\nNow: {amount}.",
        )
    head = "Still" if kind == "reminder" else "Alert"
    return Told(
        subject=_line(f"{head}: {rule.name} ({workspace})"),
        text=f"{_line(rule.name)} in {_line(workspace)}: {amount}.\nThe rule: {condition_of(rule)}.",
    )


def _amount(rule: AlertRule, value: float) -> str:
    one, many = _UNITS[AlertRule.Condition(rule.condition)]
    number = f"{value:.0f}"
    unit = one if number == "1" else many
    return f"{number}{'' if unit.startswith('%') else ' '}{unit}"


def _line(text: str) -> str:
    return " ".join(text.split())


def _span(minutes: int) -> str:
    if minutes % 60 == 0:
        hours = minutes // 60
        return "an hour" if hours == 1 else f"{hours} hours"
    return "a minute" if minutes == 1 else f"{minutes} minutes"
