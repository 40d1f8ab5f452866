"""One open (or opening) connection, and the task that owns it.

Only the owner task enters and leaves the SDK's contexts, because those are bound to the task that entered them; every
other task just awaits its own request on the open session. When the owner ends, for whatever reason, all requests in
flight end with it. Everything here runs on the loop of `runtime`.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import logging
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, TypeVar

from mcp_servers.client.connections.facts import ServerFacts
from mcp_servers.client.connections.failures import (
    CallFailed,
    RpcError,
    call_failure,
    connect_failure,
    leaf_of,
)
from mcp_servers.client.connections.flights import CHECKING, CURRENT, CallRef, Flight
from mcp_servers.client.connections.opening import Opener
from mcp_servers.client.connections.questions import Questions
from mcp_servers.client.connections.subscriptions import ConnectionSubscriptions
from mcp_servers.client.connections.tap import Tap, is_modern
from mcp_servers.client.connections.tracing import ConnectionTrace, buffer
from mcp_servers.client.sdk import mcp, mcp_types
from mcp_servers.client.spec import ConnectionSpec
from mcp_servers.client.transports import transport_named
from mcp_servers.client.transports.stdio import LINE_TOO_LONG, OpenTransport
from mcp_servers.client.values import Protocol
from workspaces.database.row_security import reach_of, set_reach

if TYPE_CHECKING:
    from mcp.client.session import ClientSession

    from mcp_servers.client.connections.deadline import Deadline

logger = logging.getLogger(__name__)

T = TypeVar("T")

GHOST_SECONDS: Final = 600.0
"""How long a call that was stopped may still be what a server's question is about."""
SOON_SECONDS: Final = 2.0
"""What remains of a connection that was opened for a single look."""
KEEPALIVE_SECONDS: Final = 20.0
"""Silence on a connection with requests under way, after which a sign of life is sent."""
CLOSING_SECONDS: Final = 5.0
"""How long an owner may take to close its session and transport, before it is cut off."""
STDIO_CLOSING_SECONDS: Final = 15.0
"""The same for a program: its transport has deadlines of its own, and ends it in steps."""
CLOSED_SECONDS: Final = 8.0
"""How long others wait for an owner to end."""
JUST_LANDED_SECONDS: Final = 2.0
"""How long after a call a server may still say something about it."""

_CUT_OFF_SECONDS: Final = 1.0
_LOST_GRACE_SECONDS: Final = 0.2
_LEAST_IDLE_SECONDS: Final = 0.5
"""Whoever waited for a connection to open must be able to use it before it counts as idle."""
_MOST_GHOSTS: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionEvents:
    """What the pool wants to hear of a connection."""

    heard: Callable[[ConnectionSpec, object], None]
    """A notification of the server."""
    asked_unclearly: Callable[[ConnectionSpec], None]
    """A question came that several calls could have caused."""


