"""The gate: the only road to a server's `tools/call`, for whoever asks.

In this order: resolve the tool in the caller's workspace; policy; approval; arguments; commit *requested*; call, within
time, slots and size; commit *finished* before anyone sees the result. A refusal at any step is an entry of its own, and
what cannot be recorded does not happen.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeVar
from uuid import UUID

from django.conf import settings
from django.db import DatabaseError, transaction

from audit.actions import Action, Outcome, RefusedBy
from audit.errors import AuditUnavailable
from audit.services import EntryDraft, Ref, record
from mcp_servers import approvals, health, policy, results, schemas
from mcp_servers.canonical import MAX_ARGUMENTS_BYTES, JsonValue, canonical_json, clean_text
from mcp_servers.connections import calls
from mcp_servers.connections.failures import CallFailed, RpcError
from mcp_servers.errors import (
    ApprovalMissing,
    Busy,
    CallRefused,
    ConnectionFailed,
    InvalidArguments,
    InvalidJson,
    McpServersError,
    ToolNotFound,
)
from mcp_servers.models import Approval, McpTool
from mcp_servers.specs import WORKSPACE_PRINCIPAL, connection_spec
from mcp_servers.values import Effect, Progress, ToolCallOutcome, ToolCallRequest
from workspaces.database import in_database
from workspaces.errors import DomainError, PermissionDenied
from workspaces.models import Membership, User
from workspaces.roles import Permission, has_permission, require

if TYPE_CHECKING:
    from mcp_servers.connections.permits import CallPermit
    from mcp_servers.connections.transports import ConnectionSpec
    from mcp_servers.policy import PolicyDecision

logger = logging.getLogger(__name__)

T = TypeVar("T")
ProgressCallback = Callable[[Progress], None]

_ENTRY_ATTEMPTS: Final = 3
_ENTRY_PAUSE_SECONDS: Final = 0.3
_NOT_CARRIED_OUT: Final = frozenset(
    {"unreachable", "auth_required", "session_lost", "rate_limited", "redirect"}
)

# Who refused, for a policy decision; everything else that policy says is "policy".
_LAYER_OF_RULE: Final = {
    "server.inactive": RefusedBy.DISABLED,
    "tool.removed": RefusedBy.DISABLED,
    "tool.disabled": RefusedBy.DISABLED,
    "tool.unsound": RefusedBy.QUARANTINE,
    "tool.quarantined": RefusedBy.QUARANTINE,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plan:
    """A call that was let through, and all that is needed to make it."""

    request: ToolCallRequest
    tool: McpTool
    arguments: bytes
    decision: PolicyDecision
    approval: Approval | None
    spec: ConnectionSpec
    timeout_seconds: float
    queue_ms: int = 0
    is_committed: bool = False
    """*requested* is written, and a slot is held."""


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


# Before the call


async def _admit(request: ToolCallRequest) -> _Plan:
    """Let a call through: afterwards *requested* is committed, and a slot of the server is held."""
    plan, was_cancelled = await _completed(in_database(_prepare_and_commit, request))
    if not plan.is_committed and not was_cancelled:
        started = time.monotonic()
        slots, group = calls.slots_of(plan.spec), _group_of(request)
        try:
            await slots.take(group, wait_seconds=plan.tool.server.config.queue_seconds)
        except Busy as error:
            refuse = partial(_refuse, layer=RefusedBy.BUSY, rule="server.busy")
            await in_database(refuse, plan.request, plan.tool, plan.arguments, error)
            raise
        plan = replace(plan, queue_ms=_since(started))
        try:
            plan, was_cancelled = await _completed(in_database(_commit_requested, plan))
        except BaseException:
            slots.give_back()
            raise
    if was_cancelled:
        if plan.is_committed:
            calls.slots_of(plan.spec).give_back()
            outcome = _failed(
                Outcome.CANCELLED, "The call was stopped before it was sent.", time.monotonic(), {}
            )
            await _completed(_record_finished(plan, outcome))
        raise asyncio.CancelledError
    return plan


def _prepare_and_commit(request: ToolCallRequest) -> _Plan:
    """In one crossing, as long as nobody has to wait for a slot."""
    plan = _prepare(request)
    slots = calls.slots_of(plan.spec)
    if not slots.try_take():
        return plan
    try:
        return _commit_requested(plan)
    except BaseException:
        slots.give_back()
        raise


def _prepare(request: ToolCallRequest) -> _Plan:
    """Resolve, decide, check: everything that needs no network. Records and raises what it refuses."""
    _check_actor(request)
    tool = _resolve(request)
    arguments = _canonical(request, tool)
    decision = _decide(request, tool, arguments)
    approval = _check_approval(request, tool, arguments, decision)
    _check_arguments(request, tool, arguments)
    spec = _spec_of(request, tool, arguments)
    wait = calls.wait_seconds(spec)
    if wait > 0:
        _refuse_because(
            request,
            tool,
            arguments,
            layer=RefusedBy.BREAKER,
            rule="server.backing_off",
            reason=f"{tool.server.name} could not be reached a moment ago. Next attempt in {wait:.0f} s.",
        )
    return _Plan(
        request=request,
        tool=tool,
        arguments=arguments,
        decision=decision,
        approval=approval,
        spec=spec,
        timeout_seconds=request.timeout_seconds
        or tool.server.config.call_seconds
        or settings.TRELLIS.tool_timeout_seconds,
    )


def _check_actor(request: ToolCallRequest) -> None:
    """The actor's word was taken some time ago; whether they are still a member is asked now."""
    actor = request.actor
    try:
        if request.workspace_id is None:
            raise PermissionDenied("A call needs a workspace.")
        if not has_permission(actor, Permission.MANAGE_SERVERS, workspace_id=request.workspace_id):
            require(actor, Permission.USE_CHAT, workspace_id=request.workspace_id)
        if actor.user_id is not None and not _may_still_enter(actor.user_id, request.workspace_id):
            raise PermissionDenied("You are no longer a member of this workspace.")
    except PermissionDenied as error:
        _refuse(request, None, None, error, layer=RefusedBy.PERMISSION, rule="actor.forbidden")
        raise


