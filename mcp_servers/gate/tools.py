"""Calling a tool, through the gate."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

import mcp_types

from audit.actions import Action, Outcome, RefusedBy
from audit.errors import AuditUnavailable
from audit.services import record
from mcp_servers import health, results
from mcp_servers.canonical import canonical_json, clean_text
from mcp_servers.connections import calls
from mcp_servers.connections.failures import CallFailed, RpcError
from mcp_servers.errors import Busy, ConnectionFailed
from mcp_servers.gate.admission import Plan, commit_requested, prepare
from mcp_servers.gate.entries import completed, draft, refuse, told
from mcp_servers.gate.outcomes import facts, failed, outcome_of, since, words_of
from mcp_servers.inputs import AskedInput, CallLimits, InputAction, InputAnswer
from mcp_servers.values import Progress, ToolCallOutcome, ToolCallRequest
from workspaces.database import in_database

if TYPE_CHECKING:
    from mcp_servers.connections.permits import CallPermit

logger = logging.getLogger(__name__)

ProgressCallback = Callable[[Progress], None]

_ENTRY_ATTEMPTS: Final = 3
_HARD_FACTOR: Final = 10.0
"""How much longer than without progress a call may take in all."""
_ENTRY_PAUSE_SECONDS: Final = 0.3


async def call_tool(
    request: ToolCallRequest, *, on_progress: ProgressCallback | None = None
) -> ToolCallOutcome:
    """Call one tool of one MCP server, once, for whoever asks.

    Whatever the tool, the server or the line does is an outcome. When this function raises, nothing was sent, except
    for a cancellation, which reaches the server and is recorded before it goes on.

    Args:
        on_progress: called on the caller's event loop.

    Raises:
        ToolNotFound: not in this workspace.
        PermissionDenied: the actor may not call tools there.
        CallRefused: policy, quarantine, an approval that does not fit, or a server that is left alone after failures.
        ApprovalMissing: a person has to approve this call first.
        InvalidArguments: the arguments do not fit the tool's schema.
        Busy: no free slot in time.
        AuditUnavailable: the call could not be recorded; also if it ended and that could not be recorded, in which
            case its result is given to nobody.
    Source: MCP specification, "Tools": Calling Tools, Error Handling, Security Considerations.
    """
    plan = await _admit(request)
    try:
        return await _send_and_record(plan, on_progress)
    finally:
        calls.slots_of(plan.spec).give_back()


async def _admit(request: ToolCallRequest) -> Plan:
    """Let a call through: afterwards *requested* is committed, and a slot of the server is held."""
    plan, was_cancelled = await completed(in_database(_prepare_and_commit, request))
    if not plan.is_committed and not was_cancelled:
        started = time.monotonic()
        slots, group = calls.slots_of(plan.spec), group_of(request)
        try:
            await slots.take(group, wait_seconds=plan.tool.server.config.queue_seconds)
        except Busy as error:
            write = partial(refuse, layer=RefusedBy.BUSY, rule="server.busy")
            await in_database(write, plan.request, plan.tool, plan.arguments, error)
            raise
        plan = replace(plan, queue_ms=since(started))
        try:
            plan, was_cancelled = await completed(in_database(commit_requested, plan))
        except BaseException:
            slots.give_back()
            raise
    if was_cancelled:
        if plan.is_committed:
            calls.slots_of(plan.spec).give_back()
            outcome = failed(
                Outcome.CANCELLED, "The call was stopped before it was sent.", time.monotonic(), {}
            )
            await completed(_record_finished(plan, outcome))
        raise asyncio.CancelledError
    return plan


def _prepare_and_commit(request: ToolCallRequest) -> Plan:
    """In one crossing, as long as nobody has to wait for a slot."""
    plan = prepare(request)
    slots = calls.slots_of(plan.spec)
    if not slots.try_take():
        return plan
    try:
        return commit_requested(plan)
    except BaseException:
        slots.give_back()
        raise


async def _send_and_record(plan: Plan, on_progress: ProgressCallback | None) -> ToolCallOutcome:
    permit = calls.mint_permit(
        call_id=plan.request.call_id,
        server_id=plan.tool.server_id,
        tool_name=plan.tool.name,
        arguments=plan.arguments,
    )
    started = time.monotonic()
    try:
        outcome = await _send(plan, permit, on_progress, started)
    except asyncio.CancelledError:
        outcome = failed(Outcome.CANCELLED, "The call was stopped.", started, {})
        # Stop cancels this task, and the ledger still has to learn how the call ended.
        await completed(_record_finished(plan, outcome))
        raise
    _, was_cancelled = await completed(_record_finished(plan, outcome))
    if was_cancelled:
        raise asyncio.CancelledError
    return outcome


async def _send(
    plan: Plan, permit: CallPermit, on_progress: ProgressCallback | None, started: float
) -> ToolCallOutcome:
    """Send the call; every way in which it can end, as an outcome."""
    try:
        result = await calls.send_call(
            plan.spec,
            permit,
            limits=CallLimits(
                seconds=plan.timeout_seconds, hard_seconds=_HARD_FACTOR * plan.timeout_seconds
            ),
            listener=_OnThisLoop(on_progress),
        )
        if not isinstance(result, mcp_types.CallToolResult):
            text = "The tool asks for more input, which nobody was asked for."
            return failed(Outcome.TRANSPORT_ERROR, text, started, {"kind": "needs_input"})
        return results.read_result(
            result,
            limit_bytes=plan.tool.server.config.result_bytes,
            output_schema=plan.tool.output_schema,
            duration_ms=since(started),
        )
    except TimeoutError:
        text = f"The tool did not answer within {plan.timeout_seconds:g} s."
        return failed(Outcome.TIMEOUT, text, started, {"kind": "timeout"})
    except RpcError as error:
        text = f"The server refused the call: {clean_text(error.message)[:1000]}"
        return failed(Outcome.TOOL_ERROR, text, started, {"rpc_code": error.rpc_code})
    except CallFailed as error:
        return failed(outcome_of(plan, error.kind), words_of(plan, error), started, facts(error))
    except ConnectionFailed as error:
        text = f"{plan.tool.server.name}: {error.message}"
        return failed(Outcome.TRANSPORT_ERROR, text, started, {"kind": error.kind, **facts(error)})
    except Exception:
        # Something we did not foresee: the bytes may have left, so the call may have been carried out.
        logger.exception("tool call failed in an unforeseen way")
        text = "The call failed for a reason that is in the platform's log."
        return failed(Outcome.OUTCOME_UNKNOWN, text, started, {"kind": "unforeseen"})


class _OnThisLoop:
    """Passes progress on to the caller's loop, and has nobody to answer questions."""

    def __init__(self, on_progress: ProgressCallback | None) -> None:
        self._on_progress = on_progress
        self._loop = asyncio.get_running_loop()

    def progressed(self, progress: Progress) -> None:
        if self._on_progress is not None:
            text = clean_text(progress.message)[:500] if progress.message is not None else None
            self._loop.call_soon_threadsafe(self._on_progress, replace(progress, message=text))

    async def answer(self, asked: AskedInput) -> InputAnswer:
        return InputAnswer(action=InputAction.CANCEL)


