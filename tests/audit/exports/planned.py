"""Planned files of the log."""

from __future__ import annotations

from datetime import UTC, timedelta
from typing import Any

from django.utils import timezone

from audit.actions import Action
from audit.models import AuditEntry, ReportSchedule, SentFile
from tests.audit.views.log_pages import SECRET_ARGUMENT
from tests.factories import Tenant


def a_schedule(tenant: Tenant, **changes: Any) -> ReportSchedule:
    values: dict[str, Any] = {
        "workspace": tenant.workspace,
        "name": "Calls of yesterday",
        "made_by": tenant.auditor,
        "query": "tool=echo",
        "format": "csv",
        "cadence": "daily",
        "delivery": "mail",
        "recipients": [str(tenant.auditor.pk)],
        "next_run_at": timezone.now() - timedelta(minutes=1),
        **changes,
    }
    row: ReportSchedule = ReportSchedule.objects.create(**values)
    return row


def yesterday(tenant: Tenant) -> None:
    """A call of yesterday noon, as the log would hold it."""
    noon = timezone.now().astimezone(UTC).replace(hour=12) - timedelta(days=1)
    AuditEntry.objects.bulk_create(
        [
            AuditEntry(
                workspace_id=tenant.workspace.pk,
                created_at=noon,
                action=Action.TOOL_CALL_FINISHED.value,
                actor_kind="user",
                actor_label="=1+1",
                source="chat",
                tool_name="echo",
                arguments_preview=SECRET_ARGUMENT,
                outcome="ok",
            )
        ]
    )


def sent_files(tenant: Tenant) -> Any:
    """What the schedules of a workspace sent, the oldest first."""
    return SentFile.objects.for_workspace(tenant.workspace).order_by("created_at")
