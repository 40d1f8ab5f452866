"""Looking at every rule now and then: one open alert for each, told when it begins, as a reminder, and when it ends."""

from __future__ import annotations

import logging
import random
import time
from datetime import datetime, timedelta
from typing import Final

from django.db import transaction
from django.utils.translation import gettext_noop

from audit.actions import Action
from audit.alerts.conditions import measure
from audit.alerts.messages import Ending, tell, tell_program
from audit.models import Alert, AlertDelivery, AlertRule
from audit.services import EntryDraft, record
from workspaces.actors import Actor, Source
from workspaces.database import database_now
from workspaces.secrets import SecretUnreadable

logger = logging.getLogger(__name__)

_WHY: Final[dict[Ending, str]] = {
    "switched_off": gettext_noop("The rule was switched off."),
    "deleted": gettext_noop("The rule was deleted."),
}
ROUND_SECONDS: Final = 40.0
KEEP_DAYS: Final = 365
"""Of alerts that have ended; when they began and ended stays in the log."""


def evaluate_all() -> int:
    """Look at all rules that are on; returns how many there was time for. One that fails keeps no other from it."""
    until = time.monotonic() + ROUND_SECONDS
    rows = AlertRule.objects.across_workspaces().filter(is_active=True, workspace__is_active=True)
    rules = list(rows.select_related("workspace"))
    random.shuffle(rules)  # where time runs short, it is not always the same that are left out
    looked = 0
    for rule in rules:
        if time.monotonic() > until:
            logger.warning("alert_rules_left_out", extra={"count": len(rules) - looked})
            break
        try:
            evaluate(rule, database_now())
        except Exception:
            logger.exception("alert_rule_failed", extra={"rule": str(rule.pk)})
        looked += 1
    return looked


def trim_alerts() -> int:
    """Forget alerts that ended long ago; gives how many."""
    old = database_now() - timedelta(days=KEEP_DAYS)
    return Alert.objects.across_workspaces().filter(ended_at__lt=old).delete()[0]


def evaluate(rule: AlertRule, now: datetime) -> Alert | None:
    """Measure one rule, and begin, go on with or end its alert; gives the open one.

    Args:
        rule: as it was read for this look.
    """
    value = measure(rule, now)
    with transaction.atomic():
        rules = AlertRule.objects.for_workspace(rule.workspace_id).select_for_update()
        locked = rules.filter(is_active=True).find(rule.pk)
        if locked is None or locked.updated_at != rule.updated_at:
            # Somebody changed it since it was read. What it is now is looked at the next time.
            return None
        alert = open_alert(rule)
        if value < rule.threshold:
            if alert is not None:
                end(alert, rule, now, value=value)
            return None
        if alert is None:
            return _begin(rule, now, value)
        return _go_on(alert, rule, now, value)


def open_alert(rule: AlertRule) -> Alert | None:
    """The rule's alert that has not ended."""
    return Alert.objects.for_workspace(rule.workspace_id).filter(rule=rule, ended_at=None).first()


def end(alert: Alert, rule: AlertRule, now: datetime, *, value: float) -> None:
    """It is over, and everybody the rule names is told. In the caller's transaction."""
    _close(alert, rule, now, value=value)
    tell(rule, alert, kind="ended")


def end_by_hand(rule: AlertRule, *, by: Ending) -> None:
    """End what is open of a rule, in the caller's transaction.

    People are not told that all is well, for nobody knows. The rule's program is: it may have an incident open.
    """
    alert = open_alert(rule)
    if alert is None:
        return
    _close(alert, rule, database_now(), value=alert.value, why=_WHY[by])
    delivery = tell_program(rule, alert, kind="ended", why=by)
    if by == "deleted" and delivery is not None:
        _part_from_rule(delivery, rule)


def _part_from_rule(delivery: AlertDelivery, rule: AlertRule) -> None:
    """Messages go with their rule. This one stays, with what signs it; without that nobody would believe it."""
    kept = rule.webhook_secret
    try:
        delivery.secret = kept.reveal("signing the last word on an alert") if kept else None
    except SecretUnreadable:
        delivery.delete()
        return
    delivery.rule = None
    delivery.save()


def _close(alert: Alert, rule: AlertRule, now: datetime, *, value: float, why: str = "") -> None:
    alert.ended_at, alert.value = now, value
    alert.save()
    _record(Action.ALERT_ENDED, rule, alert, why=why)


def _begin(rule: AlertRule, now: datetime, value: float) -> Alert:
    alert = Alert.objects.create(
        workspace_id=rule.workspace_id,
        rule=rule,
        started_at=now,
        told_at=now,
        value=value,
        peak=value,
    )
    _record(Action.ALERT_RAISED, rule, alert)
    tell(rule, alert, kind="raised")
    return alert


def _go_on(alert: Alert, rule: AlertRule, now: datetime, value: float) -> Alert:
    is_time = rule.remind_hours and now - alert.told_at >= timedelta(hours=rule.remind_hours)
    if alert.value == value and not is_time:
        return alert
    alert.value, alert.peak = value, max(alert.peak, value)
    if is_time:
        alert.told_at = now
        tell(rule, alert, kind="reminder")
    alert.save()
    return alert


def _record(action: Action, rule: AlertRule, alert: Alert, *, why: str = "") -> None:
    details: dict[str, object] = {
        "rule": rule.name,
        "rule_id": str(rule.pk),
        "alert_id": str(alert.pk),
        "condition": rule.condition,
        "threshold": rule.threshold,
        "window_minutes": rule.window_minutes,
        "value": alert.value,
        "peak": alert.peak,
    }
    if rule.query:
        details["filter"] = rule.query
    if why:
        details["why"] = why
    record(
        EntryDraft(
            action=action,
            actor=Actor.system(label="alerts", source=Source.TASK, workspace_id=rule.workspace_id),
            workspace_id=rule.workspace_id,
            details=details,
        )
    )
