"""Calling a tool, through the gate."""

from __future__ import annotations

import asyncio
import logging
import time
from dataclasses import replace
from functools import partial

from django.db import DatabaseError

from audit.actions import Action, Outcome, RefusedBy
from audit.errors import AuditUnavailable
from audit.services import EntryDraft, is_call_open, record
from mcp_servers.client.canonical import canonical_json
from mcp_servers.client.connections import calls
from mcp_servers.client.errors import Busy, CallTakenOver, InputMissing
from mcp_servers.client.values import ToolCallOutcome, ToolCallRequest
from mcp_servers.gate import kept_results
from mcp_servers.gate.abandoning import abandon_call
from mcp_servers.gate.admission import (
    SIGN_IN_RULE,
    Plan,
    SignInFirst,
    commit_requested,
    origin_of,
    prepare,
    prepare_again,
)
from mcp_servers.gate.checkpoints import (
    Checkpoint,
    SignInFirstCheckpoint,
    is_unsent,
    read_checkpoint,
)
from mcp_servers.gate.dialogue import Dialogue
from mcp_servers.gate.entries import draft, refuse, told, unrecorded
from mcp_servers.gate.observing import observed
from mcp_servers.gate.outcomes import failed, since
from mcp_servers.gate.port import CallPort, NoPort, PortOnItsLoop, Standing
from mcp_servers.gate.recording import (
    CommitClock,
    completed,
    completed_in_time,
    keep_refusal,
    record_end,
)
from mcp_servers.gate.sending import Exchange
from mcp_servers.gate.signing_in import CannotGoOn, SigningIn, lost_again, sign_in_first
from mcp_servers.gate.slots import HeldSlot
from mcp_servers.registry import health
from mcp_servers.registry.consent.effective import details_of
from workspaces.database import in_database
from workspaces.errors import DomainError
from workspaces.failpoints import Failpoint, failpoint

logger = logging.getLogger(__name__)


@observed
async def call_tool(request: ToolCallRequest, *, port: CallPort | None = None) -> ToolCallOutcome:
    """Call one tool of one MCP server, once, for whoever asks.

    Whatever the tool, the server or the line does is an outcome. When this function raises, nothing was sent, except
    for a cancellation, which reaches the server and is recorded before it goes on, and for InputMissing.

    Args:
        port: the caller's side: told of progress, checkpoints, and waits for people.

    Raises:
        ToolNotFound: not in this workspace.
        PermissionDenied: the actor may not call tools there.
        CallRefused: policy, quarantine, an approval that does not fit, or a server that is left alone after failures.
        ApprovalMissing: a person has to approve this call first.
        InputMissing: a person has to answer or to sign in first; the call goes on from its checkpoint after that.
        InvalidArguments: the arguments do not fit the tool's schema.
        Busy: no free slot in time.
        CallTakenOver: another process has the call by now, and records its end.
        AuditUnavailable: the call could not be recorded; also if it ended and that could not be recorded, in which
            case its result is given to nobody.
    Source: MCP specification, "Tools": Calling Tools, Error Handling, Security Considerations.
    """
    own_port = PortOnItsLoop(port or NoPort())
    checkpoint = read_checkpoint(request.checkpoint) if request.checkpoint else None
    if isinstance(checkpoint, SignInFirstCheckpoint):
        await own_port.checkpointed("")  # from here on a crash must not lead back to this point
        checkpoint = None
    plan = await (_readmit(request, own_port) if checkpoint else _admit(request, own_port))
    if plan.cached is not None:
        return plan.cached
    slot = HeldSlot(plan.spec, plan.tool.server, request.actor, is_held=True)
    try:
        return await _send_and_record(plan, own_port, checkpoint, slot)
    finally:
        slot.give_back()


async def _admit(request: ToolCallRequest, port: PortOnItsLoop) -> Plan:
    """Let a call through: afterwards *requested* is committed, and a slot of the server is held."""
    try:
        try:
            return await _admit_signed_in(request, port)
        except CallTakenOver:
            await port.make_sure()  # held up, but perhaps nobody else has it
            return await _admit_signed_in(request, port)
    except AuditUnavailable as error:
        await keep_refusal(unrecorded(request), error)