def _may_still_enter(user_id: UUID, workspace_id: UUID) -> bool:
    members = Membership.objects.for_workspace(workspace_id)
    if members.filter(user_id=user_id, user__is_active=True, workspace__is_active=True).exists():
        return True
    return User.objects.filter(pk=user_id, is_active=True, is_superuser=True).exists()


def _resolve(request: ToolCallRequest) -> McpTool:
    tools = McpTool.objects.for_workspace(request.workspace_id).select_related(
        "server", "server__program"
    )
    tool = tools.find(request.tool_id)
    if tool is None:
        error = ToolNotFound()
        _refuse(request, None, None, error, layer=RefusedBy.NOT_FOUND, rule="tool.not_found")
        raise error
    return tool


def _canonical(request: ToolCallRequest, tool: McpTool) -> bytes:
    try:
        arguments = canonical_json(dict(request.arguments))
    except InvalidJson as fault:
        error = InvalidArguments(f"The arguments cannot be sent: {fault.message}.")
        _refuse(request, tool, None, error, layer=RefusedBy.ARGUMENTS, rule="arguments.not_json")
        raise error from fault
    if len(arguments) > MAX_ARGUMENTS_BYTES:
        error = InvalidArguments(f"The arguments are larger than {MAX_ARGUMENTS_BYTES} bytes.")
        _refuse(request, tool, None, error, layer=RefusedBy.ARGUMENTS, rule="arguments.too_large")
        raise error
    return arguments


def _decide(request: ToolCallRequest, tool: McpTool, arguments: bytes) -> PolicyDecision:
    decision = policy.decide(tool.facts())
    if decision.effect is Effect.DENY:
        layer = _LAYER_OF_RULE.get(decision.rule, RefusedBy.POLICY)
        _refuse_because(
            request, tool, arguments, layer=layer, rule=decision.rule, reason=decision.reason
        )
    offered = request.offered_definition_hash
    if offered is not None and offered != tool.definition_hash:
        reason = "This tool changed after it was offered. Please try again."
        _refuse_because(
            request,
            tool,
            arguments,
            layer=RefusedBy.QUARANTINE,
            rule="tool.changed_since_offer",
            reason=reason,
        )
    return decision


def _check_approval(
    request: ToolCallRequest, tool: McpTool, arguments: bytes, decision: PolicyDecision
) -> Approval | None:
    if request.approval_id is None:
        if decision.effect is Effect.AUTO:
            return None
        if request.can_ask:
            record(
                replace(
                    _draft(request, tool, Action.APPROVAL_REQUESTED, arguments), rule=decision.rule
                )
            )
            raise ApprovalMissing(decision)
        error = ApprovalMissing(decision)
        _refuse(request, tool, arguments, error, layer=RefusedBy.APPROVAL, rule=decision.rule)
        raise error
    approval = Approval.objects.for_workspace(request.workspace_id).find(request.approval_id)
    fault = approvals.find_fault(
        approval,
        call_id=request.call_id,
        tool=tool,
        arguments=arguments,
        requester=request.actor,
        principal=WORKSPACE_PRINCIPAL,
    )
    if fault is not None:
        _refuse_because(
            request, tool, arguments, layer=RefusedBy.APPROVAL, rule=fault, reason=_UNFIT
        )
    return approval


