"""What a rule counts: bounded, indexed questions to the log's last minutes."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from django.db.models import Count, Exists, OuterRef, Q

from audit.actions import CALLS, FAILURES, REFUSALS, Action, Outcome, RefusedBy
from audit.alerts.filtering import APPROVAL_LASTS, OWN, filter_of
from audit.models import AlertRule, AuditEntry, PendingSeal
from audit.reports import matching
from audit.reports.providers import spending_of
from audit.sealing.rotation import find_missing_key
from workspaces.scoping import WorkspaceQuerySet

MOST_COUNTED: Final = 10_000
"""Beyond it a number says only "very many", and counting on would cost without telling more."""
SEAL_LAG_SECONDS: Final = 120
_DECIDED: Final = (
    Action.APPROVAL_GRANTED.value,
    Action.APPROVAL_REFUSED.value,
    Action.APPROVAL_EXPIRED.value,
    *CALLS,
    *REFUSALS,
)
_FINDINGS: Final = (
    Action.LOG_LOSS.value,
    Action.LOG_INTRUSION.value,
    Action.LOG_UNGUARDED.value,
    Action.LOG_UNSIGNED.value,
    Action.LOG_KEY_LOST.value,
)
WHOLE: Final = "whole"


def measure(rule: AlertRule, now: datetime) -> float:
    """The rule's number at this moment; the threshold is compared with it."""
    kind = AlertRule.Condition(rule.condition)
    if kind is AlertRule.Condition.TAMPERING:
        return float(
            _findings(rule.workspace_id, now - timedelta(minutes=rule.window_minutes), now)
        )
    if kind is AlertRule.Condition.SPENDING:
        spending = spending_of(rule.workspace_id)
        return float(spending.percent) if spending is not None else 0.0
    if kind is AlertRule.Condition.APPROVAL:
        return float(_waiting(rule, now))
    rows = _in_window(rule, now)
    if kind is AlertRule.Condition.ERROR_RATE:
        return _rate(rows, rule.least_calls)
    wanted = {
        AlertRule.Condition.CONNECTION: Q(action=Action.SERVER_ERROR.value)
        | Q(action__in=CALLS, outcome=Outcome.TRANSPORT_ERROR.value),
        AlertRule.Condition.TIMEOUT: Q(action__in=CALLS, outcome=Outcome.TIMEOUT.value),
        AlertRule.Condition.REFUSAL: Q(action__in=REFUSALS),
        AlertRule.Condition.QUOTA: Q(action__in=REFUSALS, refused_by=RefusedBy.QUOTA.value),
        AlertRule.Condition.ENTRIES: ~Q(action__in=OWN),
    }[kind]
    return float(_count(rows.filter(wanted)))


def _in_window(rule: AlertRule, now: datetime) -> WorkspaceQuerySet[AuditEntry]:
    since = now - timedelta(minutes=rule.window_minutes)
    rows = AuditEntry.objects.for_workspace(rule.workspace_id).filter(created_at__gte=since)
    return matching(rows, filter_of(rule, now=now))


def _count(rows: WorkspaceQuerySet[AuditEntry]) -> int:
    return rows.order_by()[:MOST_COUNTED].count()


def _rate(rows: WorkspaceQuerySet[AuditEntry], least: int) -> float:
    """Failed of all finished calls, in per cent; 0 of fewer than that many."""
    found = rows.filter(action__in=CALLS).aggregate(
        calls=Count("pk"), failed=Count("pk", filter=Q(outcome__in=FAILURES))
    )
    calls = found["calls"]
    return 100.0 * found["failed"] / calls if calls >= max(1, least) else 0.0


def _waiting(rule: AlertRule, now: datetime) -> int:
    """Requests for approval that nobody has answered for as long as the rule's window."""
    until = now - timedelta(minutes=rule.window_minutes)
    asked = AuditEntry.objects.for_workspace(rule.workspace_id).filter(
        action=Action.APPROVAL_REQUESTED.value,
        created_at__gte=until - APPROVAL_LASTS,
        created_at__lt=until,
    )
    answers = AuditEntry.unscoped.filter(call_id=OuterRef("call_id"), action__in=_DECIDED)
    return _count(matching(asked, filter_of(rule, now=now)).filter(~Exists(answers)))


def _findings(workspace_id: UUID, since: datetime, now: datetime) -> int:
    """Checks of the log that found something, declared losses, foreign entries, a missing key, and a sealer that has stopped.

    The platform's own entries count too: they are about the log that this workspace's entries lie in.
    """
    whose = Q(workspace_id=workspace_id) | Q(workspace_id=None)
    recent = AuditEntry.objects.across_workspaces().filter(whose, created_at__gte=since)
    losses = recent.filter(action__in=_FINDINGS)
    checks = recent.filter(action=Action.LOG_VERIFIED.value).exclude(details__result=WHOLE)
    is_unsigned = find_missing_key() is not None
    return _count(losses) + _count(checks) + int(_is_sealing_late(now)) + int(is_unsigned)


def _is_sealing_late(now: datetime) -> bool:
    first = PendingSeal.objects.order_by("id").first()
    if first is None:
        return False
    entry = AuditEntry.objects.across_workspaces().filter(pk=first.entry_id).first()
    return entry is not None and (now - entry.created_at).total_seconds() > SEAL_LAG_SECONDS
