"""From a description of a server to an open pair of streams that the SDK's session accepts."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from mcp.client.streamable_http import streamable_http_client

from mcp_servers.client.spec import HttpSpec, RestSpec, StdioSpec
from mcp_servers.client.transports.guard import GuardTransport
from mcp_servers.client.transports.sse import open_sse
from mcp_servers.client.transports.stdio import StderrRing, StdioTransport
from mcp_servers.client.transports.websocket import open_websocket
from mcp_servers.klavis.rest_transport import open_klavis_rest
from workspaces import outbound

if TYPE_CHECKING:
    from mcp_servers.client.connections.tracing import ConnectionTrace

MAX_BODY_BYTES: Final = 10 * 2**20
MAX_EVENT_BYTES: Final = 8 * 2**20
"""One event of a stream; the SDK's servers send a result twice in it, as text and as structure."""

STDIO: Final = "stdio"


@dataclass(slots=True)
class OpenTransport:
    """What a connection may want to know of the transport it runs on."""

    stderr: StderrRing | None = None
    stdio: StdioTransport | None = None


def kinds_for(target: HttpSpec | StdioSpec) -> list[str]:
    """The transports to try, in this order. Never empty."""
    if isinstance(target, StdioSpec):
        return [STDIO]
    if target.endpoint.scheme in outbound.WEBSOCKET_SCHEMES:
        return ["websocket"]
    if target.transport != "auto":
        return [target.transport]
    kinds = ["streamable_http", "sse"]
    return sorted(kinds, key=lambda kind: kind != target.remembered)


@contextlib.asynccontextmanager
async def open_streams(
    target: HttpSpec | StdioSpec, kind: str, opened: OpenTransport, trace: ConnectionTrace
) -> AsyncGenerator[tuple[Any, Any], None]:
    """Open one transport for the length of a block.

    Raises:
        MCPError, httpx2.TransportError, OSError: it could not be opened; see connect_failure().
    """
    async with contextlib.AsyncExitStack() as stack:
        if isinstance(target, StdioSpec):
            transport = StdioTransport(target, on_line=trace.stderr_line)
            opened.stdio, opened.stderr = transport, transport.stderr
            yield await stack.enter_async_context(transport)
            return
        bounds = outbound.Bounds(
            connect_seconds=10.0,
            # Calls have their own deadline, and the stream for the server's own messages is silent for hours.
            idle_seconds=None,
            total_seconds=None,
            body_bytes=MAX_BODY_BYTES,
            line_bytes=MAX_EVENT_BYTES + 2**20,
        )
        wrap = GuardTransport if kind == "streamable_http" else None
        client = await stack.enter_async_context(
            outbound.client(headers=target.headers, bounds=bounds, wrap=wrap, auth=target.auth)
        )
        if kind == "sse":
            context: Any = open_sse(client, target.endpoint, max_event_bytes=MAX_EVENT_BYTES)
        elif kind == "websocket":
            context = open_websocket(client, target.endpoint, max_message_bytes=MAX_EVENT_BYTES)
        elif isinstance(target, RestSpec):
            context = open_klavis_rest(client, target)
        else:
            context = streamable_http_client(
                str(target.endpoint), http_client=client, max_sse_event_size=MAX_EVENT_BYTES
            )
        yield await stack.enter_async_context(context)