_UNFIT: Final = "This approval is for another call, or has been used. Please ask again."


def _check_arguments(request: ToolCallRequest, tool: McpTool, arguments: bytes) -> None:
    try:
        schemas.check_arguments(tool.input_schema, dict(request.arguments))
    except InvalidArguments as error:
        _refuse(request, tool, arguments, error, layer=RefusedBy.ARGUMENTS, rule="arguments.schema")
        raise


def _spec_of(request: ToolCallRequest, tool: McpTool, arguments: bytes) -> ConnectionSpec:
    try:
        return connection_spec(tool.server)
    except DomainError as error:
        # A row that was sound when saved: a key is gone, or the catalogue changed under it.
        _refuse_because(
            request,
            tool,
            arguments,
            layer=RefusedBy.POLICY,
            rule="server.misconfigured",
            reason=error.message,
        )


def _commit_requested(plan: _Plan) -> _Plan:
    """Consume the approval and write *requested*, both or neither. The caller holds a slot."""
    try:
        with transaction.atomic():
            if plan.approval is not None and not approvals.consume(plan.approval):
                raise _ApprovalGone
            record(
                replace(
                    _draft(plan.request, plan.tool, Action.TOOL_CALL_REQUESTED, plan.arguments),
                    rule=plan.decision.rule,
                    queue_ms=plan.queue_ms,
                    approval=_told(plan.approval),
                )
            )
    except _ApprovalGone:
        _refuse_because(
            plan.request,
            plan.tool,
            plan.arguments,
            layer=RefusedBy.APPROVAL,
            rule="approval.used_or_expired",
            reason=_UNFIT,
        )
    except DatabaseError as error:
        raise AuditUnavailable(details={"action": Action.TOOL_CALL_REQUESTED.value}) from error
    return replace(plan, is_committed=True)


class _ApprovalGone(Exception):
    """Used by another call in the meantime, or run out."""


# The call


async def _send_and_record(plan: _Plan, on_progress: ProgressCallback | None) -> ToolCallOutcome:
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
        outcome = _failed(Outcome.CANCELLED, "The call was stopped.", started, {})
        # Stop cancels this task, and the ledger still has to learn how the call ended.
        await _completed(_record_finished(plan, outcome))
        raise
    _, was_cancelled = await _completed(_record_finished(plan, outcome))
    if was_cancelled:
        raise asyncio.CancelledError
    return outcome


async def _send(
    plan: _Plan, permit: CallPermit, on_progress: ProgressCallback | None, started: float
) -> ToolCallOutcome:
    """Send the call; every way in which it can end, as an outcome."""
    try:
        result = await calls.send_call(
            plan.spec,
            permit,
            timeout_seconds=plan.timeout_seconds,
            on_progress=_on_this_loop(on_progress),
        )
        return results.read_result(
            result,
            limit_bytes=plan.tool.server.config.result_bytes,
            output_schema=plan.tool.output_schema,
            duration_ms=_since(started),
        )
    except TimeoutError:
        text = f"The tool did not answer within {plan.timeout_seconds:g} s."
        return _failed(Outcome.TIMEOUT, text, started, {"kind": "timeout"})
    except RpcError as error:
        text = f"The server refused the call: {clean_text(error.message)[:1000]}"
        return _failed(Outcome.TOOL_ERROR, text, started, {"rpc_code": error.rpc_code})
    except CallFailed as error:
        return _failed(
            _outcome_of(plan, error.kind), _words_of(plan, error), started, _facts(error)
        )
    except ConnectionFailed as error:
        text = f"{plan.tool.server.name}: {error.message}"
        return _failed(
            Outcome.TRANSPORT_ERROR, text, started, {"kind": error.kind, **_facts(error)}
        )
    except Exception:
        # Something we did not foresee: the bytes may have left, so the call may have been carried out.
        logger.exception("tool call failed in an unforeseen way")
        text = "The call failed for a reason that is in the platform's log."
        return _failed(Outcome.OUTCOME_UNKNOWN, text, started, {"kind": "unforeseen"})


def _outcome_of(plan: _Plan, kind: str) -> Outcome:
    """What a broken call means: the worst that the tool's nature allows."""
    if kind in _NOT_CARRIED_OUT or kind in ("unreadable", "too_large", "asks_back", "needs_input"):
        return Outcome.TRANSPORT_ERROR
    hints = plan.tool.typed_annotations
    is_harmless = plan.tool.server.trusts_annotations and (
        hints.read_only is True or hints.idempotent is True
    )
    return Outcome.TRANSPORT_ERROR if is_harmless else Outcome.OUTCOME_UNKNOWN


