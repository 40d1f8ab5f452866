"""The rows that `tests.chaos.history_check` looks at."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from audit.models import AuditEntry
from chat.models import Message, QueuedMessage, ToolCall, Turn
from mcp_servers.gate.operation import SENT_AGAIN_AFTER
from mcp_servers.models import Approval
from tests.chaos.history_check import ApprovalFacts, CallFacts, History, MessageFacts, TurnFacts
from workspaces.database import database_now

#: After these the protocol has a call sent again, since the server says that it has not begun.
PROTOCOL_ROUNDS = frozenset({"answers", "auth_required", "link", "sign_in"})


def read_history(conversation_id: UUID | None = None) -> History:
    """What is stored of one conversation, or of all of every workspace: that is for small installations."""
    now = database_now()
    of_it: dict[str, Any] = {}
    of_its_turns: dict[str, Any] = {}
    if conversation_id is not None:
        of_it = {"conversation_id": conversation_id}
        of_its_turns = {"turn__conversation_id": conversation_id}
    calls = list(ToolCall.objects.across_workspaces().filter(**of_its_turns))
    approvals = Approval.objects.across_workspaces()
    if conversation_id is not None:
        approvals = approvals.filter(call_id__in=[call.pk for call in calls])
    entries = AuditEntry.objects.across_workspaces().filter(
        call_id__isnull=False, action__startswith="tool_call.", **of_it
    )
    queued = QueuedMessage.objects.across_workspaces().filter(**of_it)
    return History(
        messages=[
            MessageFacts(
                id=row.pk,
                conversation_id=row.conversation_id,
                turn_id=row.turn_id,
                parent_id=row.parent_id,
                role=row.role,
                status=row.status,
                step=row.step,
                order_key=row.order_key,
                client_id=row.client_id,
                calls_asked=len(row.json_meta.get("tool_calls") or ()),
            )
            for row in Message.objects.across_workspaces().filter(**of_it)
        ],
        turns=[
            TurnFacts(
                id=row.pk,
                conversation_id=row.conversation_id,
                user_message_id=row.user_message_id,
                status=row.status,
                is_leased=row.lease_until is not None,
                is_lease_live=row.lease_until is not None and row.lease_until > now,
            )
            for row in Turn.objects.across_workspaces().filter(**of_it)
        ],
        calls=[_call(row) for row in calls],
        approvals=[
            ApprovalFacts(id=row.pk, call_id=row.call_id, is_used=row.consumed_at is not None)
            for row in approvals
        ],
        entries=[
            (call_id, action)
            for call_id, action, details in entries.values_list("call_id", "action", "details")
            if call_id is not None
            # The protocol's own next round, which every call may have.
            and (details or {}).get(SENT_AGAIN_AFTER) not in PROTOCOL_ROUNDS
        ],
        queued_client_ids=frozenset(queued.values_list("conversation_id", "client_id")),
    )


def _call(row: ToolCall) -> CallFacts:
    hints = row.annotations
    return CallFacts(
        id=row.pk,
        turn_id=row.turn_id,
        message_id=row.message_id,
        position=row.position,
        status=row.status,
        tool=row.tool_name,
        arguments=row.arguments,
        is_harmless=bool(
            hints.get("is_trusted") and (hints.get("read_only") or hints.get("idempotent"))
        ),
        approval_id=row.approval_id,
        was_cached=row.was_cached,
    )
