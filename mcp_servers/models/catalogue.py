"""What a workspace lets its people install from the catalogue."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from workspaces.scoping import WorkspaceManager, WorkspaceModel


class CatalogueChoice(WorkspaceModel):
    """A workspace's word on one entry of the catalogue; without one, only administrators install it."""

    source = models.CharField(max_length=20)
    slug = models.CharField(max_length=100)
    is_for_everybody = models.BooleanField(_("members may install it"), default=False)

    objects = WorkspaceManager()  # type: ignore[misc]  # an instance variable, says the plugin

    class Meta(WorkspaceModel.Meta):
        ordering = ["source", "slug"]
        verbose_name = _("catalogue choice")
        constraints = [
            models.UniqueConstraint(
                fields=["workspace", "source", "slug"], name="catalogue_choice_once"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.source}: {self.slug}"
