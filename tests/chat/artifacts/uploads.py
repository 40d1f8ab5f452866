"""Files that a person uploads to a conversation."""

from __future__ import annotations

from chat.artifacts.services import create_artifact
from chat.models import Artifact
from chat.values import ArtifactOrigin
from tests.chat.conftest import Chat


def upload(chat: Chat, name: str, content: bytes) -> Artifact:
    """A file of the conversation."""
    return create_artifact(
        conversation=chat.conversation,
        name=name,
        content=content,
        actor=chat.actor,
        origin=ArtifactOrigin.UPLOAD,
    ).artifact
