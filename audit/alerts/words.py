"""What an alert says, in mails, webhooks, the bell and on the page."""

from __future__ import annotations

from dataclasses import dataclass

from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from audit.alerts.filtering import filter_in_words
from audit.models import AlertRule


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertMessage:
    """One message."""

    subject: str
    text: str
    short: str
    """Without what the subject says."""


def condition_of(rule: AlertRule) -> str:
    """The rule as a sentence without its full stop."""
    values = {
        "amount": amount_of(rule, rule.threshold),
        "span": span_of(rule.window_minutes),
        "filter": filter_in_words(rule, now=timezone.now()),
    }
    if rule.condition == AlertRule.Condition.SPENDING:
        return _("At least %(amount)s") % values
    is_waiting = rule.condition == AlertRule.Condition.APPROVAL
    if is_waiting and values["filter"]:
        text = _("At least %(amount)s for %(span)s or longer (%(filter)s)")
    elif is_waiting:
        text = _("At least %(amount)s for %(span)s or longer")
    elif values["filter"]:
        text = _("At least %(amount)s within %(span)s (%(filter)s)")
    else:
        text = _("At least %(amount)s within %(span)s")
    return text % values


def alert_message(rule: AlertRule, workspace: str, *, kind: str, value: float) -> AlertMessage:
    """The message for "raised", "reminder" or "ended"."""
    values = {
        "rule": _line(rule.name),
        "workspace": _line(workspace),
        "amount": amount_of(rule, value),
        "condition": condition_of(rule),
    }
    if kind == "ended":
        return AlertMessage(
            subject=_("Back to normal: %(rule)s (%(workspace)s)") % values,
            text=_("%(rule)s in %(workspace)s is back to normal.\nNow: %(amount)s.") % values,
            short=_("Now: %(amount)s.") % values,
        )
    if kind == "reminder":
        subject = _("Still: %(rule)s (%(workspace)s)") % values
    else:
        subject = _("Alert: %(rule)s (%(workspace)s)") % values
    text = _("%(rule)s in %(workspace)s: %(amount)s.\nThe rule: %(condition)s.") % values
    short = _("%(amount)s. The rule: %(condition)s.") % values
    return AlertMessage(subject=subject, text=text, short=short)


def amount_of(rule: AlertRule, value: float) -> str:
    """So many of what the rule counts."""
    count = round(value)
    return _phrase(AlertRule.Condition(rule.condition), count) % {"count": count}


def _phrase(condition: AlertRule.Condition, count: int) -> str:
    kinds = AlertRule.Condition
    match condition:
        case kinds.CONNECTION:
            return ngettext("%(count)s connection failure", "%(count)s connection failures", count)
        case kinds.TIMEOUT:
            return ngettext("%(count)s timeout", "%(count)s timeouts", count)
        case kinds.ERROR_RATE:
            return _("%(count)s%% of the calls failed")
        case kinds.REFUSAL:
            return ngettext("%(count)s refused call", "%(count)s refused calls", count)
        case kinds.QUOTA:
            return ngettext("%(count)s call over a quota", "%(count)s calls over a quota", count)
        case kinds.TAMPERING:
            return ngettext(
                "%(count)s finding in the log itself", "%(count)s findings in the log itself", count
            )
        case kinds.SPENDING:
            return _("%(count)s%% of a monthly spending limit used")
        case kinds.APPROVAL:
            return ngettext("%(count)s approval waiting", "%(count)s approvals waiting", count)
        case kinds.ENTRIES:
            return ngettext("%(count)s entry", "%(count)s entries", count)


def _line(text: str) -> str:
    return " ".join(text.split())


def span_of(minutes: int) -> str:
    """A time window."""
    if minutes % 60 == 0:
        hours = minutes // 60
        return ngettext("%(count)s hour", "%(count)s hours", hours) % {"count": hours}
    return ngettext("%(count)s minute", "%(count)s minutes", minutes) % {"count": minutes}
