"""Which revision of the protocol to speak with a server: the newest kind first, the handshake after.

Source: MCP specification 2026-07-28, "Versioning"; 2025-11-25, "Lifecycle": Version Negotiation.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

import pydantic

from mcp_servers.client.sdk import mcp, mcp_types
from mcp_servers.client.values import Protocol

if TYPE_CHECKING:
    from mcp.client.session import ClientSession

PROBE_SECONDS: Final = 8.0
"""How long a server may leave the first question of the newest kind unanswered; some old ones never answer it."""


async def negotiate(session: ClientSession, *, protocol: Protocol, probe_seconds: float) -> None:
    """Agree on a revision; afterwards the session can be used.

    Raises:
        MCPError: the server refused, or shares no revision with us.
        RuntimeError: it answered with a revision that nobody offered.
        pydantic.ValidationError: its answer does not follow the protocol.
    """
    if protocol is Protocol.LEGACY:
        await session.initialize()
    elif protocol is Protocol.MODERN:
        await _discover(session)
    else:
        await _find_out(session, min(PROBE_SECONDS, probe_seconds))


async def _discover(session: ClientSession) -> None:
    """Ask until there is an answer. The SDK waits ten seconds for one, and a program may take longer to start.

    The time that a connection has to open ends it.
    """
    while True:
        try:
            await session.discover()
        except mcp.MCPError as error:
            if not _is_own_timeout(error):
                raise
        else:
            return


def _is_own_timeout(error: mcp.MCPError) -> bool:
    """Whether the SDK waited in vain. Servers send this code as well, and answer so at once."""
    return error.code == mcp_types.REQUEST_TIMEOUT and isinstance(error.__context__, TimeoutError)


async def _find_out(session: ClientSession, seconds: float) -> None:
    version = mcp_types.version.LATEST_MODERN_VERSION
    for is_last in (False, True):
        try:
            raw = await _probe(session, version, seconds)
        except mcp.MCPError as error:
            offered = _offered(error)
            modern = _newest(offered)
            if modern is not None and not is_last:
                version = modern
                continue
            if _settles_it(error, offered):
                raise
            raw = None
        if raw is not None and _adopted(session, raw):
            return
        try:
            await session.initialize()
        except mcp.MCPError as error:
            # A server that was slow to start may have taken the probe for the connection's beginning after all.
            modern = _newest(_offered(error))
            if modern is None or is_last:
                raise
            version = modern
        else:
            return
    raise mcp.MCPError(
        mcp_types.UNSUPPORTED_PROTOCOL_VERSION, "The server names a revision that it refuses."
    )


async def _probe(session: ClientSession, version: str, seconds: float) -> dict[str, Any] | None:
    """The answer to server/discover; None if there was none in time."""
    try:
        async with asyncio.timeout(seconds):
            return await session.send_discover(version)
    except TimeoutError:
        return None


def _adopted(session: ClientSession, raw: dict[str, Any]) -> bool:
    """Whether the answer to the probe is one of a server of the newest kind; the session then speaks it."""
    try:
        result = mcp_types.DiscoverResult.model_validate(raw, by_name=False)
    except pydantic.ValidationError:
        return False
    if _newest(result.supported_versions) is None:
        return False
    session.adopt(result)
    return True


def _settles_it(error: mcp.MCPError, offered: list[str]) -> bool:
    """Whether trying the handshake makes no sense: nobody is there, a sign-in is missing, or the server knows better."""
    data = error.error.data if isinstance(error.error.data, dict) else {}
    if data.get("kind") == "unreachable" or data.get("http_status") == 401:
        return True
    return bool(offered) and not any(
        name in mcp_types.version.HANDSHAKE_PROTOCOL_VERSIONS for name in offered
    )


def _offered(error: mcp.MCPError) -> list[str]:
    if error.code != mcp_types.UNSUPPORTED_PROTOCOL_VERSION:
        return []
    try:
        data = mcp_types.UnsupportedProtocolVersionErrorData.model_validate(error.error.data)
    except pydantic.ValidationError:
        return []
    return data.supported


def _newest(offered: list[str]) -> str | None:
    """The newest revision without sessions that both sides know."""
    known = [name for name in mcp_types.version.MODERN_PROTOCOL_VERSIONS if name in offered]
    return known[-1] if known else None
