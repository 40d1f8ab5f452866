"""The HTTP client of those transports that have a URL, within bounds."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Final

from mcp_servers.client.transports.messages import LINES_PER_SECOND
from workspaces import outbound

if TYPE_CHECKING:
    import httpx2

    from mcp_servers.client.transports.targets import HttpSpec

MAX_BODY_BYTES: Final = 10 * 2**20
MAX_EVENT_BYTES: Final = 8 * 2**20
"""One event of a stream; the SDK's servers send a result twice in it, as text and as structure."""


def http_client(
    target: HttpSpec, *, wrap: outbound.Wrap | None = None
) -> contextlib.AbstractAsyncContextManager[httpx2.AsyncClient]:
    """The egress client with what the target wants sent."""
    bounds = outbound.Bounds(
        connect_seconds=10.0,
        # Calls have their own deadline, and the stream for the server's own messages is silent for hours.
        idle_seconds=None,
        total_seconds=None,
        body_bytes=MAX_BODY_BYTES,
        line_bytes=MAX_EVENT_BYTES + 2**20,
        stream_lines_per_second=LINES_PER_SECOND,
    )
    return outbound.client(headers=target.headers, bounds=bounds, wrap=wrap, auth=target.auth)
