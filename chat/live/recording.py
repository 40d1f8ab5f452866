"""Changing a conversation's rows, and telling of it: one transaction, one run of numbers.

    with changing(conversation_id, workspace_id) as changes:
        message.save()
        changes.message(message)

The conversation's row is locked first, so that events are numbered in the order of their commits.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar
from uuid import UUID

from django.db import transaction
from django.utils.translation import gettext as _

from chat.live.hub import hub
from chat.models import (
    Artifact,
    ArtifactVersion,
    Conversation,
    Message,
    QueuedMessage,
    ToolCall,
    Turn,
)
from chat.models.turns import ACTIVE, most_urgent
from chat.wire.events import (
    ArtifactChanged,
    ConversationChanged,
    InputRequestChanged,
    MessageSaved,
    QueueChanged,
    RowEvent,
    ToolCallChanged,
    TurnChanged,
)
from chat.wire.payloads import (
    artifact_json,
    attachments_of,
    conversation_json,
    input_request_json,
    message_json,
    queued_json,
    tool_call_json,
    turn_json,
)
from mcp_servers.models import InputRequest
from workspaces.database.prepared import PreparedRows
from workspaces.database.prepared_writes import update_if_there
from workspaces.delivery.announcements import Announcement, announce
from workspaces.errors import NotFound

_Row = TypeVar("_Row")


class Changes:
    """What has changed in this transaction, in order."""

    def __init__(self, conversation: Conversation) -> None:
        self.conversation = conversation
        self.events: list[RowEvent] = []
        self._also: set[str] = set()
        self._last: list[Callable[[], None]] = []

    def at_end(self, write: Callable[[], None]) -> None:
        """Write this last, so that locks which many wait for are held shortly."""
        self._last.append(write)

    def write_last(self) -> None:
        """Do so; whoever opened the transaction calls it."""
        for write in self._last:
            write()

    def save_with_number(self, *fields: str) -> None:
        """Save these fields of the conversation's row in the one statement that numbers the events."""
        self._also |= set(fields)

    def fields(self) -> set[str]:
        """What is to be written to the conversation's row."""
        return {"event_seq", *self._also}

    def message(self, message: Message, *, has_attachments: bool = True) -> None:
        """A message; `has_attachments` false where it surely has none, so that nobody need look."""
        attached = attachments_of(message.workspace_id, [message]) if has_attachments else {}
        row = message_json(message, attachments=attached.get(message.pk, ()))
        self._add(MessageSaved, row)

    def turn(self, turn: Turn) -> None:
        self._add(TurnChanged, turn_json(turn))
        self.conversation_with(turn)

    def tool_call(self, call: ToolCall) -> None:
        self._add(ToolCallChanged, tool_call_json(call))

    def input_request(self, request: InputRequest) -> None:
        self._add(InputRequestChanged, input_request_json(request))

    def queue(self) -> None:
        """The messages that wait changed: all of them are told, for they are few."""
        rows = QueuedMessage.objects.for_workspace(self.conversation.workspace_id)
        waiting = rows.filter(conversation=self.conversation)
        self._add(QueueChanged, [queued_json(row) for row in waiting])

    def artifact(self, artifact: Artifact, newest: ArtifactVersion) -> None:
        self._add(ArtifactChanged, artifact_json(artifact, newest))

    def conversation_with(self, turn: Turn) -> None:
        """The conversation, with the state of this turn; beside it others may be under way if they are compared."""
        statuses = [turn.status]
        if turn.comparison is not None:
            rows = Turn.objects.for_workspace(turn.workspace_id).exclude(pk=turn.pk)
            beside = rows.filter(conversation_id=turn.conversation_id, status__in=ACTIVE)
            statuses += beside.values_list("status", flat=True)
        self.conversation_row(turn_status=most_urgent(statuses))

    def conversation_row(self, *, turn_status: str | None) -> None:
        row = conversation_json(self.conversation, turn_status=turn_status)
        self._add(ConversationChanged, row)
        announce(
            self.conversation.workspace_id,
            Announcement(
                kind="conversation.changed",
                id=str(self.conversation.pk),
                user_id=str(self.conversation.owner_id),
            ),
        )

    def _add(self, event: Callable[[UUID, int, Any], RowEvent], row: Any) -> None:
        self.conversation.event_seq += 1
        self.events.append(event(self.conversation.pk, self.conversation.event_seq, row))


_ORDER = [threading.RLock() for _ in range(64)]
"""Held from before a transaction until its events are published: within the process they are told in the
order of their numbers. Between processes a page that sees a gap takes a fresh snapshot."""


def _locked(workspace_id: UUID, conversation_id: UUID) -> Any:
    rows = Conversation.objects.for_workspace(workspace_id).filter(pk=conversation_id).order_by()
    rows = rows.select_related("bud__provider", "chosen_model__provider")
    return rows.select_for_update(of=("self",))


_LOCKED = PreparedRows[Conversation](_locked, UUID, UUID)


@contextmanager
def changing(conversation_id: UUID, workspace_id: UUID) -> Iterator[Changes]:
    """Lock a conversation, change its rows, number and publish the events when all is committed.

    Raises:
        NotFound: there is no such conversation.
    """
    find = partial(_LOCKED.first, workspace_id, conversation_id)
    with changing_with(conversation_id, find, lambda row: row) as (changes, _):
        yield changes


@contextmanager
def changing_with(
    conversation_id: UUID,
    lock: Callable[[], _Row | None],
    conversation_of: Callable[[_Row], Conversation],
) -> Iterator[tuple[Changes, _Row]]:
    """The same with another row, read by the statement that locks the conversation first and then that row.

    Raises:
        NotFound: there is no such row.
    """
    with _ORDER[conversation_id.int % len(_ORDER)], transaction.atomic():
        row = lock()
        if row is None:
            raise NotFound(_("Conversation not found."))
        conversation = conversation_of(row)
        changes = Changes(conversation)
        yield changes, row
        if changes.events:
            update_if_there(conversation, changes.fields())  # pages are told of a deleted one too
            transaction.on_commit(partial(hub.publish, conversation.pk, changes.events))
        changes.write_last()
