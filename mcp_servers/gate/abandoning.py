"""A call that waits at its checkpoint, and is not to go on: nobody runs it, so nobody else would record its end."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

from django.db import transaction

from audit.actions import Action, Outcome
from audit.services import record
from mcp_servers.connections import calls, runtime
from mcp_servers.gate.checkpoints import TaskCheckpoint, read_checkpoint
from mcp_servers.gate.entries import draft
from mcp_servers.gate.resolving import resolve_tool
from mcp_servers.values import ToolCallRequest
from workspaces.errors import DomainError

if TYPE_CHECKING:
    from mcp_servers.gate.resolving import ResolvedTool

logger = logging.getLogger(__name__)

_CANCEL_SECONDS: Final = 15.0


def abandon_call(request: ToolCallRequest) -> None:
    """Record that a call which was put aside has been stopped, and have the server give up its task, if it made one.

    In the caller's transaction; the server hears of it once that is committed.

    Raises:
        AuditUnavailable: it could not be recorded.
    """
    resolved = resolve_tool(request.workspace_id, request.tool_id)
    record(
        replace(
            draft(request, resolved.tool if resolved else None, Action.TOOL_CALL_FINISHED, None),
            outcome=Outcome.CANCELLED,
            details={"reason": "It was stopped while it waited."},
        )
    )
    task_id = _task_of(request)
    if task_id and resolved is not None:
        transaction.on_commit(partial(_give_up, resolved, task_id))


def _task_of(request: ToolCallRequest) -> str | None:
    with contextlib.suppress(DomainError):
        checkpoint = read_checkpoint(request.checkpoint or "")
        if isinstance(checkpoint, TaskCheckpoint):
            return checkpoint.task_id
    return None


def _give_up(resolved: ResolvedTool, task_id: str) -> None:
    async def cancel() -> None:
        try:
            async with asyncio.timeout(_CANCEL_SECONDS):
                await calls.cancel_task(resolved.spec(), task_id)
        except (TimeoutError, DomainError):
            logger.info("task_not_cancelled", exc_info=True)

    runtime.current().submit(cancel())
