"""Buds and models that people want at hand."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q

from chat.models.buds import Bud, ModelProvider
from workspaces.scoping import PersonalManager, WorkspaceModel


class Pin(WorkspaceModel):
    """A bud, or a model of a provider, that stands first in one person's choice."""

    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+", editable=False
    )
    bud = models.ForeignKey(
        Bud, on_delete=models.CASCADE, null=True, related_name="+", editable=False
    )
    provider = models.ForeignKey(
        ModelProvider, on_delete=models.CASCADE, null=True, related_name="+", editable=False
    )
    """Of the model; None: the platform's own."""
    model = models.CharField(max_length=200, blank=True, editable=False)

    objects = PersonalManager()  # type: ignore[misc]  # an instance variable, says the plugin

    class Meta(WorkspaceModel.Meta):
        ordering = ["id"]
        constraints = [
            models.UniqueConstraint(fields=["owner", "bud"], name="pin_of_bud_once"),
            models.UniqueConstraint(
                fields=["owner", "provider", "model"],
                condition=Q(bud=None),
                name="pin_of_model_once",
            ),
            models.UniqueConstraint(
                fields=["workspace", "owner", "model"],
                condition=Q(bud=None, provider=None),
                name="pin_of_platforms_model_once",
            ),
            models.CheckConstraint(
                condition=Q(bud__isnull=False, provider=None, model="")
                | (Q(bud=None) & ~Q(model="")),
                name="pin_of_a_bud_or_a_model",
            ),
        ]

    def __str__(self) -> str:
        return self.model or str(self.bud_id)
