"""What operators read of the connections of this process."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from mcp_servers.client.connections.pool import pool
from workspaces import metrics


def register() -> None:
    """Offer the gauges."""
    metrics.gauge(
        "trellis_connections",
        "Connections to MCP servers of this process, by state.",
        _connections,
        labels=["state"],
    )
    metrics.gauge(
        "trellis_breakers_open",
        "Servers (by principal) that this process leaves alone after failures.",
        lambda: metrics.one(pool.resting),
    )
    metrics.gauge(
        "trellis_calls_waiting",
        "Calls that wait for a free slot on their server, in this process.",
        lambda: metrics.one(pool.waiting),
    )


def _connections() -> Iterable[tuple[Sequence[str], float]]:
    counted = Counter(pool.states())
    return [((state,), counted.get(state, 0)) for state in ("open", "opening")]
