"""Reading a resource and fetching a prompt, through the gate: the same rights, limits and entries as for a tool."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from django.db import DatabaseError, transaction

from audit.actions import Outcome, RefusedBy
from audit.errors import AuditUnavailable
from audit.services import EntryDraft, prepare, record, was_recorded
from mcp_servers.client import results
from mcp_servers.client.canonical import JsonValue, canonical_json, clean_text
from mcp_servers.client.connections import calls
from mcp_servers.client.connections.failures import CallFailed, RpcError
from mcp_servers.client.errors import Busy, ConnectionFailed
from mcp_servers.client.inputs import Answers, InputRequired
from mcp_servers.client.values import (
    ContentPart,
    PromptMessage,
    PromptOutcome,
    PromptRequest,
    ResourceOutcome,
    ResourceRequest,
)
from mcp_servers.gate.dialogue import MOST_ROUNDS, Dialogue
from mcp_servers.gate.entries import SENT_AGAIN_AFTER
from mcp_servers.gate.outcomes import facts, since
from mcp_servers.gate.port import CallPort, NoPort, PortOnItsLoop
from mcp_servers.gate.read_admission import (
    ReadPlan,
    draft_read,
    plan_prompt,
    plan_resource,
    refuse_read,
)
from mcp_servers.gate.recording import (
    CommitClock,
    completed,
    completed_in_time,
    keep_refusal,
    record_end,
)
from mcp_servers.gate.sendings import Sendings
from mcp_servers.gate.signing_in import CannotGoOn, SigningIn
from mcp_servers.gate.slots import HeldSlot
from mcp_servers.registry import elicitation
from workspaces.database import in_database
from workspaces.redaction import redact_known
from workspaces.waiting_times import told_duration

if TYPE_CHECKING:
    import mcp_types

    from mcp_servers.client.spec import ConnectionSpec


logger = logging.getLogger(__name__)


_Send: TypeAlias = "Callable[[ConnectionSpec, Dialogue, Answers | None], Awaitable[Any]]"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ended:
    """How it ended, before it has the shape that the caller gets."""

    outcome: Outcome
    message: str = ""
    details: Mapping[str, JsonValue] | None = None
    body: object = None
    """What was read, for the log's commitment."""
    truncated: bool = False


async def read_resource(
    request: ResourceRequest, *, port: CallPort | None = None
) -> ResourceOutcome:
    """Read one resource of one MCP server, for whoever asks.

    Raises:
        ToolNotFound: no such server here.
        PermissionDenied: the actor may not use it.
        CallRefused: the server is switched off, or left alone after failures.
        InvalidArguments: no sound address.
        Busy: no free slot in time.
        AuditUnavailable: it could not be recorded; nothing was sent, or nothing is given away.
    Source: MCP specification, "Resources": Reading Resources.
    """
    plan = await in_database(plan_resource, request)
    parts: tuple[ContentPart, ...] = ()

    async def send(spec: ConnectionSpec, dialogue: Dialogue, answers: Answers | None) -> Any:
        return await calls.read_resource(
            spec,
            request.uri,
            call_id=request.call_id,
            user_id=request.actor.user_id,
            limits=plan.limits,
            listener=dialogue,
            answers=answers,
        )

    def read(result: mcp_types.ReadResourceResult) -> _Ended:
        nonlocal parts
        parts, truncated = results.read_contents(
            result,
            workspace_id=request.workspace_id,
            limit_bytes=plan.server.config.result_bytes,
        )
        body = [part.as_json() for part in parts]
        return _Ended(outcome=Outcome.OK, body=body, truncated=truncated)

    started = time.monotonic()
    ended = await _run(plan, send, read, port, renew=lambda: plan_resource(request).spec)
    return ResourceOutcome(
        outcome=ended.outcome,
        content=parts if ended.outcome is Outcome.OK else (),
        message=ended.message,
        duration_ms=since(started),
        truncated=ended.truncated,
        details=ended.details or {},
    )


