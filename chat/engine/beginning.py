"""How a turn begins: with a message at the end of a path, or anew below one that was answered before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any
from uuid import UUID

from django.db import transaction
from django.utils.text import get_text_list
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from uuid_utils.compat import uuid7

from chat.engine.attaching import Ref, attach, ref_from_json, usable_refs
from chat.engine.leases import LeaseClock, hold
from chat.engine.reading import LockedConversation, compared_with, find_last_message
from chat.engine.requests import as_of_turn
from chat.engine.turn_cache import TurnCache, TurnContext
from chat.engine.waking import can_take, start_taken, wake
from chat.live.recording import Changes
from chat.models import Bud, Message, ProviderModel, QueuedMessage, Turn
from chat.models.turns import most_urgent
from chat.values import NOTICE, MessageRole, MessageStatus, TitleSource, TurnStatus
from workspaces.actors import Actor
from workspaces.database import database_now
from workspaces.database.prepared_writes import insert
from workspaces.errors import Conflict
from workspaces.people.memberships import is_suspended
from workspaces.process.failpoints import Failpoint, failpoint

MOST_COMPARED = 3
"""Answers that stand side by side; a screen has no room for more."""
_LONGEST_TITLE = 60
"""Characters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnRequester:
    """Who asked, and by which way; a turn keeps it, since it may run after they have gone."""

    user_id: UUID
    source: str
    ip_address: str | None
    request_id: str
    token_id: UUID | None

    @classmethod
    def from_actor(cls, actor: Actor) -> TurnRequester:
        """The person behind a command, whose right to it has been checked."""
        assert actor.user_id is not None
        return cls(
            user_id=actor.user_id,
            source=actor.source.value,
            ip_address=actor.ip_address,
            request_id=actor.request_id,
            token_id=actor.token_id,
        )

    @classmethod
    def from_queued(cls, queued: QueuedMessage) -> TurnRequester:
        """The person who left a message to be sent later."""
        return cls(
            user_id=queued.asked_by_id,
            source=queued.source,
            ip_address=queued.ip_address,
            request_id=queued.request_id,
            token_id=queued.token_id,
        )

    def columns(self) -> dict[str, Any]:
        """As turns and queued messages store it."""
        return {
            "asked_by_id": self.user_id,
            "source": self.source,
            "ip_address": self.ip_address,
            "request_id": self.request_id,
            "token_id": self.token_id,
        }


@dataclass(frozen=True, slots=True)
class SendContext:
    """What was read and checked in this transaction before the message is stored."""

    actor: Actor
    standing: LockedConversation


def begin_turn(
    changes: Changes,
    *,
    client_id: str,
    client_digest: str,
    text: str,
    asker: TurnRequester,
    refs: Sequence[Ref],
    parent: UUID | None,
    known: SendContext | None = None,
    mentioned: Bud | None = None,
    compared: Sequence[ProviderModel] = (),
    notice: str = "",
) -> tuple[Message, Turn]:
    """Store a message below `parent`, with the turn that answers it. In the caller's transaction.

    Where this process can work on the turn, it takes it and opens its answer with the same commit.

    Args:
        mentioned: the bud that answers in place of the conversation's, with its provider loaded.
        compared: models that answer side by side, each in a turn of its own; the first of these turns is given.
        notice: what the person has to know of how it is answered.
    """
    conversation = changes.conversation
    clock = LeaseClock()
    takes_it = not refs and not compared and can_take()
    # Each names the other; the database checks that when the transaction ends.
    turn_id = uuid7()
    message = Message(
        workspace_id=conversation.workspace_id,
        conversation=conversation,
        turn_id=turn_id,
        parent_id=parent,
        role=MessageRole.USER.value,
        text=text,
        status=MessageStatus.COMPLETE.value,
        order_key=known.standing.last_order_key + 1 if known else next_order_key(changes),
        client_id=client_id,
        client_digest=client_digest,
        json_meta={NOTICE: notice} if notice else {},
    )
    columns: dict[str, Any] = {
        "workspace_id": conversation.workspace_id,
        "conversation": conversation,
        "user_message": message,
        "mentioned_bud": mentioned,
        **asker.columns(),
    }
    turn = Turn(id=turn_id, **columns)
    beside = _side_by_side(turn, columns, compared)
    lease, answer = None, None
    now = database_now()
    if takes_it:
        lease = hold(turn, clock, _carried(turn, known), now)
        answer = open_answer(turn, 0, parent_id=message.pk, order_key=message.order_key + 1)
    insert([message, answer] if answer is not None else [message])
    insert([turn, *beside])
    names = attach(message, conversation, refs)
    _touch(changes, message, text if text.strip() else ", ".join(names), now, turn.comparison)
    changes.message(message, has_attachments=bool(refs))
    for one in (turn, *beside):
        changes.turn(one)
    if answer is not None:
        show_leaf(changes, turn, answer)
        changes.message(answer, has_attachments=False)
    failpoint(Failpoint.SEND_BEFORE_COMMIT)
    transaction.on_commit(partial(failpoint, Failpoint.SEND_AFTER_COMMIT))
    if lease is None:
        for one in (turn, *beside):
            wake(one)
    else:
        failpoint(Failpoint.TAKE_BEFORE_COMMIT)
        start_taken(lease, answer)
    return message, turn


