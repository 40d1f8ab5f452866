"""Requests under way on a connection, and whose they are."""

from __future__ import annotations

import asyncio
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from uuid import UUID

    from mcp_servers.client.connections.deadline import Deadline
    from mcp_servers.client.connections.permits import CallPermit
    from mcp_servers.client.inputs import CallListener


@dataclass(frozen=True, slots=True, kw_only=True)
class CallRef:
    """Whose doing a request is; requests of our own, such as lists, have none."""

    call_id: UUID | None = None
    user_id: UUID | None = None
    listener: CallListener | None = None
    permit: CallPermit | None = None
    """The gate's leave to call a tool, already spent; nothing else may send one."""


@dataclass(slots=True, kw_only=True, eq=False)
class Flight:
    """One request under way."""

    task: asyncio.Task[Any]
    call: CallRef | None = None
    deadline: Deadline | None = None
    as_task: bool = False
    """The server may answer with a task instead of a result."""
    is_check: bool = False
    """It belongs to a regular check, which nobody asked for."""
    task_result: dict[str, Any] | None = None
    """That answer, as it came."""
    is_lost: bool = False
    questions: set[asyncio.Task[Any]] = field(default_factory=set)
    """What the server asked in the course of it, and nobody has answered yet."""

    def lose(self) -> None:
        """The connection is gone, and the SDK did not wake this one."""
        self.is_lost = True
        self.task.cancel()

    def land(self) -> None:
        """It is over: nobody needs to answer any more."""
        for question in tuple(self.questions):
            question.cancel()


CHECKING: Final[ContextVar[bool]] = ContextVar("mcp_checking", default=False)
"""What the running task does is a regular check."""
CURRENT: Final[ContextVar[Flight | None]] = ContextVar("mcp_flight", default=None)
"""The flight of the running task; transports that keep their callers' context show it to callbacks."""
