"""Errors for a server's requests that are too many to be taken: one after another, so that a flood costs one task."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Any, Final

import anyio

from mcp_servers.client.sdk import mcp, mcp_types

if TYPE_CHECKING:
    from mcp_types import RequestId

MOST_WAITING: Final = 1000
"""Requests whose error has not gone out. More than a server takes errors for have none."""
_LONGEST_ID: Final = 200
_TOO_MANY: Final = -32000
"""JSON-RPC 2.0, "Error object": the first of the codes that implementations give a meaning."""


class TurningAway:
    """The errors that wait to go out over one connection."""

    def __init__(self, write: Any) -> None:
        self._write = write
        self._ids: deque[RequestId] = deque()
        self._task: asyncio.Task[None] | None = None

    def turn_away(self, request_id: RequestId) -> None:
        """Have the request answered with an error, if not too many wait for theirs."""
        if len(self._ids) >= MOST_WAITING or len(str(request_id)) > _LONGEST_ID:
            return
        self._ids.append(request_id)
        if self._task is None:
            self._task = asyncio.ensure_future(self._answer())

    def stop(self) -> None:
        """Answer nothing more: the connection ends."""
        self._ids.clear()
        if self._task is not None:
            self._task.cancel()

    async def _answer(self) -> None:
        error = mcp_types.ErrorData(code=_TOO_MANY, message="Too many requests. Ask more slowly.")
        try:
            while self._ids:
                answer = mcp_types.JSONRPCError(jsonrpc="2.0", id=self._ids.popleft(), error=error)
                await self._write.send(mcp.shared.message.SessionMessage(answer))
        except (anyio.ClosedResourceError, anyio.BrokenResourceError):
            self._ids.clear()
        finally:
            self._task = None
