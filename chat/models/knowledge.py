"""Files that a bud knows, and their text in passages that can be searched."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import models
from django.utils.translation import gettext_lazy as _

from chat.models.buds import Bud, BudVisibility
from workspaces.scoping import WorkspaceModel, WorkspaceQuerySet

if TYPE_CHECKING:
    from workspaces.models import User


class KnowledgeFileQuerySet(WorkspaceQuerySet["KnowledgeFile"]):
    def visible_to(self, user: User) -> KnowledgeFileQuerySet:
        """As the bud."""
        shared = models.Q(bud__visibility=BudVisibility.WORKSPACE.value)
        return super().visible_to(user).filter(shared | models.Q(bud__owner=user))


class KnowledgeFile(WorkspaceModel):
    """A file of a bud, with what its models read of it. Never changed: another content is another file."""

    bud = models.ForeignKey(Bud, on_delete=models.CASCADE, related_name="knowledge")
    name = models.CharField(max_length=200, help_text=_("With its extension."))
    content_type = models.CharField(max_length=100, help_text=_("Found in the content itself."))
    size = models.PositiveBigIntegerField(help_text=_("Bytes."))
    sha256 = models.CharField(max_length=64)
    path = models.CharField(max_length=200, help_text=_("Name within the artifact storage."))
    characters = models.PositiveIntegerField()
    lines = models.PositiveIntegerField()
    outline = models.JSONField(
        default=list, help_text=_("Title and first line of each page, sheet, slide or heading.")
    )
    is_cut = models.BooleanField(default=False, help_text=_("The file holds more than was kept."))
    added_by = models.CharField(max_length=254, help_text=_("As the log names them."))

    objects = models.Manager.from_queryset(KnowledgeFileQuerySet)()  # type: ignore[misc]  # an instance variable, says the plugin

    class Meta(WorkspaceModel.Meta):
        ordering = ["name"]
        indexes = [models.Index(fields=["path"], name="knowledge_file_path")]
        constraints = [models.UniqueConstraint(fields=["bud", "name"], name="knowledge_name_once")]

    def __str__(self) -> str:
        return self.name


class KnowledgePassageQuerySet(WorkspaceQuerySet["KnowledgePassage"]):
    def visible_to(self, user: User) -> KnowledgePassageQuerySet:
        """As the bud."""
        shared = models.Q(file__bud__visibility=BudVisibility.WORKSPACE.value)
        return super().visible_to(user).filter(shared | models.Q(file__bud__owner=user))


class KnowledgePassage(WorkspaceModel):
    """Some lines of a file. All of its passages in order are its text."""

    file = models.ForeignKey(KnowledgeFile, on_delete=models.CASCADE, related_name="passages")
    position = models.PositiveIntegerField()
    first_line = models.PositiveIntegerField()
    last_line = models.PositiveIntegerField()
    text = models.TextField()

    objects = models.Manager.from_queryset(KnowledgePassageQuerySet)()  # type: ignore[misc]  # an instance variable, says the plugin

    class Meta(WorkspaceModel.Meta):
        ordering = ["file_id", "position"]
        constraints = [
            models.UniqueConstraint(fields=["file", "position"], name="knowledge_passage_once")
        ]

    def __str__(self) -> str:
        return f"{self.file_id} {self.position}"
