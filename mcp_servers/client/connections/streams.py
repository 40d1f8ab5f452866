"""From a description of a server to an open pair of streams that the SDK's session accepts."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import Any

from mcp_servers.client import transports
from mcp_servers.client.transports.stdio import OpenTransport
from mcp_servers.client.transports.targets import HttpSpec, StdioSpec


def kinds_for(target: HttpSpec | StdioSpec) -> list[str]:
    """The transports to try, in this order. Never empty."""
    if isinstance(target, StdioSpec):
        return [transports.STDIO]
    kind = transports.for_address(target.transport, target.endpoint.scheme)
    if kind != transports.AUTO:
        return [kind]
    return sorted(transports.automatic(), key=lambda kind: kind != target.remembered)


def open_streams(
    target: HttpSpec | StdioSpec, kind: str, opened: OpenTransport
) -> AbstractAsyncContextManager[tuple[Any, Any]]:
    """Open one transport for the length of a block, see `transports.Opener`."""
    return transports.transport_named(kind).load()(target, opened)
