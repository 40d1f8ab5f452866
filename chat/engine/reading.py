"""Rows that every step reads, by statements that are compiled once."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple
from uuid import UUID

from django.db.models import Exists, OuterRef, Subquery
from django.utils.translation import gettext as _

from chat.models import (
    Attachment,
    Bud,
    Conversation,
    Message,
    QueuedMessage,
    SpendingPolicy,
    ToolCall,
    Turn,
    WebhookEndpoint,
)
from chat.models.turns import ACTIVE
from chat.providers.choosing import known_provider
from chat.providers.known_models import ModelFacts, facts_beside, facts_of
from chat.values import AttachmentStatus, MessageRole, TurnStatus
from workspaces.database.prepared import PreparedRows
from workspaces.errors import NotFound
from workspaces.middleware import MemberRole
from workspaces.models import Membership


class LockedConversation(NamedTuple):
    """How a locked conversation stands when a message comes."""

    knows_message: bool
    """A message was sent, or waits, under this client id."""
    is_active: bool
    last_order_key: int
    has_attachments: bool
    """Of any message."""
    facts: ModelFacts | None
    """Of its model; None: it is not known which that is."""
    owner_role: MemberRole | None
    """What its owner may do here now; None: they may not enter."""
    spending_zone: str | None
    """In which months begin for the workspace's spending limits; None: it has set none."""


def standing_of(
    conversation: Conversation, client_id: str, mentioned: Bud | None = None
) -> LockedConversation:
    """All that a new message asks of its conversation, at once. Needs the bud and its provider loaded.

    Args:
        mentioned: the bud that answers it in place of the conversation's.
    """
    ids = (conversation.workspace_id, conversation.pk, client_id)
    spec = known_provider(conversation, mentioned)
    row: Any
    if spec is None:
        row = _STANDING.first(*ids)
    elif spec.provider_id is None:
        row = _STANDING_OF_PLATFORMS.first(*ids, spec.model)
    else:
        row = _STANDING_OF_MODEL.first(*ids, spec.model, spec.provider_id)
    assert row is not None
    return LockedConversation(
        knows_message=row.was_sent or row.is_queued,
        is_active=row.is_active,
        last_order_key=row.last or 0,
        has_attachments=row.has_attachments,
        facts=facts_of(row, spec) if spec is not None else None,
        owner_role=MemberRole(row.owner_role, bool(row.owner_is_auditor))
        if row.owner_role
        else None,
        spending_zone=row.spending_zone,
    )


class TurnFollowUps(NamedTuple):
    """What follows the end of a turn."""

    has_queue: bool
    """A message waits."""
    has_webhooks: bool
    """Programs may want to be told."""
    is_first_answer: bool
    """No other turn of the conversation was completed."""
    is_check: bool
    """The conversation belongs to a check of a bud, which goes on now."""


def turn_follow_ups(turn: Turn) -> TurnFollowUps:
    """What follows the end of a turn, whose conversation is locked."""
    row = _AFTERWARDS.first_values(turn.workspace_id, turn.conversation_id, turn.pk)
    assert row is not None
    return TurnFollowUps(*map(bool, row))


def calls_of_step(turn: Turn, message_id: UUID) -> list[tuple[str, int, int]]:
    """The state of each call of a step, with the step and the place of the conversation's newest message."""
    rows = _CALLS_OF_STEP.all_values(turn.workspace_id, message_id, turn.conversation_id)
    return [(str(status), int(step), int(last)) for status, step, last in rows]


def find_turn(workspace_id: UUID, turn_id: UUID) -> Turn | None:
    """The turn, as its row is now."""
    return _TURN.first(workspace_id, turn_id)


def fetch_turn(workspace_id: UUID, turn_id: UUID) -> Turn:
    """The same.

    Raises:
        NotFound: it is gone.
    """
    turn = find_turn(workspace_id, turn_id)
    if turn is None:
        raise NotFound(_("Turn not found."))
    return turn


def fetch_turn_with_people(
    workspace_id: UUID, turn_id: UUID
) -> tuple[Turn, MemberRole, str | None]:
    """The turn with its conversation, bud, provider, asker and workspace; what the asker may do there now; and the
    time zone of the workspace's spending limits, if it has set any.

    Raises:
        NotFound: it is gone.
    """
    turn = _TURN_WITH_PEOPLE.first(workspace_id, turn_id)
    if turn is None:
        raise NotFound(_("Turn not found."))
    row: Any = turn  # with what is annotated below
    return turn, MemberRole(row.asker_role, bool(row.asker_is_auditor)), row.spending_zone


def find_active_turn(workspace_id: UUID, conversation_id: UUID) -> Turn | None:
    """The turn of a conversation that is under way."""
    return _ACTIVE_TURN.first(workspace_id, conversation_id)


