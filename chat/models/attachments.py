"""Resources of MCP servers that a person attached to a message."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from django.db import models

from chat.models.conversations import Message
from chat.values import AttachmentStatus
from workspaces.scoping import WorkspaceModel, WorkspaceQuerySet

if TYPE_CHECKING:
    from workspaces.models import User


class AttachmentQuerySet(WorkspaceQuerySet["Attachment"]):
    def visible_to(self, user: User) -> AttachmentQuerySet:
        """As the conversation."""
        return super().visible_to(user).filter(message__conversation__owner=user)


class Attachment(WorkspaceModel):
    """One resource, named when the message was sent and read, through the gate, before the model is asked."""

    message = models.ForeignKey(Message, on_delete=models.CASCADE, related_name="attachments")
    position = models.PositiveSmallIntegerField()
    # Values, so that the message still reads right when the server is gone.
    server_id = models.UUIDField()
    server_name = models.CharField(max_length=200)
    resource_id = models.UUIDField(null=True)
    uri = models.CharField(max_length=2048)
    title = models.CharField(max_length=256, blank=True)
    mime_type = models.CharField(max_length=200, blank=True)
    status = models.CharField(
        max_length=10,
        choices=[(s.value, s.value) for s in AttachmentStatus],
        default=AttachmentStatus.QUEUED.value,
    )
    content = models.JSONField(default=list, help_text="Content parts as they were read.")
    model_text = models.TextField(blank=True, help_text="What the model reads of it.")
    error = models.TextField(blank=True)
    read_at = models.DateTimeField(null=True)

    changed_at: datetime | None = None
    """When its server last said that it changed; filled in by whoever shows it."""

    objects = models.Manager.from_queryset(AttachmentQuerySet)()  # type: ignore[misc]  # an instance variable, says the plugin

    class Meta(WorkspaceModel.Meta):
        ordering = ["message_id", "position"]
        constraints = [
            models.UniqueConstraint(fields=["message", "position"], name="attachment_place_once")
        ]

    def __str__(self) -> str:
        return self.title or self.uri
