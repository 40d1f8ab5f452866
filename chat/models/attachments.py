"""What a person attached to a message: resources of MCP servers, and files of the conversation."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final, Self

from django.db import models
from django.db.models.functions import Left
from django.utils.translation import gettext_lazy as _

from chat.models.artifacts import ArtifactVersion
from chat.models.conversations import FoundByOwner, Message
from chat.models.visibility import OfConversationQuerySet
from chat.values import AttachmentStatus
from workspaces.scoping import WorkspaceModel

PREVIEW: Final = 300
"""Characters of a resource that its page is given unasked."""


class AttachmentQuerySet(OfConversationQuerySet["Attachment"]):
    conversation = "message__conversation"

    def without_content(self) -> Self:
        """All but what was read of it, which may be a mebibyte."""
        return self.defer("content", "model_text", "overview")

    def for_wire(self) -> Self:
        """The same with its `preview`."""
        rows: Any = self.without_content().annotate(preview=Left("model_text", PREVIEW))
        found: Self = rows
        return found


class Attachment(FoundByOwner, WorkspaceModel):
    """A resource or a file, named when the message was sent and read before the model is asked.

    A resource is read through the gate. A file is one version of an artifact.
    """

    message = models.ForeignKey(Message, on_delete=models.CASCADE, related_name="attachments")
    position = models.PositiveSmallIntegerField()
    # Values, so that the message still reads right when the server is gone.
    server_id = models.UUIDField(null=True, help_text=_("None: a file."))
    server_name = models.CharField(max_length=200, blank=True)
    resource_id = models.UUIDField(null=True)
    uri = models.CharField(max_length=2048, blank=True)
    version = models.ForeignKey(
        ArtifactVersion, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    file = models.JSONField(null=True, help_text=_("The version as calls and the log name it."))
    title = models.CharField(max_length=256, blank=True)
    mime_type = models.CharField(max_length=200, blank=True)
    status = models.CharField(
        max_length=10,
        choices=[(s.value, s.value) for s in AttachmentStatus],
        default=AttachmentStatus.QUEUED.value,
    )
    content = models.JSONField(default=list, help_text=_("Content parts as they were read."))
    size = models.PositiveIntegerField(
        null=True, help_text=_("Bytes of the content. None: a file, or not known.")
    )
    model_text = models.TextField(blank=True, help_text=_("What the model reads of it."))
    overview = models.TextField(
        blank=True,
        default="",
        db_default="",
        help_text=_("What it reads instead, where the whole is too long."),
    )
    characters = models.PositiveIntegerField(
        default=0,
        db_default=0,
        help_text=_("Of the whole text of a file; model_text may hold less."),
    )
    error = models.TextField(blank=True)
    """Why it could not be read; of one that is ready, what is missing of it."""
    read_at = models.DateTimeField(null=True)

    changed_at: datetime | None = None
    """When its server last said that it changed; filled in by whoever shows it."""
    preview: str = ""
    """The beginning of what the model reads; filled in by `for_wire`."""

    objects = models.Manager.from_queryset(AttachmentQuerySet)()  # type: ignore[misc]  # an instance variable, says the plugin

    class Meta(WorkspaceModel.Meta):
        ordering = ["message_id", "position"]
        constraints = [
            models.UniqueConstraint(fields=["message", "position"], name="attachment_place_once")
        ]
        indexes = [
            models.Index(
                fields=["owner", "workspace", "message"],
                condition=models.Q(version__isnull=False),
                name="attachment_of_owner",
            )
        ]

    def __str__(self) -> str:
        return self.title or self.uri