def _words_of(plan: _Plan, error: CallFailed) -> str:
    text = f"{plan.tool.server.name}: {error.message}"
    if _outcome_of(plan, error.kind) is Outcome.OUTCOME_UNKNOWN:
        text += " Whether the call was carried out is unknown."
    return text


def _facts(error: McpServersError) -> dict[str, JsonValue]:
    return {
        key: value
        for key, value in error.details.items()
        if value is None or isinstance(value, bool | int | float | str)
    }


def _failed(
    outcome: Outcome, message: str, started: float, details: Mapping[str, JsonValue]
) -> ToolCallOutcome:
    return ToolCallOutcome(
        outcome=outcome, message=message, duration_ms=_since(started), details=details
    )


def _since(started: float) -> int:
    return round((time.monotonic() - started) * 1000)


def _on_this_loop(
    on_progress: ProgressCallback | None,
) -> Callable[[float, float | None, str | None], None] | None:
    if on_progress is None:
        return None
    loop = asyncio.get_running_loop()

    def report(progress: float, total: float | None, message: str | None) -> None:
        text = clean_text(message)[:500] if isinstance(message, str) else None
        loop.call_soon_threadsafe(
            on_progress, Progress(progress=progress, total=total, message=text)
        )

    return report


# After the call


async def _record_finished(plan: _Plan, outcome: ToolCallOutcome) -> None:
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


def _write_finished(plan: _Plan, outcome: ToolCallOutcome) -> None:
    body = {
        "content": outcome.content_as_json(),
        "structured": outcome.structured,
        "message": outcome.message,
    }
    record(
        replace(
            _draft(plan.request, plan.tool, Action.TOOL_CALL_FINISHED, plan.arguments),
            outcome=outcome.outcome,
            rule=plan.decision.rule,
            result=canonical_json(body),
            duration_ms=outcome.duration_ms,
            queue_ms=plan.queue_ms,
            approval=_told(plan.approval),
            details={**outcome.details, "truncated": outcome.truncated}
            if outcome.truncated
            else outcome.details,
        )
    )
    health.note_call(plan.tool.server, outcome)


async def _completed(work: Coroutine[Any, Any, T]) -> tuple[T, bool]:
    """Await something to its end, however often the caller is cancelled; whether that happened.

    What has begun to be written has to be known as written or not, or a stopped call would stay open in the log.
    """
    task = asyncio.ensure_future(work)
    was_cancelled = False
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            if task.cancelled():
                raise
            was_cancelled = True
        except Exception:  # noqa: BLE001  result() below raises it
            break
    return task.result(), was_cancelled


# Entries


def _refuse_because(
    request: ToolCallRequest,
    tool: McpTool,
    arguments: bytes,
    *,
    layer: RefusedBy,
    rule: str,
    reason: str,
) -> NoReturn:
    error = CallRefused(reason, rule=rule, refused_by=layer)
    _refuse(request, tool, arguments, error, layer=layer, rule=rule)
    raise error


def _refuse(
    request: ToolCallRequest,
    tool: McpTool | None,
    arguments: bytes | None,
    error: DomainError,
    *,
    layer: RefusedBy,
    rule: str,
) -> None:
    """Write *refused*. Nothing was or will be sent."""
    record(
        replace(
            _draft(request, tool, Action.TOOL_CALL_REFUSED, arguments),
            refused_by=layer,
            rule=rule,
            details={"reason": error.message},
        )
    )


def _draft(
    request: ToolCallRequest, tool: McpTool | None, action: Action, arguments: bytes | None
) -> EntryDraft:
    server = tool.server if tool is not None else None
    return EntryDraft(
        action=action,
        actor=request.actor,
        workspace_id=request.workspace_id,
        call_id=request.call_id,
        bud=request.bud,
        conversation_id=request.conversation_id,
        turn_id=request.turn_id,
        model=request.model or "",
        server=Ref(id=server.pk, name=server.name) if server is not None else None,
        transport=server.transport if server is not None else "",
        protocol_revision=server.protocol_revision if server is not None else "",
        tool=Ref(id=tool.pk, name=tool.name)
        if tool is not None
        else Ref(id=None, name=str(request.tool_id)),
        definition_hash=tool.definition_hash if tool is not None else "",
        annotations=tool.typed_annotations.as_json() if tool is not None else None,
        arguments=arguments,
    )


def _told(approval: Approval | None) -> Mapping[str, object] | None:
    if approval is None:
        return None
    return {
        "id": str(approval.pk),
        "approver": approval.approver_label,
        "granted_at": approval.created_at.isoformat(),
    }


def _group_of(request: ToolCallRequest) -> str:
    """Who shares a place in the queue of a busy server."""
    return str(request.actor.user_id or request.actor.label)
