"""The connections of this process: one per (server, principal), each owned by one task.

Only the owner task enters and leaves the SDK's contexts, because those are bound to the task that entered them; every
other task just awaits its own request on the open session. When the owner ends, for whatever reason, all requests in
flight end with it. Everything here runs on the loop of `runtime`.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

import mcp_types
import pydantic
from mcp import Client, MCPError
from mcp.client.session import ClientSession

from mcp_servers.connections import runtime
from mcp_servers.connections.backoff import Backoff
from mcp_servers.connections.failures import CallFailed, call_failure, connect_failure
from mcp_servers.connections.hooks import hooks
from mcp_servers.connections.slots import FairSlots
from mcp_servers.connections.spec import ConnectionKey, ConnectionSpec, StdioSpec
from mcp_servers.connections.transports import (
    OpenTransport,
    RawTool,
    TappedTransport,
    ToolListTap,
)
from mcp_servers.errors import (
    BackingOff,
    ConnectionFailed,
    ConnectTimedOut,
    NotAnMcpServer,
)
from mcp_servers.values import Protocol

if TYPE_CHECKING:
    from uuid import UUID

    from mcp_servers.connections.permits import CallPermit

logger = logging.getLogger(__name__)

T = TypeVar("T")

CLIENT_INFO: Final = mcp_types.Implementation(name="trellis", version="0.1.0")
MAX_LIST_PAGES: Final = 50
MAX_TOOLS: Final = 2000
LIST_SECONDS: Final = 30.0
"""For all pages together."""
CLOSE_SECONDS: Final = 6.0
"""How long running calls may go on when the pool closes."""
RETIRE_SECONDS: Final = 120.0
"""How long running calls may go on when the connection was replaced by a newer one."""

_LOST_GRACE_SECONDS: Final = 0.2
_CONNECT_ATTEMPTS: Final = 3
_LEAST_IDLE_SECONDS: Final = 0.5
"""Whoever waited for a connection to open must be able to use it before it counts as idle."""
_RESULT: Final[pydantic.TypeAdapter[Any]] = pydantic.TypeAdapter(
    mcp_types.CallToolResult | mcp_types.InputRequiredResult
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerFacts:
    """What a server said about itself when the connection was opened."""

    protocol_revision: str
    name: str
    version: str
    instructions: str
    capabilities: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """A server's tools as it sent them, all pages."""

    facts: ServerFacts
    tools: tuple[RawTool, ...]
    warning: str = ""
    """Why the list may be incomplete; empty if it is whole."""
    latency_ms: int = 0


class _Flight:
    """One request under way."""

    __slots__ = ("is_lost", "task")

    def __init__(self, task: asyncio.Task[Any]) -> None:
        self.task = task
        self.is_lost = False

    def lose(self) -> None:
        """The connection is gone, and the SDK did not wake this one."""
        self.is_lost = True
        self.task.cancel()


