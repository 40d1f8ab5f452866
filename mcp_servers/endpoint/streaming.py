"""Answers that take long, as a stream that begins before they are there.

Claude Code and Gemini CLI give a request up whose answer has not begun within a minute, and so do many proxies. A
stream shows that the work goes on, and how far it is. Clients that take progress for a sign of life wait longer.
Source: MCP specification, "Transports": Streamable HTTP, Sending Messages to the Server; "Progress".
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncIterator
from functools import partial
from typing import TYPE_CHECKING, Final

from mcp_servers.endpoint.protocol import fault_for
from workspaces.process.departures import CallerLeft
from workspaces.process.shutdown import ShuttingDown

if TYPE_CHECKING:
    from mcp_servers.client.connections.runtime import Pending
    from mcp_servers.endpoint.protocol import ClientRequest, EndpointResponse

PATIENCE: Final = 10.0
"""Seconds within which an answer comes in one piece, as almost all do."""
LOOK_SECONDS: Final = 0.5
"""How often it is looked how far the work is."""
KEEP_ALIVE_SECONDS: Final = 15.0
"""After so long without progress, the stream says that it is still there."""
_STILL_HERE: Final = ": still here\n\n"
_ESCAPED: Final = {ord(sign): f"\\u{ord(sign):04x}" for sign in "\x85\u2028\u2029"}
HEADERS: Final = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}


async def stream(
    pending: Pending[EndpointResponse], asked: ClientRequest, body: bytes
) -> AsyncIterator[str]:
    """The events of an answer in the making: how far it is, and in the end the answer."""
    yield _STILL_HERE
    ended, loop = asyncio.Event(), asyncio.get_running_loop()
    pending.then(partial(loop.call_soon_threadsafe, ended.set))
    spoken, reached = time.monotonic(), None
    while not await _happens(ended, LOOK_SECONDS):
        news = asked.progress_beyond(reached)
        if news is not None:
            spoken, reached = time.monotonic(), news["params"]["progress"]
            yield _event(json.dumps(news))
        elif time.monotonic() - spoken >= KEEP_ALIVE_SECONDS:
            spoken = time.monotonic()
            yield _STILL_HERE
    try:
        yield _event(pending.result().body.decode())
    except ShuttingDown as error:
        if fault := fault_for(body, error.message):
            yield _event(fault.body.decode())
    except CallerLeft:
        return


async def _happens(event: asyncio.Event, seconds: float) -> bool:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()
    return event.is_set()


def _event(data: str) -> str:
    """One message of the protocol. JSON has no line break but those of Unicode, at which some clients end a line."""
    return f"event: message\ndata: {data.translate(_ESCAPED)}\n\n"
