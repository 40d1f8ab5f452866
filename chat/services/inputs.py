"""A person answers what a server asked during a call; whoever waits for it goes on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from chat.engine.waiting import release_answered
from chat.live.recording import Changes, changing
from chat.models import Conversation, ToolCall
from chat.services.turns import queue_again
from mcp_servers.client.inputs import InputAction
from mcp_servers.models import InputRequest
from mcp_servers.registry import elicitation
from workspaces.actors import Actor
from workspaces.errors import NotFound
from workspaces.jobs.sweeping import sweep
from workspaces.roles import Permission, require

_MOST_EXPIRED: Final = 500
"""In one round; the next one goes on."""


def answer_input(
    *,
    request: InputRequest,
    action: InputAction,
    actor: Actor,
    content: Mapping[str, Any] | None = None,
) -> InputRequest:
    """Answer, decline or cancel; the turn goes on once nothing else is open.

    Raises:
        PermissionDenied: it was put to somebody else.
        Conflict: it has been answered, withdrawn, or has run out.
        InvalidInput: the answer does not fit what was asked; names the fields.
    """
    require(actor, Permission.USE_CHAT, workspace_id=request.workspace_id)
    if request.conversation_id is None:
        return _answer(request, action, content, actor)
    with changing(request.conversation_id, request.workspace_id) as changes:
        row = _answer(request, action, content, actor)
        _tell(row, changes)
    return row


def tell_of_input(row: InputRequest) -> None:
    """A question was settled by its server or by the gate: tell the page, and let a turn that waited go on."""
    if row.conversation_id is None:
        return
    try:
        with changing(row.conversation_id, row.workspace_id) as changes:
            _tell(InputRequest.objects.for_workspace(row.workspace_id).fetch(row.pk), changes)
    except NotFound:
        return  # the conversation was deleted meanwhile


def expire_inputs() -> int:
    """End every question that nobody answered in time, and those that have been met unnoticed.

    The server hears that there is no answer.
    """
    elicitation.complete_forgotten_sign_ins()
    return sweep(elicitation.overdue_inputs(), _expire, label="expire_inputs", most=_MOST_EXPIRED)


def _expire(row: InputRequest) -> bool:
    conversations = Conversation.objects.for_workspace(row.workspace_id)
    if row.conversation_id is None or conversations.find(row.conversation_id) is None:
        return elicitation.expire_input(row) is not None
    with changing(row.conversation_id, row.workspace_id) as changes:
        expired = elicitation.expire_input(row)
        if expired is not None:
            _tell(expired, changes)
    return expired is not None


def _answer(
    request: InputRequest, action: InputAction, content: Mapping[str, Any] | None, actor: Actor
) -> InputRequest:
    return elicitation.answer_input(
        input_request=request, action=action, content=dict(content or {}), actor=actor
    )


def _tell(request: InputRequest, changes: Changes) -> None:
    changes.input_request(request)
    calls = ToolCall.objects.for_workspace(request.workspace_id)
    call = calls.select_related("turn", "decided_by").filter(pk=request.call_id).first()
    if call is not None and release_answered(call, changes):
        queue_again(call.turn, changes)
