"""Calls that a model asked for and that never pass the gate: each is an entry, as if the gate had refused it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from audit.actions import Action, RefusedBy
from audit.services import EntryDraft, Ref, record
from chat.artifacts.transfers import arguments_for_log
from chat.engine.requests import actor_for_log
from mcp_servers.client.canonical import as_sent

if TYPE_CHECKING:
    from chat.engine.answers import ProposedCall
    from chat.models import ToolCall, Turn


def record_refused(call: ToolCall, proposal: ProposedCall, turn: Turn) -> None:
    """Record why a proposed call is not made. In the caller's transaction.

    Raises:
        AuditUnavailable: it could not be recorded.
    """
    layer, rule = _reason(proposal)
    record(
        replace(
            _draft(call, turn, layer, rule),
            arguments=_sent(proposal),
            details={"reason": call.error},
        )
    )


def record_withdrawn(call: ToolCall, turn: Turn) -> None:
    """Record that a call was stopped while people were asked about it, also where its tool is gone by now.

    Raises:
        AuditUnavailable: it could not be recorded.
    """
    draft = _draft(call, turn, RefusedBy.APPROVAL, "approval.withdrawn")
    record(replace(draft, arguments=as_sent(arguments_for_log(call))))


def _draft(call: ToolCall, turn: Turn, layer: RefusedBy, rule: str) -> EntryDraft:
    bud = turn.answering_bud
    return EntryDraft(
        action=Action.TOOL_CALL_REFUSED,
        actor=actor_for_log(turn),
        workspace_id=call.workspace_id,
        call_id=call.pk,
        bud=Ref(id=bud.pk, name=bud.name),
        conversation_id=turn.conversation_id,
        turn_id=turn.pk,
        model=turn.model,
        server=Ref(id=call.server_id, name=call.server_name) if call.server_id else None,
        tool=Ref(id=call.tool_id, name=call.tool_name or call.builtin or call.function_name),
        refused_by=layer,
        rule=rule,
    )


def _sent(proposal: ProposedCall) -> bytes:
    """What the model sent. Of what is no JSON the log keeps size and commitment: secrets in it cannot be told apart."""
    if proposal.arguments is not None:
        return as_sent(dict(proposal.arguments))
    return proposal.sent.encode("utf-8", "replace")


def _reason(proposal: ProposedCall) -> tuple[RefusedBy, str]:
    if proposal.tool is None:
        return RefusedBy.NOT_FOUND, "tool.not_offered"
    if proposal.is_broken:
        return RefusedBy.ARGUMENTS, "arguments.not_json"
    if proposal.arguments is None:
        return RefusedBy.QUOTA, "turn.calls_in_step"
    return RefusedBy.ARGUMENTS, "arguments.unfit"
