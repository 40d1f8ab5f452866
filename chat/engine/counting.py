"""Adding up what requests to models cost: for the message, its turn and its conversation, in one transaction."""

from __future__ import annotations

from contextlib import suppress
from decimal import Decimal
from functools import partial
from typing import Any, Final
from uuid import UUID

from django.db.models import F
from django.db.models.functions import Coalesce

from audit.services import Ref
from chat.live.recording import Changes, changing
from chat.models import Bud, Conversation, Message, Turn
from chat.providers.base import TokenCount
from chat.providers.known_models import Prices
from chat.providers.spending import Allowance, Bill, CrossedThreshold, Payer
from chat.providers.spending_notices import charge
from chat.providers.spending_words import near_in_words
from workspaces.actors import Actor, Source
from workspaces.database import after_commit
from workspaces.errors import NotFound

ANSWER: Final = "answer"
"""What a turn asks a model for, as the log names it."""
COUNTED = ("prompt_tokens", "cached_tokens", "completion_tokens")
"""The columns of a message that `count` changes; of a turn and a conversation also `cost`."""
CHARGED = (*COUNTED, "cost", "held_tokens")
"""The columns of a turn that `charge_turn` changes."""


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


def charge_turn(
    changes: Changes, turn: Turn, message: Message | None, usage: TokenCount, bill: Bill | None
) -> None:
    """The same for a request of a turn, which its commit also adds to what its person and workspace spend this month.

    What was held for it is free again.

    Args:
        bill: None: nobody has read what may be spent, and no price is known.
    """
    turn.held_tokens = None
    bill = bill or _unread_bill(turn)
    count(changes, turn, message, usage, bill.prices)
    if usage.total:
        changes.at_end(partial(_charge, turn, bill, usage))


def turn_payer(turn: Turn, bud: Bud, actor: Actor, purpose: str) -> Payer:
    """Whoever asked pays for what a turn asks of models."""
    return Payer(
        workspace_id=turn.workspace_id,
        person_id=turn.asked_by_id,
        actor=actor,
        purpose=purpose,
        bud=Ref(id=bud.pk, name=bud.name),
        conversation_id=turn.conversation_id,
        turn_id=turn.pk,
    )


def conversation_payer(conversation: Conversation, purpose: str) -> Payer:
    """Whoever owns a conversation pays for what is made of it in the background. Needs the bud loaded."""
    actor = Actor.system(
        label="chat",
        source=Source.TASK,
        workspace_id=conversation.workspace_id,
        on_behalf_of=conversation.owner.email,
    )
    return Payer(
        workspace_id=conversation.workspace_id,
        person_id=conversation.owner_id,
        actor=actor,
        purpose=purpose,
        bud=Ref(id=conversation.bud_id, name=conversation.bud.name),
        conversation_id=conversation.pk,
    )


def _unread_bill(turn: Turn) -> Bill:
    payer = Payer(
        workspace_id=turn.workspace_id,
        person_id=turn.asked_by_id,
        actor=Actor.system(label="turns", source=Source.TASK, workspace_id=turn.workspace_id),
        purpose=ANSWER,
    )
    return Bill(allowance=Allowance(payer=payer), prices=Prices(), list_prices=Prices())


def _charge(turn: Turn, bill: Bill, usage: TokenCount) -> None:
    for crossed in charge(bill, usage, turn.finished_at):
        after_commit(_tell_person, turn.workspace_id, turn.conversation_id, turn.pk, crossed)


def _tell_person(
    workspace_id: UUID, conversation_id: UUID, turn_id: UUID, crossed: CrossedThreshold
) -> None:
    """Say below their answer how much of their limit they have used; once in a month, so in a commit of its own."""
    with suppress(NotFound), changing(conversation_id, workspace_id) as changes:
        turn = Turn.objects.for_workspace(workspace_id).fetch(turn_id)
        turn.notice = " ".join(part for part in (turn.notice, near_in_words(crossed)) if part)
        turn.save(update_fields=["notice", "updated_at"])
        changes.turn(turn)


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
