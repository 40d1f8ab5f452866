"""Chats that people import from a file."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from chat.models.buds import Bud
from chat.values import ImportSource, ImportStatus
from workspaces.scoping import PersonalManager, WorkspaceModel

OPEN_IMPORTS = [ImportStatus.QUEUED.value, ImportStatus.RUNNING.value]
"""Those whose file is still to be read, or is being read."""


class ChatImport(WorkspaceModel):
    """One file, how far it is read, and what came of it."""

    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+", editable=False
    )
    bud = models.ForeignKey(
        Bud, on_delete=models.PROTECT, related_name="+", help_text=_("Who goes on with the chats.")
    )
    file_name = models.CharField(max_length=200)
    path = models.CharField(
        max_length=200,
        blank=True,
        help_text=_("Name of the file within the artifact storage, until it is read."),
    )
    origin = models.CharField(
        max_length=10,
        blank=True,
        choices=[(one.value, one.value) for one in ImportSource],
        help_text=_("Who wrote the file. Empty: it is not known yet."),
    )
    status = models.CharField(
        max_length=10,
        default=ImportStatus.QUEUED.value,
        choices=[(one.value, one.value) for one in ImportStatus],
    )
    error = models.TextField(blank=True, help_text=_("Why nothing of the file was imported."))
    total = models.PositiveIntegerField(default=0, help_text=_("Chats in the file."))
    position = models.PositiveIntegerField(default=0, help_text=_("Of them, those looked at."))
    imported = models.PositiveIntegerField(default=0)
    messages = models.PositiveIntegerField(default=0, help_text=_("In the chats that came."))
    left_out = models.PositiveIntegerField(default=0)
    files = models.PositiveIntegerField(
        default=0, db_default=0, help_text=_("Versions of files that came with the chats.")
    )
    files_left_out = models.PositiveIntegerField(default=0, db_default=0)
    reasons = models.JSONField(
        default=list, help_text=_("The first chats that were left out, with the reason for each.")
    )
    alive_until = models.DateTimeField(
        null=True, help_text=_("Until then the process that reads it is taken to be alive.")
    )
    finished_at = models.DateTimeField(null=True)
    removed_at = models.DateTimeField(
        null=True, help_text=_("What was deleted since then can be brought back as one.")
    )

    objects = PersonalManager()  # type: ignore[misc]  # an instance variable, says the plugin

    class Meta(WorkspaceModel.Meta):
        ordering = ["-id"]
        constraints = [
            models.UniqueConstraint(
                fields=["workspace", "owner"],
                condition=models.Q(status__in=OPEN_IMPORTS),
                name="chat_import_one_at_a_time",
            )
        ]
        indexes = [
            models.Index(
                fields=["alive_until"],
                condition=models.Q(status__in=OPEN_IMPORTS),
                name="chat_import_open",
            )
        ]

    def __str__(self) -> str:
        return self.file_name
