"""What operators read of the servers of the installation."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from django.db.models import Count

from mcp_servers.models import ServerState, ServerStatus
from workspaces.process import metrics

_KEPT_SECONDS: Final = 30.0
"""Each server's row is looked at, and a check takes longer than that to change one."""
_kept: Final = metrics.CachedValue[dict[str, int]](_KEPT_SECONDS)


def register() -> None:
    """Offer the gauge."""
    metrics.gauge(
        "trellis_servers",
        "MCP servers that are on and of a workspace, by what the last look at them found.",
        _servers,
        labels=["status"],
    )


def _servers() -> Iterable[tuple[Sequence[str], float]]:
    counted = _kept(_count)
    return [((status,), counted.get(status, 0)) for status in ServerStatus.values]


def _count() -> dict[str, int]:
    """Without people's own servers: whoever runs Trellis has no business with them."""
    rows = ServerState.objects.across_workspaces().filter(
        server__is_active=True, server__owner=None
    )
    counted = rows.order_by().values("status").annotate(count=Count("pk"))
    return {row["status"]: row["count"] for row in counted}
