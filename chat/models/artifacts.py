"""Named, versioned files of a conversation."""

from __future__ import annotations

from django.conf import settings
from django.core.validators import MinValueValidator
from django.db import models
from django.utils.translation import gettext_lazy as _

from chat.models.conversations import Conversation, Message
from chat.models.turns import ToolCall
from chat.models.visibility import OfConversationQuerySet
from chat.values import ArtifactOrigin
from workspaces.scoping import WorkspaceModel


class Artifact(WorkspaceModel):
    """A file that people and models make together, under one name."""

    conversation = models.ForeignKey(
        Conversation, on_delete=models.CASCADE, related_name="artifacts"
    )
    name = models.CharField(max_length=200, help_text=_("With its extension."))
    newest = models.PositiveIntegerField(default=0, help_text=_("Number of the newest version."))
    is_deleted = models.BooleanField(default=False)

    objects = models.Manager.from_queryset(OfConversationQuerySet)()  # type: ignore[misc]  # an instance variable, says the plugin

    class Meta(WorkspaceModel.Meta):
        ordering = ["id"]
        constraints = [
            models.UniqueConstraint(
                fields=["conversation", "name"],
                condition=models.Q(is_deleted=False),
                name="artifact_name_once",
            )
        ]

    def __str__(self) -> str:
        return self.name


class ArtifactVersionQuerySet(OfConversationQuerySet["ArtifactVersion"]):
    conversation = "artifact__conversation"


class ArtifactVersion(WorkspaceModel):
    """What an artifact held at one time; never changed."""

    artifact = models.ForeignKey(Artifact, on_delete=models.CASCADE, related_name="versions")
    number = models.PositiveIntegerField(validators=[MinValueValidator(1)])
    content_type = models.CharField(max_length=100, help_text=_("Found in the content itself."))
    size = models.PositiveBigIntegerField(help_text=_("Bytes."))
    sha256 = models.CharField(max_length=64)
    path = models.CharField(max_length=200, help_text=_("Name within the artifact storage."))
    origin = models.CharField(max_length=10, choices=[(o.value, o.value) for o in ArtifactOrigin])
    message = models.ForeignKey(Message, on_delete=models.SET_NULL, null=True, related_name="+")
    tool_call = models.ForeignKey(ToolCall, on_delete=models.SET_NULL, null=True, related_name="+")
    made_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )

    objects = models.Manager.from_queryset(ArtifactVersionQuerySet)()  # type: ignore[misc]  # an instance variable, says the plugin

    class Meta(WorkspaceModel.Meta):
        ordering = ["number"]
        indexes = [models.Index(fields=["path"], name="artifact_version_path")]
        constraints = [
            models.UniqueConstraint(fields=["artifact", "number"], name="artifact_version_once"),
            models.UniqueConstraint(fields=["tool_call"], name="artifact_version_once_per_call"),
        ]

    def __str__(self) -> str:
        return f"{self.artifact_id} v{self.number}"
