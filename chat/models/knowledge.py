"""Files that a bud knows, and their text in passages that can be searched."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from chat.models.buds import Bud, ModelProvider
from chat.models.visibility import OfBudQuerySet
from workspaces.scoping import WorkspaceModel


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

    objects = models.Manager.from_queryset(OfBudQuerySet)()  # type: ignore[misc]  # an instance variable, says the plugin

    class Meta(WorkspaceModel.Meta):
        ordering = ["name"]
        indexes = [models.Index(fields=["path"], name="knowledge_file_path")]
        constraints = [models.UniqueConstraint(fields=["bud", "name"], name="knowledge_name_once")]

    def __str__(self) -> str:
        return self.name


class KnowledgePassageQuerySet(OfBudQuerySet["KnowledgePassage"]):
    bud = "file__bud"


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


class KnowledgePreparationQuerySet(OfBudQuerySet["KnowledgePreparation"]):
    bud = "file__bud"


class KnowledgePreparation(WorkspaceModel):
    """How far a file can be searched by meaning, with one embedding model. For another model it is made anew."""

    file = models.OneToOneField(KnowledgeFile, on_delete=models.CASCADE, related_name="preparation")
    provider = models.ForeignKey(
        ModelProvider,
        on_delete=models.CASCADE,
        related_name="+",
        null=True,
        help_text=_("Empty: the platform's own."),
    )
    model = models.CharField(max_length=200)
    passages = models.PositiveIntegerField(help_text=_("Of the file."))
    done = models.PositiveIntegerField(
        default=0, help_text=_("Passages that need no more work, from the first one on.")
    )
    numbers = models.PositiveIntegerField(default=0, help_text=_("In each vector."))
    tokens = models.PositiveBigIntegerField(default=0)
    cost = models.DecimalField(max_digits=16, decimal_places=6, null=True)
    fault = models.CharField(max_length=300, blank=True)
    failures = models.PositiveSmallIntegerField(default=0, help_text=_("In a row."))
    due_at = models.DateTimeField(help_text=_("When to go on."))
    alive_until = models.DateTimeField(null=True, help_text=_("Until then a process works on it."))
    finished_at = models.DateTimeField(null=True)

    objects = models.Manager.from_queryset(KnowledgePreparationQuerySet)()  # type: ignore[misc]  # an instance variable, says the plugin

    def __str__(self) -> str:
        return f"{self.file_id} {self.done}/{self.passages}"


class PassageVectorQuerySet(OfBudQuerySet["PassageVector"]):
    bud = "preparation__file__bud"


class PassageVector(WorkspaceModel):
    """What a passage means, in numbers, as `chat.vectors` packs them. The columns stand in the order of their size."""

    preparation = models.ForeignKey(
        KnowledgePreparation, on_delete=models.CASCADE, related_name="vectors", db_index=False
    )
    position = models.PositiveIntegerField(help_text=_("Of the passage in its file."))
    signs = models.BinaryField()
    numbers = models.BinaryField()

    objects = models.Manager.from_queryset(PassageVectorQuerySet)()  # type: ignore[misc]  # an instance variable, says the plugin

    class Meta(WorkspaceModel.Meta):
        constraints = [
            models.UniqueConstraint(fields=["preparation", "position"], name="passage_vector_once")
        ]

    def __str__(self) -> str:
        return f"{self.preparation_id} {self.position}"
