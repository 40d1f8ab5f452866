"""MCP over a WebSocket: one text message for each JSON-RPC message, in both directions.

The SDK no longer has this transport. The socket is opened by the one egress client, so the same addresses are
allowed, unencrypted ones only within the networks that the platform's owner opened.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Any, Final

import anyio
from httpx2.websockets import (
    HTTPXWSException,
    WebSocketInvalidTypeReceived,
    WebSocketUpgradeError,
)

from mcp_servers.client.transports.http import MAX_EVENT_BYTES, http_client
from mcp_servers.client.transports.http_failures import refused
from mcp_servers.client.transports.messages import (
    LINES_PER_MESSAGE,
    LINES_PER_SECOND,
    read_message,
    write_message,
)
from mcp_servers.client.transports.session_streams import session_streams
from workspaces.outbound import Pace

if TYPE_CHECKING:
    import httpx2
    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
    from httpx2.websockets import AsyncWebSocketSession
    from mcp.shared.message import SessionMessage

    from mcp_servers.client.transports.stdio import OpenTransport
    from mcp_servers.client.transports.targets import HttpSpec
    from workspaces.outbound import Endpoint

logger = logging.getLogger(__name__)

SUBPROTOCOL: Final = "mcp"
PING_SECONDS: Final = 20.0
"""Between two signs of life, and how long the server may take to return one."""


@contextlib.asynccontextmanager
async def open_streams(
    target: HttpSpec, _opened: OpenTransport
) -> AsyncGenerator[tuple[Any, Any], None]:
    """Open this transport, see `transports.Opener`."""
    async with (
        http_client(target) as client,
        open_websocket(client, target.endpoint, max_message_bytes=MAX_EVENT_BYTES) as streams,
    ):
        yield streams


@contextlib.asynccontextmanager
async def open_websocket(
    client: httpx2.AsyncClient, endpoint: Endpoint, *, max_message_bytes: int
) -> AsyncGenerator[tuple[Any, Any], None]:
    """Open the socket.

    Raises:
        MCPError: the server refused it.
        httpx2.TransportError: it was not reached.
    """
    async with contextlib.AsyncExitStack() as stack:
        streams = stack.enter_context(session_streams())
        try:
            socket = await stack.enter_async_context(
                client.websocket(
                    str(endpoint),
                    subprotocols=[SUBPROTOCOL],
                    max_message_size_bytes=max_message_bytes,
                    keepalive_ping_interval_seconds=PING_SECONDS,
                    keepalive_ping_timeout_seconds=PING_SECONDS,
                )
            )
        except WebSocketUpgradeError as error:
            raise refused(error.response) from None
        if socket.subprotocol not in (SUBPROTOCOL, None):
            assert socket.response is not None
            raise refused(socket.response, "not_mcp")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_read, socket, streams.to_session)
            tasks.start_soon(_write, socket, streams.from_session, streams.to_session)
            try:
                yield streams.read, streams.write
            finally:
                tasks.cancel_scope.cancel()


async def _read(
    socket: AsyncWebSocketSession,
    to_session: MemoryObjectSendStream[SessionMessage | Exception],
) -> None:
    pace = Pace(LINES_PER_SECOND)
    async with to_session:
        while True:
            if pause := pace.take(LINES_PER_MESSAGE):
                await anyio.sleep(pause)
            try:
                text = await socket.receive_text()
            except WebSocketInvalidTypeReceived as error:
                await to_session.send(ValueError(f"not a text message: {type(error).__name__}"))
                continue
            except HTTPXWSException:
                logger.debug("a WebSocket ended", exc_info=True)
                return
            try:
                await to_session.send(read_message(text))
            except (anyio.BrokenResourceError, anyio.ClosedResourceError):
                return


async def _write(
    socket: AsyncWebSocketSession,
    from_session: MemoryObjectReceiveStream[SessionMessage],
    to_session: MemoryObjectSendStream[SessionMessage | Exception],
) -> None:
    try:
        async with from_session:
            async for item in from_session:
                await socket.send_text(write_message(item))
    except (HTTPXWSException, OSError, anyio.ClosedResourceError):
        # Nothing gets out any more: end the read side too, or every waiting call would hang.
        to_session.close()
