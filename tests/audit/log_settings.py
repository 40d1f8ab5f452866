"""Rules, schedules and streams of the log that several people change."""

from __future__ import annotations

from typing import Any

from audit.alerts.services import AlertRuleDraft, create_rule
from audit.models import AlertRule, AuditStream, ReportSchedule
from audit.reviews.schedules import ScheduleDraft, create_schedule
from audit.streams.services import StreamDraft, StreamStart, create_stream
from tests.factories import Tenant
from workspaces.database import database_now


def a_stream(tenant: Tenant) -> AuditStream:
    stream, _secret = create_stream(
        workspace_id=tenant.workspace.pk,
        actor=tenant.actor("owner"),
        kind="webhook",
        draft=StreamDraft(name="sink", target="https://sink.example.org/"),
        start=StreamStart.NOW,
    )
    return stream


DRAFT: dict[str, Any] = {"condition": "timeout", "window_minutes": 15}


def a_rule(tenant: Tenant) -> AlertRule:
    draft = AlertRuleDraft(
        name="slow", threshold=5, webhook_url="https://hook.example.org/", **DRAFT
    )
    rule, _ = create_rule(
        workspace_id=tenant.workspace.pk, actor=tenant.actor("owner"), draft=draft
    )
    return rule


def a_schedule(tenant: Tenant) -> ReportSchedule:
    draft = ScheduleDraft(
        name="Weekly",
        query="",
        format="csv",
        cadence="weekly",
        delivery="mail",
        recipients=[str(tenant.auditor.pk)],
    )
    return create_schedule(
        workspace_id=tenant.workspace.pk,
        actor=tenant.actor("auditor"),
        draft=draft,
        now=database_now(),
    )
