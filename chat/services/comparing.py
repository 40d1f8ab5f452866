"""Answers of several models that stand side by side: one more beside an answer, and choosing one."""

from __future__ import annotations

from uuid import UUID

from django.utils.translation import gettext as _

from chat.engine.beginning import TurnRequester, answer_beside
from chat.engine.reading import compared_with, find_last_answer
from chat.engine.states import ACTIVE_TURNS
from chat.live.recording import Changes, changing
from chat.message_paths import newest_leaf
from chat.models import Message, Turn
from chat.services.models import ModelNamed, find_other
from chat.services.turns import (
    check_client_id,
    check_same,
    check_usable,
    must_be_idle,
    require_own,
    stop_in,
)
from chat.values import TurnStatus
from workspaces.actors import Actor
from workspaces.errors import Conflict
from workspaces.roles import Permission, require


def compare_answer(*, turn: Turn, client_id: str, model: ModelNamed, actor: Actor) -> Turn:
    """Have another model answer the same question; both answers stand side by side until one is chosen.

    The same `client_id` again gives the same turn.

    Raises:
        Conflict: the conversation is still being answered, there is no answer to compare with, three are compared
            already, or the client id stands for something else.
        InvalidInput: the bud's model is fixed, there is no such model here, or the bud is for its owner alone.
    """
    require(actor, Permission.USE_CHAT, workspace_id=turn.workspace_id)
    check_client_id(client_id)
    with changing(turn.conversation_id, turn.workspace_id) as changes:
        turns = Turn.objects.for_workspace(turn.workspace_id)
        begun = turns.filter(conversation_id=turn.conversation_id, client_id=client_id).first()
        if begun is not None:
            known = str((begun.user_message_id, begun.comparison is not None))
            check_same(known, str((turn.user_message_id, True)))
            return begun
        turn = turns.select_related("mentioned_bud__provider").fetch(turn.pk)
        provider_id, name = model
        bud = turn.mentioned_bud or changes.conversation.bud
        check_usable(bud, actor)
        row = find_other(bud=bud, provider_id=provider_id, name=name)
        must_be_idle(changes)
        last = find_last_answer(turn.workspace_id, turn.pk)
        if last is None:
            raise Conflict(
                _("There is no answer to compare with. Answer again with another model.")
            )
        asker = TurnRequester.from_actor(actor)
        return answer_beside(changes, turn, last=last, client_id=client_id, asker=asker, model=row)


def choose_answer(*, turn: Turn, actor: Actor) -> Turn:
    """Go on from one of the answers that stand side by side. The others stay as branches; those still written are stopped.

    Choosing the same one again changes nothing.

    Raises:
        Conflict: it never stood beside another, its model has not answered yet, or these answers do not stand side by
            side any more.
    """
    require(actor, Permission.USE_CHAT, workspace_id=turn.workspace_id)
    require_own(turn, actor)
    with changing(turn.conversation_id, turn.workspace_id) as changes:
        turn = Turn.objects.for_workspace(turn.workspace_id).fetch(turn.pk)
        if turn.comparison is None:
            raise Conflict(_("This answer stands alone, so there is nothing to choose."))
        last = find_last_answer(turn.workspace_id, turn.pk)
        if last is None:
            raise Conflict(
                _("This model has not answered yet. Wait for its answer, or use another.")
            )
        conversation = changes.conversation
        leaf_id = newest_leaf(turn.workspace_id, last.pk)
        if conversation.comparison != turn.comparison:
            if conversation.leaf_id == leaf_id:
                return turn
            raise Conflict(
                _(
                    "The conversation has continued since. Use the arrows at this answer to switch to it."
                )
            )
        conversation.leaf_id, conversation.comparison = leaf_id, None
        changes.save_with_number("leaf_id", "comparison")
        # Told before what the others' ends lead to: the next message may begin with them.
        changes.conversation_with(turn)
        for one in compared_with(turn):
            if TurnStatus(one.status) in ACTIVE_TURNS:
                stop_in(one, changes)
    return turn


def end_comparison(message: Message, changes: Changes) -> None:
    """A message was chosen as the path to go on from: if it is of an answer that stood beside others, it no longer does."""
    turns = Turn.objects.for_workspace(message.workspace_id)
    comparison: UUID | None = changes.conversation.comparison
    turns = turns.filter(comparison=comparison)
    if message.turn_id is not None and turns.filter(pk=message.turn_id).exists():
        changes.conversation.comparison = None
        changes.save_with_number("comparison")