def compared_with(turn: Turn) -> list[Turn]:
    """The other turns whose answers stand, or stood, beside this one's, in the order of their columns; mostly none."""
    if turn.comparison is None:
        return []
    rows = Turn.objects.for_workspace(turn.workspace_id).filter(comparison=turn.comparison)
    beside = rows.filter(user_message=turn.user_message_id).exclude(pk=turn.pk)
    return list(beside.order_by("place"))


def waits_for_files(turn: Turn) -> bool:
    """Whether what is attached to a turn's question is still read by one that it is compared with, for both."""
    if turn.comparison is None or not unread_attachments(turn.workspace_id, turn.user_message_id):
        return False
    return any(one.place < turn.place and one.status in ACTIVE for one in compared_with(turn))


def fetch_message(workspace_id: UUID, message_id: UUID) -> Message:
    """A message, as its row is now.

    Raises:
        NotFound: it is gone.
    """
    message = _MESSAGE.first(workspace_id, message_id)
    if message is None:
        raise NotFound(_("Message not found."))
    return message


def find_sent_message(workspace_id: UUID, conversation_id: UUID, client_id: str) -> Message | None:
    """The message that a page has sent under its own id, with its turn."""
    return _SENT.first(workspace_id, conversation_id, client_id)


def find_queued_message(
    workspace_id: UUID, conversation_id: UUID, client_id: str
) -> QueuedMessage | None:
    """The message that a page has put in the queue under its own id."""
    return _QUEUED.first(workspace_id, conversation_id, client_id)


def find_last_message(workspace_id: UUID, conversation_id: UUID) -> Message | None:
    """The newest message of a conversation, on whichever path: its id and place."""
    return _LAST_MESSAGE.first(workspace_id, conversation_id)


def find_last_answer(workspace_id: UUID, turn_id: UUID) -> Message | None:
    """What the model has said in a turn's newest step."""
    return _LAST_ANSWER.first(workspace_id, turn_id)


def unread_attachments(workspace_id: UUID, message_id: UUID) -> tuple[UUID, ...]:
    """What is attached to a message and was not read yet."""
    return tuple(row.pk for row in _UNREAD.all(workspace_id, message_id))


def _turn(workspace_id: UUID, turn_id: UUID) -> Any:
    return Turn.objects.for_workspace(workspace_id).filter(pk=turn_id).order_by()


def _turn_with_people(workspace_id: UUID, turn_id: UUID) -> Any:
    rows = _turn(workspace_id, turn_id)
    membership = Membership.objects.across_workspaces().filter(
        workspace_id=OuterRef("workspace_id"), user_id=OuterRef("asked_by_id")
    )
    rows = rows.select_related(
        "conversation__bud__provider", "conversation__chosen_model__provider"
    )
    return rows.select_related("asked_by", "workspace").annotate(
        asker_role=Subquery(membership.values("role")),
        asker_is_auditor=Subquery(membership.values("is_auditor")),
        spending_zone=_spending_zone(workspace_id),
    )


def _standing(workspace_id: UUID, conversation_id: UUID, client_id: str) -> Any:
    messages = _in_conversation(workspace_id, conversation_id)
    queued = QueuedMessage.objects.for_workspace(workspace_id)
    turns = Turn.objects.for_workspace(workspace_id).filter(conversation_id=conversation_id)
    owner = Membership.objects.for_workspace(workspace_id).filter(
        user_id=OuterRef("owner_id"), user__is_active=True, workspace__is_active=True
    )
    return (
        _conversation(workspace_id, conversation_id)
        .annotate(
            owner_role=Subquery(owner.values("role")),
            owner_is_auditor=Subquery(owner.values("is_auditor")),
            spending_zone=_spending_zone(workspace_id),
            was_sent=Exists(messages.filter(client_id=client_id)),
            is_queued=Exists(queued.filter(conversation_id=conversation_id, client_id=client_id)),
            is_active=Exists(turns.filter(status__in=ACTIVE)),
            last=Subquery(messages.order_by("-order_key").values("order_key")[:1]),
            has_attachments=Exists(
                Attachment.objects.for_workspace(workspace_id).filter(
                    message__conversation_id=conversation_id
                )
            ),
        )
        .only("pk")
    )


def _spending_zone(workspace_id: UUID) -> Subquery:
    policies = SpendingPolicy.objects.for_workspace(workspace_id).order_by()
    return Subquery(policies.values("time_zone")[:1])


def _standing_of_model(
    workspace_id: UUID, conversation_id: UUID, client_id: str, model: str, provider_id: UUID | None
) -> Any:
    rows = _standing(workspace_id, conversation_id, client_id)
    return rows.annotate(**facts_beside(workspace_id, provider_id, model))