async def _admit_signed_in(request: ToolCallRequest, port: PortOnItsLoop) -> Plan:
    """Have the person sign in before anybody is asked to approve a call that cannot run without it."""
    try:
        return await _admit_once(request, port)
    except SignInFirst as first:
        missing = first
    try:
        await sign_in_first(origin_of(request, missing.tool), missing.spec, port)
        return await _admit_once(request, port)  # somebody has signed in at this very moment
    except (CannotGoOn, SignInFirst) as error:
        refusal = error if isinstance(error, CannotGoOn) else lost_again(missing.tool.server)
        write = partial(refuse, layer=RefusedBy.PERMISSION, rule=SIGN_IN_RULE)
        await in_database(write, request, missing.tool, None, refusal)
        raise refusal from None


async def _admit_once(request: ToolCallRequest, port: PortOnItsLoop) -> Plan:
    clock = CommitClock()
    work = in_database(_prepare_and_commit, request, port, clock)
    plan, was_cancelled = await completed_in_time(work, clock, undo=_give_slot_back)
    if not plan.is_committed and not was_cancelled:
        plan = await _take_slot(plan)
        clock = CommitClock()
        try:
            work = in_database(_commit_requested, plan, port, clock)
            # Its slot is given back below, also if the commit comes too late.
            plan, was_cancelled = await completed_in_time(work, clock, undo=lambda _: None)
        except BaseException:
            calls.slots_of(plan.spec).give_back()
            raise
    if was_cancelled:
        _give_slot_back(plan)
        if plan.is_committed and plan.cached is None:
            text = "The call was stopped before it was sent."
            outcome = failed(plan, Outcome.CANCELLED, text, time.monotonic(), {})
            await completed(_record_finished(plan, outcome, port))
        raise asyncio.CancelledError
    return plan


def _give_slot_back(plan: Plan) -> None:
    if plan.is_committed and plan.cached is None:
        calls.slots_of(plan.spec).give_back()


async def _take_slot(plan: Plan) -> Plan:
    started = time.monotonic()
    request = plan.request
    try:
        await HeldSlot(plan.spec, plan.tool.server, request.actor, is_held=False).take()
    except Busy as error:
        write = partial(refuse, layer=RefusedBy.BUSY, rule="server.busy")
        await in_database(write, request, plan.tool, plan.arguments, error)
        raise
    return replace(plan, queue_ms=since(started))


def _commit_requested(
    plan: Plan, port: PortOnItsLoop, clock: CommitClock, *, is_sent: bool = True
) -> Plan:
    """Write *requested*, unless this process may have lost the call meanwhile: nothing is written or sent then."""
    failpoint(Failpoint.GATE_BEFORE_REQUESTED)
    if port.standing() is not Standing.OURS:
        raise CallTakenOver
    plan = commit_requested(plan, clock, is_sent=is_sent)
    failpoint(Failpoint.GATE_AFTER_REQUESTED)
    return plan


def _prepare_and_commit(request: ToolCallRequest, port: PortOnItsLoop, clock: CommitClock) -> Plan:
    """In one crossing, as long as nobody has to wait for a slot."""
    plan = prepare(request)
    kept = kept_results.find_kept(plan) or kept_results.identical_result(plan)
    if kept is not None:
        plan = replace(_commit_requested(plan, port, clock, is_sent=False), cached=kept)
        _write_finished(plan, kept)
        return plan
    slots = calls.slots_of(plan.spec)
    if not slots.try_take():
        return plan
    try:
        return _commit_requested(plan, port, clock)
    except BaseException:
        slots.give_back()
        raise


async def _readmit(request: ToolCallRequest, port: PortOnItsLoop) -> Plan:
    """Let a call go on from its checkpoint: afterwards a slot is held. If it may not go on, it ends here."""
    try:
        plan, was_cancelled = await completed(
            in_database(partial(prepare_again, is_unsent=is_unsent(request.checkpoint)), request)
        )
        if was_cancelled:
            raise asyncio.CancelledError
        return await _take_slot(plan)
    except DomainError as error:
        await completed(in_database(abandon_call, request, reason=error.message))
        raise
    except asyncio.CancelledError:
        if not port.hands_over():
            await completed(in_database(abandon_call, request))
        raise