class Connection:
    """A session, its transport, and the requests under way on it."""

    def __init__(
        self, spec: ConnectionSpec, *, protocol: Protocol, is_single: bool, events: ConnectionEvents
    ) -> None:
        loop = asyncio.get_running_loop()
        self.spec = spec
        self.facts: ServerFacts | None = None
        self.trace = ConnectionTrace(spec, buffer)
        self.trace.bystander = self.bystander
        self.trace.is_check = CHECKING.get()
        self.tap = Tap(
            self.trace, sole_flight=self._sole_flight, bystander=self.bystander, on_end=self.stop
        )
        self.transport = OpenTransport(on_error_line=self.trace.stderr_line)
        self.list_lock = asyncio.Lock()
        self.since = datetime.now(UTC)
        self.is_over = False
        """No new request may start."""
        self.has_failed = False
        """It was counted as a failure of its server."""
        self.opened: asyncio.Future[ClientSession] = loop.create_future()
        self.opened.add_done_callback(lambda future: future.cancelled() or future.exception())
        self.flights: set[Flight] = set()
        self.last_used = loop.time()
        self.watch = ConnectionSubscriptions(self)
        self._is_single = is_single
        self._turn = asyncio.Lock()
        self._events = events
        self._opener = Opener(
            spec=spec,
            protocol=protocol,
            transport=self.transport,
            tap=self.tap,
            trace=self.trace,
            questions=Questions(self, on_unclear=self._give_way),
            hear=self._hear,
        )
        self._ghosts: deque[tuple[float, Flight]] = deque(maxlen=_MOST_GHOSTS)
        self._ping: asyncio.Task[None] | None = None
        self._cut_off_timer: asyncio.TimerHandle | None = None
        self._just_landed: tuple[float, CallRef] | None = None
        self._stopping = asyncio.Event()
        self._landed = asyncio.Event()
        # In a context of its own: the caller's must not be what later callbacks find.
        self.owner = loop.create_task(
            self._own(),
            name=f"mcp-connection-{spec.server_name}",
            context=contextvars.Context(),
        )

    @property
    def in_flight(self) -> int:
        """Requests under way."""
        return len(self.flights)

    @property
    def is_idle(self) -> bool:
        """It is open, and nobody uses it."""
        return self.opened.done() and not self.flights and not self.is_over

    def stop(self) -> None:
        """Let the owner close the connection; what is in flight ends with it."""
        self.is_over = True
        self._stopping.set()

    def close_soon(self) -> None:
        """Close in a moment, unless somebody uses it."""
        used = self.last_used

        def end() -> None:
            if self.last_used == used and not self.flights:
                self.stop()

        asyncio.get_running_loop().call_later(SOON_SECONDS, end)

    def retire_when_idle(self) -> None:
        """Take no new requests, and close once those under way have ended."""
        self.is_over = True
        self._note_landing()

    async def retire(self, seconds: float, *, lets_people_think: bool = False) -> None:
        """Take no new requests, wait for those in flight, then close.

        Args:
            seconds: how long those may go on.
            lets_people_think: counted anew once a server's questions are answered.
        """
        self.is_over = True
        while self.flights:
            self._landed.clear()
            try:
                async with asyncio.timeout(seconds):
                    await self._landed.wait()
            except TimeoutError:
                asked = {question for one in self.flights for question in one.questions}
                if not (lets_people_think and asked):
                    break
                await asyncio.wait(asked)
        self.stop()
        await asyncio.wait([self.owner], timeout=CLOSED_SECONDS)

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
            raise connect_failure(error, spec=self.spec, transport=self.transport) from error

    async def request(
        self,
        make: Callable[[ClientSession], Awaitable[T]],
        *,
        call: CallRef | None = None,
        deadline: Deadline | None = None,
        as_task: bool = False,
    ) -> T:
        """Do one thing with the session; a lost connection ends it.

        Args:
            call: whose doing it is; None for requests of our own.
            deadline: the clock to stop while a person answers.
            as_task: the server may answer with a task, see Flight.task_result.

        Raises:
            CallFailed, RpcError: see call_failure().
        """
        if self.is_over:
            raise CallFailed("closed")  # so it may be sent on another connection
        task = asyncio.current_task()
        assert task is not None
        is_check = CHECKING.get()
        flight = Flight(task=task, call=call, deadline=deadline, as_task=as_task, is_check=is_check)
        self.trace.is_check = self.trace.is_check and is_check
        # Before anything is awaited: a connection with a request under way is not idle.
        self.flights.add(flight)
        marked = CURRENT.set(flight)
        is_answered = False
        try:
            result = await make(await self.session())
            is_answered = True
            return result
        except asyncio.CancelledError:
            # Of two cancellations, the caller's own goes on; ours alone becomes a lost connection.
            if flight.is_lost and task.uncancel() == 0:
                raise CallFailed("broken") from None
            raise
        except Exception as error:
            is_answered = isinstance(leaf_of(error), mcp.MCPError)
            failure = call_failure(error)
            if failure is None:
                raise
            if isinstance(failure, CallFailed) and failure.kind == "broken" and self._is_overlong:
                failure = CallFailed("too_large")
            if isinstance(failure, RpcError):
                failure = failure.without_secrets(self.spec.workspace_id)
            raise failure from error
        finally:
            CURRENT.reset(marked)
            flight.land()
            self.flights.discard(flight)
            self.last_used = asyncio.get_running_loop().time()
            if call is not None:
                self._just_landed = (self.last_used, call)
            if call is not None and not is_answered:
                self._remember_unanswered(flight)
            self._note_landing()

    @property
    def _is_overlong(self) -> bool:
        """The program wrote more in one line than is read, which ended the connection."""
        stdio = self.transport.stdio
        return stdio is not None and stdio.failure == LINE_TOO_LONG

    def _note_landing(self) -> None:
        if not self.flights:
            self._landed.set()
            if self.is_over:
                self._stopping.set()

    @contextlib.asynccontextmanager
    async def turn(self, seconds: float) -> AsyncIterator[None]:
        """Wait until this connection may carry one more call; at once, but for servers that ask back.

        Raises:
            CallFailed: not within this time; nothing was sent.
        """
        if not self._is_single or not self._needs_binding:
            yield
            return
        try:
            async with asyncio.timeout(seconds):
                await self._turn.acquire()
        except TimeoutError:
            raise CallFailed("busy") from None
        try:
            yield
        finally:
            self._turn.release()

    def missed_changes(self) -> None:
        """Something may have changed without our hearing of it: have everything looked at."""
        self._events.heard(self.spec, mcp_types.ToolListChangedNotification())
        self._events.heard(self.spec, mcp_types.PromptListChangedNotification())
        self._events.heard(self.spec, mcp_types.ResourceListChangedNotification())

    def possible_askers(self) -> list[Flight]:
        """The calls that a question without an address may belong to, stopped ones among them."""
        limit = asyncio.get_running_loop().time() - GHOST_SECONDS
        while self._ghosts and self._ghosts[0][0] < limit:
            self._ghosts.popleft()
        return [
            *(flight for flight in self.flights if flight.call is not None),
            *(ghost for _, ghost in self._ghosts),
        ]

    def _sole_flight(self) -> Flight | None:
        """The one call under way, if there is exactly one."""
        calls = [flight for flight in self.flights if flight.call is not None]
        return calls[0] if len(calls) == 1 else None

    def bystander(self) -> CallRef | None:
        """What the trace takes for the call of something that the server says without an address.

        It may repeat what a person put into their call, so it is of a call as long as one could be meant: of the only
        one, or of one of several and of nobody, so that none of their people sees what may be another's.
        """
        calls = [flight.call for flight in self.possible_askers() if flight.call is not None]
        if self._just_landed is not None:
            landed_at, landed = self._just_landed
            if landed_at + JUST_LANDED_SECONDS < asyncio.get_running_loop().time():
                self._just_landed = None
            elif landed not in calls:
                calls.append(landed)
        if len(calls) <= 1:
            return calls[0] if calls else None
        call_id = next((call.call_id for call in calls if call.call_id is not None), None)
        return CallRef(call_id=call_id)

    @property
    def _needs_binding(self) -> bool:
        """The server may ask without a sign of the call it asks for."""
        return self.facts is None or not is_modern(self.facts.protocol_revision)

    def _remember_unanswered(self, flight: Flight) -> None:
        """A stopped call may go on at the server, and ask something later."""
        if self._is_single and self._needs_binding:
            # A new connection tells its questions from those of the next call.
            self.is_over = True
        else:
            self._ghosts.append((asyncio.get_running_loop().time(), flight))

    def _give_way(self) -> None:
        """Let what is under way end here, and have the next calls use a connection with one lane."""
        self._events.asked_unclearly(self.spec)
        self.is_over = True

    # The owner

    async def _own(self) -> None:
        set_reach(reach_of([self.spec.workspace_id]))
        # Leaving the contexts may wait for the server, also those of an attempt that failed.
        self._cut_off_after(self.spec.connect_seconds + self._closing_seconds)
        try:
            async with contextlib.AsyncExitStack() as stack:
                async with asyncio.timeout(self.spec.connect_seconds):
                    session, self.facts = await self._opener.open(stack)
                self.since = datetime.now(UTC)
                self.last_used = asyncio.get_running_loop().time()
                self.opened.set_result(session)
                stack.push_async_callback(self.watch.close)
                stack.callback(self._end_ping)
                self.watch.start(session)
                self._end_cut_off()
                # Pushed last, so that it runs first.
                stack.callback(self._cut_off_after, self._closing_seconds)
                await self._wait_for_end(session)
        except BaseException as error:
            if not self.opened.done():
                failure = connect_failure(error, spec=self.spec, transport=self.transport)
                self.trace.event(f"Not connected: {failure.message} {failure.advice}".rstrip())
                if failure.advice:
                    logger.warning(
                        "%s: %s %s", self.spec.server_name, failure.message, failure.advice
                    )
                self.opened.set_exception(failure)
            elif not isinstance(error, (Exception, asyncio.CancelledError)):
                raise
            else:
                logger.debug("connection to %s ended", self.spec.server_name, exc_info=True)
        finally:
            self._end_cut_off()
            self.is_over = True
            self.since = datetime.now(UTC)
            if self.facts is not None:
                self.trace.event("Closed.")
            # The SDK wakes its waiters when its streams close. Whoever still waits after a moment is woken here.
            for flight in tuple(self.flights):
                asyncio.get_running_loop().call_later(_LOST_GRACE_SECONDS, self._lose, flight)

    @property
    def _closing_seconds(self) -> float:
        return STDIO_CLOSING_SECONDS if self.spec.is_stdio else CLOSING_SECONDS

    def _cut_off_after(self, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        self._cut_off_timer = loop.call_later(seconds, self._cut_off)

    def _cut_off(self) -> None:
        """Cancel the owner, again and again: each of the contexts that it leaves may wait for the server."""
        logger.debug("closing the connection to %s takes too long", self.spec.server_name)
        self.owner.cancel()
        self._cut_off_after(_CUT_OFF_SECONDS)

    def _end_cut_off(self) -> None:
        if self._cut_off_timer is not None:
            self._cut_off_timer.cancel()
            self._cut_off_timer = None

    def _lose(self, flight: Flight) -> None:
        if flight in self.flights:
            flight.lose()

    async def _wait_for_end(self, session: ClientSession) -> None:
        loop = asyncio.get_running_loop()
        while True:
            idle_seconds = max(self.spec.idle_seconds, _LEAST_IDLE_SECONDS)
            idle_left = self.last_used + idle_seconds - loop.time()
            if not self.flights and (idle_left <= 0 or self.is_over):
                self.is_over = True
                return
            wait = KEEPALIVE_SECONDS if self.flights else min(idle_left, KEEPALIVE_SECONDS)
            try:
                async with asyncio.timeout(max(wait, 0.5)):
                    await self._stopping.wait()
                return
            except TimeoutError:
                if self.flights:
                    self._show_life(session)

    def _show_life(self, session: ClientSession) -> None:
        """Keep proxies from cutting a silent connection; whether the server answers does not matter."""
        # WebSockets have pings of their own, and a request over plain HTTP waits on a connection of its own.
        is_stream = self.facts is not None and transport_named(self.facts.transport).opens_with_get
        if is_stream and (self._ping is None or self._ping.done()):
            self._ping = asyncio.get_running_loop().create_task(_ping(session))

    def _end_ping(self) -> None:
        if self._ping is not None:
            self._ping.cancel()

    async def _hear(self, message: object) -> None:
        self._events.heard(self.spec, message)


async def _ping(session: ClientSession) -> None:
    with contextlib.suppress(TimeoutError, mcp.MCPError):
        async with asyncio.timeout(KEEPALIVE_SECONDS):
            await session.send_ping()