class Connection:
    """An open (or opening) client, and the task that owns it."""

    def __init__(
        self,
        spec: ConnectionSpec,
        *,
        mode: str,
        on_tools_changed: Callable[[ConnectionSpec], None],
    ) -> None:
        loop = asyncio.get_running_loop()
        self.spec = spec
        self.mode = mode
        self.facts: ServerFacts | None = None
        self.transport = OpenTransport(tap=ToolListTap(), stderr=None, on_end=self.stop)
        self.list_lock = asyncio.Lock()
        self.is_over = False
        """No new request may start."""
        self.opened: asyncio.Future[ClientSession] = loop.create_future()
        self.opened.add_done_callback(lambda future: future.cancelled() or future.exception())
        self._on_tools_changed = on_tools_changed
        self._stopping = asyncio.Event()
        self._landed = asyncio.Event()
        self._flights: set[_Flight] = set()
        self._last_used = loop.time()
        self.owner = loop.create_task(self._own(), name=f"mcp-connection-{spec.server_name}")

    @property
    def in_flight(self) -> int:
        """Requests under way."""
        return len(self._flights)

    def stop(self) -> None:
        """Let the owner close the connection; what is in flight ends with it."""
        self.is_over = True
        self._stopping.set()

    async def retire(self, seconds: float) -> None:
        """Take no new requests, wait for those in flight, then close."""
        self.is_over = True
        if self._flights:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._landed.wait()
        self.stop()
        await asyncio.wait([self.owner])

    async def session(self) -> ClientSession:
        """The session, once it is open.

        Raises:
            ConnectionFailed: it could not be opened.
        """
        try:
            # Shielded: one caller's cancellation must not take the connection from the others.
            async with asyncio.timeout(self.spec.connect_seconds + 1.0):
                return await asyncio.shield(self.opened)
        except TimeoutError as error:
            raise ConnectTimedOut("The server did not answer in time.") from error

    async def request(self, make: Callable[[ClientSession], Awaitable[T]]) -> T:
        """Do one thing with the session; a lost connection ends it.

        Raises:
            CallFailed, RpcError: see call_failure().
        """
        if self.is_over:
            raise CallFailed(
                "session_lost"
            )  # nothing was sent, so it may be sent on another connection
        task = asyncio.current_task()
        assert task is not None
        flight = _Flight(task)
        # Before anything is awaited: a connection with a request under way is not idle.
        self._flights.add(flight)
        self._landed.clear()
        try:
            return await make(await self.session())
        except asyncio.CancelledError:
            # Of two cancellations, the caller's own goes on; ours alone becomes a lost connection.
            if flight.is_lost and task.uncancel() == 0:
                raise CallFailed("broken") from None
            raise
        except Exception as error:
            failure = call_failure(error)
            if failure is None:
                raise
            raise failure from error
        finally:
            self._flights.discard(flight)
            self._last_used = asyncio.get_running_loop().time()
            if not self._flights:
                self._landed.set()

    async def _own(self) -> None:
        is_stdio = isinstance(self.spec.target, StdioSpec)
        try:
            async with contextlib.AsyncExitStack() as stack:
                async with asyncio.timeout(self.spec.connect_seconds):
                    client = await stack.enter_async_context(
                        Client(
                            TappedTransport(self.spec, self.transport),
                            mode=self.mode,
                            cache=None,
                            client_info=CLIENT_INFO,
                            message_handler=self._hear,
                        )
                    )
                self.facts = _facts_of(client)
                self._last_used = asyncio.get_running_loop().time()
                self.opened.set_result(client.session)
                await self._wait_for_end()
        except BaseException as error:
            if not self.opened.done():
                self.opened.set_exception(connect_failure(error, is_stdio=is_stdio))
            elif not isinstance(error, (Exception, asyncio.CancelledError)):
                raise
            else:
                logger.debug("connection to %s ended", self.spec.server_name, exc_info=True)
        finally:
            self.is_over = True
            # The SDK wakes its waiters when its streams close. Whoever still waits after a moment is woken here.
            for flight in tuple(self._flights):
                asyncio.get_running_loop().call_later(_LOST_GRACE_SECONDS, self._lose, flight)

    def _lose(self, flight: _Flight) -> None:
        if flight in self._flights:
            flight.lose()

    async def _wait_for_end(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            idle_seconds = max(self.spec.idle_seconds, _LEAST_IDLE_SECONDS)
            idle_left = self._last_used + idle_seconds - loop.time()
            if not self._flights and idle_left <= 0:
                self.is_over = True
                return
            try:
                async with asyncio.timeout(max(idle_left, 0.5)):
                    await self._stopping.wait()
                return
            except TimeoutError:
                continue

    async def _hear(self, message: object) -> None:
        if isinstance(message, mcp_types.ToolListChangedNotification):
            self._on_tools_changed(self.spec)


class Pool:
    """All connections of the process. Its methods run on the runtime's loop unless they say otherwise."""

    def __init__(self) -> None:
        self._connections: dict[ConnectionKey, Connection] = {}
        self._backoffs: dict[ConnectionKey, Backoff] = {}
        self._slots: dict[UUID, FairSlots] = {}
        self._legacy: set[tuple[UUID, str]] = set()
        self._told_at: dict[UUID, float] = {}
        self._closing: set[asyncio.Task[None]] = set()

    def wait_seconds(self, spec: ConnectionSpec) -> float:
        """How long this server is still left alone after failures. Any thread."""
        return self._backoffs.get(spec.key, Backoff()).wait_seconds(time.monotonic())

    def slots(self, spec: ConnectionSpec) -> FairSlots:
        """The server's slots for calls, whoever's credentials they use. Any thread."""
        slots = self._slots.setdefault(spec.server_id, FairSlots(spec.max_concurrent_calls))
        slots.limit = spec.max_concurrent_calls
        return slots

    async def connect(self, spec: ConnectionSpec, *, at_once: bool = False) -> Connection:
        """The open connection for this spec, opened if need be.

        Args:
            at_once: do not respect the pause after failures: a person asked for it.

        Raises:
            BackingOff: it failed a moment ago.
            ConnectionFailed: it could not be opened.
        """
        for _ in range(_CONNECT_ATTEMPTS):
            connection = self._current(spec, at_once=at_once)
            await connection.session()
            # It may have closed as idle before this task woke up. There is no pause between here and the request.
            if not connection.is_over:
                return connection
        raise ConnectionFailed(
            "The server closes every connection at once.", details={"kind": "closed"}
        )

    def _current(self, spec: ConnectionSpec, *, at_once: bool) -> Connection:
        """The connection for this spec, which may still be opening."""
        connection = self._connections.get(spec.key)
        if connection is not None and connection.spec.fingerprint != spec.fingerprint:
            self._retire(connection)
            self._backoffs.pop(spec.key, None)
            connection = None
        if connection is None or connection.is_over:
            wait = self.wait_seconds(spec)
            if wait > 0 and not at_once:
                raise BackingOff(
                    f"The server failed a moment ago. Next attempt in {wait:.0f} s.",
                    retry_after_seconds=wait,
                )
            connection = Connection(
                spec, mode=self._mode_for(spec), on_tools_changed=self._tools_changed
            )
            self._connections[spec.key] = connection
            connection.opened.add_done_callback(partial(self._note_opened, connection))
        return connection

    async def list_tools(self, spec: ConnectionSpec, *, at_once: bool = False) -> Listing:
        """All tools of a server, as it sends them.

        Raises:
            ConnectionFailed: not reachable, or its answer is no tool list.
        """
        started = time.monotonic()
        connection = await self.connect(spec, at_once=at_once)
        try:
            async with asyncio.timeout(LIST_SECONDS), connection.list_lock:
                tools, warning = await _read_pages(connection)
        except TimeoutError as error:
            raise ConnectTimedOut("The server did not list its tools in time.") from error
        except CallFailed as failure:
            self._note_call_failure(connection, failure)
            if failure.kind == "unreadable":
                raise NotAnMcpServer(
                    "The server's tool list does not follow the protocol."
                ) from failure
            raise ConnectionFailed(failure.message, details=failure.details) from failure
        assert connection.facts is not None
        return Listing(
            facts=connection.facts,
            tools=tuple(tools),
            warning=warning,
            latency_ms=round((time.monotonic() - started) * 1000),
        )

    async def call_tool(
        self,
        spec: ConnectionSpec,
        permit: CallPermit,
        *,
        timeout_seconds: float,
        on_progress: Callable[[float, float | None, str | None], None] | None = None,
    ) -> mcp_types.CallToolResult:
        """Send one tools/call; the caller holds a slot.

        Sent a second time only when the server refused the first because it had forgotten the session.

        Raises:
            PermitRefused: the gate did not allow exactly this call, or it was sent before.
            ConnectionFailed: nothing was sent.
            CallFailed, RpcError: it was sent, or may have been.
            TimeoutError: no answer in time; the server was told to stop.
        """
        permit.spend(server_id=spec.server_id)
        request = mcp_types.CallToolRequest(
            params=mcp_types.CallToolRequestParams(
                name=permit.tool_name, arguments=json.loads(permit.arguments)
            )
        )

        async def report(progress: float, total: float | None, message: str | None) -> None:
            if on_progress is not None:
                on_progress(progress, total, message)

        async def send(session: ClientSession) -> Any:
            # Not session.call_tool(), which lists tools behind our back and validates the result with the server's
            # own schema on this loop.
            return await session.send_request(
                request,
                _RESULT,
                progress_callback=report if on_progress is not None else None,
            )

        connection = await self.connect(spec)
        await self._learn_headers(connection)
        async with asyncio.timeout(timeout_seconds):
            try:
                result = await connection.request(send)
            except CallFailed as failure:
                self._note_call_failure(connection, failure)
                if failure.kind != "session_lost":
                    raise
                connection = await self.connect(spec)
                result = await connection.request(send)
        self._backoffs.pop(spec.key, None)
        if not isinstance(result, mcp_types.CallToolResult):
            raise CallFailed("needs_input")
        return result

    async def ping(self, spec: ConnectionSpec) -> float:
        """Ask an open connection for a sign of life; the seconds it took.

        Raises:
            ConnectionFailed: there was none.
        """
        started = time.monotonic()
        connection = await self.connect(spec)
        assert connection.facts is not None
        revision = connection.facts.protocol_revision

        async def knock(session: ClientSession) -> None:
            if revision in mcp_types.version.MODERN_PROTOCOL_VERSIONS:
                await session.send_discover(revision)
            else:
                await session.send_ping()

        try:
            async with asyncio.timeout(spec.connect_seconds):
                await connection.request(knock)
        except TimeoutError as error:
            raise ConnectTimedOut("The server did not answer in time.") from error
        except CallFailed as failure:
            self._note_call_failure(connection, failure)
            raise ConnectionFailed(failure.message, details=failure.details) from failure
        return time.monotonic() - started

    async def drop(self, server_id: UUID, *, principal: str | None = None) -> None:
        """Close a server's connections and forget its failures: it was changed, removed, or is to be tried anew."""
        keys = [
            key for key in self._connections if key[1] == server_id and principal in (None, key[2])
        ]
        closing = [self._connections.pop(key) for key in keys]
        for key in [
            key for key in self._backoffs if key[1] == server_id and principal in (None, key[2])
        ]:
            del self._backoffs[key]
        self._legacy = {entry for entry in self._legacy if entry[0] != server_id}
        for connection in closing:
            connection.stop()
        if closing:
            await asyncio.wait([connection.owner for connection in closing])

    async def close(self) -> None:
        """Close everything, giving running calls a moment."""
        connections = list(self._connections.values())
        self._connections.clear()
        await asyncio.gather(
            *(connection.retire(CLOSE_SECONDS) for connection in connections),
            *self._closing,
        )

    def stderr_of(self, spec: ConnectionSpec) -> str:
        """The end of what a stdio server wrote to its error stream. Any thread."""
        connection = self._connections.get(spec.key)
        ring = connection.transport.stderr if connection is not None else None
        return ring.text() if ring is not None else ""

    def _mode_for(self, spec: ConnectionSpec) -> str:
        if spec.protocol is Protocol.AUTO and (spec.server_id, spec.fingerprint) in self._legacy:
            return Protocol.LEGACY.value
        return spec.protocol.value

    def _note_opened(self, connection: Connection, opened: asyncio.Future[ClientSession]) -> None:
        spec = connection.spec
        era = (spec.server_id, spec.fingerprint)
        error = None if opened.cancelled() else opened.exception()
        if error is None:
            self._backoffs.pop(spec.key, None)
            # Spares the question about the newer protocol next time, which some servers leave unanswered for seconds.
            if (
                connection.facts
                and connection.facts.protocol_revision
                not in mcp_types.version.MODERN_PROTOCOL_VERSIONS
            ):
                self._legacy.add(era)
            return
        self._legacy.discard(era)
        self._backoffs[spec.key] = self._backoffs.get(spec.key, Backoff()).after_failure(
            time.monotonic()
        )

    def _note_call_failure(self, connection: Connection, failure: CallFailed) -> None:
        if failure.kind in ("session_lost", "broken"):
            connection.stop()
        if failure.kind == "unreachable":
            # The newer protocol has no session, so an open connection may lead to a server that is gone.
            spec = connection.spec
            self._backoffs[spec.key] = self._backoffs.get(spec.key, Backoff()).after_failure(
                time.monotonic()
            )
            connection.stop()

    async def _learn_headers(self, connection: Connection) -> None:
        """On the newer protocol over HTTP, list the tools once, so that the SDK knows which arguments to mirror."""
        facts = connection.facts
        if (
            connection.transport.tap.has_listed
            or isinstance(connection.spec.target, StdioSpec)
            or facts is None
        ):
            return
        if facts.protocol_revision in mcp_types.version.MODERN_PROTOCOL_VERSIONS:
            with contextlib.suppress(CallFailed, TimeoutError):
                async with asyncio.timeout(LIST_SECONDS), connection.list_lock:
                    if not connection.transport.tap.has_listed:
                        await _read_pages(connection)

    def _tools_changed(self, spec: ConnectionSpec) -> None:
        now = time.monotonic()
        if now - self._told_at.get(spec.server_id, 0.0) >= 1.0:
            self._told_at[spec.server_id] = now
            asyncio.get_running_loop().run_in_executor(None, hooks.tools_changed, spec.server_id)

    def _retire(self, connection: Connection) -> None:
        task = asyncio.get_running_loop().create_task(connection.retire(RETIRE_SECONDS))
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)