async def _record_finished(plan: Plan, outcome: ToolCallOutcome) -> None:
    """Write *finished*; tried again for a moment, because the call has happened and the ledger must learn of it."""
    for attempt in range(1, _ENTRY_ATTEMPTS + 1):
        try:
            await in_database(_write_finished, plan, outcome)
        except AuditUnavailable:
            if attempt == _ENTRY_ATTEMPTS:
                logger.exception(
                    "a finished tool call could not be recorded",
                    extra={"call_id": str(plan.request.call_id)},
                )
                raise
            await asyncio.sleep(_ENTRY_PAUSE_SECONDS * attempt)
        else:
            return


def _write_finished(plan: Plan, outcome: ToolCallOutcome) -> None:
    body = {
        "content": outcome.content_as_json(),
        "structured": outcome.structured,
        "message": outcome.message,
    }
    record(
        replace(
            draft(plan.request, plan.tool, Action.TOOL_CALL_FINISHED, plan.arguments),
            outcome=outcome.outcome,
            rule=plan.decision.rule,
            result=canonical_json(body),
            duration_ms=outcome.duration_ms,
            queue_ms=plan.queue_ms,
            approval=told(plan.approval),
            details={**outcome.details, "truncated": outcome.truncated}
            if outcome.truncated
            else outcome.details,
        )
    )
    health.note_call(plan.tool.server, outcome)


def group_of(request: ToolCallRequest) -> str:
    """Who shares a place in the queue of a busy server."""
    return str(request.actor.user_id or request.actor.label)