async def get_prompt(request: PromptRequest, *, port: CallPort | None = None) -> PromptOutcome:
    """Fetch one prompt of one MCP server, filled in with arguments, for whoever asks.

    Raises:
        As read_resource(); InvalidArguments also for a missing or unknown argument.
    Source: MCP specification, "Prompts": Getting a Prompt.
    """
    plan = await in_database(plan_prompt, request)
    messages: tuple[PromptMessage, ...] = ()
    description = ""

    async def send(spec: ConnectionSpec, dialogue: Dialogue, answers: Answers | None) -> Any:
        return await calls.get_prompt(
            spec,
            plan.name,
            dict(request.arguments),
            call_id=request.call_id,
            user_id=request.actor.user_id,
            limits=plan.limits,
            listener=dialogue,
            answers=answers,
        )

    def read(result: mcp_types.GetPromptResult) -> _Ended:
        nonlocal messages, description
        messages, truncated = results.read_prompt(
            result,
            workspace_id=request.workspace_id,
            limit_bytes=plan.server.config.result_bytes,
        )
        told = redact_known(result.description or "", workspace_id=request.workspace_id)
        description = clean_text(told)[:2000]
        body = [message.as_json() for message in messages]
        return _Ended(outcome=Outcome.OK, body=body, truncated=truncated)

    started = time.monotonic()
    ended = await _run(plan, send, read, port, renew=lambda: plan_prompt(request).spec)
    return PromptOutcome(
        outcome=ended.outcome,
        description=description,
        messages=messages if ended.outcome is Outcome.OK else (),
        message=ended.message,
        duration_ms=since(started),
        truncated=ended.truncated,
        details=ended.details or {},
    )


async def _run(
    plan: ReadPlan,
    send: _Send,
    read: Callable[[Any], _Ended],
    port: CallPort | None,
    *,
    renew: Callable[[], ConnectionSpec],
) -> _Ended:
    """Wait for a slot, commit *requested*, ask the server as often as it asks back, commit *finished*."""
    request = plan.request
    origin = elicitation.Origin(
        call_id=request.call_id,
        server=plan.server,
        tool_name=plan.name[:256],
        actor=request.actor,
        conversation_id=request.conversation_id,
        turn_id=request.turn_id,
    )
    dialogue = Dialogue(
        origin,
        spec=plan.spec,
        port=PortOnItsLoop(port or NoPort()),
        can_ask=port is not None,
        bud=request.bud,
    )
    slot = HeldSlot(plan.spec, plan.server, request.actor, is_held=False)
    try:
        await slot.take()
    except Busy as error:
        write = partial(refuse_read, layer=RefusedBy.BUSY, rule="server.busy")
        await in_database(write, plan.kind, request, plan.server, plan.name, error)
        raise
    signing_in = SigningIn(
        origin,
        plan.spec,
        dialogue=dialogue,
        can_ask=port is not None,
        renew=renew,
        slot=slot,
    )
    try:
        await _commit_requested(plan)
        try:
            return await _send(plan, signing_in, dialogue, send, read)
        except asyncio.CancelledError:
            stopped = _Ended(outcome=Outcome.CANCELLED, message="It was stopped.")
            await completed(_record_finished(plan, stopped, 0))
            raise
        finally:
            await completed(dialogue.withdraw())
    finally:
        slot.give_back()


async def _send(
    plan: ReadPlan,
    signing_in: SigningIn,
    dialogue: Dialogue,
    send: _Send,
    read: Callable[[Any], _Ended],
) -> _Ended:
    started = time.monotonic()
    # Reading twice does no more than reading once.
    sendings = Sendings(partial(_write_requested_again, plan), may_repeat=True)
    try:
        ended = await _exchange(sendings, signing_in, dialogue, send, read)
    except TimeoutError:
        ended = _Ended(
            outcome=Outcome.TIMEOUT,
            message=f"The server did not answer within {told_duration(plan.limits.seconds)}.",
            details={"kind": "timeout"},
        )
    except CannotGoOn as error:
        ended = _Ended(outcome=Outcome.TRANSPORT_ERROR, message=error.message, details=error.facts)
    except RpcError as error:
        ended = _Ended(
            outcome=Outcome.TOOL_ERROR,
            message=f"The server refused: {clean_text(error.message)[:1000]}",
            details={"rpc_code": error.rpc_code},
        )
    except (CallFailed, ConnectionFailed) as error:
        ended = _Ended(
            outcome=Outcome.TRANSPORT_ERROR,
            message=f"{plan.server.name}: {error.message}",
            details={"kind": error.kind, **facts(error)},
        )
    except Exception:
        logger.exception("a read failed in an unforeseen way")
        ended = _Ended(
            outcome=Outcome.TRANSPORT_ERROR,
            message="It failed for a reason that is in the platform's log.",
            details={"kind": "unforeseen"},
        )
    _, was_cancelled = await completed(_record_finished(plan, ended, since(started)))
    if was_cancelled:
        raise asyncio.CancelledError
    return ended


