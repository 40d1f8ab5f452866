"""MCP with a hosted server over its provider's API, for where a direct connection is impossible.

What our session sends is translated: listing and calling become requests to the provider, which speaks MCP with the
server itself. There is no progress, nothing is asked back, and a call that is stopped here may go on over there.
"""

from __future__ import annotations

import contextlib
import json
import logging
from collections.abc import AsyncGenerator, Mapping
from typing import TYPE_CHECKING, Any, Final

import anyio
import httpx2
import pydantic
from mcp.shared.message import SessionMessage
from mcp_types import (
    ErrorData,
    JSONRPCError,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
)
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS

from mcp_servers.client.transports.density import check_parts
from mcp_servers.client.transports.http import http_client
from mcp_servers.client.transports.http_failures import (
    GUARD_ERROR_CODE,
    error_data,
    fault_data,
    kind_of_error,
    kind_of_status,
)
from mcp_servers.client.transports.session_streams import session_streams
from mcp_servers.klavis.client import TRANSPORT
from mcp_servers.klavis.shapes import CalledTool, ListedTools

if TYPE_CHECKING:
    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
    from mcp_types import RequestId

    from mcp_servers.client.transports.stdio import OpenTransport
    from mcp_servers.klavis.targets import RestSpec

logger = logging.getLogger(__name__)

MAX_REQUESTS: Final = 32
"""On their way at a time. Others wait, in no greater number than the server's own queue lets through."""
LONGEST_SECONDS: Final = 3600.0
"""For one request, whatever the caller's own deadline is."""

_METHOD_NOT_FOUND: Final = -32601
_INVALID_PARAMS: Final = -32602


class _Failed(Exception):
    """The request brought no result.

    Args:
        error: what the session is told.
    """

    def __init__(self, error: ErrorData) -> None:
        super().__init__(error.message)
        self.error = error


@contextlib.asynccontextmanager
async def open_streams(
    target: RestSpec, _opened: OpenTransport
) -> AsyncGenerator[tuple[Any, Any], None]:
    """Open this transport, see `transports.Opener`."""
    async with http_client(target) as client, open_klavis_rest(client, target) as streams:
        yield streams


@contextlib.asynccontextmanager
async def open_klavis_rest(
    client: httpx2.AsyncClient, target: RestSpec
) -> AsyncGenerator[tuple[Any, Any], None]:
    """Streams whose other end is the provider's API. Nothing is sent before the session asks."""
    with session_streams() as streams:
        bridge = _Bridge(client, target, streams.to_session)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(bridge.serve, streams.from_session)
            try:
                yield streams.read, streams.write
            finally:
                tasks.cancel_scope.cancel()


