"""The connections of this process: one per workspace, server and principal. Everything here runs on the runtime's loop."""

from __future__ import annotations

import asyncio
import contextlib
import math
import random
import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

from django.conf import settings
from django.utils.translation import gettext_noop as _

from mcp_servers.client.connections import runtime
from mcp_servers.client.connections.backoff import JITTER, Backoff
from mcp_servers.client.connections.change_notices import ChangeNotices
from mcp_servers.client.connections.connection import CLOSED_SECONDS, Connection, ConnectionEvents
from mcp_servers.client.connections.facts import ConnectionStatus, ServerListing
from mcp_servers.client.connections.failures import CallFailed, RpcError
from mcp_servers.client.connections.listing import read_lists
from mcp_servers.client.connections.slots import FairSlots
from mcp_servers.client.connections.statuses import status_of
from mcp_servers.client.connections.streams import kinds_for
from mcp_servers.client.connections.tap import is_modern
from mcp_servers.client.connections.tracing import buffer as trace_buffer
from mcp_servers.client.errors import (
    AuthenticationRequired,
    BackingOff,
    Busy,
    ConnectionFailed,
    ConnectTimedOut,
)
from mcp_servers.client.spec import ConnectionKey, ConnectionSpec, ServerKey
from mcp_servers.client.transports import transport_named
from mcp_servers.client.transports.targets import HttpSpec
from mcp_servers.client.values import Protocol
from workspaces.words.waiting_times import duration_in_words

if TYPE_CHECKING:
    from uuid import UUID

    from mcp.client.session import ClientSession


T = TypeVar("T")

CLOSE_SECONDS: Final = 6.0
"""How long running calls may go on when the pool closes."""
TRACE_SECONDS: Final = 1.0
"""How long the pool waits for the last messages to come into the trace when it closes."""
RETIRE_SECONDS: Final = 120.0
"""How long running calls may go on when the connection was replaced by a newer one."""
BREAKS_BEFORE_PAUSE: Final = 3
"""Connections that break off in a row, without one answer, before the server is left alone for a moment."""
WARM_UP_LANES: Final = 4
"""Connections that warm_up() opens at a time."""

_CONNECT_ATTEMPTS: Final = 3
_KEPT_ENDED: Final = 200
"""Ended connections that are remembered, for what they can tell of their end."""


