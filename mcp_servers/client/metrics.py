"""What operators read of the connections of this process."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from workspaces.process import metrics

if TYPE_CHECKING:
    from mcp_servers.client.connections.pool import Pool


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
        lambda: metrics.one(_pool().resting),
    )
    metrics.gauge(
        "trellis_calls_waiting",
        "Calls that wait for a free slot on their server, in this process.",
        lambda: metrics.one(_pool().waiting),
    )


def _pool() -> Pool:
    from mcp_servers.client.connections.pool import pool  # with the whole protocol

    return pool


def _connections() -> Iterable[tuple[Sequence[str], float]]:
    counted = Counter(_pool().states())
    return [((state,), counted.get(state, 0)) for state in ("open", "opening")]
