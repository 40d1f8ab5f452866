"""Calls that ended without the gate: stopped while they waited, or left behind by a process that died."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from functools import partial
from typing import TYPE_CHECKING, Final

from django.db import transaction

from audit.actions import Action, Outcome
from audit.services import is_call_open, record
from mcp_servers.client.connections import calls, runtime
from mcp_servers.client.values import ToolCallRequest
from mcp_servers.gate.admission import GatedCall
from mcp_servers.gate.checkpoints import (
    SignInCheckpoint,
    TaskCheckpoint,
    read_checkpoint,
)
from mcp_servers.gate.resolving import resolve_tool
from mcp_servers.oauth.grants import person_of
from workspaces.errors import DomainError

if TYPE_CHECKING:
    from mcp_servers.client.spec import ConnectionSpec

logger = logging.getLogger(__name__)

_CANCEL_SECONDS: Final = 15.0


def abandon_call(
    request: ToolCallRequest,
    *,
    outcome: Outcome = Outcome.CANCELLED,
    reason: str = "It was stopped while it waited.",
) -> None:
    """Record the end of a call that nobody runs, and have the server give up the task it made of it, if it did.

    Does nothing for a call that was never requested, or whose end is recorded. In the caller's transaction; the
    server hears of it once that is committed.

    Args:
        outcome: cancelled, or unknown for one whose process died while it ran.

    Raises:
        AuditUnavailable: it could not be recorded.
    """
    if not is_call_open(request.workspace_id, request.call_id):
        return
    resolved = resolve_tool(request.workspace_id, request.tool_id)
    call = GatedCall(request, resolved.tool if resolved else None)
    ended = {"outcome": outcome, "details": {"reason": reason}}
    record(call.draft(Action.TOOL_CALL_FINISHED, arguments=None, **ended))
    task_id = _task_of(request)
    if task_id is None or resolved is None:
        return
    with contextlib.suppress(DomainError):  # a server that cannot be connected to any more
        transaction.on_commit(partial(_give_up, resolved.spec(person_of(request.actor)), task_id))


def _task_of(request: ToolCallRequest) -> str | None:
    with contextlib.suppress(DomainError):
        checkpoint = read_checkpoint(request.checkpoint or "")
        if isinstance(checkpoint, SignInCheckpoint):
            return checkpoint.task.task_id if checkpoint.task else None
        if isinstance(checkpoint, TaskCheckpoint):
            return checkpoint.task_id
    return None


def _give_up(spec: ConnectionSpec, task_id: str) -> None:
    async def cancel() -> None:
        try:
            async with asyncio.timeout(_CANCEL_SECONDS):
                await calls.cancel_task(spec, task_id)
        except (TimeoutError, DomainError):
            logger.info("task_not_cancelled", exc_info=True)

    runtime.current().submit(cancel())