class _Bridge:
    """Answers the session in the server's place."""

    def __init__(
        self,
        client: httpx2.AsyncClient,
        target: RestSpec,
        to_session: MemoryObjectSendStream[Any],
    ) -> None:
        self._client = client
        self._base = str(target.endpoint).rstrip("/")
        self._server_url = target.server_url
        self._to_session = to_session
        self._running: dict[RequestId, anyio.CancelScope] = {}

    async def serve(self, from_session: MemoryObjectReceiveStream[SessionMessage]) -> None:
        """Take requests until the session ends."""
        lanes = anyio.Semaphore(MAX_REQUESTS)
        async with anyio.create_task_group() as tasks, from_session:
            async for item in from_session:
                message = item.message
                if isinstance(message, JSONRPCRequest):
                    tasks.start_soon(self._answer, message, lanes)
                elif isinstance(message, JSONRPCNotification):
                    self._note(message)

    def _note(self, message: JSONRPCNotification) -> None:
        if message.method != "notifications/cancelled" or not message.params:
            return
        scope = self._running.get(message.params.get("requestId", ""))
        if scope is not None:
            scope.cancel()

    async def _answer(self, request: JSONRPCRequest, lanes: anyio.Semaphore) -> None:
        answer: JSONRPCResponse | JSONRPCError | None = None
        try:
            with anyio.CancelScope() as scope:
                self._running[request.id] = scope
                async with lanes:
                    answer = await self._result(request)
        finally:
            self._running.pop(request.id, None)
        if answer is None:
            return  # the session has given it up, and expects nothing more
        with contextlib.suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            await self._to_session.send(SessionMessage(answer))

    async def _result(self, request: JSONRPCRequest) -> JSONRPCResponse | JSONRPCError:
        try:
            result = await self._carry_out(request.method, request.params or {})
        except _Failed as failure:
            return JSONRPCError(jsonrpc="2.0", id=request.id, error=failure.error)
        except Exception:  # one request's trouble ends no other one on the connection
            logger.exception("klavis_rest_request_failed")
            error = _guard_failure(fault_data("broken")).error
            return JSONRPCError(jsonrpc="2.0", id=request.id, error=error)
        return JSONRPCResponse(jsonrpc="2.0", id=request.id, result=result)

    async def _carry_out(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        if method == "initialize":
            return _initialized(params)
        if method == "ping":
            return {}
        if method == "tools/list":
            return await self._list()
        if method == "tools/call":
            return await self._call(params)
        raise _Failed(ErrorData(code=_METHOD_NOT_FOUND, message="Method not found"))

    async def _list(self) -> dict[str, Any]:
        body = {"connectionType": TRANSPORT, "format": "mcp_native"}
        found = _read(ListedTools, await self._post("/mcp-server/list-tools", body))
        if not found.success:
            raise _guard_failure(fault_data("http_status", 200))
        return {"tools": [_tool(one) for one in found.tools if isinstance(one, dict)]}

    async def _call(self, params: Mapping[str, Any]) -> dict[str, Any]:
        name = params.get("name")
        if not isinstance(name, str):
            raise _Failed(ErrorData(code=_INVALID_PARAMS, message="A tool has a name."))
        body = {
            "toolName": name,
            "toolArgs": params.get("arguments") or {},
            "connectionType": TRANSPORT,
        }
        called = _read(CalledTool, await self._post("/mcp-server/call-tool", body))
        if called.success and called.result is not None:
            result: dict[str, Any] = {
                "content": called.result.content,
                "isError": called.result.is_error,
            }
            if called.result.structured_content is not None:
                result["structuredContent"] = called.result.structured_content
            return result
        text = called.error or "The provider could not run this tool."
        return {"content": [{"type": "text", "text": text}], "isError": True}

    async def _post(self, path: str, body: Mapping[str, Any]) -> Any:
        """Ask the provider once.

        Raises:
            _Failed: with the kind of failure that the gate knows.
        """
        content = json.dumps(
            {"serverUrl": self._server_url, **body}, ensure_ascii=False, allow_nan=False
        )
        try:
            with anyio.fail_after(LONGEST_SECONDS):
                response = await self._client.post(
                    self._base + path,
                    content=content.encode(),
                    headers={"content-type": "application/json", "accept": "application/json"},
                )
        except TimeoutError:
            raise _guard_failure(fault_data("timeout")) from None
        except (httpx2.TransportError, httpx2.DecodingError) as error:
            raise _guard_failure(fault_data(kind_of_error(error))) from None
        if not response.is_success:
            kind = kind_of_status(response.status_code)
            kind = "http_status" if kind == "not_found" else kind
            raise _guard_failure(error_data(kind, response))
        try:
            check_parts(response.content)
            return json.loads(response.content)
        except httpx2.DecodingError:
            raise _guard_failure(fault_data("too_large")) from None
        except (ValueError, RecursionError):
            raise _unreadable() from None


def _initialized(params: Mapping[str, Any]) -> dict[str, Any]:
    asked = params.get("protocolVersion")
    version = asked if asked in HANDSHAKE_PROTOCOL_VERSIONS else HANDSHAKE_PROTOCOL_VERSIONS[-1]
    return {
        "protocolVersion": version,
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "Klavis", "version": "REST"},
    }


def _tool(raw: Mapping[str, Any]) -> dict[str, Any]:
    """A definition as MCP spells it."""
    if isinstance(raw.get("inputSchema"), dict):
        return dict(raw)
    schema = raw.get("input_schema")
    rest = {name: value for name, value in raw.items() if name != "input_schema"}
    return {**rest, "inputSchema": schema if isinstance(schema, dict) else {"type": "object"}}


def _read(shape: Any, answer: object) -> Any:
    try:
        return shape.model_validate(answer)
    except pydantic.ValidationError:
        raise _unreadable() from None


def _unreadable() -> _Failed:
    return _guard_failure(fault_data("unreadable"))


def _guard_failure(data: dict[str, Any]) -> _Failed:
    return _Failed(ErrorData(code=GUARD_ERROR_CODE, message="The request failed.", data=data))
