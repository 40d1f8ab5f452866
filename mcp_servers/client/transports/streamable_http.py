"""Streamable HTTP: the SDK's transport, over a client that checks its messages."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Any

from mcp.client.streamable_http import streamable_http_client

from mcp_servers.client.transports.guard import GuardTransport
from mcp_servers.client.transports.http import MAX_EVENT_BYTES, http_client

if TYPE_CHECKING:
    from mcp_servers.client.transports.stdio import OpenTransport
    from mcp_servers.client.transports.targets import HttpSpec


@contextlib.asynccontextmanager
async def open_streams(
    target: HttpSpec, _opened: OpenTransport
) -> AsyncGenerator[tuple[Any, Any], None]:
    """Open this transport, see `transports.Opener`."""
    async with (
        http_client(target, wrap=GuardTransport) as client,
        streamable_http_client(
            str(target.endpoint), http_client=client, max_sse_event_size=MAX_EVENT_BYTES
        ) as streams,
    ):
        yield streams
