"""What models are given of a file."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from chat.models.artifacts import ArtifactVersion
from chat.models.visibility import OfConversationQuerySet
from workspaces.scoping import WorkspaceModel


class FileReadingQuerySet(OfConversationQuerySet["FileReading"]):
    conversation = "version__artifact__conversation"


class FileReading(WorkspaceModel):
    """The text of a version, or a picture fit for a model, or why there is neither. Made once, when first needed."""

    version = models.OneToOneField(
        ArtifactVersion, on_delete=models.CASCADE, related_name="reading"
    )
    text_path = models.CharField(
        max_length=200, blank=True, help_text=_("Name of the text within the artifact storage.")
    )
    characters = models.PositiveIntegerField(default=0)
    lines = models.PositiveIntegerField(default=0)
    outline = models.JSONField(
        default=list, help_text=_("Title and first line of each page, sheet, slide or heading.")
    )
    is_cut = models.BooleanField(default=False, help_text=_("The file holds more than was kept."))
    picture_path = models.CharField(
        max_length=200, blank=True, help_text=_("Name of the picture within the artifact storage.")
    )
    width = models.PositiveIntegerField(default=0, help_text=_("Of the picture, in points."))
    height = models.PositiveIntegerField(default=0)
    error = models.TextField(blank=True, help_text=_("Why it cannot be read."))

    objects = models.Manager.from_queryset(FileReadingQuerySet)()  # type: ignore[misc]  # an instance variable, says the plugin

    class Meta(WorkspaceModel.Meta):
        indexes = [
            models.Index(fields=["text_path"], name="file_reading_text"),
            models.Index(fields=["picture_path"], name="file_reading_picture"),
        ]

    def __str__(self) -> str:
        return f"reading of {self.version_id}"
