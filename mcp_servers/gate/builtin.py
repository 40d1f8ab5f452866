"""Tools of the platform's own, through the same gate: who may, with which arguments, and on record.

They reach no server and need no approval. As for every call *requested* is committed before anything happens, and
*finished* before anybody sees the result.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn

from django.db import DatabaseError, transaction

from audit.actions import Action, Outcome, RefusedBy
from audit.errors import AuditUnavailable
from audit.services import EntryDraft, Ref, is_call_open, prepare, record, was_requested
from mcp_servers.client import schemas
from mcp_servers.client.canonical import as_sent, canonical_json
from mcp_servers.client.errors import CallRefused, InvalidArguments, InvalidJson
from mcp_servers.client.values import ToolCallOutcome
from mcp_servers.gate.admission import check_actor
from mcp_servers.gate.outcomes import since
from mcp_servers.gate.recording import (
    CommitClock,
    completed,
    completed_in_time,
    keep_refusal,
    record_end,
)
from workspaces.database import in_database
from workspaces.errors import DomainError, PermissionDenied

if TYPE_CHECKING:
    from uuid import UUID

    from workspaces.actors import Actor

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltinRequest:
    """Everything the gate needs to know about one call of a built-in tool."""

    call_id: UUID
    workspace_id: UUID
    name: str
    arguments: Mapping[str, Any]
    input_schema: Mapping[str, Any]
    actor: Actor
    is_enabled: bool = True
    """Whether whoever asks is offered these tools at this moment."""
    bud: Ref | None = None
    conversation_id: UUID | None = None
    turn_id: UUID | None = None
    model: str = ""


async def call_builtin(
    request: BuiltinRequest, run: Callable[[], ToolCallOutcome]
) -> ToolCallOutcome:
    """Run a built-in tool once it is let through.

    Args:
        run: what the tool does; in a thread with the database. What it raises is an outcome. It may be run again
            after a crash, with the same call id.

    Raises:
        PermissionDenied: the actor may not call tools here.
        CallRefused: the tools are not offered any more.
        InvalidArguments: they do not fit the schema.
        AuditUnavailable: it could not be recorded; then nothing was done, or nothing is given away.
    """
    clock = CommitClock()
    try:
        _, was_cancelled = await completed_in_time(
            in_database(_admit, request, clock), clock, undo=lambda _: None
        )
    except AuditUnavailable as error:
        await keep_refusal(_unrecorded(request), error)
    if was_cancelled:
        outcome = ToolCallOutcome(outcome=Outcome.CANCELLED, message="The call was stopped.")
        await completed(_record_finished(request, outcome))
        raise asyncio.CancelledError
    outcome, was_cancelled = await completed(in_database(_run, run))
    _, was_cancelled_then = await completed(_record_finished(request, outcome))
    if was_cancelled or was_cancelled_then:
        raise asyncio.CancelledError
    return outcome


def refuse_builtin(request: BuiltinRequest, reason: str) -> NoReturn:
    """Record that a call cannot be made as it was asked for.

    Raises:
        InvalidArguments: always.
    """
    error = InvalidArguments(reason)
    _refuse(request, error, RefusedBy.ARGUMENTS, "arguments.unfit")
    raise error


def abandon_builtin(request: BuiltinRequest, *, outcome: Outcome, reason: str) -> None:
    """Record the end of a call that nobody runs any more; nothing, if it was never let through or has ended."""
    if is_call_open(request.workspace_id, request.call_id):
        record(
            replace(
                _draft(request, Action.TOOL_CALL_FINISHED),
                outcome=outcome,
                details={"reason": reason},
            )
        )


def _admit(request: BuiltinRequest, clock: CommitClock) -> None:
    try:
        check_actor(request.actor, request.workspace_id)
    except PermissionDenied as error:
        _refuse(request, error, RefusedBy.PERMISSION, "actor.forbidden")
        raise
    if not request.is_enabled:
        rule = "builtin.not_offered"
        refusal = CallRefused(
            "This assistant is not offered this tool.", rule=rule, refused_by=RefusedBy.DISABLED
        )
        _refuse(request, refusal, RefusedBy.DISABLED, rule)
        raise refusal
    try:
        canonical_json(dict(request.arguments))
        schemas.check_arguments(dict(request.input_schema), dict(request.arguments))
    except InvalidJson as fault:
        unreadable = InvalidArguments(f"The arguments cannot be used: {fault.message}.")
        _refuse(request, unreadable, RefusedBy.ARGUMENTS, "arguments.not_json")
        raise unreadable from fault
    except InvalidArguments as fault:
        _refuse(request, fault, RefusedBy.ARGUMENTS, "arguments.schema")
        raise
    try:
        # A call that is made again after a crash was let through before, and may have ended on record.
        if not was_requested(request.workspace_id, request.call_id):
            entry = prepare(_draft(request, Action.TOOL_CALL_REQUESTED))
            clock.begin()
            with transaction.atomic():
                record(entry)
                clock.check()
    except DatabaseError as error:
        raise AuditUnavailable(details={"action": Action.TOOL_CALL_REQUESTED.value}) from error


def _run(run: Callable[[], ToolCallOutcome]) -> ToolCallOutcome:
    started = time.monotonic()
    try:
        outcome = run()
    except DomainError as error:
        outcome = ToolCallOutcome(outcome=Outcome.TOOL_ERROR, message=error.message)
    except Exception:
        logger.exception("a built-in tool failed in an unforeseen way")
        outcome = ToolCallOutcome(
            outcome=Outcome.TOOL_ERROR,
            message="It failed for a reason that is in the platform's log.",
        )
    return replace(outcome, duration_ms=since(started))


async def _record_finished(request: BuiltinRequest, outcome: ToolCallOutcome) -> None:
    await record_end(
        partial(_write_finished, request, outcome), spare=partial(_draft_finished, request, outcome)
    )


def _write_finished(request: BuiltinRequest, outcome: ToolCallOutcome, _is_again: bool) -> None:
    # One that was made again after a crash may have ended on record the first time.
    if is_call_open(request.workspace_id, request.call_id):
        record(_draft_finished(request, outcome))


def _draft_finished(request: BuiltinRequest, outcome: ToolCallOutcome) -> EntryDraft:
    body = {"content": outcome.content_as_json(), "message": outcome.message}
    return replace(
        _draft(request, Action.TOOL_CALL_FINISHED),
        outcome=outcome.outcome,
        result=canonical_json(body),
        duration_ms=outcome.duration_ms,
        details=dict(outcome.details),
    )


def _unrecorded(request: BuiltinRequest) -> EntryDraft:
    return replace(
        _draft(request, Action.TOOL_CALL_REFUSED),
        refused_by=RefusedBy.AUDIT,
        rule="audit.unavailable",
        details={"reason": AuditUnavailable.default_message},
    )


def _refuse(request: BuiltinRequest, error: DomainError, layer: RefusedBy, rule: str) -> None:
    record(
        replace(
            _draft(request, Action.TOOL_CALL_REFUSED),
            refused_by=layer,
            rule=rule,
            details={"reason": error.message},
        )
    )


def _draft(request: BuiltinRequest, action: Action) -> EntryDraft:
    return EntryDraft(
        action=action,
        actor=request.actor,
        workspace_id=request.workspace_id,
        call_id=request.call_id,
        bud=request.bud,
        conversation_id=request.conversation_id,
        turn_id=request.turn_id,
        model=request.model,
        tool=Ref(id=None, name=request.name),
        rule="builtin",
        arguments=as_sent(dict(request.arguments)),
    )
