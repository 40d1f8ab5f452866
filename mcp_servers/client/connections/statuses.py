"""Where a connection is in its life, for people who look after servers."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from mcp_servers.client.connections.backoff import Backoff
from mcp_servers.client.connections.facts import ConnectionState, ConnectionStatus

if TYPE_CHECKING:
    from mcp_servers.client.connections.connection import Connection
    from mcp_servers.client.spec import ConnectionKey


def status_of(
    key: ConnectionKey, connection: Connection | None, backoff: Backoff | None
) -> ConnectionStatus:
    """The status of what is, or was, connected under this key."""
    backoff = backoff or Backoff()
    wait = backoff.wait_seconds(time.monotonic())
    facts = connection.facts if connection is not None else None
    stdio = connection.transport.stdio if connection is not None else None
    return ConnectionStatus(
        workspace_id=key[0],
        server_id=key[1],
        principal=key[2],
        state=_state(connection, backoff, wait),
        since=connection.since if connection is not None else datetime.now(UTC),
        in_flight=connection.in_flight if connection is not None else 0,
        failures=backoff.failures,
        next_attempt_seconds=None if backoff.has_given_up or wait <= 0 else wait,
        transport=facts.transport if facts is not None else "",
        protocol_revision=facts.protocol_revision if facts is not None else "",
        process_id=stdio.pid if stdio is not None else None,
        capabilities=facts.capabilities if facts is not None else {},
    )


def _state(connection: Connection | None, backoff: Backoff, wait: float) -> ConnectionState:
    if connection is not None and not connection.owner.done():
        if not connection.opened.done():
            return ConnectionState.CONNECTING
        return ConnectionState.CLOSING if connection.is_over else ConnectionState.CONNECTED
    if backoff.has_given_up:
        return ConnectionState.GIVEN_UP
    return ConnectionState.WAITING if wait > 0 else ConnectionState.CLOSED