async def _send_and_record(
    plan: Plan,
    port: PortOnItsLoop,
    checkpoint: Checkpoint | None,
    slot: HeldSlot,
) -> ToolCallOutcome:
    request = plan.request
    origin = origin_of(request, plan.tool)
    dialogue = Dialogue(origin, spec=plan.spec, port=port, can_ask=request.can_ask, bud=request.bud)
    signing_in = SigningIn(
        origin,
        plan.spec,
        dialogue=dialogue,
        can_ask=request.can_ask,
        renew=lambda: prepare_again(request, is_unsent=not exchange.is_under_way).spec,
        slot=slot,
    )
    exchange = Exchange(plan, dialogue=dialogue, port=port, signing_in=signing_in, slot=slot)
    started = time.monotonic()
    try:
        outcome = await exchange.run(checkpoint, started)
    except (InputMissing, CallTakenOver):
        raise
    except asyncio.CancelledError:
        if exchange.has_checkpoint and port.hands_over():
            raise  # another process goes on from there
        outcome = failed(plan, Outcome.CANCELLED, "The call was stopped.", started, {})
        # Stop cancels this task, and the ledger still has to learn how the call ended.
        await completed(_record_finished(plan, outcome, port, only_if_open=True))
        await completed(dialogue.withdraw())
        raise
    may_keep = checkpoint is None and not dialogue.has_asked
    _, was_cancelled = await completed(_record_finished(plan, outcome, port, may_keep=may_keep))
    await completed(dialogue.withdraw())
    if was_cancelled:
        raise asyncio.CancelledError
    return outcome


async def _record_finished(
    plan: Plan,
    outcome: ToolCallOutcome,
    port: PortOnItsLoop,
    *,
    may_keep: bool = False,
    only_if_open: bool = False,
) -> None:
    """Write *finished*; tried again for a moment, because the call has happened and the ledger must learn of it.

    Args:
        may_keep: the result rests on nobody's answers, so an identical call may be given it.
        only_if_open: another process may have recorded the end already.

    Raises:
        OutcomeNotRecorded: it could not be written.
    """
    await record_end(
        partial(_write_end, plan, outcome, port, may_keep=may_keep, only_if_open=only_if_open),
        spare=partial(_draft_finished, plan, outcome),
    )


def _write_end(
    plan: Plan,
    outcome: ToolCallOutcome,
    port: PortOnItsLoop,
    is_again: bool,
    *,
    may_keep: bool,
    only_if_open: bool,
) -> None:
    request = plan.request
    failpoint(Failpoint.GATE_BEFORE_FINISHED)
    standing = port.standing()
    if standing is Standing.LOST:
        return  # whoever has the call records its end
    must_look = only_if_open or is_again or standing is Standing.UNSURE
    if must_look and not is_call_open(request.workspace_id, request.call_id):
        return
    _write_finished(plan, outcome)
    failpoint(Failpoint.GATE_AFTER_FINISHED)
    if may_keep:
        kept_results.keep(plan, outcome)


def _write_finished(plan: Plan, outcome: ToolCallOutcome) -> None:
    record(_draft_finished(plan, outcome))
    if outcome.cached_at is None:
        try:
            health.note_call(plan.tool.server, outcome)
        except DatabaseError:  # the end stands in the log; the next call says how the server is
            logger.warning("server_health_not_noted", exc_info=True)


def _draft_finished(plan: Plan, outcome: ToolCallOutcome) -> EntryDraft:
    body = {
        "content": outcome.content_as_json(),
        "structured": outcome.structured,
        "message": outcome.message,
    }
    details = {**details_of(plan.tool, plan.request.arguments), **outcome.details}
    if outcome.truncated:
        details["truncated"] = True
    if outcome.cached_at is not None:
        details["cached_at"] = outcome.cached_at.isoformat()
    drafted = draft(plan.request, plan.tool, Action.TOOL_CALL_FINISHED, plan.arguments)
    return replace(
        drafted,
        transport=calls.transport_of(plan.spec) or drafted.transport,
        outcome=outcome.outcome,
        rule=plan.decision.rule,
        result=canonical_json(body),
        duration_ms=outcome.duration_ms,
        queue_ms=plan.queue_ms,
        approval=told(plan.approval),
        details=details,
    )