def _side_by_side(
    turn: Turn, columns: Mapping[str, Any], models: Sequence[ProviderModel]
) -> list[Turn]:
    """Have a new turn be the answer of the first model; gives turns for the others, which the caller saves."""
    if not models:
        return []
    turn.comparison, turn.chosen_model = uuid7(), models[0]
    return [
        Turn(comparison=turn.comparison, chosen_model=model, place=place, **columns)
        for place, model in enumerate(models[1:], start=1)
    ]


def _carried(turn: Turn, known: SendContext | None) -> TurnCache:
    """What the first step need not read again."""
    if known is None:
        return TurnCache()
    conversation, role = turn.conversation, known.standing.owner_role
    is_of_owner = known.actor.user_id == conversation.owner_id and known.actor.token_id is None
    is_usable = turn.answering_bud.is_usable_by(turn.asked_by_id)
    begun = None
    if (
        role is not None and is_of_owner and is_usable
    ):  # with their rights of now, whatever the actor was made of
        begun = TurnContext(
            turn, turn.answering_bud, as_of_turn(known.actor, role), known.standing.spending_zone
        )
    return TurnCache(
        begun=begun,
        has_attachments=known.standing.has_attachments,
        facts=known.standing.facts,
    )


def open_answer(turn: Turn, step: int, *, parent_id: UUID, order_key: int) -> Message:
    """The message that a step's answer goes into; the caller saves it."""
    return Message(
        workspace_id=turn.workspace_id,
        conversation_id=turn.conversation_id,
        turn=turn,
        parent_id=parent_id,
        role=MessageRole.ASSISTANT.value,
        status=MessageStatus.STREAMING.value,
        step=step,
        order_key=order_key,
    )


def show_leaf(changes: Changes, turn: Turn, message: Message) -> None:
    """The path that people see goes on to this message of a turn, unless it follows another of the compared answers."""
    conversation = changes.conversation
    if turn.comparison is not None and conversation.leaf_id != message.parent_id:
        is_open = conversation.comparison == turn.comparison
        if is_open or turn.stop_requested_at is not None:
            return
    if conversation.leaf_id != message.pk:
        conversation.leaf_id = message.pk
        changes.save_with_number("leaf_id")


def answer_again(
    changes: Changes, *, question: Message, client_id: str, asker: TurnRequester, **wanted: Any
) -> Turn:
    """Another turn for a message that has been answered: its answer becomes a sibling of the earlier one.

    Args:
        wanted: columns that say how it shall differ.
    """
    conversation = changes.conversation
    turn = Turn.objects.create(
        workspace_id=conversation.workspace_id,
        conversation=conversation,
        user_message=question,
        client_id=client_id,
        **wanted,
        **asker.columns(),
    )
    _touch(changes, question, question.text, database_now())
    changes.turn(turn)
    wake(turn)
    return turn


def answer_beside(
    changes: Changes,
    earlier: Turn,
    *,
    last: Message,
    client_id: str,
    asker: TurnRequester,
    model: ProviderModel,
) -> Turn:
    """Another turn for the question of one that has ended: its answer stands beside that one until one is chosen.

    Args:
        last: the end of the earlier answer; the path goes through it as long as nobody chooses.
    """
    turns = Turn.objects.for_workspace(earlier.workspace_id)
    if earlier.comparison is None or earlier.comparison != changes.conversation.comparison:
        earlier.comparison = uuid7()
        earlier.save(update_fields=["comparison", "updated_at"])
    known = turns.filter(user_message=earlier.user_message_id, comparison=earlier.comparison)
    places = list(known.values_list("place", flat=True))
    if len(places) >= MOST_COMPARED:
        raise Conflict(
            _("You can compare up to %(most)s answers. Choose one of these first.")
            % {"most": MOST_COMPARED}
        )
    turn = Turn.objects.create(
        workspace_id=earlier.workspace_id,
        conversation=changes.conversation,
        user_message_id=earlier.user_message_id,
        mentioned_bud=earlier.mentioned_bud,
        client_id=client_id,
        comparison=earlier.comparison,
        place=max(places) + 1,
        chosen_model=model,
        **asker.columns(),
    )
    _touch(changes, last, last.text, database_now(), turn.comparison)
    changes.turn(earlier)
    changes.turn(turn)
    wake(turn)
    return turn