async def _exchange(
    sendings: Sendings,
    signing_in: SigningIn,
    dialogue: Dialogue,
    send: _Send,
    read: Callable[[Any], _Ended],
) -> _Ended:
    answers: Answers | None = None
    for rounds in range(1, MOST_ROUNDS + 1):
        got = await signing_in.with_account(partial(_sent, sendings, send, dialogue, answers))
        if not isinstance(got, InputRequired):
            return await asyncio.to_thread(read, got)
        answers = await dialogue.answer_round(got, rounds=rounds, can_wait_elsewhere=False)
        sendings.after = "answers"
    return _Ended(
        outcome=Outcome.TOOL_ERROR,
        message=f"The server asked for input more than {MOST_ROUNDS} times and was given up.",
    )


async def _sent(
    sendings: Sendings,
    send: _Send,
    dialogue: Dialogue,
    answers: Answers | None,
    spec: ConnectionSpec,
) -> Any:
    return await sendings.make(lambda: send(spec, dialogue, answers))


async def _commit_requested(plan: ReadPlan) -> None:
    """Commit *requested*; a caller who has left is told so only then, and what was committed is ended on record."""
    clock = CommitClock()
    work = in_database(_write_requested, plan, clock)
    try:
        _, was_cancelled = await completed_in_time(work, clock, undo=lambda _: None)
    except AuditUnavailable as error:
        await keep_refusal(_unrecorded(plan), error)
    if was_cancelled:
        stopped = _Ended(outcome=Outcome.CANCELLED, message="It was stopped before it was sent.")
        await completed(_record_finished(plan, stopped, 0))
        raise asyncio.CancelledError


def _write_requested(plan: ReadPlan, clock: CommitClock) -> None:
    entry = prepare(
        draft_read(plan.kind.requested, plan.request, plan.server, plan.name, plan.arguments)
    )
    clock.begin()
    try:
        with transaction.atomic():
            record(entry)
            clock.check()
    except DatabaseError as error:
        raise AuditUnavailable(details={"action": plan.kind.requested.value}) from error


def _write_requested_again(plan: ReadPlan, after: str) -> None:
    record(
        draft_read(
            plan.kind.requested,
            plan.request,
            plan.server,
            plan.name,
            plan.arguments,
            details={SENT_AGAIN_AFTER: after},
        )
    )


async def _record_finished(plan: ReadPlan, ended: _Ended, duration_ms: int) -> None:
    """Write *finished*, once: a read that is stopped while its end is being written has ended already."""
    draft = partial(_draft_finished, plan, ended, duration_ms)
    request = plan.request

    def write(is_again: bool) -> None:
        may_stand = is_again or ended.outcome is Outcome.CANCELLED
        if may_stand and was_recorded(request.workspace_id, request.call_id, plan.kind.finished):
            return
        record(draft())

    await record_end(write, spare=draft)


def _draft_finished(plan: ReadPlan, ended: _Ended, duration_ms: int) -> EntryDraft:
    drafted = draft_read(
        plan.kind.finished,
        plan.request,
        plan.server,
        plan.name,
        plan.arguments,
        outcome=ended.outcome,
        duration_ms=duration_ms,
        result=canonical_json({"content": ended.body, "message": ended.message}),
        details=dict(ended.details or {}),
    )
    return replace(drafted, transport=calls.transport_of(plan.spec) or drafted.transport)


def _unrecorded(plan: ReadPlan) -> EntryDraft:
    return draft_read(
        plan.kind.refused,
        plan.request,
        plan.server,
        plan.name,
        plan.arguments,
        refused_by=RefusedBy.AUDIT,
        rule="audit.unavailable",
        details={"reason": AuditUnavailable.default_message},
    )
