"""The picture that a server gives of itself."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from mcp_servers.models.visibility import OfServerQuerySet
from workspaces.scoping import WorkspaceModel


class ServerIcon(WorkspaceModel):
    """A server's icon, fetched once, drawn anew and served by Trellis itself."""

    id = None  # type: ignore[assignment]  # the server's
    server = models.OneToOneField(
        to="mcp_servers.McpServer",
        on_delete=models.CASCADE,
        primary_key=True,
        related_name="icon",
        editable=False,
    )
    source_hash = models.CharField(max_length=64, editable=False)
    """SHA-256 of what the server named; another one is fetched anew."""
    content = models.BinaryField(editable=False)
    """A small PNG; empty: what the server named is none that can be shown."""
    digest = models.CharField(max_length=16, blank=True, editable=False)
    """Of the content, for its address."""

    objects = models.Manager.from_queryset(OfServerQuerySet)()  # type: ignore[misc]  # an instance variable, says the plugin

    class Meta(WorkspaceModel.Meta):
        verbose_name = _("icon of an MCP server")

    def __str__(self) -> str:
        return f"{self.pk}"
