"""How many calls a day a server may be sent: counted in the transaction that writes *requested*."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

from django.db import IntegrityError, transaction
from django.db.models import F

from mcp_servers.models import CallCount, McpServer
from workspaces.database import database_now

KEPT_DAYS = 31


def take_from_quota(server: McpServer, workspace_id: UUID) -> bool:
    """Count one call; False: the day's calls are used up, and none was counted.

    In the caller's transaction: a call that is not let through after all is not counted. Each count is one
    conditional update, so that however many processes call at once, no more than the limit get through.
    """
    limit = server.config.calls_per_day
    if limit is None:
        return True
    day = database_now().date()
    today = CallCount.objects.for_workspace(workspace_id).filter(server_id=server.pk, day=day)
    if today.filter(used__lt=limit).update(used=F("used") + 1):
        return True
    try:
        with transaction.atomic():
            CallCount.objects.create(
                workspace_id=workspace_id, server_id=server.pk, day=day, used=1
            )
    except IntegrityError:
        # There is a count: used up, or just made by another process.
        return bool(today.filter(used__lt=limit).update(used=F("used") + 1))
    return True


def is_quota_used_up(server: McpServer, workspace_id: UUID) -> bool:
    """Whether the server gets no more calls today; counts none."""
    limit = server.config.calls_per_day
    if limit is None:
        return False
    counts = CallCount.objects.for_workspace(workspace_id).filter(server_id=server.pk)
    return counts.filter(day=database_now().date(), used__gte=limit).exists()


def trim_counts() -> int:
    """Forget the counts of days long gone."""
    old = database_now().date() - timedelta(days=KEPT_DAYS)
    removed, _ = CallCount.objects.across_workspaces().filter(day__lt=old).delete()
    return removed
