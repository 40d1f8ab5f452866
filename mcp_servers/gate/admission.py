"""A tool call on its way: whether it may be made, what is sent, and what the log says of it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, NoReturn

from django.db import DatabaseError
from django.utils.translation import gettext_noop as _

from audit.actions import Action, Outcome, RefusedBy
from audit.services import EntryDraft, Ref, record
from mcp_servers.client import results, schemas
from mcp_servers.client.canonical import MAX_ARGUMENTS_BYTES
from mcp_servers.client.connections import calls
from mcp_servers.client.errors import (
    ApprovalMissing,
    ChangesRefused,
    InvalidArguments,
    InvalidJson,
    ToolNotFound,
)
from mcp_servers.client.values import Effect, ToolCallOutcome, ToolCallRequest
from mcp_servers.gate import kept_results
from mcp_servers.gate.caller import Standing
from mcp_servers.gate.destinations import destinations_of
from mcp_servers.gate.operation import NotYet, ServerOperation, UsedUp
from mcp_servers.gate.resolving import ResolvedTool, resolve_tool, resolve_tool_for
from mcp_servers.gate.signing_in import (
    CannotGoOn,
    lost_again,
    sign_in_first,
    why_nobody_signed_in,
    words_unasked,
)
from mcp_servers.models import Approval, McpTool
from mcp_servers.oauth.grants import person_of, principal_of
from mcp_servers.registry import health
from mcp_servers.registry.consent import approvals, call_rules, permissions, policy
from mcp_servers.registry.consent.call_policy import details_of, facts_of_call
from mcp_servers.registry.discovery import is_shown_to
from mcp_servers.registry.quotas import is_quota_used_up, take_from_quota
from workspaces.database import in_database
from workspaces.process.failpoints import Failpoint, failpoint

if TYPE_CHECKING:
    import mcp_types

    from mcp_servers.client.decisions import PolicyDecision, RuleDecision
    from mcp_servers.client.inputs import CallListener, InputAnswers, InputRequired, TaskStarted
    from mcp_servers.client.spec import ConnectionSpec

logger = logging.getLogger(__name__)

# Who refused, for a policy decision; everything else that policy says is "policy".
_LAYER_OF_RULE: Final = {
    "server.inactive": RefusedBy.DISABLED,
    "tool.removed": RefusedBy.DISABLED,
    "tool.disabled": RefusedBy.DISABLED,
    "tool.unsound": RefusedBy.QUARANTINE,
    "tool.quarantined": RefusedBy.QUARANTINE,
}
_UNFIT: Final = _("This approval is for another call, or has been used. Please ask again.")
_SIGN_IN_RULE: Final = "server.sign_in_missing"
_QUOTA_RULE: Final = "server.calls_per_day"


class SignInFirst(NotYet):
    """A person has to sign in before anybody is asked to approve the call."""


class GatedCall(ServerOperation[ToolCallOutcome]):
    """One call of a server's tool."""

    outcome_type = ToolCallOutcome
    who = _("The tool")
    unforeseen = Outcome.OUTCOME_UNKNOWN
    request: ToolCallRequest

    def __init__(self, request: ToolCallRequest, tool: McpTool | None = None) -> None:
        super().__init__(request, tool.name if tool else str(request.tool_id), request.arguments)
        self.can_ask = request.can_ask
        self.can_wait_elsewhere = request.can_wait_elsewhere
        self.known_tool = tool
        self.found = tool.server if tool else None
        self.decision: PolicyDecision | None = None
        self.approval: Approval | None = None
        self.has_call_rules = True
        self.asks_always = False
        self.may_keep = False
        """The result rests on nobody's answers, so an identical call may be given it."""

    @property
    def tool(self) -> McpTool:
        """Of a call that was let through."""
        assert self.known_tool is not None
        return self.known_tool

    @property
    def may_repeat(self) -> bool:
        """By the word of a trusted server."""
        hints = self.tool.typed_annotations
        return self.server.trusts_annotations and (
            hints.read_only is True or hints.idempotent is True
        )

    def admit(self) -> None:
        resolved = self._resolve()
        self._decide()
        # Nobody is asked to approve a call that cannot run, so the rest comes before the question.
        self._check_arguments()
        self._check_changes_nothing()
        self._connect(resolved)
        self.check_breaker()
        self._check_approval()

    def admit_again(self, *, is_unsent: bool) -> None:
        """Where it goes on after it stopped: *requested* stands, and so does the approval; today's rights count.

        Args:
            is_unsent: the server has not acted on it, so that all that would let it run today has to.

        Raises:
            CallRefused, PermissionDenied, ToolNotFound: it may not go on; recorded as a refusal.
        """
        resolved = self._resolve()
        decision = self._decide()
        self._check_changes_nothing()
        if self.request.approval_id is None and _asks_by_now(decision, is_unsent=is_unsent):
            reason = (
                _(
                    "While it waited, an administrator decided that this tool asks first. Please ask again."
                )
                if policy.is_asked_for(decision.rule)
                else _("While it waited, it became a call that asks first. Please ask again.")
            )
            self.refuse_because(RefusedBy.POLICY, decision.rule, reason)
        if is_unsent:
            self._check_still_approved()
            self._check_arguments()
        self._connect(resolved)
        self.is_committed = True

    def refuse_unoffered(self) -> NoReturn:
        """Write why a call is refused whose tool is not offered to whoever asks, and raise that."""
        self._resolve()
        self._decide()
        reason = _(
            "Other MCP clients are not offered this tool. They get the tools of servers that all buds use, and their person's own."
        )
        self.refuse_because(RefusedBy.DISABLED, "tool.not_offered", reason)

    async def make_way(self, obstacle: Exception, *, is_again: bool) -> None:
        if not isinstance(obstacle, SignInFirst):
            await super().make_way(obstacle, is_again=is_again)
            return
        try:
            if is_again:
                raise lost_again(self.server)
            await sign_in_first(self.origin, self.spec, self.caller)
        except CannotGoOn as error:
            await in_database(self.refuse, error, RefusedBy.PERMISSION, _SIGN_IN_RULE)

    def renew(self) -> ConnectionSpec:
        today = GatedCall(self.request)
        today.admit_again(is_unsent=not self.is_under_way)
        return today.spec

    def find_known(self) -> ToolCallOutcome | None:
        kept = kept_results.find_kept(self.tool, self._result_key)
        return kept or kept_results.identical_result(self.tool, self.request.identical_result)

    def use_up(self, *, is_sent: bool) -> None:
        if self.approval is not None and not approvals.consume(self.approval):
            raise UsedUp(RefusedBy.APPROVAL, "approval.used_or_expired", _UNFIT)
        has_quota = is_sent and self.server.config.calls_per_day is not None
        if has_quota and not take_from_quota(self.server, self.request.workspace_id):
            raise UsedUp(RefusedBy.QUOTA, _QUOTA_RULE, self._quota_words)

    def standing(self) -> Standing:
        return self.caller.standing()

    async def send(
        self, spec: ConnectionSpec, answers: InputAnswers | None, listener: CallListener
    ) -> mcp_types.CallToolResult | InputRequired | TaskStarted:
        permit = calls.mint_permit(
            call_id=self.request.call_id,
            server_id=self.tool.server_id,
            tool_name=self.tool.name,
            arguments=self.arguments,
            user_id=self.request.actor.user_id,
        )
        failpoint(Failpoint.GATE_BEFORE_SEND)
        if self.caller.standing() is not Standing.OURS:
            await self.caller.make_sure()
        return await calls.send_call(
            spec,
            permit,
            limits=self.limits,
            listener=listener,
            answers=answers,
            as_task=self.tool.task_support == "required",
        )

    async def read(self, result: mcp_types.CallToolResult) -> ToolCallOutcome:
        if results.is_heavy(result):
            return await asyncio.to_thread(self._read, result)
        return self._read(result)

    def _read(self, result: mcp_types.CallToolResult) -> ToolCallOutcome:
        return results.read_result(
            result,
            workspace_id=self.request.workspace_id,
            limit_bytes=self.server.config.result_bytes,
            output_schema=self.tool.output_schema,
            duration_ms=0,
        )

    def write_finished(self, outcome: ToolCallOutcome) -> None:
        super().write_finished(outcome)
        if outcome.cached_at is None:
            try:
                health.note_call(self.server, outcome)
            except DatabaseError:  # the end stands in the log; the next call says how the server is
                logger.warning("server_health_not_noted", exc_info=True)

    def write_end(self, outcome: ToolCallOutcome, *, is_again: bool, only_if_open: bool) -> bool:
        has_written = super().write_end(outcome, is_again=is_again, only_if_open=only_if_open)
        if has_written and self.may_keep and self.dialogue and not self.dialogue.has_asked:
            kept_results.keep(self.tool, self._result_key, outcome)
        return has_written

    def _result_key(self) -> str:
        """All that could make the result another one."""
        return kept_results.key_of(
            self.arguments,
            str(self.request.workspace_id),
            self.spec.principal,
            self.spec.fingerprint,
            str(self.tool.pk),
            self.tool.definition_hash,
        )

    # What the log says

    def draft_unrecorded(self) -> EntryDraft:
        if self.known_tool is None:
            return super().draft_unrecorded()
        return GatedCall(self.request).draft_unrecorded()

    def draft(self, action: Action, **more: Any) -> EntryDraft:
        tool = self.known_tool
        details = {**details_of(tool, self.request.arguments), **(more.pop("details", None) or {})}
        if tool is not None:
            more = {
                "credential_id": principal_of(tool.server, person_of(self.request.actor)),
                "tool": Ref(id=tool.pk, name=tool.name),
                "definition_hash": tool.definition_hash,
                "annotations": tool.typed_annotations.as_json(),
                **more,
            }
        return super().draft(action, details=details or None, **more)

    def draft_requested(self, **more: Any) -> EntryDraft:
        known = {"rule": self._rule, "approval": self._approval_in_json()}
        return super().draft_requested(**known | more)

    def known_of_end(self, outcome: ToolCallOutcome) -> dict[str, Any]:
        known = super().known_of_end(outcome)
        if outcome.cached_at is not None:
            known["details"] = {**known["details"], "cached_at": outcome.cached_at.isoformat()}
        return {
            **known,
            "rule": self._rule,
            "queue_ms": self.queue_ms,
            "approval": self._approval_in_json(),
        }

    def body_of(self, outcome: ToolCallOutcome) -> dict[str, Any]:
        return {**super().body_of(outcome), "structured": outcome.structured}

    def write_resumed(self, kind: str) -> None:
        record(
            self.draft(Action.TOOL_CALL_RESUMED, queue_ms=self.queue_ms, details={"after": kind})
        )

    @property
    def _rule(self) -> str:
        return self.decision.rule if self.decision is not None else ""

    def _approval_in_json(self) -> Mapping[str, object] | None:
        if self.approval is None:
            return None
        return {
            "id": str(self.approval.pk),
            "approver": self.approval.approver_label,
            "granted_at": self.approval.created_at.isoformat(),
        }

    # What is checked

    def _resolve(self) -> ResolvedTool:
        """Who asks, for which tool, with which arguments."""
        request = self.request
        user_id, workspace_id = request.actor.user_id, request.workspace_id
        if user_id is None or workspace_id is None:
            self.check_actor()
            resolved = resolve_tool(workspace_id, request.tool_id)
        else:
            found = resolve_tool_for(user_id, workspace_id, request.tool_id)
            resolved = found.resolved
            self.has_call_rules, self.asks_always = found.has_call_rules, found.asks_always
            self.check_actor(may_enter=found.may_enter)
        if (
            resolved is None
            or resolved.tool.server.owner_id not in (None, request.actor.user_id)
            or not is_shown_to(resolved.tool, request.actor.user_id)
        ):
            # Not here, somebody else's own server, or a tool that only others' accounts are shown: alike.
            self.refuse(ToolNotFound(), RefusedBy.NOT_FOUND, "tool.not_found")
        self.known_tool, self.found = resolved.tool, resolved.tool.server
        self.name = resolved.tool.name
        try:
            self.canonicalize()
        except InvalidJson as fault:
            error = InvalidArguments(
                _("The arguments cannot be sent: %(message)s.") % {"message": fault.message}
            )
            self.refuse(error, RefusedBy.ARGUMENTS, "arguments.not_json")
        if len(self.arguments) > MAX_ARGUMENTS_BYTES:
            error = InvalidArguments(
                _("The arguments are larger than %(most)s bytes.") % {"most": MAX_ARGUMENTS_BYTES}
            )
            self.refuse(error, RefusedBy.ARGUMENTS, "arguments.too_large")
        return resolved

    def _decide(self) -> PolicyDecision:
        request, tool = self.request, self.tool
        known = facts_of_call(tool, request.arguments)
        if request.has_read_untrusted:
            known = replace(
                known,
                has_read_untrusted=True,
                untrusted_source=request.untrusted_source,
                unknown_destinations=self._unknown_destinations(),
            )
        decision = policy.apply_rule(policy.decide(known), known, self._ruled())
        if policy.may_remember(decision) and request.approval_id is None:
            is_remembered = permissions.is_remembered(
                tool=tool,
                facts=known,
                user_id=request.actor.user_id,
                conversation_id=request.conversation_id,
                arguments=request.arguments,
            )
            decision = policy.relax(decision, known, is_remembered=is_remembered)
        decision = policy.tighten(decision, asks_always=self.asks_always)
        if decision.effect is Effect.DENY:
            layer = _LAYER_OF_RULE.get(decision.rule, RefusedBy.POLICY)
            self.refuse_because(layer, decision.rule, decision.reason)
        offered = request.offered_definition_hash
        if offered is not None and offered != tool.definition_hash:
            reason = _("This tool changed after it was offered. Please try again.")
            self.refuse_because(RefusedBy.QUARANTINE, "tool.changed_since_offer", reason)
        self.decision = decision
        return decision

    def _ruled(self) -> RuleDecision | None:
        """What the workspace's call rules say, about the arguments that would be sent."""
        if not self.has_call_rules:
            return None
        request = self.request
        role = call_rules.role_of(request.actor)
        call = call_rules.matched_call(self.tool, request.arguments, role)
        return call_rules.decide(call_rules.enabled_rules(request.workspace_id), call)

    def _unknown_destinations(self) -> tuple[str, ...]:
        """Where the call can carry its arguments without anybody having said so."""
        if self.tool.workspace.reads_outside_unasked:
            return ()
        reached = destinations_of(self.tool.server_id, self.server.name, self.request.arguments)
        known = self.request.known_destinations
        return tuple(name for key, name in reached.items() if key not in known)

    def _check_approval(self) -> None:
        request, decision = self.request, self.decision
        assert decision is not None
        if request.approval_id is None:
            if decision.effect is Effect.AUTO:
                return
            self._check_can_be_approved()
            error = ApprovalMissing(decision)
            if request.can_ask:
                record(self.draft(Action.APPROVAL_REQUESTED, rule=decision.rule))
                raise error
            self.refuse(error, RefusedBy.APPROVAL, decision.rule)
        self.approval = self._find_approval()
        fault = approvals.find_fault(
            self.approval,
            call_id=request.call_id,
            tool=self.tool,
            arguments=self.arguments,
            requester=request.actor,
            principal=self._principal,
        )
        if fault is not None:
            self.refuse_because(RefusedBy.APPROVAL, fault, _UNFIT)
        self._check_second_person(self.approval)

    def _check_can_be_approved(self) -> None:
        """Make sure that the call could run once somebody has approved it.

        Raises:
            SignInFirst: somebody has to sign in, and can be asked to.
            CallRefused: nobody can be asked, or they did not; or the day's calls are used up.
        """
        request, server = self.request, self.server
        if is_quota_used_up(server, request.workspace_id):
            self.refuse_because(RefusedBy.QUOTA, _QUOTA_RULE, self._quota_words)
        if not self.spec.needs_sign_in:
            return
        is_there = person_of(request.actor) is not None
        reason = (
            why_nobody_signed_in(self.origin)
            if request.can_ask and request.can_wait_elsewhere and is_there
            else words_unasked(server, is_there=is_there)
        )
        if reason is None:
            raise SignInFirst
        self.refuse_because(RefusedBy.PERMISSION, _SIGN_IN_RULE, reason)

    @property
    def _quota_words(self) -> str:
        return _("%(name)s has had its calls for today. The count begins anew at midnight UTC.") % {
            "name": self.server.name
        }

    def _check_still_approved(self) -> None:
        """What a person said yes to has to be what is sent, although their yes was used when the call was let through."""
        if self.request.approval_id is None:
            return
        approval = self._find_approval()
        if (
            approval is None
            or (approval.call_id, approval.tool_id) != (self.request.call_id, self.tool.pk)
            or approval.definition_hash != self.tool.definition_hash
            or approval.principal != self._principal
        ):
            reason = _("What was approved has changed while it waited. Please ask again.")
            self.refuse_because(RefusedBy.APPROVAL, "approval.outdated", reason)
        self._check_second_person(approval)

    def _check_second_person(self, approval: Approval | None) -> None:
        """Where a rule asks for a second person, nobody else's yes lets the call run."""
        assert self.decision is not None
        if not self.decision.needs_second_person:
            return
        if approval is None or not approvals.is_by_second_person(approval):
            reason = _("The call rule “%(name)s” asks for a second person. Please ask again.") % {
                "name": self.decision.rule_name
            }
            self.refuse_because(RefusedBy.APPROVAL, policy.SECOND_PERSON, reason)

    def _find_approval(self) -> Approval | None:
        rows = Approval.objects.for_workspace(self.request.workspace_id)
        found: Approval | None = rows.find(self.request.approval_id)
        return found

    @property
    def _principal(self) -> str:
        return principal_of(self.server, person_of(self.request.actor))

    def _check_arguments(self) -> None:
        try:
            schemas.check_arguments(self.tool.input_schema, dict(self.request.arguments))
        except InvalidArguments as error:
            self.refuse(error, RefusedBy.ARGUMENTS, "arguments.schema")

    def _check_changes_nothing(self) -> None:
        """In a trial nothing is called but what just reads, whatever anybody allowed, and by the tool's row of now."""
        if self.request.reads_only and not self.tool.facts().only_reads:
            reason = policy.SENTENCES[policy.TRIAL]
            error = ChangesRefused(reason, rule=policy.TRIAL, refused_by=RefusedBy.POLICY)
            self.refuse(error, RefusedBy.POLICY, policy.TRIAL)

    def _connect(self, resolved: ResolvedTool) -> None:
        self.connect(
            lambda: resolved.spec(person_of(self.request.actor)), self.request.timeout_seconds
        )


def _asks_by_now(decision: PolicyDecision, *, is_unsent: bool) -> bool:
    if decision.effect is not Effect.CONFIRM:
        return False
    # What was read meanwhile is in none of the call's arguments.
    return policy.is_asked_for(decision.rule) or (
        is_unsent and decision.rule != policy.UNTRUSTED_CONTENT
    )
