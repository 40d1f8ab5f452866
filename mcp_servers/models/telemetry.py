"""What was measured."""

from __future__ import annotations

from django.db import models

from mcp_servers.models.servers import McpServer
from workspaces.scoping import WorkspaceManager, WorkspaceModel


class HealthCheck(WorkspaceModel):
    """One look at whether a server answers."""

    server = models.ForeignKey(
        McpServer, on_delete=models.CASCADE, related_name="health_checks", editable=False
    )
    checked_at = models.DateTimeField(editable=False)
    is_ok = models.BooleanField(editable=False)
    latency_ms = models.PositiveIntegerField(null=True, editable=False)
    error = models.TextField(blank=True, editable=False)

    objects = WorkspaceManager()  # type: ignore[misc]  # an instance variable, says the plugin

    class Meta(WorkspaceModel.Meta):
        ordering = ["-checked_at"]
        verbose_name = "health check"
        indexes = [
            models.Index(fields=["server", "-checked_at"], name="health_check_by_server"),
            models.Index(fields=["checked_at"], name="health_check_by_age"),
        ]

    def __str__(self) -> str:
        return f"{self.checked_at:%Y-%m-%d %H:%M:%S} {'ok' if self.is_ok else 'failed'}"
