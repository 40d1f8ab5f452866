"""What ends a shared chat besides its owner: its conversation, the end of a membership, and a restore from a backup."""

from __future__ import annotations

from uuid import UUID

from django.db.models import Q

from chat.models import Conversation, SharedChat, SharedChatReader
from chat.models.shared_chats import ShareAudience
from workspaces.actors import Actor
from workspaces.changes import record_deleted
from workspaces.database import database_now


def drop_share(conversation: Conversation, actor: Actor) -> None:
    """Let nobody read a conversation any more, in the caller's transaction; nothing where it is not shared."""
    rows = SharedChat.objects.for_workspace(conversation.workspace_id)
    shared = rows.filter(conversation=conversation).first()
    if shared is not None:
        record_deleted(shared, actor=actor)
        shared.delete()


def drop_shared_by(workspace_id: UUID, user_id: UUID, actor: Actor) -> None:
    """Have nothing left that a person shared or could read, when they leave. In the caller's transaction."""
    rows = SharedChat.objects.for_workspace(workspace_id).filter(owner_id=user_id)
    mine = list(rows)
    for shared in mine:
        record_deleted(shared, actor=actor)
    rows.delete()
    conversations = Conversation.objects.for_workspace(workspace_id)
    conversations.filter(pk__in=[shared.conversation_id for shared in mine]).update(shared_at=None)
    readers = SharedChatReader.objects.for_workspace(workspace_id)
    readers.filter(person_id=user_id).delete()


def end_public_shares() -> int:
    """Let every link that anybody could open run out now; their owners can share again. Gives how many ended.

    A backup brings back those that their owners stopped after it was made.
    """
    now = database_now()
    rows = SharedChat.objects.across_workspaces().filter(audience=ShareAudience.LINK.value)
    return rows.filter(Q(expires_at=None) | Q(expires_at__gt=now)).update(expires_at=now)
