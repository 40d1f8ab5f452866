"""Opens a session: the first transport that works, then the revision that both sides know."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import anyio

from mcp_servers.client.connections.facts import ServerFacts
from mcp_servers.client.connections.failures import CONNECTION_CLOSED, leaf_of, words_of_server
from mcp_servers.client.connections.negotiation import negotiate
from mcp_servers.client.connections.streams import kinds_for, open_streams
from mcp_servers.client.connections.tap import Tap, TapRead, TapWrite
from mcp_servers.client.connections.turning_away import TurningAway
from mcp_servers.client.icon_sources import icon_sources
from mcp_servers.client.sdk import mcp, mcp_types, shapes
from mcp_servers.client.transports.stdio import OpenTransport
from mcp_servers.client.values import Protocol
from workspaces.redaction import redact_known

if TYPE_CHECKING:
    from mcp.client.session import ClientSession, MessageHandlerFnT

    from mcp_servers.client.connections.questions import Questions
    from mcp_servers.client.connections.tracing import ConnectionTrace
    from mcp_servers.client.spec import ConnectionSpec


_FALLBACK_STATUSES: Final = frozenset({400, 404, 405})
"""MCP 2025-11-25, "Transports", Backwards Compatibility: what a server without Streamable HTTP answers to it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Opener:
    """All that one session is made from."""

    spec: ConnectionSpec
    protocol: Protocol
    """What to speak, where something is known already; else as in the spec."""
    transport: OpenTransport
    tap: Tap
    trace: ConnectionTrace
    questions: Questions
    hear: MessageHandlerFnT

    async def open(self, stack: contextlib.AsyncExitStack) -> tuple[ClientSession, ServerFacts]:
        """Open the first transport that works, and agree on a revision; the stack closes it.

        Raises:
            MCPError, httpx2.TransportError, OSError: none worked; see connect_failure().
        """
        kinds = kinds_for(self.spec.target)
        in_words: Exception | None = None
        for kind, is_last in zip(kinds, [*[False] * (len(kinds) - 1), True], strict=True):
            self.trace.event(f"Connecting over {kind}.")
            attempt = contextlib.AsyncExitStack()
            try:
                async with attempt:
                    session = await self._open_kind(kind, attempt)
                    await stack.enter_async_context(attempt.pop_all())
            except Exception as error:
                status = _status_of(error)
                if words_of_server(error) is not None:
                    in_words = error
                elif in_words is not None and status in _FALLBACK_STATUSES:
                    raise in_words from error  # the bare status of another transport says less
                if is_last or status not in _FALLBACK_STATUSES:
                    raise
                self.trace.event(f"The server answered HTTP {status}; trying the next transport.")
            else:
                facts = _facts_of(session, kind, self.spec)
                self.trace.event(f"Connected, revision {facts.protocol_revision}.")
                return session, facts
        raise AssertionError("unreachable")

    async def _open_kind(self, kind: str, stack: contextlib.AsyncExitStack) -> ClientSession:
        """Open this transport, once more if the server ended at our first question, as some old ones do.

        One that ends for another reason is not started twice: it may do something each time.
        """
        attempt = contextlib.AsyncExitStack()
        try:
            async with attempt:
                session = await self._open_as(kind, self.protocol, attempt)
                await stack.enter_async_context(attempt.pop_all())
                return session
        except Exception as error:
            if self.protocol is not Protocol.AUTO or not self._has_ended_at_question(error):
                raise
            self.transport.ended_first = error, self.transport.stdio
        self.trace.event("The server hung up; trying without asking for the newest revision.")
        return await self._open_as(kind, Protocol.LEGACY, stack)

    def _has_ended_at_question(self, error: BaseException) -> bool:
        program = self.transport.stdio
        is_read = program is None or program.has_read
        return _has_hung_up(error) and is_read and not self.tap.has_greeted

    async def _open_as(
        self, kind: str, protocol: Protocol, stack: contextlib.AsyncExitStack
    ) -> ClientSession:
        spec, questions = self.spec, self.questions
        self.tap.has_greeted = False
        read, write = await stack.enter_async_context(
            open_streams(spec.target, kind, self.transport)
        )
        session = await stack.enter_async_context(
            mcp.ClientSession(
                TapRead(read, self.tap, TurningAway(write)),
                TapWrite(write, self.tap),
                client_info=shapes.CLIENT_INFO,
                message_handler=self.hear,
                elicitation_callback=questions.elicit if spec.allows_elicitation else None,
                sampling_callback=questions.sample if spec.allows_sampling else None,
                list_roots_callback=questions.list_roots if spec.roots else None,
                log_level=spec.log_level or None,  # type: ignore[arg-type]  # one of MCP's names
            )
        )
        await negotiate(session, protocol=protocol, probe_seconds=spec.connect_seconds / 2)
        return session


def _has_hung_up(error: BaseException) -> bool:
    leaf = leaf_of(error)
    if isinstance(leaf, mcp.MCPError):
        return leaf.code == CONNECTION_CLOSED and leaf.error.data is None
    return isinstance(leaf, anyio.BrokenResourceError | anyio.ClosedResourceError)


def _status_of(error: BaseException) -> int | None:
    leaf = leaf_of(error)
    if not isinstance(leaf, mcp.MCPError) or not isinstance(leaf.error.data, dict):
        return None
    status = leaf.error.data.get("http_status")
    return status if isinstance(status, int) else None


def _facts_of(session: ClientSession, transport: str, spec: ConnectionSpec) -> ServerFacts:
    info, capabilities = session.server_info, session.server_capabilities
    clean = partial(redact_known, workspace_id=spec.workspace_id)
    return ServerFacts(
        protocol_revision=str(session.protocol_version),
        transport=transport,
        was_negotiated=spec.protocol is Protocol.AUTO,
        name=clean(info.name) if info else "",
        title=clean(info.title or "") if info else "",
        version=clean(info.version) if info else "",
        instructions=clean(session.instructions or ""),
        capabilities=clean(_dumped(capabilities)),
        icons=icon_sources(info.icons) if info else (),
    )


def _dumped(capabilities: mcp_types.ServerCapabilities | None) -> dict[str, Any]:
    if capabilities is None:
        return {}
    return capabilities.model_dump(by_alias=True, mode="json", exclude_none=True)
