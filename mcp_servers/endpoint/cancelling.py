"""Calls under way, for clients that want one of them to end.

Clients of 2026-07-28 hang up. Those before send a notification with the id of their request, to whatever process they
reach. Ids are a client's own, and there are no sessions: so it counts for a call with the same token or sign-in, if
there is exactly one.
Source: MCP specification, "Cancellation", of 2025-11-25 and of 2026-07-28.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Coroutine
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar
from uuid import UUID

from mcp.shared.exceptions import MCPError
from mcp_types import INTERNAL_ERROR, RequestId

from mcp_servers.client.connections.questions import is_cancelling
from mcp_servers.endpoint import other_processes

if TYPE_CHECKING:
    from mcp_servers.endpoint.callers import EndpointCaller

T = TypeVar("T")

METHOD: Final = "notifications/cancelled"
_HINT: Final = b"cancelled"
"""What such a message holds, however its slash is written."""
_MOST_BYTES: Final = 64 * 1024
"""Of a notification."""

_Key = tuple[UUID | None, RequestId]

_running: dict[_Key, list[asyncio.Task[Any]]] = {}


async def run(
    caller: EndpointCaller, request_id: RequestId | None, work: Coroutine[Any, Any, T]
) -> T:
    """Do what a client asked for, unless it takes that back.

    Raises:
        MCPError: it did. It does not wait for this answer any more.
    """
    if request_id is None:
        return await work
    key = (caller.actor.token_id, request_id)
    task = asyncio.ensure_future(work)
    _running.setdefault(key, []).append(task)
    try:
        with other_processes.heard(_group_of(key), partial(_cancel_here, key)):
            return await task
    except asyncio.CancelledError:
        if task.cancelled() and not is_cancelling():
            raise MCPError(INTERNAL_ERROR, "The client cancelled this request.") from None
        raise
    finally:
        _running[key].remove(task)
        if not _running[key]:
            del _running[key]


async def cancel(caller: EndpointCaller, request_id: RequestId) -> None:
    """End the call that this caller's client means, if there is one and no other that it could mean.

    Nothing is ended while nobody can tell. A call that runs on does less harm than one of another window that ends.
    """
    key = (caller.actor.token_id, request_id)
    elsewhere = await other_processes.count_elsewhere(_group_of(key))
    if elsewhere == 0:
        _cancel_here(key)
    elif elsewhere == 1 and key not in _running:
        other_processes.tell(_group_of(key))


def cancelled_id(body: bytes) -> RequestId | None:
    """Which request the client takes back with this message; None: it says something else."""
    if len(body) > _MOST_BYTES or _HINT not in body:
        return None
    try:
        notification = json.loads(body)
    except (ValueError, RecursionError):
        return None
    if not isinstance(notification, dict) or notification.get("method") != METHOD:
        return None
    params = notification.get("params")
    request_id = params.get("requestId") if isinstance(params, dict) else None
    is_id = isinstance(request_id, str | int) and not isinstance(request_id, bool)
    return request_id if is_id else None


def _cancel_here(key: _Key) -> None:
    tasks = _running.get(key, [])
    if len(tasks) == 1:
        tasks[0].cancel()


def _group_of(key: _Key) -> str:
    token_id, request_id = key
    digest = hashlib.sha256(json.dumps(request_id).encode()).hexdigest()
    return f"client-call.{token_id}.{digest[:32]}"