async def _read_pages(connection: Connection) -> tuple[list[RawTool], str]:
    tools: list[RawTool] = []
    seen: set[str] = set()
    cursor: str | None = None
    for _ in range(MAX_LIST_PAGES):
        page = partial(_list_page, mcp_types.PaginatedRequestParams(cursor=cursor))
        try:
            result = await connection.request(page)
        except Exception as error:
            if _is_method_not_found(error) and not tools:
                return [], "The server offers no tools."
            raise
        tools.extend(connection.transport.tap.page)
        if len(tools) > MAX_TOOLS:
            return tools[
                :MAX_TOOLS
            ], f"The server offers more than {MAX_TOOLS} tools; the rest is left out."
        cursor = result.next_cursor
        if not cursor:
            return tools, ""
        if cursor in seen:
            return tools, "The server's tool list turns in a circle; it was cut there."
        seen.add(cursor)
    return (
        tools,
        f"The server's tool list has more than {MAX_LIST_PAGES} pages; the rest is left out.",
    )


async def _list_page(
    params: mcp_types.PaginatedRequestParams, session: ClientSession
) -> mcp_types.ListToolsResult:
    return await session.list_tools(params=params)


def _is_method_not_found(error: Exception) -> bool:
    cause = error.__cause__
    return isinstance(cause, MCPError) and cause.code == mcp_types.METHOD_NOT_FOUND


def _facts_of(client: Client) -> ServerFacts:
    info = client.server_info
    return ServerFacts(
        protocol_revision=str(client.protocol_version),
        name=info.name if info else "",
        version=info.version if info else "",
        instructions=client.instructions or "",
        capabilities=client.server_capabilities.model_dump(
            by_alias=True, mode="json", exclude_none=True
        ),
    )


pool: Final = Pool()
"""The process's pool."""

runtime.on_shutdown(pool.close)
