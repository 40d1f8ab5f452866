"""Conversations whose time is over: those that nobody uses, those deleted long ago, and temporary ones."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final

from django.conf import settings
from django.db.models import Exists, OuterRef, Q

from chat.live.recording import changing
from chat.models import Conversation, Turn
from chat.models.turns import ACTIVE
from chat.services.conversations import active_status, delete_with, erase_with
from workspaces.actors import Actor, Source
from workspaces.database import database_now
from workspaces.jobs.sweeping import sweep

MOST_ERASED: Final = 200
"""In one round; the next one goes on."""


def temporary_hours() -> int:
    """How many hours a temporary conversation is kept after its last activity."""
    days = settings.TRELLIS.idle_conversation_days
    hours: int = settings.TRELLIS.temporary_conversation_hours
    return hours if days is None else min(hours, 24 * days)


def erase_deleted() -> int:
    """Erase what was deleted so long ago that nobody can bring it back; gives how many."""
    oldest = database_now() - timedelta(days=settings.TRELLIS.deleted_conversation_days)
    rows = Conversation.objects.across_workspaces().filter(deleted_at__lt=oldest)
    take = partial(_erase_if_deleted, oldest=oldest)
    return _sweep("erase_deleted", rows.order_by("deleted_at"), take)


def _erase_if_deleted(conversation: Conversation, actor: Actor, *, oldest: datetime) -> bool:
    with changing(conversation.pk, conversation.workspace_id) as changes:
        deleted_at = changes.conversation.deleted_at
        # Its owner may have brought it back since it was found.
        if deleted_at is None or deleted_at >= oldest:
            return False
        erase_with(changes, actor)
    return True


def erase_temporary() -> int:
    """Erase temporary conversations in which nothing has happened for their hours; gives how many.

    Those that are being answered stay, and so do those with something that waits for a person.
    """
    oldest = _oldest_temporary()
    rows = Conversation.objects.across_workspaces().filter(
        ~Exists(_activity_since(oldest)), is_temporary=True, last_message_at__lt=oldest
    )
    return _sweep("erase_temporary", rows.order_by("last_message_at"), _erase_if_temporary)


def _erase_if_temporary(conversation: Conversation, actor: Actor) -> bool:
    oldest = _oldest_temporary()
    with changing(conversation.pk, conversation.workspace_id) as changes:
        row = changes.conversation
        # Its owner may have kept it, or written in it, since it was found.
        is_over = row.is_temporary and row.last_message_at < oldest
        turns = Turn.objects.for_workspace(row.workspace_id).filter(conversation=row)
        if not is_over or turns.filter(_is_activity(oldest)).exists():
            return False
        erase_with(changes, actor)
    return True


def _oldest_temporary() -> datetime:
    """The last moment of activity that is too long ago for a temporary conversation."""
    return database_now() - timedelta(hours=temporary_hours())


def _is_activity(oldest: datetime) -> Q:
    """Of turns: what is under way, or has ended since."""
    return Q(status__in=ACTIVE) | Q(finished_at__gte=oldest)


def _activity_since(oldest: datetime) -> Any:
    turns = Turn.objects.across_workspaces().filter(conversation=OuterRef("pk"))
    return turns.filter(_is_activity(oldest))


def delete_idle() -> int:
    """Delete conversations in which nobody has written for as long as the platform keeps them; gives how many.

    Their owners can bring them back as any that they delete themselves. Pinned ones stay, and those that are being answered.
    """
    days = settings.TRELLIS.idle_conversation_days
    if days is None:
        return 0
    oldest = database_now() - timedelta(days=days)
    turns = Turn.objects.across_workspaces().filter(conversation=OuterRef("pk"))
    rows = Conversation.objects.across_workspaces().filter(
        ~Exists(turns.filter(status__in=ACTIVE)),
        last_message_at__lt=oldest,
        deleted_at=None,
        is_pinned=False,
        is_temporary=False,
    )
    return _sweep(
        "delete_idle", rows.order_by("last_message_at"), partial(_delete_if_idle, oldest=oldest)
    )


def _sweep(label: str, rows: Any, take: Callable[[Conversation, Actor], bool]) -> int:
    """Let `take` have the rows, one after the other; gives how many it took. One that fails keeps no other."""

    def take_one(conversation: Conversation) -> bool:
        workspace_id = conversation.workspace_id
        return take(
            conversation, Actor.system(label="chats", source=Source.TASK, workspace_id=workspace_id)
        )

    return sweep(rows, take_one, label=label, most=MOST_ERASED)


def _delete_if_idle(conversation: Conversation, actor: Actor, *, oldest: datetime) -> bool:
    with changing(conversation.pk, conversation.workspace_id) as changes:
        row = changes.conversation
        # Its owner may have come back since it was found.
        is_idle = row.last_message_at < oldest and row.deleted_at is None and not row.is_pinned
        if not is_idle or active_status(row) is not None:
            return False
        delete_with(changes, actor)
    return True
