"""Whether a call may be made: everything that needs no network, each refusal an entry of its own."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final
from uuid import UUID

from django.conf import settings
from django.db import DatabaseError, transaction

from audit.actions import Action, RefusedBy
from audit.errors import AuditUnavailable
from audit.services import prepare as prepare_entry
from audit.services import record
from mcp_servers.client import schemas
from mcp_servers.client.canonical import MAX_ARGUMENTS_BYTES, canonical_json
from mcp_servers.client.connections import calls
from mcp_servers.client.errors import ApprovalMissing, InvalidArguments, InvalidJson, ToolNotFound
from mcp_servers.client.inputs import CallLimits
from mcp_servers.client.values import Effect, ToolCallOutcome, ToolCallRequest
from mcp_servers.gate.destinations import destinations_of
from mcp_servers.gate.entries import draft, refuse, refuse_because, told
from mcp_servers.gate.resolving import ResolvedTool, may_still_enter, resolve_tool
from mcp_servers.gate.signing_in import why_nobody_signed_in, words_unasked
from mcp_servers.models import Approval, McpServer, McpTool
from mcp_servers.oauth.grants import person_of, principal_of
from mcp_servers.registry.consent import approvals, permissions, policy
from mcp_servers.registry.consent.effective import facts_of_call
from mcp_servers.registry.discovery import is_shown_to
from mcp_servers.registry.elicitation import Origin
from mcp_servers.registry.quotas import is_quota_used_up, take_from_quota
from workspaces.errors import DomainError, PermissionDenied
from workspaces.failpoints import Failpoint, failpoint
from workspaces.roles import Permission, has_permission, require
from workspaces.waiting_times import told_wait

if TYPE_CHECKING:
    from mcp_servers.client.spec import ConnectionSpec
    from mcp_servers.gate.recording import CommitClock
    from mcp_servers.registry.consent.policy import PolicyDecision
    from workspaces.actors import Actor

_PROGRESS_FACTOR: Final = 10
"""By how much progress may extend a call at most, where nothing is set."""

SIGN_IN_RULE: Final = "server.sign_in_missing"

# Who refused, for a policy decision; everything else that policy says is "policy".
_LAYER_OF_RULE: Final = {
    "server.inactive": RefusedBy.DISABLED,
    "tool.removed": RefusedBy.DISABLED,
    "tool.disabled": RefusedBy.DISABLED,
    "tool.unsound": RefusedBy.QUARANTINE,
    "tool.quarantined": RefusedBy.QUARANTINE,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A call that was let through, and all that is needed to make it."""

    request: ToolCallRequest
    tool: McpTool
    arguments: bytes
    decision: PolicyDecision
    approval: Approval | None
    spec: ConnectionSpec
    limits: CallLimits
    queue_ms: int = 0
    is_committed: bool = False
    """*requested* is written, and a slot is held."""
    cached: ToolCallOutcome | None = None
    """The kept result of an identical call; *finished* is written too, and no slot is held."""


def prepare(request: ToolCallRequest) -> Plan:
    """Resolve, decide, check: everything that needs no network. Records and raises what it refuses."""
    _check_actor(request)
    resolved = _resolve(request)
    tool = resolved.tool
    arguments = _canonical(request, tool)
    decision = _decide(request, tool, arguments)
    # Nobody is asked to approve a call that cannot run, so the rest comes before the question.
    _check_arguments(request, tool, arguments)
    spec = _spec_of(request, resolved, arguments)
    # Without an account nothing is sent, whatever the server did a moment ago.
    wait = 0.0 if spec.needs_sign_in else calls.wait_seconds(spec)
    if wait > 0:
        refuse_because(
            request,
            tool,
            arguments,
            layer=RefusedBy.BREAKER,
            rule="server.backing_off",
            reason=why_left_alone(tool.server, wait),
        )
    if request.approval_id is None and decision.effect is not Effect.AUTO:
        _check_can_be_approved(request, tool, arguments, spec)
    return Plan(
        request=request,
        tool=tool,
        arguments=arguments,
        decision=decision,
        approval=_check_approval(request, tool, arguments, decision),
        spec=spec,
        limits=limits_of(tool.server, request.timeout_seconds),
    )


