"""What waits for a person: approvals, calls of unknown outcome, questions and sign-ins of all their conversations, and what members ask for."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Q
from django.db.models.functions import Now

from chat.models import Conversation, ToolCall
from chat.models.turns import ACTIVE
from chat.services.approvals import calls_to_decide
from chat.values import ToolCallStatus
from mcp_servers.models import InputRequest, InputStatus
from workspaces.database.prepared import PreparedRows
from workspaces.models import AccessRequest, Membership, User, Workspace
from workspaces.people.access_requests import DECIDERS, requests_to_decide

MOST_WAITING = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingDecision:
    """One thing that a person is to decide: a call, a question, or what a member asks for."""

    conversation: Conversation | None = None
    """None: it belongs to none."""
    message_id: UUID | None = None
    """Where it stands. Calls of the same message are one step of the answer."""
    tool_call: ToolCall | None = None
    input_request: InputRequest | None = None
    access_request: AccessRequest | None = None
    asked_by: User | None = None
    """Of a call that waits for a second person: who asked. Nothing else of their conversation is told."""

    @property
    def row(self) -> ToolCall | InputRequest | AccessRequest:
        """What is to be decided."""
        row = self.tool_call or self.input_request or self.access_request
        assert row is not None
        return row

    @property
    def is_approval(self) -> bool:
        """Whether a call waits to be allowed: not what became of one whose connection was lost."""
        waits = ToolCallStatus.WAITING_FOR_APPROVAL.value
        return self.tool_call is not None and self.tool_call.status == waits

    @property
    def since(self) -> datetime:
        """Since when it waits."""
        if self.is_unknown and self.tool_call is not None and self.tool_call.finished_at:
            return self.tool_call.finished_at
        return self.row.created_at

    @property
    def is_unknown(self) -> bool:
        """Whether a person is to say what became of a call."""
        lost = ToolCallStatus.OUTCOME_UNKNOWN.value
        return self.tool_call is not None and self.tool_call.status == lost


def waiting_for(
    *,
    workspace: Workspace,
    person: User,
    with_requests: bool = True,
    with_calls_of_others: bool = True,
) -> list[PendingDecision]:
    """The oldest first, without what has run out.

    Args:
        with_requests: whether what members ask for is listed, if the person decides about that.
        with_calls_of_others: whether calls of others are listed that wait for a second person, if they may be one.
    """
    found = [*_calls(workspace, person), *_questions(workspace, person)]
    if with_calls_of_others and is_second_person(workspace, person):
        found += [
            PendingDecision(tool_call=call, asked_by=call.turn.asked_by)
            for call in _CALLS_OF_OTHERS.all(workspace.pk, person.pk)
        ]
    if with_requests:
        asked = _REQUESTS.all(workspace.pk, person.pk)
        found += [PendingDecision(access_request=request) for request in asked]
    return sorted(found, key=lambda one: (one.since, one.row.pk))[:MOST_WAITING]


def is_second_person(workspace: Workspace, person: User) -> bool:
    """Whether they are an admin or owner here."""
    return bool(_DECIDER.all_values(workspace.pk, person.pk))


def _calls(workspace: Workspace, person: User) -> list[PendingDecision]:
    return [
        PendingDecision(
            conversation=call.turn.conversation, message_id=call.message_id, tool_call=call
        )
        for call in _OWN_CALLS.all(workspace.pk, person.pk)
    ]


def _questions(workspace: Workspace, person: User) -> list[PendingDecision]:
    asked = _ASKED.all(workspace.pk, person.pk)
    if not asked:
        return []
    conversations = Conversation.objects.for_workspace(workspace).filter(owner=person)
    of_questions = conversations.select_related("bud").in_bulk(
        [request.conversation_id for request in asked]
    )
    messages = dict(
        ToolCall.objects.for_workspace(workspace)
        .filter(pk__in=[request.call_id for request in asked])
        .values_list("pk", "message_id")
    )
    return [
        PendingDecision(
            conversation=of_questions[request.conversation_id],
            message_id=messages.get(request.call_id),
            input_request=request,
        )
        for request in asked
        if request.conversation_id in of_questions
    ]


def _may_still_be_allowed() -> Q:
    return Q(approval_expires_at=None) | Q(approval_expires_at__gt=Now())


def _own_calls(workspace_id: UUID, person_id: UUID) -> Any:
    to_approve = Q(
        _may_still_be_allowed(),
        status=ToolCallStatus.WAITING_FOR_APPROVAL.value,
        needs_second_person=False,
    )
    to_resolve = Q(
        status=ToolCallStatus.OUTCOME_UNKNOWN.value,
        turn__status__in=ACTIVE,
        resolution_due_at__gt=Now(),
    )
    return (
        ToolCall.objects.for_workspace(workspace_id)
        .filter(
            to_approve | to_resolve,
            turn__asked_by=person_id,
            turn__conversation__owner=person_id,
        )
        .select_related("decided_by", "turn__conversation__bud")
        .order_by("created_at", "position", "id")[:MOST_WAITING]
    )


def _calls_of_others(workspace_id: UUID, person_id: UUID) -> Any:
    return (
        calls_to_decide(workspace_id, person_id)
        .filter(_may_still_be_allowed())
        .select_related("decided_by", "turn__asked_by")
        .order_by("created_at", "position", "id")[:MOST_WAITING]
    )


def _asked(workspace_id: UUID, person_id: UUID) -> Any:
    return (
        InputRequest.objects.for_workspace(workspace_id)
        .filter(
            asked_of=person_id,
            status=InputStatus.PENDING.value,
            conversation_id__isnull=False,
            expires_at__gt=Now(),
        )
        .order_by("created_at", "id")[:MOST_WAITING]
    )


def _requests(workspace_id: UUID, person_id: UUID) -> Any:
    rows = requests_to_decide(workspace_id, person_id)
    return rows.select_related("requester", "workspace")[:MOST_WAITING]


def _decider(workspace_id: UUID, person_id: UUID) -> Any:
    mine = Membership.objects.for_workspace(workspace_id).filter(DECIDERS, user=person_id)
    return mine.values_list("id")[:1]


# Each page outside the chat asks for all of these.
_OWN_CALLS = PreparedRows[ToolCall](_own_calls, UUID, UUID)
_CALLS_OF_OTHERS = PreparedRows[ToolCall](_calls_of_others, UUID, UUID)
_ASKED = PreparedRows[InputRequest](_asked, UUID, UUID)
_REQUESTS = PreparedRows[AccessRequest](_requests, UUID, UUID)
_DECIDER = PreparedRows[Membership](_decider, UUID, UUID)
