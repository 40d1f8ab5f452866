"""Copies of what is a person's in a workspace, made for them to download."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from chat.values import CopyStatus
from workspaces.scoping import PersonalManager, WorkspaceModel, WorkspaceQuerySet

if TYPE_CHECKING:
    from workspaces.models import User


OPEN_COPIES = [CopyStatus.QUEUED.value, CopyStatus.RUNNING.value]
"""Those that are still to be made, or are being made."""


class DataCopy(WorkspaceModel):
    """One copy that a person asked for, how far it is, and how long it is kept."""

    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+", editable=False
    )
    with_files = models.BooleanField(
        default=True, help_text=_("Files of chats are in it, with all their versions.")
    )
    status = models.CharField(
        max_length=10,
        default=CopyStatus.QUEUED.value,
        choices=[(one.value, one.value) for one in CopyStatus],
    )
    error = models.TextField(blank=True, help_text=_("Why it could not be made."))
    total = models.PositiveIntegerField(default=0, help_text=_("Chats that are to be copied."))
    position = models.PositiveIntegerField(default=0, help_text=_("Of them, those copied."))
    shown = models.PositiveIntegerField(
        default=0, help_text=_("Chats that are written by now, if the round that writes them ends.")
    )
    cursor = models.UUIDField(
        null=True, editable=False, help_text=_("The last chat that is copied.")
    )
    files = models.PositiveIntegerField(default=0, help_text=_("Versions of files in it."))
    missing = models.JSONField(
        default=list, help_text=_("The first files that could not be read, with their chats.")
    )
    size = models.PositiveBigIntegerField(default=0, help_text=_("Bytes of all parts."))
    alive_until = models.DateTimeField(
        null=True, help_text=_("Until then the process that makes it is taken to be alive.")
    )
    finished_at = models.DateTimeField(null=True)
    expires_at = models.DateTimeField(
        null=True, db_index=True, help_text=_("Its files are erased then. None: it is not ready.")
    )

    objects = PersonalManager()  # type: ignore[misc]  # an instance variable, says the plugin

    class Meta(WorkspaceModel.Meta):
        ordering = ["-id"]
        constraints = [
            models.UniqueConstraint(
                fields=["workspace", "owner"],
                condition=models.Q(status__in=OPEN_COPIES),
                name="data_copy_one_at_a_time",
            )
        ]
        indexes = [
            models.Index(
                fields=["alive_until"],
                condition=models.Q(status__in=OPEN_COPIES),
                name="data_copy_open",
            )
        ]

    def __str__(self) -> str:
        return str(self.pk)


class DataCopyPartQuerySet(WorkspaceQuerySet["DataCopyPart"]):
    def visible_to(self, user: User) -> DataCopyPartQuerySet:
        """As the copy."""
        return super().visible_to(user).filter(copy__owner=user)


class DataCopyPart(WorkspaceModel):
    """One ZIP of a copy. Until the copy is ready its last part may still grow, each time under a new name."""

    copy = models.ForeignKey(DataCopy, on_delete=models.CASCADE, related_name="parts")
    number = models.PositiveIntegerField()
    path = models.CharField(max_length=200, help_text=_("Name within the artifact storage."))
    size = models.PositiveBigIntegerField(help_text=_("Bytes."))
    sha256 = models.CharField(max_length=64)
    chats = models.PositiveIntegerField(default=0)
    entries = models.PositiveIntegerField(default=0, help_text=_("Files in the ZIP."))

    objects = models.Manager.from_queryset(DataCopyPartQuerySet)()  # type: ignore[misc]  # an instance variable, says the plugin

    class Meta(WorkspaceModel.Meta):
        ordering = ["number"]
        indexes = [models.Index(fields=["path"], name="data_copy_part_path")]
        constraints = [
            models.UniqueConstraint(fields=["copy", "number"], name="data_copy_part_once")
        ]

    def __str__(self) -> str:
        return f"{self.copy_id} part {self.number}"