def prepare_again(request: ToolCallRequest, *, is_unsent: bool) -> Plan:
    """For a call that goes on where it stopped: *requested* stands, and so does the approval; today's rights count.

    Args:
        is_unsent: the server has not acted on it, so that all that would let it run today has to.

    Raises:
        CallRefused, PermissionDenied, ToolNotFound: it may not go on; recorded as a refusal.
    """
    _check_actor(request)
    resolved = _resolve(request)
    tool = resolved.tool
    arguments = _canonical(request, tool)
    decision = _decide(request, tool, arguments)
    if request.approval_id is None and _asks_by_now(decision, is_unsent=is_unsent):
        reason = (
            "While it waited, an administrator decided that this tool asks first. Please ask again."
            if decision.rule in _ASKED_BY_ADMINISTRATORS
            else "While it waited, it became a call that asks first. Please ask again."
        )
        refuse_because(
            request, tool, arguments, layer=RefusedBy.POLICY, rule=decision.rule, reason=reason
        )
    if is_unsent:
        _check_still_approved(request, tool, arguments)
        _check_arguments(request, tool, arguments)
    return Plan(
        request=request,
        tool=tool,
        arguments=arguments,
        decision=decision,
        approval=None,
        spec=_spec_of(request, resolved, arguments),
        limits=limits_of(tool.server, request.timeout_seconds),
        is_committed=True,
    )


_ASKED_BY_ADMINISTRATORS: Final = frozenset({"tool.confirm", "action.confirm"})


def _asks_by_now(decision: PolicyDecision, *, is_unsent: bool) -> bool:
    if decision.effect is not Effect.CONFIRM:
        return False
    # What was read meanwhile is in none of the call's arguments.
    return decision.rule in _ASKED_BY_ADMINISTRATORS or (
        is_unsent and decision.rule != policy.UNTRUSTED_CONTENT
    )


def _check_still_approved(request: ToolCallRequest, tool: McpTool, arguments: bytes) -> None:
    """What a person said yes to has to be what is sent, although their yes was used when the call was let through."""
    if request.approval_id is None:
        return
    approval = Approval.objects.for_workspace(request.workspace_id).find(request.approval_id)
    principal = principal_of(tool.server, person_of(request.actor))
    if (
        approval is None
        or (approval.call_id, approval.tool_id) != (request.call_id, tool.pk)
        or approval.definition_hash != tool.definition_hash
        or approval.principal != principal
    ):
        refuse_because(
            request,
            tool,
            arguments,
            layer=RefusedBy.APPROVAL,
            rule="approval.outdated",
            reason="What was approved has changed while it waited. Please ask again.",
        )


def why_left_alone(server: McpServer, wait_seconds: float) -> str:
    """Why a server that failed is not called now, in plain words."""
    if math.isinf(wait_seconds):
        return f"{server.name} could not be reached several times. It is tried again by the next check or by hand."
    return (
        f"{server.name} could not be reached a moment ago. Next attempt {told_wait(wait_seconds)}."
    )


def limits_of(server: McpServer, seconds: float | None = None) -> CallLimits:
    """How long a request to this server may take.

    Args:
        seconds: the caller's own limit.
    """
    config = server.config
    usual = seconds or config.call_seconds or settings.TRELLIS.tool_timeout_seconds
    hard = config.hard_call_seconds or usual * _PROGRESS_FACTOR
    return CallLimits(seconds=usual, hard_seconds=max(usual, hard))


def _check_actor(request: ToolCallRequest) -> None:
    try:
        check_actor(request.actor, request.workspace_id)
    except PermissionDenied as error:
        refuse(request, None, None, error, layer=RefusedBy.PERMISSION, rule="actor.forbidden")
        raise


def check_actor(actor: Actor, workspace_id: UUID) -> None:
    """Make sure that the actor may use servers here; their word was taken some time ago, membership is asked now.

    Raises:
        PermissionDenied: they may not.
    """
    if workspace_id is None:
        raise PermissionDenied("A call needs a workspace.")
    if not has_permission(actor, Permission.MANAGE_SERVERS, workspace_id=workspace_id):
        require(actor, Permission.USE_CHAT, workspace_id=workspace_id)
    if actor.user_id is not None and not may_still_enter(actor.user_id, workspace_id):
        raise PermissionDenied("You are no longer a member of this workspace.")


