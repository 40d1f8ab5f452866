"""Events on their way to programs: rows of the same transaction as what they tell of, so none is told of what was rolled back."""

from __future__ import annotations

from typing import Any, Final

from django.db import transaction
from uuid_utils.compat import uuid7

from chat.enqueue import enqueue
from chat.models import ToolCall, Turn, WebhookDelivery, WebhookEndpoint
from chat.values import WebhookEvent
from workspaces.database import database_now

TASK: Final = "chat.tasks.deliver_webhooks"


def tell_turn_finished(turn: Turn) -> None:
    """A turn has ended. In the caller's transaction."""
    _tell(
        turn,
        WebhookEvent.TURN_FINISHED,
        {
            "status": turn.status,
            "error_code": turn.error_code or None,
            "user_message_id": str(turn.user_message_id),
        },
    )


def tell_approval_wanted(call: ToolCall, turn: Turn) -> None:
    """A call waits for a person's approval. In the caller's transaction."""
    expires_at = call.approval_expires_at
    _tell(
        turn,
        WebhookEvent.APPROVAL_WANTED,
        {
            "tool_call_id": str(call.pk),
            "server": call.server_name,
            "tool": call.tool_name,
            "expires_at": expires_at.isoformat() if expires_at is not None else None,
            "needs_second_person": call.needs_second_person,
        },
    )


def tell_test(endpoint: WebhookEndpoint) -> WebhookDelivery:
    """An event that says nothing, to see whether it arrives."""
    return _put(endpoint, "webhook.test", {})


def _tell(turn: Turn, event: WebhookEvent, data: dict[str, Any]) -> None:
    """What was said and called is for the conversation's owner: a webhook names it, and tells nothing of it."""
    endpoints = WebhookEndpoint.objects.for_workspace(turn.workspace_id).filter(is_active=True)
    wanted = [endpoint for endpoint in endpoints if event.value in endpoint.events]
    named = {
        "workspace_id": str(turn.workspace_id),
        "conversation_id": str(turn.conversation_id),
        "turn_id": str(turn.pk),
        "user_id": str(turn.asked_by_id),
    }
    for endpoint in wanted:
        _put(endpoint, event.value, {**named, **data})
    if wanted:
        transaction.on_commit(_nudge)


def _put(endpoint: WebhookEndpoint, event: str, data: dict[str, Any]) -> WebhookDelivery:
    now = database_now()
    return WebhookDelivery.objects.create(
        id=uuid7(),
        workspace_id=endpoint.workspace_id,
        endpoint=endpoint,
        event=event,
        payload={"type": event, "timestamp": now.isoformat(), "data": data},
        next_attempt_at=now,
    )


def _nudge() -> None:
    """Send soon, and not only when the scheduler next looks, which finds the rows in any case."""
    enqueue(TASK, expires=60)