class Pool:
    """All connections of the process."""

    def __init__(self) -> None:
        self._connections: dict[ConnectionKey, Connection] = {}
        self._backoffs: dict[ConnectionKey, Backoff] = {}
        self._breaks: dict[ConnectionKey, int] = {}
        self._slots: dict[ServerKey, FairSlots] = {}
        self._legacy: set[tuple[ServerKey, str]] = set()
        self._transports: dict[tuple[ServerKey, str], str] = {}
        self._asks_back: set[ServerKey] = set()
        self._news = ChangeNotices()
        self._closing: dict[asyncio.Task[None], Connection] = {}
        """What was replaced, and finishes what it carries."""
        self._events = ConnectionEvents(heard=self._news.hear, asked_unclearly=self._note_asks_back)

    # For operators, from any thread: a moment's picture

    def states(self) -> list[str]:
        """ "open" or "opening", of each connection that has not ended."""
        live = [one for one in list(self._connections.values()) if not one.is_over]
        return ["open" if one.opened.done() else "opening" for one in live]

    @property
    def resting(self) -> int:
        """How many servers are left alone after failures just now."""
        now = time.monotonic()
        return sum(state.wait_seconds(now) > 0 for state in list(self._backoffs.values()))

    @property
    def waiting(self) -> int:
        """How many calls wait for a free slot."""
        return sum(slots.waiting for slots in list(self._slots.values()))

    def granted(self) -> list[Connection]:
        """Live connections that carry a principal's grant, and those that were replaced and still carry calls."""
        return [
            one
            for one in self._in_use()
            if isinstance(one.spec.target, HttpSpec) and one.spec.target.auth is not None
        ]

    # Opening

    def wait_seconds(self, spec: ConnectionSpec) -> float:
        """How long this server is still left alone after failures; infinite if nothing is tried unasked. Any thread."""
        return self._backoffs.get(spec.key, Backoff()).wait_seconds(time.monotonic())

    def slots(self, spec: ConnectionSpec) -> FairSlots:
        """The server's slots for calls, whoever's credentials they use. Any thread."""
        slots = self._slots.setdefault(spec.server_key, FairSlots(spec.max_concurrent_calls))
        slots.limit, slots.most_waiting = spec.max_concurrent_calls, spec.max_queued_calls
        return slots

    async def connect(self, spec: ConnectionSpec, *, at_once: bool = False) -> Connection:
        """The open connection for this spec, opened if need be.

        Args:
            at_once: do not respect the pause after failures: a person or a check asks for it.

        Raises:
            BackingOff: it failed a moment ago, or so often that it is left alone.
            Busy: the process or the workspace has as many connections as it may, all in use.
            ConnectionFailed: it could not be opened.
            ShuttingDown: the process has closed its connections, and ends.
        """
        for _attempt in range(_CONNECT_ATTEMPTS):
            connection = self._current(spec, at_once=at_once)
            await connection.session()
            # It may have closed as idle before this task woke up. There is no pause between here and the request.
            if not connection.is_over:
                return connection
        raise ConnectionFailed(
            _("The server closes every connection at once."), details={"kind": "closed"}
        )

    def _current(self, spec: ConnectionSpec, *, at_once: bool) -> Connection:
        """The connection for this spec, which may still be opening."""
        connection = self._connections.get(spec.key)
        if connection is not None and connection.spec.fingerprint != spec.fingerprint:
            self._retire(connection, is_outdated=True)
            self._backoffs.pop(spec.key, None)
            self._breaks.pop(spec.key, None)
            connection = None
        if connection is not None and not connection.is_over:
            connection.watch.want(spec.watched)
            return connection
        runtime.expect_time()
        wait = self.wait_seconds(spec)
        if wait > 0 and not at_once:
            raise _backing_off(self._backoffs[spec.key], wait)
        if connection is not None:
            self._retire(connection)
        self._make_room(spec)
        connection = Connection(
            self._with_memory(spec),
            protocol=self._protocol_for(spec),
            is_single=spec.server_key in self._asks_back,
            events=self._events,
        )
        self._connections[spec.key] = connection
        connection.opened.add_done_callback(partial(self._note_opened, connection))
        return connection

    def _make_room(self, spec: ConnectionSpec) -> None:
        """Keep the number of open connections within bounds, at the cost of those that were not used for longest."""
        limits = settings.TRELLIS
        live = self._in_use()
        here = [one for one in live if one.spec.workspace_id == spec.workspace_id]
        for crowd, most in (
            (here, limits.max_connections_per_workspace),
            (live, limits.max_connections),
        ):
            if len(crowd) < most:
                continue
            idle = [one for one in crowd if one.is_idle]
            if not idle:
                raise Busy(
                    _("Too many connections to MCP servers are in use. Please try again soon.")
                )
            min(idle, key=lambda one: one.last_used).stop()
        ended = [key for key, one in self._connections.items() if one.owner.done()]
        for key in ended[: max(len(ended) - _KEPT_ENDED, 0)]:
            del self._connections[key]

    def transport_of(self, spec: ConnectionSpec) -> str:
        """The transport that reaches a server: the only possible one, or the one that worked; empty if none has yet."""
        target = self._with_memory(spec).target
        kinds = kinds_for(target)
        known = len(kinds) == 1 or (isinstance(target, HttpSpec) and target.remembered)
        return kinds[0] if known else ""

    def _with_memory(self, spec: ConnectionSpec) -> ConnectionSpec:
        worked = self._transports.get((spec.server_key, spec.fingerprint))
        if worked is None or not isinstance(spec.target, HttpSpec):
            return spec
        return replace(spec, target=replace(spec.target, remembered=worked))

    def _protocol_for(self, spec: ConnectionSpec) -> Protocol:
        if spec.protocol is Protocol.AUTO and (spec.server_key, spec.fingerprint) in self._legacy:
            return Protocol.LEGACY
        return spec.protocol

    async def warm_up(self, specs: Iterable[ConnectionSpec]) -> int:
        """Open connections that will be needed, a few at a time; how many are open. Never raises but for cancellation."""
        lanes = asyncio.Semaphore(WARM_UP_LANES)

        async def open_one(spec: ConnectionSpec) -> bool:
            async with lanes:
                try:
                    await self.connect(spec)
                except (ConnectionFailed, Busy):
                    return False
                return True

        return sum(await asyncio.gather(*(open_one(spec) for spec in specs)))

    # Using

    async def list_offers(
        self, spec: ConnectionSpec, *, at_once: bool = False, tools_only: bool = False
    ) -> ServerListing:
        """All tools, resources and prompts of a server, as it sends them.

        Raises:
            ConnectionFailed: not reachable, or its answer is no list.
            Busy: see connect().
        """
        return await self._ask(
            spec, lambda connection: read_lists(connection, tools_only=tools_only), at_once=at_once
        )

    async def list_tools(self, spec: ConnectionSpec, *, at_once: bool = False) -> ServerListing:
        """The tools alone; raises as list_offers()."""
        return await self.list_offers(spec, at_once=at_once, tools_only=True)

    async def ping(self, spec: ConnectionSpec, *, at_once: bool = False) -> float:
        """Ask a server for a sign of life; the seconds it took. A connection opened for it closes soon by itself.

        Raises:
            ConnectionFailed: there was none.
        """
        started = time.monotonic()
        known = self._connections.get(spec.key)
        was_open = known is not None and not known.is_over

        async def knock(connection: Connection) -> None:
            try:
                # An error of the server's own is a sign of life as well.
                with contextlib.suppress(RpcError):
                    async with asyncio.timeout(spec.connect_seconds):
                        await connection.request(partial(_knock, connection))
            except TimeoutError as error:
                if not connection.flights:
                    connection.stop()  # nobody is there any more, or nobody who could serve the next call
                raise ConnectTimedOut(_("The server did not answer in time.")) from error
            finally:
                if not was_open and not connection.flights:
                    connection.close_soon()

        await self._ask(spec, knock, at_once=at_once)
        return time.monotonic() - started

    async def _ask(
        self, spec: ConnectionSpec, ask: Callable[[Connection], Awaitable[T]], *, at_once: bool
    ) -> T:
        """Something of our own; once more on a new connection if the server had forgotten the session."""
        for is_last in (False, True):
            connection = await self.connect(spec, at_once=at_once)
            try:
                result = await ask(connection)
            except CallFailed as failure:
                self.note_failure(connection, failure)
                if failure.kind not in ("session_lost", "closed") or is_last:
                    raise ConnectionFailed(failure.message, details=failure.details) from failure
            else:
                self.note_success(spec)
                return result
        raise AssertionError("the second attempt returns or raises")

    async def learn_headers(self, connection: Connection) -> None:
        """On the newest revision over HTTP, list the tools once, so that the SDK knows which arguments to mirror."""
        facts = connection.facts
        if connection.tap.has_listed_tools or facts is None:
            return
        if transport_named(facts.transport).mirrors_arguments and is_modern(
            facts.protocol_revision
        ):
            with contextlib.suppress(CallFailed, ConnectionFailed):
                await read_lists(connection, tools_only=True)

    # What became of it

    def note_success(self, spec: ConnectionSpec) -> None:
        """The server answered: forget its failures."""
        self._backoffs.pop(spec.key, None)
        self._breaks.pop(spec.key, None)

    def note_failure(self, connection: Connection, failure: CallFailed) -> None:
        """A request failed: the connection may be of no more use, and the server may need a pause."""
        key = connection.spec.key
        if failure.kind == "auth_required":
            connection.trace.event("The server refused the credentials.")
        if failure.kind in ("session_lost", "session_refused"):
            connection.retire_when_idle()
        elif failure.kind in ("broken", "unreachable") and not connection.is_over:
            connection.stop()  # one that is over already ends with the last request under way
        if connection.has_failed or failure.kind not in ("broken", "unreachable"):
            return  # one failure of the server, however many requests were under way
        connection.has_failed = True
        self._breaks[key] = self._breaks.get(key, 0) + 1
        # The newest revision has no session, so an open connection may lead to a server that is gone.
        if failure.kind == "unreachable" or self._breaks[key] >= BREAKS_BEFORE_PAUSE:
            self._back_off(connection, counts=True)

    def _note_opened(self, connection: Connection, opened: asyncio.Future[ClientSession]) -> None:
        spec = connection.spec
        what = (spec.server_key, spec.fingerprint)
        error = asyncio.CancelledError() if opened.cancelled() else opened.exception()
        if error is None:
            assert connection.facts is not None
            self._backoffs.pop(spec.key, None)
            self._transports[what] = connection.facts.transport
            # Spares the question about the newest revision next time, which some servers leave unanswered for seconds.
            if not is_modern(connection.facts.protocol_revision):
                self._legacy.add(what)
            return
        self._legacy.discard(what)
        self._transports.pop(what, None)
        if isinstance(error, AuthenticationRequired) and _signs_in(spec):
            return  # somebody is asked to sign in, and whoever asks anew may have
        # Waiting heals no wrong credentials, and others change the fingerprint.
        if getattr(error, "details", {}).get("kind") == "issuer_away":
            return  # nothing was sent, so nothing is known of the server
        self._back_off(connection, counts=not isinstance(error, AuthenticationRequired))

    def _back_off(self, connection: Connection, *, counts: bool) -> None:
        spec = connection.spec
        connection.trace.is_check = False  # what went wrong is worth seeing
        state = self._backoffs.get(spec.key, Backoff()).after_failure(
            time.monotonic(),
            # Checks use nobody's account, so a person's connection is never left alone for good.
            max_attempts=spec.max_attempts if counts and not _signs_in(spec) else None,
            factor=random.uniform(1 - JITTER, 1 + JITTER),  # noqa: S311  spreads load, keeps no secret
        )
        self._backoffs[spec.key] = state
        if state.has_given_up:
            connection.trace.event(f"Left alone after {state.failures} failures in a row.")
        else:
            wait = state.wait_seconds(time.monotonic())
            connection.trace.event(f"Next attempt in {wait:.1f} s at the earliest.")

    def _note_asks_back(self, spec: ConnectionSpec) -> None:
        self._asks_back.add(spec.server_key)

    # Closing

    async def drop(self, server_id: UUID, *, principal: str | None = None) -> None:
        """Close a server's connections and forget its failures: it was changed, removed, or is to be tried anew."""

        def is_meant(key: ConnectionKey) -> bool:
            return key[1] == server_id and principal in (None, key[2])

        closing = [self._connections.pop(key) for key in list(self._connections) if is_meant(key)]
        closing += [one for one in self._replaced() if is_meant(one.spec.key)]
        for table in (self._backoffs, self._breaks):
            for key in [key for key in table if is_meant(key)]:
                del table[key]
        self._legacy = {what for what in self._legacy if what[0][1] != server_id}
        for what in [what for what in self._transports if what[0][1] == server_id]:
            del self._transports[what]
        for connection in closing:
            connection.stop()
        if closing:
            await asyncio.wait([connection.owner for connection in closing], timeout=CLOSED_SECONDS)

    async def close(self) -> None:
        """Close everything, giving running calls a moment."""
        self._news.forget()
        connections = list(self._connections.values())
        self._connections.clear()
        for connection in connections:
            self._retire(connection, seconds=CLOSE_SECONDS)
        try:
            if self._closing:
                await asyncio.wait(self._closing, timeout=CLOSE_SECONDS + 1.0)
        finally:
            # Also where a program takes longer to end than the process has.
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(TRACE_SECONDS):
                    await trace_buffer.close()

    def _retire(
        self,
        connection: Connection,
        *,
        seconds: float | None = None,
        is_outdated: bool = False,
    ) -> None:
        if connection.owner.done():
            return
        # What has other settings than now ends in any case, whoever still thinks.
        lets_people_think = seconds is None and not is_outdated
        retiring = connection.retire(
            RETIRE_SECONDS if seconds is None else seconds, lets_people_think=lets_people_think
        )
        task = asyncio.get_running_loop().create_task(retiring)
        self._closing[task] = connection
        task.add_done_callback(self._closing.pop)

    def _replaced(self) -> list[Connection]:
        return [one for one in self._closing.values() if not one.owner.done()]

    def _in_use(self) -> list[Connection]:
        """Those that take calls, and those that were replaced and still carry some; each once."""
        live = [one for one in self._connections.values() if not one.is_over]
        carrying = [one for one in self._replaced() if one.flights]
        return list(dict.fromkeys([*live, *carrying]))

    # Looking

    def stderr_of(self, spec: ConnectionSpec) -> str:
        """The end of what a stdio server wrote to its error stream. Any thread."""
        connection = self._connections.get(spec.key)
        ring = connection.transport.stderr if connection is not None else None
        return ring.text() if ring is not None else ""

    def connections_of(self, server_id: UUID) -> list[ConnectionStatus]:
        """This process's connections to a server, one for each principal that has or had one. Any thread."""
        keys = {*list(self._connections), *list(self._backoffs)}
        return [
            status_of(key, self._connections.get(key), self._backoffs.get(key))
            for key in sorted(keys, key=lambda key: key[2])
            if key[1] == server_id
        ]

    def state_of(self, spec: ConnectionSpec) -> ConnectionStatus:
        """The same for one of them, whether or not there ever was one. Any thread."""
        key = spec.key
        return status_of(key, self._connections.get(key), self._backoffs.get(key))


def _signs_in(spec: ConnectionSpec) -> bool:
    return isinstance(spec.target, HttpSpec) and spec.target.auth is not None


async def _knock(connection: Connection, session: ClientSession) -> None:
    assert connection.facts is not None
    revision = connection.facts.protocol_revision
    if is_modern(revision):
        await session.send_discover(revision)
    else:
        await session.send_ping()


def _backing_off(state: Backoff, wait: float) -> BackingOff:
    if state.has_given_up:
        return BackingOff(
            _(
                "The server failed %(failures)s times in a row. Trellis leaves it alone until the next check."
            )
            % {"failures": state.failures},
            retry_after_seconds=None,
        )
    return BackingOff(
        _("The server had just failed, so Trellis left it alone for %(wait)s.")
        % {"wait": duration_in_words(math.ceil(wait))},
        retry_after_seconds=wait,
    )


pool: Final = Pool()
"""The process's pool."""

runtime.on_shutdown(pool.close)
