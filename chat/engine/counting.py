"""Adding up what requests to models cost: for the message, its turn and its conversation, in one transaction."""

from __future__ import annotations

from decimal import Decimal
from typing import Any
from uuid import UUID

from django.db.models import F
from django.db.models.functions import Coalesce

from chat.engine.context_window import estimate
from chat.models import Conversation, Message, Turn
from chat.providers.base import TokenCount
from chat.providers.known_models import Prices
from chat.recording import Changes

COUNTED = ("prompt_tokens", "cached_tokens", "completion_tokens")
"""The columns of a message that `count` changes; of a turn and a conversation also `cost`."""


def count(
    changes: Changes, turn: Turn | None, message: Message | None, usage: TokenCount, prices: Prices
) -> None:
    """Add one request's tokens and cost; the caller saves turn and message, the conversation is saved with the events.

    Failed and repeated requests count like any other: the provider has been paid for them.
    """
    cost = prices.cost_of(usage)
    rows = [row for row in (message, turn, changes.conversation) if row is not None]
    for row in rows:
        row.prompt_tokens += usage.prompt
        row.cached_tokens += usage.cached
        row.completion_tokens += usage.completion
        if cost is not None and not isinstance(row, Message):
            row.cost = (row.cost or Decimal(0)) + cost
    changes.save_with_number(*COUNTED, "cost")


def count_beside(
    workspace_id: UUID, conversation_id: UUID, usage: TokenCount, prices: Prices
) -> None:
    """Add what a request cost that is no step of an answer; pages hear of it with the conversation's next event."""
    cost = prices.cost_of(usage)
    added: dict[str, Any] = {
        name: F(name) + getattr(usage, name.removesuffix("_tokens")) for name in COUNTED
    }
    if cost is not None:
        added["cost"] = Coalesce(F("cost"), Decimal(0)) + cost
    Conversation.objects.for_workspace(workspace_id).filter(pk=conversation_id).update(**added)


def believed_usage(prompt_tokens: int, said: str) -> TokenCount:
    """What a request has probably cost that broke off before its provider told; nothing where nothing came of it."""
    return TokenCount(prompt=prompt_tokens, completion=estimate(said)) if said else TokenCount()