def _resolve(request: ToolCallRequest) -> ResolvedTool:
    resolved = resolve_tool(request.workspace_id, request.tool_id)
    if (
        resolved is not None
        and resolved.tool.server.owner_id in (None, request.actor.user_id)
        and is_shown_to(resolved.tool, request.actor.user_id)
    ):
        return resolved
    # Not here, somebody else's own server, or a tool that only others' accounts are shown: alike.
    error = ToolNotFound()
    refuse(request, None, None, error, layer=RefusedBy.NOT_FOUND, rule="tool.not_found")
    raise error


def _canonical(request: ToolCallRequest, tool: McpTool) -> bytes:
    try:
        arguments = canonical_json(dict(request.arguments))
    except InvalidJson as fault:
        error = InvalidArguments(f"The arguments cannot be sent: {fault.message}.")
        refuse(request, tool, None, error, layer=RefusedBy.ARGUMENTS, rule="arguments.not_json")
        raise error from fault
    if len(arguments) > MAX_ARGUMENTS_BYTES:
        error = InvalidArguments(f"The arguments are larger than {MAX_ARGUMENTS_BYTES} bytes.")
        refuse(request, tool, None, error, layer=RefusedBy.ARGUMENTS, rule="arguments.too_large")
        raise error
    return arguments


def _decide(request: ToolCallRequest, tool: McpTool, arguments: bytes) -> PolicyDecision:
    known = facts_of_call(tool, request.arguments)
    if request.has_read_untrusted:
        known = replace(
            known,
            has_read_untrusted=True,
            untrusted_source=request.untrusted_source,
            unknown_destinations=_unknown_destinations(request, tool),
        )
    decision = policy.decide(known)
    if decision.effect is Effect.CONFIRM and request.approval_id is None:
        is_remembered = permissions.is_remembered(
            tool=tool,
            facts=known,
            user_id=request.actor.user_id,
            conversation_id=request.conversation_id,
            arguments=request.arguments,
        )
        decision = policy.relax(decision, known, is_remembered=is_remembered)
    if decision.effect is Effect.DENY:
        layer = _LAYER_OF_RULE.get(decision.rule, RefusedBy.POLICY)
        refuse_because(
            request, tool, arguments, layer=layer, rule=decision.rule, reason=decision.reason
        )
    offered = request.offered_definition_hash
    if offered is not None and offered != tool.definition_hash:
        reason = "This tool changed after it was offered. Please try again."
        refuse_because(
            request,
            tool,
            arguments,
            layer=RefusedBy.QUARANTINE,
            rule="tool.changed_since_offer",
            reason=reason,
        )
    return decision


def _check_can_be_approved(
    request: ToolCallRequest, tool: McpTool, arguments: bytes, spec: ConnectionSpec
) -> None:
    """Make sure that the call could run once somebody has approved it.

    Raises:
        SignInFirst: somebody has to sign in, and can be asked to.
        CallRefused: nobody can be asked, or they did not; or the day's calls are used up.
    """
    server = tool.server
    if is_quota_used_up(server, request.workspace_id):
        refuse_because(
            request,
            tool,
            arguments,
            layer=RefusedBy.QUOTA,
            rule=_QUOTA_RULE,
            reason=_quota_words(server),
        )
    if not spec.needs_sign_in:
        return
    is_there = person_of(request.actor) is not None
    reason = (
        why_nobody_signed_in(origin_of(request, tool))
        if request.can_ask and request.can_wait_elsewhere and is_there
        else words_unasked(server, is_there=is_there)
    )
    if reason is None:
        raise SignInFirst(tool, spec)
    refuse_because(
        request,
        tool,
        arguments,
        layer=RefusedBy.PERMISSION,
        rule=SIGN_IN_RULE,
        reason=reason,
    )


class SignInFirst(Exception):
    """A person has to sign in before anybody is asked to approve the call."""

    def __init__(self, tool: McpTool, spec: ConnectionSpec) -> None:
        super().__init__(tool.server.name)
        self.tool = tool
        self.spec = spec


def origin_of(request: ToolCallRequest, tool: McpTool) -> Origin:
    """For whom, and for which call, people are asked."""
    return Origin(
        call_id=request.call_id,
        server=tool.server,
        tool_name=tool.name,
        actor=request.actor,
        conversation_id=request.conversation_id,
        turn_id=request.turn_id,
    )


