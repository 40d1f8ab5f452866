"""Sends `tools/call`. Only the gate may import this module; the import rules hold that."""

from __future__ import annotations

import contextlib
import time
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING
from uuid import UUID

from mcp_servers.connections import runtime
from mcp_servers.connections.permits import CallPermit
from mcp_servers.connections.pool import pool

if TYPE_CHECKING:
    import mcp_types

    from mcp_servers.connections.transports import ConnectionSpec


class _Ticket:
    """One claim on a slot, which can be given back from any thread, whether it was granted yet or not."""

    __slots__ = ("context", "is_given_back")

    def __init__(self) -> None:
        self.context: contextlib.AbstractAsyncContextManager[None] | None = None
        self.is_given_back = False

    async def take(self, spec: ConnectionSpec, group: str, wait_seconds: float) -> None:
        context = pool.slots(spec).slot(group, wait_seconds=wait_seconds)
        await context.__aenter__()
        if self.is_given_back:
            await context.__aexit__(None, None, None)
        else:
            self.context = context

    async def give_back(self) -> None:
        self.is_given_back = True
        context, self.context = self.context, None
        if context is not None:
            await context.__aexit__(None, None, None)


@contextlib.asynccontextmanager
async def slot(spec: ConnectionSpec, *, group: str, wait_seconds: float) -> AsyncIterator[int]:
    """Hold one of the server's slots for calls; gives the milliseconds it took to get it.

    Raises:
        Busy: none came free in time.
    """
    ticket = _Ticket()
    started = time.monotonic()
    try:
        await runtime.run(ticket.take(spec, group, wait_seconds))
        yield round((time.monotonic() - started) * 1000)
    finally:
        # Not awaited: the caller may be cancelled, and has nothing to wait for.
        runtime.current().submit(ticket.give_back())


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
