"""Counts entries for the metrics as they are written, so that every way to write one counts alike."""

from __future__ import annotations

from typing import Final

from django.db import transaction

from audit.actions import CALLS, REFUSALS, Action
from audit.models import AuditEntry
from workspaces.process import metrics

_ANSWERS: Final = {
    Action.APPROVAL_GRANTED.value: "granted",
    Action.APPROVAL_REFUSED.value: "refused",
    Action.APPROVAL_EXPIRED.value: "expired",
}


def count_entry(entry: AuditEntry) -> None:
    """Count what was just written."""
    if entry.action in CALLS:
        server = metrics.server_name(entry.server_name)
        metrics.tool_calls.labels(server, entry.outcome or "none", entry.source).inc()
        if entry.duration_ms is not None:
            metrics.call_seconds.labels(server).observe(entry.duration_ms / 1000)
    elif entry.action in REFUSALS:
        metrics.refusals.labels(entry.refused_by or "none", entry.source).inc()
    elif entry.action in _ANSWERS and entry.call_id is not None:
        _count_wait(entry)


def _count_wait(entry: AuditEntry) -> None:
    asked = AuditEntry.objects.across_workspaces().filter(
        call_id=entry.call_id, action=Action.APPROVAL_REQUESTED.value
    )
    with transaction.atomic():  # should it fail, the caller's own transaction goes on
        at = asked.order_by().values_list("created_at", flat=True).first()
    if at is not None:
        waited = max(0.0, (entry.created_at - at).total_seconds())
        metrics.approval_wait.labels(_ANSWERS[entry.action]).observe(waited)
