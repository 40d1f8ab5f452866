"""Background jobs, and when they ran."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.utils import timezone

from workspaces.models import BackgroundJob

OFTEN = "audit.tasks.count_entries"
HOURLY = "chat.tasks.sweep_artifacts"
DAILY = "workspaces.tasks.clear_sessions"


def ran(name: str, ago: timedelta, **values: Any) -> None:
    at = timezone.now() - ago
    fields = {"started_at": at, "ended_at": at + timedelta(seconds=1), "seconds": 1.0, **values}
    BackgroundJob.objects.update_or_create(name=name, defaults=fields)
