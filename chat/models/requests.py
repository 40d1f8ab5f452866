"""Requests to model providers that have limits: they wait, run, and count for a minute."""

from __future__ import annotations

from django.db import models

from chat.models.buds import ModelProvider
from workspaces.scoping import WorkspaceModel


class ModelRequest(WorkspaceModel):
    """One request, from when it asks for its place until it no longer counts."""

    provider = models.ForeignKey(
        ModelProvider, on_delete=models.CASCADE, related_name="+", editable=False, null=True
    )
    """None: the platform's own."""
    alive_until = models.DateTimeField(editable=False)
    """Put off while its process lives; after it, nobody waits or runs here any more."""
    started_at = models.DateTimeField(null=True, editable=False)
    """None: it waits."""
    ended_at = models.DateTimeField(null=True, editable=False)

    class Meta(WorkspaceModel.Meta):
        ordering = ["id"]
        indexes = [models.Index(fields=["provider", "started_at"], name="model_request_recent")]

    def __str__(self) -> str:
        return f"request to {self.provider_id}"
