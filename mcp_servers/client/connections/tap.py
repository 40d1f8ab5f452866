"""Watches the messages of a connection on their way: keeps lists as they came, notes everything in the trace.

The SDK fails a whole list because of one odd hint in one tool, and it validates results with the tools' output
schemas by a library that hostile patterns can stall; and checking thousands of tools holds up the loop. So it is shown
only what it needs: which arguments of which tools go into request headers. Of other lists, nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Self

from mcp_servers.client.connections.flights import CURRENT
from mcp_servers.client.connections.permits import PermitRefused
from mcp_servers.client.sdk import mcp, mcp_types
from mcp_servers.client.transports.http_failures import without_mark
from workspaces.outbound.bounds import Pace
from workspaces.process.failpoints import Failpoint, failpoint

if TYPE_CHECKING:
    from mcp_servers.client.connections.flights import CallRef, Flight
    from mcp_servers.client.connections.hooks import Kind
    from mcp_servers.client.connections.tracing import ConnectionTrace
    from mcp_servers.client.connections.turning_away import TurningAway

LISTS: Final = {
    "tools/list": "tools",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
    "prompts/list": "prompts",
}
TASKS_EXTENSION: Final = "io.modelcontextprotocol/tasks"
"""MCP extension "Tasks" of revision 2026-07-28; a request must name it for the server to answer with a task."""

MAX_CONTENT_PARTS: Final = 1000
"""Of one result, resource or prompt."""

_PARTS: Final = {"tools/call": "content", "resources/read": "contents", "prompts/get": "messages"}
_KINDS: Final = frozenset({"text", "image", "audio", "resource_link", "resource"})
"""Of content. Source: MCP specification, "Schema Reference": ContentBlock."""
_CAPABILITIES: Final = "io.modelcontextprotocol/clientCapabilities"
_HEADER_DEPTH: Final = 20
_MOST_MARKED: Final = 2000
_MOST_ASKED: Final = 4096
REQUESTS_AT_ONCE: Final = 100
"""Of a server over one connection. Each is a task and a message of ours, so a flood of them would fill the memory."""
REQUESTS_PER_SECOND: Final = 20.0
"""And from then on; more are turned away."""
TELL_SECONDS: Final = 60.0
"""Between two words in the trace that they are too many."""


@dataclass(slots=True)
class _Sent:
    """A request whose answer has not come."""

    method: str
    at: float
    flight: Flight | None


class Tap:
    """What one connection sees of its messages."""

    def __init__(
        self,
        trace: ConnectionTrace,
        *,
        sole_flight: Callable[[], Flight | None],
        bystander: Callable[[], CallRef | None],
        on_end: Callable[[], None],
    ) -> None:
        self.page: list[Any] = []
        """The items of the list page that came last, unchecked."""
        self.has_listed_tools = False
        """At least one page of tools has come through."""
        self._trace = trace
        self._sole_flight = sole_flight
        self._bystander = bystander
        self._asked: dict[str, _Sent] = {}
        self._asked_of_us: dict[str, tuple[str, Flight | None]] = {}
        self._pace = Pace(REQUESTS_PER_SECOND, at_once=REQUESTS_AT_ONCE)
        self._tells_at = 0.0
        self.has_greeted = False
        """A handshake has gone out over what is open now."""
        self.on_end = on_end
        """Told when the server's side closed and nothing more will come."""

    def sent(self, item: mcp.shared.message.SessionMessage) -> None:
        """Note a message of ours, and mark it where the server has to be told what we take.

        Raises:
            PermitRefused: it calls a tool, and the gate did not allow exactly that.
        """
        message, flight = item.message, CURRENT.get()
        call = flight.call if flight is not None else None
        if isinstance(message, mcp_types.JSONRPCRequest):
            if message.method == "tools/call":
                _check_permit(message, call)
            if flight is not None and flight.as_task:
                _declare_tasks(message)
            if message.method == "initialize":
                self.has_greeted = True
            if len(self._asked) >= _MOST_ASKED:
                del self._asked[next(iter(self._asked))]
            self._asked[str(message.id)] = _Sent(message.method, time.monotonic(), flight)
        elif isinstance(message, mcp_types.JSONRPCNotification) and message.method.endswith(
            "/cancelled"
        ):
            self._asked.pop(str((message.params or {}).get("requestId")), None)
        kind, method, rpc_id = _kind_of(message)
        if kind in ("response", "error"):
            method, asker = self._asked_of_us.pop(rpc_id, ("", None))
            call = asker.call if asker is not None else call
        self._trace.message(
            "sent",
            kind,
            _payload(message),
            method=method,
            rpc_id=rpc_id,
            call=call,
            is_check=_is_check(flight),
        )

    def takes(self, item: object) -> bool:
        """Whether a message of the server is looked at: requests that come too fast are not."""
        message = getattr(item, "message", None)
        if not isinstance(message, mcp_types.JSONRPCRequest):
            return True
        if self._pace.has_room():
            self._pace.take(1)
            return True
        now = time.monotonic()
        if now >= self._tells_at:
            self._tells_at = now + TELL_SECONDS
            self._trace.event("The server asks too much at once; what is too much is turned away.")
        return False

    def received(self, item: object, flight: Flight | None = None) -> None:
        """Note a message of the server, and take out what the SDK is not to see.

        Args:
            flight: the request in whose answer it came, where the transport tells them apart.
        """
        if not isinstance(item, mcp.shared.message.SessionMessage):
            if isinstance(item, Exception):
                self._trace.event("The server sent something that is no message of the protocol.")
            return
        message = item.message
        kind, method, rpc_id = _kind_of(message)
        payload = _payload(message)
        sent = told_of = None
        if isinstance(message, mcp_types.JSONRPCResponse | mcp_types.JSONRPCError):
            sent = self._asked.pop(rpc_id, None)
        if isinstance(message, mcp_types.JSONRPCResponse) and sent is not None:
            self._take_out(message, sent)
        if sent is not None:
            method, flight = sent.method, sent.flight
        elif kind == "request":
            flight = flight or self._sole_flight()
            if len(self._asked_of_us) < _MOST_ASKED:
                self._asked_of_us[rpc_id] = (method, flight)
        elif method == "notifications/progress":
            token = (payload.get("params") or {}).get("progressToken")
            told_of = self._asked.get(str(token))
            flight = told_of.flight if told_of is not None else flight
        call = flight.call if flight is not None else None
        if flight is None and sent is None and told_of is None:
            call = self._bystander()
        self._trace.message(
            "received",
            kind,
            payload,
            method=method,
            rpc_id=rpc_id,
            call=call,
            duration_ms=round((time.monotonic() - sent.at) * 1000) if sent is not None else None,
            is_check=_is_check(flight),
        )

    def _take_out(self, message: mcp_types.JSONRPCResponse, sent: _Sent) -> None:
        key = LISTS.get(sent.method)
        if key is not None:
            # Go's SDK sends null for a list without items.
            items = [] if message.result.get(key) is None else message.result[key]
            self.page = list(items) if isinstance(items, list) else []
            shown: list[Any] = []
            if sent.method == "tools/list":
                self.has_listed_tools = True
                shown = _marked_tools(self.page)
            if isinstance(items, list):
                # A new object: the old one is on its way into the trace. What is no list, the SDK refuses.
                message.result = {**message.result, key: shown}
        elif sent.method == "tools/call" and sent.flight is not None and sent.flight.as_task:
            result = message.result
            if result.get("resultType") == "task" or isinstance(result.get("task"), dict):
                sent.flight.task_result = result
                message.result = {"content": [], "resultType": "complete"}
        if sent.method == "tools/call":
            _add_content(message)
        self._cut_parts(message, sent.method)

    def _cut_parts(self, message: mcp_types.JSONRPCResponse, method: str) -> None:
        """Leave out what nobody would look at or could read, before the SDK looks at it piece by piece."""
        key = _PARTS.get(method)
        parts = message.result.get(key) if key is not None else None
        if key is None or not isinstance(parts, list):
            return
        kept = parts[:MAX_CONTENT_PARTS]
        if len(parts) > MAX_CONTENT_PARTS:
            self._trace.event(f"Of {len(parts)} parts, {MAX_CONTENT_PARTS} were kept.")
        if method == "tools/call":
            kept = [_readable(part) for part in kept]
        elif method == "prompts/get":
            kept = [_readable_message(part) for part in kept]
        message.result = {**message.result, key: kept}


