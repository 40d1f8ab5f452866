"""From a description of a server to an open transport that the SDK's client accepts."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Self, TypeAlias

from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCRequest, JSONRPCResponse

from mcp_servers import outbound
from mcp_servers.connections.guard import GuardTransport
from mcp_servers.connections.spec import ConnectionSpec, HttpSpec, StdioSpec
from mcp_servers.connections.stdio import StderrRing, StdioTransport

if TYPE_CHECKING:
    from mcp.client._transport import TransportStreams

MAX_BODY_BYTES: Final = 10 * 2**20
MAX_EVENT_BYTES: Final = 8 * 2**20
"""One event of a stream; the SDK's servers send a result twice in it, as text and as structure."""


_HEADER_DEPTH: Final = 20
_MOST_MARKED: Final = 2000


RawTool: TypeAlias = "dict[str, Any]"


class ToolListTap:
    """Keeps the tool lists of a connection as the server sent them, and gives the SDK only what it cannot choke on.

    The SDK fails a whole list because of one odd hint in one tool, and it validates results with the tools' output
    schemas by a library that hostile patterns can stall; and checking thousands of tools holds up the loop. So it
    sees only what it needs: which arguments of which tools go into request headers.
    """

    def __init__(self) -> None:
        self._asked: set[object] = set()
        self.page: list[Any] = []
        """The tools of the last page, unchecked."""
        self.has_listed = False
        """At least one page has come through."""

    def sent(self, item: SessionMessage) -> None:
        """Note a request for a list."""
        message = item.message
        if isinstance(message, JSONRPCRequest) and message.method == "tools/list":
            self._asked.add(str(message.id))

    def received(self, item: object) -> None:
        """Take the answer's tools out, if it is one to such a request."""
        if not isinstance(item, SessionMessage) or not self._asked:
            return
        message = item.message
        if isinstance(message, JSONRPCResponse) and str(message.id) in self._asked:
            self._asked.discard(str(message.id))
            self.has_listed = True
            tools = message.result.get("tools")
            self.page = list(tools) if isinstance(tools, list) else []
            message.result["tools"] = [
                {"name": tool["name"], "inputSchema": reduced}
                for tool in self.page[:_MOST_MARKED]
                if isinstance(tool, dict)
                and isinstance(tool.get("name"), str)
                and isinstance(tool.get("inputSchema"), dict)
                and (reduced := _headers_only(tool["inputSchema"])) is not None
            ]


def _headers_only(schema: dict[str, Any], depth: int = 0) -> dict[str, Any] | None:
    """The part of an input schema that tells which arguments go into request headers; None if there is none."""
    kept: dict[str, Any] = {key: schema[key] for key in ("type", "x-mcp-header") if key in schema}
    properties = schema.get("properties")
    marked = {}
    if isinstance(properties, dict) and depth < _HEADER_DEPTH:
        marked = {
            name: reduced
            for name, inner in properties.items()
            if isinstance(inner, dict) and (reduced := _headers_only(inner, depth + 1)) is not None
        }
    if not marked and "x-mcp-header" not in schema:
        return None
    return {
        **kept,
        **({"properties": marked} if marked else {}),
        **({} if depth else {"type": "object"}),
    }


@dataclass(slots=True)
class OpenTransport:
    """What a connection needs to know about the transport it runs on."""

    tap: ToolListTap
    stderr: StderrRing | None
    stdio: StdioTransport | None = None
    on_end: Callable[[], None] = lambda: None
    """Told when the server's side closed and nothing more will come."""


class TappedTransport:
    """A transport of the SDK's shape that watches the messages going through."""

    def __init__(self, spec: ConnectionSpec, opened: OpenTransport) -> None:
        self._spec = spec
        self._opened = opened
        self._context: Any = None

    async def __aenter__(self) -> TransportStreams:
        self._context = self._open()
        streams: TransportStreams = await self._context.__aenter__()
        return streams

    async def __aexit__(self, *exc_info: object) -> bool | None:
        assert self._context is not None
        is_handled: bool | None = await self._context.__aexit__(*exc_info)
        return is_handled

    @contextlib.asynccontextmanager
    async def _open(self) -> AsyncGenerator[Any, None]:
        async with contextlib.AsyncExitStack() as stack:
            if isinstance(self._spec.target, StdioSpec):
                transport = StdioTransport(self._spec.target)
                self._opened.stdio = transport
                self._opened.stderr = transport.stderr
                streams: Any = await stack.enter_async_context(transport)
            else:
                http_client = await stack.enter_async_context(_http_client(self._spec.target))
                streams = await stack.enter_async_context(
                    streamable_http_client(
                        str(self._spec.target.endpoint),
                        http_client=http_client,
                        max_sse_event_size=MAX_EVENT_BYTES,
                    )
                )
            read, write = streams
            yield TapRead(read, self._opened), TapWrite(write, self._opened)


def _http_client(target: HttpSpec) -> Any:
    return outbound.client(
        headers=target.headers,
        # Calls have their own deadline, and the stream for the server's own messages is silent for hours.
        bounds=outbound.Bounds(
            connect_seconds=10.0,
            idle_seconds=None,
            total_seconds=None,
            body_bytes=MAX_BODY_BYTES,
            line_bytes=MAX_EVENT_BYTES + 2**20,
        ),
        wrap=GuardTransport,
    )


class TapRead:
    """A read stream that shows each message to the tap."""

    def __init__(self, inner: Any, opened: OpenTransport) -> None:
        self._inner = inner
        self._opened = opened

    @property
    def last_context(self) -> Any:
        """The sender's context variables, where the transport keeps them; the SDK looks for this name."""
        return getattr(self._inner, "last_context", None)

    async def receive(self) -> Any:
        item = await self._inner.receive()
        self._opened.tap.received(item)
        return item

    def __aiter__(self) -> TapRead:
        return self

    async def __anext__(self) -> Any:
        try:
            item = await self._inner.__anext__()
        except StopAsyncIteration:
            self._opened.on_end()
            raise
        self._opened.tap.received(item)
        return item

    def close(self) -> None:
        self._inner.close()

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def __aenter__(self) -> Self:
        await self._inner.__aenter__()
        return self

    async def __aexit__(self, *exc_info: object) -> Any:
        self._opened.on_end()
        return await self._inner.__aexit__(*exc_info)


class TapWrite:
    """A write stream that shows each message to the tap."""

    def __init__(self, inner: Any, opened: OpenTransport) -> None:
        self._inner = inner
        self._opened = opened

    async def send(self, item: SessionMessage) -> None:
        self._opened.tap.sent(item)
        await self._inner.send(item)

    def close(self) -> None:
        self._inner.close()

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def __aenter__(self) -> Self:
        await self._inner.__aenter__()
        return self

    async def __aexit__(self, *exc_info: object) -> Any:
        return await self._inner.__aexit__(*exc_info)