def send_next(turn: Turn, changes: Changes) -> Turn | None:
    """A turn has ended: begin with what waits in the queue.

    After an answer the first in the queue is sent. After a failure or a stop only one that was meant to interrupt:
    the others stay until the person sends them. Of compared answers, the last one to end decides.
    """
    rows = QueuedMessage.objects.for_workspace(turn.workspace_id).filter(
        conversation_id=turn.conversation_id, held_after=""
    )
    queued = rows.order_by("order_key", "pk").first()
    if queued is None:
        return None
    statuses = [turn.status, *(one.status for one in compared_with(turn))]
    if most_urgent(statuses) is not None:
        return None
    if TurnStatus.COMPLETED not in statuses and not queued.is_next:
        rows.update(held_after=turn.status, held_for=turn.pk)
        changes.queue()
        return None
    if is_suspended(turn.workspace_id, queued.asked_by_id):
        return None
    return send_queued(queued, changes)


def wait_again(turn: Turn, changes: Changes) -> None:
    """Whoever retries an answer wants it after all: what was not sent because of its end waits for it as before."""
    ended = [turn.pk, *(one.pk for one in compared_with(turn))]
    rows = QueuedMessage.objects.for_workspace(turn.workspace_id)
    held = rows.filter(conversation_id=turn.conversation_id, held_for__in=ended)
    if held.update(held_after="", held_for=None):
        changes.queue()


def send_queued(queued: QueuedMessage, changes: Changes) -> Turn:
    """Take a message out of the queue and begin its turn. In the caller's transaction; no turn may be active."""
    conversation = changes.conversation
    refs = [ref_from_json(one) for one in queued.attachments]
    client_id, client_digest = queued.client_id, queued.client_digest
    text, asker = queued.text, TurnRequester.from_queued(queued)
    compared, notice = _models_of(queued)
    queued.delete()
    _, turn = begin_turn(
        changes,
        client_id=client_id,
        client_digest=client_digest,
        text=text,
        asker=asker,
        refs=[ref for ref in usable_refs(conversation, refs) if ref],
        parent=path_end(changes),
        mentioned=queued.mentioned_bud,
        compared=compared,
        notice=notice,
    )
    changes.queue()
    failpoint(Failpoint.QUEUE_BEFORE_COMMIT)
    return turn


def _models_of(queued: QueuedMessage) -> tuple[list[ProviderModel], str]:
    """Those that a waiting message is to compare, and what its person has to know: some may have gone meanwhile."""
    bud = queued.mentioned_bud or queued.conversation.bud
    if not queued.compare:
        return [], ""
    if bud.is_model_fixed:
        return [], _("Nothing was compared: %(bud)s answers with its own model only now.") % {
            "bud": bud.name
        }
    ids = [UUID(one["id"]) for one in queued.compare]
    found = ProviderModel.objects.for_workspace(queued.workspace_id).in_bulk(ids)
    models = [found[pk] for pk in ids if pk in found]
    missing = [one["name"] for one in queued.compare if UUID(one["id"]) not in found]
    if not missing:
        return models, ""
    are_gone = ngettext(
        "%(names)s is no longer there.", "%(names)s are no longer there.", len(missing)
    ) % {"names": get_text_list(missing, _("and"))}
    if len(models) > 1:
        return models, _("Not all models were compared: %(are_gone)s") % {"are_gone": are_gone}
    return [], _("Nothing was compared: %(are_gone)s The model of %(bud)s answers alone.") % {
        "are_gone": are_gone,
        "bud": bud.name,
    }


def path_end(changes: Changes) -> UUID | None:
    """The message that the next one goes on from."""
    if changes.conversation.leaf_id is not None:
        return changes.conversation.leaf_id
    last = _last(changes)
    return last.pk if last is not None else None


def next_order_key(changes: Changes) -> int:
    """The place of a new message; branches share one run of places."""
    last = _last(changes)
    return (last.order_key if last is not None else 0) + 1


def title_from(text: str) -> str:
    """A title out of a message: its first line that says something, cut at a word. What opens code says nothing."""
    lines = (" ".join(line.split()) for line in text.splitlines())
    words = (line for line in lines if not line.startswith(("```", "~~~")))
    line = next((line for line in words if any(map(str.isalnum, line))), "")
    return cut_title(line or " ".join(text.split()))


def cut_title(line: str) -> str:
    """A line as a title: where it is too long, cut at a word."""
    if len(line) <= _LONGEST_TITLE:
        return line
    cut = line[:_LONGEST_TITLE].rsplit(" ", 1)[0] or line[:_LONGEST_TITLE]
    return f"{cut}…"


def _last(changes: Changes) -> Message | None:
    return find_last_message(changes.conversation.workspace_id, changes.conversation.pk)


def _touch(
    changes: Changes, leaf: Message, text: str, now: datetime, comparison: UUID | None = None
) -> None:
    """The conversation moves to the top, goes on from here, and takes its title from the first message.

    Answers that stood side by side before no longer do: whoever writes on goes on from one of them.
    """
    conversation = changes.conversation
    if conversation.comparison != comparison:
        conversation.comparison = comparison
        changes.save_with_number("comparison")
    if conversation.leaf_id is None and not conversation.title:
        conversation.title_source = TitleSource.MESSAGE.value
    conversation.last_message_at = now
    conversation.leaf_id = leaf.pk
    conversation.title = conversation.title or title_from(text)
    changes.save_with_number("last_message_at", "title", "title_source", "leaf_id")
