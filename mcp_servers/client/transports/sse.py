"""The HTTP with SSE transport of revision 2024-11-05: one stream for what the server says, a POST for each of ours.

Written because the SDK's own leaves a call hanging when its POST is refused, waits for ever for a server that names
no address for them, and has no limit on an event.

Source: MCP specification 2024-11-05, "Transports": HTTP with SSE.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import AsyncGenerator, AsyncIterator
from typing import TYPE_CHECKING, Any, Final, TypeAlias
from urllib.parse import urljoin

import anyio
import httpx2
from mcp.shared.message import SessionMessage
from mcp_types import ErrorData, JSONRPCError, JSONRPCRequest

from mcp_servers.client.transports.http import MAX_EVENT_BYTES, http_client
from mcp_servers.client.transports.http_failures import (
    GUARD_ERROR_CODE,
    error_data,
    failed,
    failure_data,
    kind_of_status,
    refused,
)
from mcp_servers.client.transports.messages import read_message, write_message
from mcp_servers.client.transports.session_streams import session_streams
from workspaces.errors import InvalidEndpoint
from workspaces.outbound import Endpoint, parse_endpoint

if TYPE_CHECKING:
    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

    from mcp_servers.client.transports.stdio import OpenTransport
    from mcp_servers.client.transports.targets import HttpSpec

logger = logging.getLogger(__name__)

Incoming: TypeAlias = "MemoryObjectSendStream[SessionMessage | Exception]"

ENDPOINT_SECONDS: Final = 10.0
"""How long a server may take to name the address for our messages."""
POST_SECONDS: Final = 60.0
"""How long it may take to accept one. The answer comes over the stream, and has the call's own deadline."""
MAX_POSTS: Final = 32
"""Requests that may be on their way at a time."""


@contextlib.asynccontextmanager
async def open_streams(
    target: HttpSpec, _opened: OpenTransport
) -> AsyncGenerator[tuple[Any, Any], None]:
    """Open this transport, see `transports.Opener`."""
    async with (
        http_client(target) as client,
        open_sse(client, target.endpoint, max_event_bytes=MAX_EVENT_BYTES) as streams,
    ):
        yield streams


@contextlib.asynccontextmanager
async def open_sse(
    client: httpx2.AsyncClient, endpoint: Endpoint, *, max_event_bytes: int
) -> AsyncGenerator[tuple[Any, Any], None]:
    """Open the stream and learn where to post.

    Raises:
        MCPError: the server refused, or sent no address for messages, or a foreign one.
        httpx2.TransportError: it was not reached.
    """
    accept = {"accept": "text/event-stream"}
    with session_streams() as streams:
        async with client.stream("GET", str(endpoint), headers=accept) as response:
            if response.status_code != 200:
                raise refused(response)
            if not response.headers.get("content-type", "").lower().startswith("text/event-stream"):
                raise refused(response, "not_mcp")
            events = aiter(httpx2.EventSource(response, max_event_size=max_event_bytes))
            post_url = await _post_url(events, endpoint)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_read, events, streams.to_session)
                tasks.start_soon(_write, client, post_url, streams.from_session, streams.to_session)
                try:
                    yield streams.read, streams.write
                finally:
                    tasks.cancel_scope.cancel()


async def _post_url(events: AsyncIterator[httpx2.ServerSentEvent], endpoint: Endpoint) -> str:
    """Where our messages go: on the same origin, or the credentials would go elsewhere."""
    try:
        with anyio.fail_after(ENDPOINT_SECONDS):
            async for event in events:
                if event.event == "endpoint":
                    return _checked(event.data, endpoint)
    except TimeoutError:
        raise failed("timeout") from None
    raise failed("not_mcp")


def _checked(address: str, endpoint: Endpoint) -> str:
    try:
        named = parse_endpoint(urljoin(str(endpoint), address.strip()))
    except (InvalidEndpoint, ValueError):
        raise failed("foreign_endpoint") from None
    if named.origin != endpoint.origin:
        raise failed("foreign_endpoint")
    return str(named)


async def _read(events: AsyncIterator[httpx2.ServerSentEvent], to_session: Incoming) -> None:
    """Hand on what the server says, until it ends; then nothing more will come."""
    async with to_session:
        try:
            async for event in events:
                if event.event == "message" and event.data:
                    await to_session.send(read_message(event.data))
        except (httpx2.HTTPError, httpx2.StreamError):
            logger.debug("an event stream broke off", exc_info=True)
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            pass


async def _write(
    client: httpx2.AsyncClient,
    url: str,
    from_session: MemoryObjectReceiveStream[SessionMessage],
    to_session: Incoming,
) -> None:
    lanes = anyio.Semaphore(MAX_POSTS)
    async with anyio.create_task_group() as tasks, from_session:
        async for item in from_session:
            if isinstance(item.message, JSONRPCRequest):
                await lanes.acquire()
                tasks.start_soon(_post_request, client, url, item, to_session, lanes)
            else:
                # One after the other, because what follows may build on it.
                await _post(client, url, item)


async def _post_request(
    client: httpx2.AsyncClient,
    url: str,
    item: SessionMessage,
    to_session: Incoming,
    lanes: anyio.Semaphore,
) -> None:
    try:
        data = await _post(client, url, item)
        if data is None:
            return
        assert isinstance(item.message, JSONRPCRequest)
        error = ErrorData(code=GUARD_ERROR_CODE, message="The request failed.", data=data)
        answer = JSONRPCError(jsonrpc="2.0", id=item.message.id, error=error)
        with contextlib.suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            await to_session.send(SessionMessage(answer))
    finally:
        lanes.release()


async def _post(
    client: httpx2.AsyncClient, url: str, item: SessionMessage
) -> dict[str, Any] | None:
    """Send one message; why it was not taken, or None."""
    content = write_message(item).encode()
    headers = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
    try:
        with anyio.fail_after(POST_SECONDS):
            # What comes as a body says nothing, so it is not read.
            async with client.stream("POST", url, content=content, headers=headers) as response:
                if response.is_success:
                    return None
                kind = kind_of_status(response.status_code)
                # The session is in the URL here, and this revision has no status for a forgotten one.
                return error_data("session_refused" if kind == "not_found" else kind, response)
    except TimeoutError:
        return None  # it may have been taken, and be answered over the stream
    except httpx2.ReadTimeout:
        return None
    except (httpx2.TransportError, httpx2.DecodingError) as error:
        return failure_data(error)