def _afterwards(workspace_id: UUID, conversation_id: UUID, turn_id: UUID) -> Any:
    turns = Turn.objects.for_workspace(workspace_id).filter(conversation_id=conversation_id)
    others = turns.filter(status=TurnStatus.COMPLETED.value).exclude(pk=turn_id)
    queued = QueuedMessage.objects.for_workspace(workspace_id)
    endpoints = WebhookEndpoint.objects.for_workspace(workspace_id).filter(is_active=True)
    return (
        _conversation(workspace_id, conversation_id)
        .annotate(
            has_queue=Exists(queued.filter(conversation_id=conversation_id)),
            has_webhooks=Exists(endpoints),
            is_first=~Exists(others),
        )
        .values_list("has_queue", "has_webhooks", "is_first", "bud__is_sandboxed")
    )


def _calls_of_step(workspace_id: UUID, message_id: UUID, conversation_id: UUID) -> Any:
    newest = _in_conversation(workspace_id, conversation_id).order_by("-order_key")
    rows = ToolCall.objects.for_workspace(workspace_id).filter(message_id=message_id).order_by()
    last = Subquery(newest.values("order_key")[:1])
    return rows.annotate(last=last).values_list("status", "message__step", "last")


def _conversation(workspace_id: UUID, conversation_id: UUID) -> Any:
    return Conversation.objects.for_workspace(workspace_id).filter(pk=conversation_id).order_by()


def _active_turn(workspace_id: UUID, conversation_id: UUID) -> Any:
    rows = Turn.objects.for_workspace(workspace_id)
    return rows.filter(conversation_id=conversation_id, status__in=ACTIVE)[:1]


def _message(workspace_id: UUID, message_id: UUID) -> Any:
    return Message.objects.for_workspace(workspace_id).filter(pk=message_id).order_by()


def _in_conversation(workspace_id: UUID, conversation_id: UUID) -> Any:
    rows = Message.objects.for_workspace(workspace_id)
    return rows.filter(conversation_id=conversation_id)


def _sent(workspace_id: UUID, conversation_id: UUID, client_id: str) -> Any:
    rows = _in_conversation(workspace_id, conversation_id).filter(client_id=client_id)
    return rows.select_related("turn").order_by()


def _queued(workspace_id: UUID, conversation_id: UUID, client_id: str) -> Any:
    rows = QueuedMessage.objects.for_workspace(workspace_id)
    return rows.filter(conversation_id=conversation_id, client_id=client_id).order_by()


def _last_message(workspace_id: UUID, conversation_id: UUID) -> Any:
    rows = _in_conversation(workspace_id, conversation_id).only("order_key")
    return rows.order_by("-order_key", "-id")[:1]


def _last_answer(workspace_id: UUID, turn_id: UUID) -> Any:
    rows = Message.objects.for_workspace(workspace_id)
    rows = rows.filter(turn_id=turn_id, role=MessageRole.ASSISTANT.value)
    return rows.order_by("-step")[:1]


def _unread(workspace_id: UUID, message_id: UUID) -> Any:
    rows = Attachment.objects.for_workspace(workspace_id).only("pk")
    return rows.filter(message_id=message_id, status=AttachmentStatus.QUEUED.value)


_STANDING = PreparedRows[Conversation](_standing, UUID, UUID, str)
_STANDING_OF_MODEL = PreparedRows[Conversation](_standing_of_model, UUID, UUID, str, str, UUID)
_STANDING_OF_PLATFORMS = PreparedRows[Conversation](
    partial(_standing_of_model, provider_id=None), UUID, UUID, str, str
)
_AFTERWARDS = PreparedRows[Conversation](_afterwards, UUID, UUID, UUID)
_CALLS_OF_STEP = PreparedRows[ToolCall](_calls_of_step, UUID, UUID, UUID)
_TURN = PreparedRows[Turn](_turn, UUID, UUID)
_TURN_WITH_PEOPLE = PreparedRows[Turn](_turn_with_people, UUID, UUID)
_ACTIVE_TURN = PreparedRows[Turn](_active_turn, UUID, UUID)
_MESSAGE = PreparedRows[Message](_message, UUID, UUID)
_SENT = PreparedRows[Message](_sent, UUID, UUID, str)
_QUEUED = PreparedRows[QueuedMessage](_queued, UUID, UUID, str)
_LAST_MESSAGE = PreparedRows[Message](_last_message, UUID, UUID)
_LAST_ANSWER = PreparedRows[Message](_last_answer, UUID, UUID)
_UNREAD = PreparedRows[Attachment](_unread, UUID, UUID)
