"""Folders that people sort their conversations into: one level, each with a colour."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from chat.values import FolderColour
from workspaces.scoping import PersonalManager, WorkspaceModel


class Folder(WorkspaceModel):
    """A person's folder."""

    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+", editable=False
    )
    name = models.CharField(_("name"), max_length=60)
    colour = models.CharField(
        max_length=10,
        default=FolderColour.GREEN.value,
        choices=[(colour.value, colour.value) for colour in FolderColour],
    )

    objects = PersonalManager()  # type: ignore[misc]  # an instance variable, says the plugin

    class Meta(WorkspaceModel.Meta):
        ordering = ["name", "id"]
        constraints = [
            models.UniqueConstraint(fields=["workspace", "owner", "name"], name="folder_named_once")
        ]

    def __str__(self) -> str:
        return self.name
