"""Hears of changes: of the lists a server offers, and of the resources that somebody watches.

Older revisions send notifications on their own, and take subscriptions to resources one by one. The newest sends them
only within a listening request, which is kept open here and opened again when it is lost.

Source: MCP specification 2025-11-25, "Resources": Subscriptions; 2026-07-28, "Subscriptions".
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any, Final, Protocol

import pydantic

from mcp_servers.client.connections.backoff import delay_seconds
from mcp_servers.client.connections.tap import is_modern
from mcp_servers.client.sdk import mcp, mcp_types

if TYPE_CHECKING:
    from mcp.client.session import ClientSession

    from mcp_servers.client.connections.facts import ServerFacts
    from mcp_servers.client.connections.tracing import ConnectionTrace
    from mcp_servers.client.spec import ConnectionSpec

MAX_WATCHED: Final = 200
"""Resources of one connection."""
SUBSCRIBE_SECONDS: Final = 10.0
"""For one subscription to be taken or given up, or for a listening request to be accepted."""
_STEADY_SECONDS: Final = 60.0
"""A listening request that lived so long was no failure."""


class ListeningConnection(Protocol):
    """The connection over which a server tells of changes."""

    spec: ConnectionSpec
    trace: ConnectionTrace
    facts: ServerFacts | None

    def missed_changes(self) -> None:
        """Changes may have been missed: everything is to be read again."""


class ConnectionSubscriptions:
    """What one connection listens to; owned by the connection's task, which starts and closes it."""

    def __init__(self, connection: ListeningConnection) -> None:
        self._connection = connection
        self._wanted = connection.spec.watched[:MAX_WATCHED]
        self._has_changed = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self, session: ClientSession) -> None:
        """Begin to listen, beside everything else."""
        facts = self._connection.facts
        assert facts is not None
        run = self._listen if is_modern(facts.protocol_revision) else self._subscribe
        self._task = asyncio.get_running_loop().create_task(run(session, facts.capabilities))

    def want(self, uris: tuple[str, ...]) -> None:
        """Watch these resources from now on, and no others."""
        uris = uris[:MAX_WATCHED]
        if uris != self._wanted:
            self._wanted = uris
            self._has_changed.set()

    async def close(self) -> None:
        """Stop listening."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    # Older revisions

    async def _subscribe(self, session: ClientSession, capabilities: dict[str, Any]) -> None:
        await self._set_log_level(session, capabilities)
        if not (capabilities.get("resources") or {}).get("subscribe"):
            return
        held: set[str] = set()
        while True:
            wanted = set(self._wanted)
            for uri in held - wanted:
                unsubscribe = mcp_types.UnsubscribeRequestParams(uri=uri)
                await self._ask(session, mcp_types.UnsubscribeRequest(params=unsubscribe))
            for uri in wanted - held:
                subscribe = mcp_types.SubscribeRequestParams(uri=uri)
                await self._ask(session, mcp_types.SubscribeRequest(params=subscribe))
            held = wanted
            await self._has_changed.wait()
            self._has_changed.clear()

    async def _set_log_level(self, session: ClientSession, capabilities: dict[str, Any]) -> None:
        level = self._connection.spec.log_level
        if level and "logging" in capabilities:
            params = mcp_types.SetLevelRequestParams.model_validate({"level": level})
            await self._ask(session, mcp_types.SetLevelRequest(params=params))

    async def _ask(self, session: ClientSession, request: mcp_types.ClientRequest) -> None:
        """Ask for something that a server may refuse without harm."""
        try:
            async with asyncio.timeout(SUBSCRIBE_SECONDS):
                await session.send_request(request, mcp_types.EmptyResult)
        except (mcp.MCPError, TimeoutError, pydantic.ValidationError):
            self._connection.trace.event(f"The server did not take {request.method}.")

    # The newest revision

    async def _listen(self, session: ClientSession, capabilities: dict[str, Any]) -> None:
        failures = 0
        while True:
            wanted = self._filter(capabilities)
            self._has_changed.clear()
            if not any(wanted.values()):
                await self._has_changed.wait()
                continue
            started = asyncio.get_running_loop().time()
            ended = await self._listen_once(session, wanted)
            if ended == "refused":
                return
            if ended == "changed":
                continue
            lived = asyncio.get_running_loop().time() - started
            failures = 1 if lived >= _STEADY_SECONDS else failures + 1
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(delay_seconds(failures)):
                    await self._has_changed.wait()
            # What was missed meanwhile is not told again.
            self._connection.missed_changes()

    def _filter(self, capabilities: dict[str, Any]) -> dict[str, Any]:
        def changes(part: str) -> bool:
            return bool((capabilities.get(part) or {}).get("listChanged"))

        can_subscribe = bool((capabilities.get("resources") or {}).get("subscribe"))
        return {
            "tools_list_changed": changes("tools"),
            "prompts_list_changed": changes("prompts"),
            "resources_list_changed": changes("resources"),
            "resource_subscriptions": self._wanted if can_subscribe else (),
        }

    async def _listen_once(self, session: ClientSession, wanted: dict[str, Any]) -> str:
        """Listen until something ends it: "changed" what is wanted, "lost", or "refused"."""
        from mcp.client.subscriptions import SubscriptionLost, listen

        entered = contextlib.AsyncExitStack()
        try:
            async with entered:
                async with asyncio.timeout(SUBSCRIBE_SECONDS):
                    subscription = await entered.enter_async_context(listen(session, **wanted))
                # The events themselves come through the connection's message handler as well.
                reading = asyncio.ensure_future(_read(subscription))
                changed = asyncio.ensure_future(self._has_changed.wait())
                try:
                    await asyncio.wait([reading, changed], return_when=asyncio.FIRST_COMPLETED)
                    if reading.done():
                        reading.result()
                        return "lost"
                    return "changed"
                finally:
                    reading.cancel()
                    changed.cancel()
        except SubscriptionLost:
            return "lost"
        except TimeoutError:
            return "lost"
        except mcp.MCPError as error:
            if error.code in (mcp_types.METHOD_NOT_FOUND, mcp_types.INVALID_PARAMS):
                self._connection.trace.event("The server does not tell of changes.")
                return "refused"
            return "lost"


async def _read(subscription: Any) -> None:
    async for _ in subscription:
        pass
