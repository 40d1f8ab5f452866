"""Sends `tools/call`. Only the gate may import this module; the import rules hold that."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING
from uuid import UUID

from mcp_servers.connections import runtime
from mcp_servers.connections.permits import CallPermit
from mcp_servers.connections.pool import pool

if TYPE_CHECKING:
    import mcp_types

    from mcp_servers.connections.slots import FairSlots
    from mcp_servers.connections.spec import ConnectionSpec


def slots_of(spec: ConnectionSpec) -> FairSlots:
    """The server's slots for calls, whoever's credentials they use."""
    return pool.slots(spec)


def mint_permit(*, call_id: UUID, server_id: UUID, tool_name: str, arguments: bytes) -> CallPermit:
    """The right to send one call; only after its *requested* entry is committed."""
    return CallPermit(
        call_id=call_id, server_id=server_id, tool_name=tool_name, arguments=arguments
    )


def wait_seconds(spec: ConnectionSpec) -> float:
    """How long the server is still left alone after failures; 0 if it may be called."""
    return pool.wait_seconds(spec)


async def send_call(
    spec: ConnectionSpec,
    permit: CallPermit,
    *,
    timeout_seconds: float,
    on_progress: Callable[[float, float | None, str | None], None] | None = None,
) -> mcp_types.CallToolResult:
    """Send one call from any event loop; on_progress runs on the connections' loop. Raises as Pool.call_tool()."""
    return await runtime.run(
        pool.call_tool(spec, permit, timeout_seconds=timeout_seconds, on_progress=on_progress)
    )