def _unknown_destinations(request: ToolCallRequest, tool: McpTool) -> tuple[str, ...]:
    """Where the call can carry its arguments without anybody having said so."""
    if tool.workspace.reads_outside_unasked:
        return ()
    reached = destinations_of(tool.server_id, tool.server.name, request.arguments)
    return tuple(name for key, name in reached.items() if key not in request.known_destinations)


def _check_approval(
    request: ToolCallRequest, tool: McpTool, arguments: bytes, decision: PolicyDecision
) -> Approval | None:
    if request.approval_id is None:
        if decision.effect is Effect.AUTO:
            return None
        if request.can_ask:
            record(
                replace(
                    draft(request, tool, Action.APPROVAL_REQUESTED, arguments), rule=decision.rule
                )
            )
            raise ApprovalMissing(decision)
        error = ApprovalMissing(decision)
        refuse(request, tool, arguments, error, layer=RefusedBy.APPROVAL, rule=decision.rule)
        raise error
    approval = Approval.objects.for_workspace(request.workspace_id).find(request.approval_id)
    fault = approvals.find_fault(
        approval,
        call_id=request.call_id,
        tool=tool,
        arguments=arguments,
        requester=request.actor,
        principal=principal_of(tool.server, person_of(request.actor)),
    )
    if fault is not None:
        refuse_because(
            request, tool, arguments, layer=RefusedBy.APPROVAL, rule=fault, reason=_UNFIT
        )
    return approval


_UNFIT: Final = "This approval is for another call, or has been used. Please ask again."


def _check_arguments(request: ToolCallRequest, tool: McpTool, arguments: bytes) -> None:
    try:
        schemas.check_arguments(tool.input_schema, dict(request.arguments))
    except InvalidArguments as error:
        refuse(request, tool, arguments, error, layer=RefusedBy.ARGUMENTS, rule="arguments.schema")
        raise


def _spec_of(request: ToolCallRequest, resolved: ResolvedTool, arguments: bytes) -> ConnectionSpec:
    try:
        return resolved.spec(person_of(request.actor))
    except DomainError as error:
        # A row that was sound when saved: a key is gone, or the catalogue changed under it.
        refuse_because(
            request,
            resolved.tool,
            arguments,
            layer=RefusedBy.POLICY,
            rule="server.misconfigured",
            reason=error.message,
        )


def commit_requested(plan: Plan, clock: CommitClock, *, is_sent: bool = True) -> Plan:
    """Consume the approval, count the call and write *requested*: all or nothing. The caller holds a slot.

    Args:
        is_sent: False for a call that a kept result answers: the server is sent nothing, and nothing is counted.

    Raises:
        AuditUnavailable: it could not be committed, or not in time.
    """
    server = plan.tool.server
    has_quota = is_sent and server.config.calls_per_day is not None
    entry = prepare_entry(
        replace(
            draft(plan.request, plan.tool, Action.TOOL_CALL_REQUESTED, plan.arguments),
            rule=plan.decision.rule,
            queue_ms=plan.queue_ms,
            approval=told(plan.approval),
        )
    )
    clock.begin()
    try:
        with transaction.atomic():
            if plan.approval is not None and not approvals.consume(plan.approval):
                raise _ApprovalGone
            if has_quota and not take_from_quota(server, plan.request.workspace_id):
                raise _QuotaUsedUp
            failpoint(Failpoint.GATE_APPROVAL_USED)
            record(entry)
            clock.check()
    except _ApprovalGone:
        refuse_because(
            plan.request,
            plan.tool,
            plan.arguments,
            layer=RefusedBy.APPROVAL,
            rule="approval.used_or_expired",
            reason=_UNFIT,
        )
    except _QuotaUsedUp:
        refuse_because(
            plan.request,
            plan.tool,
            plan.arguments,
            layer=RefusedBy.QUOTA,
            rule=_QUOTA_RULE,
            reason=_quota_words(server),
        )
    except DatabaseError as error:
        raise AuditUnavailable(details={"action": Action.TOOL_CALL_REQUESTED.value}) from error
    return replace(plan, is_committed=True)


_QUOTA_RULE: Final = "server.calls_per_day"


def _quota_words(server: McpServer) -> str:
    return f"{server.name} has had its calls for today. The count begins anew at midnight UTC."


class _ApprovalGone(Exception):
    """Used by another call in the meantime, or run out."""


class _QuotaUsedUp(Exception):
    """As many calls as the day allows have been made."""