def _readable(part: Any) -> Any:
    """The part, or its kind in words where the SDK knows none such and would refuse all parts for it."""
    kind = part.get("type") if isinstance(part, dict) else None
    if not isinstance(kind, str) or kind in _KINDS:
        return part
    return {"type": "text", "text": f'[content of the unknown kind "{kind[:40]}" left out]'}


def _readable_message(message: Any) -> Any:
    if not isinstance(message, dict) or "content" not in message:
        return message
    return {**message, "content": _readable(message["content"])}


def _add_content(message: mcp_types.JSONRPCResponse) -> None:
    """Make up for a server that gives data alone: TypeScript's SDK, too, takes missing content for none."""
    result = message.result
    if "content" not in result and isinstance(result.get("structuredContent"), dict):
        message.result = {**result, "content": []}


def _is_check(flight: Flight | None) -> bool | None:
    return flight.is_check if flight is not None else None


def _marked_tools(page: list[Any]) -> list[dict[str, Any]]:
    return [
        {"name": tool["name"], "inputSchema": reduced}
        for tool in page[:_MOST_MARKED]
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


def _check_permit(message: mcp_types.JSONRPCRequest, call: CallRef | None) -> None:
    """The last door: whoever finds a way round the gate finds none to the wire."""
    permit = call.permit if call is not None else None
    if permit is None or not permit.allows((message.params or {}).get("name")):
        raise PermitRefused("This call has no permit.")


def _declare_tasks(message: mcp_types.JSONRPCRequest) -> None:
    """Add the extension to what this one request says of us; older revisions carry no such place."""
    params = message.params or {}
    meta = params.get("_meta") or {}
    capabilities = meta.get(_CAPABILITIES)
    if not isinstance(capabilities, dict):
        return
    extensions = {**(capabilities.get("extensions") or {}), TASKS_EXTENSION: {}}
    declared = {**meta, _CAPABILITIES: {**capabilities, "extensions": extensions}}
    message.params = {**params, "_meta": declared}


def _kind_of(message: object) -> tuple[Kind, str, str]:
    if isinstance(message, mcp_types.JSONRPCRequest):
        return "request", message.method, str(message.id)
    if isinstance(message, mcp_types.JSONRPCNotification):
        return "notification", message.method, ""
    if isinstance(message, mcp_types.JSONRPCError):
        return "error", "", str(message.id)
    assert isinstance(message, mcp_types.JSONRPCResponse)
    return "response", "", str(message.id)


def _payload(message: object) -> dict[str, Any]:
    """The message as JSON, without copying what is in it."""
    if isinstance(message, mcp_types.JSONRPCRequest):
        return {"id": message.id, "method": message.method, "params": message.params}
    if isinstance(message, mcp_types.JSONRPCNotification):
        return {"method": message.method, "params": message.params}
    if isinstance(message, mcp_types.JSONRPCError):
        error = message.error
        wire_error = {
            "code": error.code,
            "message": error.message,
            "data": without_mark(error.data),
        }
        return {"id": message.id, "error": wire_error}
    assert isinstance(message, mcp_types.JSONRPCResponse)
    return {"id": message.id, "result": message.result}


def is_modern(revision: str | None) -> bool:
    """Whether a revision is of the kind without sessions, 2026-07-28 and later."""
    return revision in mcp_types.version.MODERN_PROTOCOL_VERSIONS


class _Tapped:
    """One direction of a transport, shown to the tap."""

    def __init__(self, inner: Any, tap: Tap) -> None:
        self._inner = inner
        self._tap = tap

    def close(self) -> None:
        self._inner.close()

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def __aenter__(self) -> Self:
        await self._inner.__aenter__()
        return self

    async def __aexit__(self, *exc_info: object) -> Any:
        return await self._inner.__aexit__(*exc_info)


class TapRead(_Tapped):
    """A read stream that shows each message to the tap."""

    def __init__(self, inner: Any, tap: Tap, turning_away: TurningAway) -> None:
        super().__init__(inner, tap)
        self._turning_away = turning_away

    @property
    def last_context(self) -> Any:
        """The sender's context variables, where the transport keeps them; the SDK looks for this name."""
        return getattr(self._inner, "last_context", None)

    async def receive(self) -> Any:
        while not self._shows(item := await self._inner.receive()):
            pass
        return item

    def __aiter__(self) -> TapRead:
        return self

    async def __anext__(self) -> Any:
        try:
            while not self._shows(item := await self._inner.__anext__()):
                pass
        except StopAsyncIteration:
            self._end()
            raise
        return item

    def _shows(self, item: Any) -> bool:
        if not self._tap.takes(item):
            self._turning_away.turn_away(item.message.id)
            return False
        context = self.last_context
        self._tap.received(item, context.get(CURRENT) if context is not None else None)
        return True

    def _end(self) -> None:
        self._turning_away.stop()
        self._tap.on_end()

    async def __aexit__(self, *exc_info: object) -> Any:
        self._end()
        return await super().__aexit__(*exc_info)


class TapWrite(_Tapped):
    """A write stream that shows each message to the tap."""

    async def send(self, item: mcp.shared.message.SessionMessage) -> None:
        self._tap.sent(item)
        await self._inner.send(item)
        if getattr(item.message, "method", "") == "tools/call":
            failpoint(Failpoint.GATE_AFTER_SEND)
