"""What ends a shared chat besides its owner: its conversation, and the end of a membership."""

from __future__ import annotations

from uuid import UUID

from chat.models import Conversation, SharedChat, SharedChatReader
from workspaces.actors import Actor
from workspaces.changes import record_deleted


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
