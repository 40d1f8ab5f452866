"""What is known of a server from looking at it."""

from __future__ import annotations

from typing import Any

from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from mcp_servers.models.visibility import OfServerQuerySet
from workspaces.scoping import WorkspaceModel


class ServerStatus(models.TextChoices):
    DISCONNECTED = "disconnected", _("Disconnected")
    CONNECTING = "connecting", _("Connecting")
    CONNECTED = "connected", _("Connected")
    AUTH_REQUIRED = "auth_required", _("Needs sign-in")
    ERROR = "error", _("Error")


class ServerState(WorkspaceModel):
    """How a server is, and what it says about itself. Checks write it; the row that people edit stays untouched."""

    id = None  # type: ignore[assignment]  # the server's
    server = models.OneToOneField(
        to="mcp_servers.McpServer",
        on_delete=models.CASCADE,
        primary_key=True,
        related_name="state",
        editable=False,
    )
    status = models.CharField(
        max_length=15,
        choices=ServerStatus.choices,
        default=ServerStatus.DISCONNECTED,
        editable=False,
    )
    status_reason = models.TextField(blank=True, editable=False)
    last_connected_at = models.DateTimeField(null=True, editable=False)
    last_checked_at = models.DateTimeField(null=True, editable=False)
    next_check_at = models.DateTimeField(null=True, editable=False)
    consecutive_failures = models.PositiveIntegerField(default=0, editable=False)
    latency_ms = models.PositiveIntegerField(null=True, editable=False)
    server_info = models.JSONField(default=dict, editable=False)
    protocol_revision = models.CharField(max_length=20, blank=True, editable=False)
    resolved_transport = models.CharField(max_length=20, blank=True, editable=False)
    """What the automatic choice found to work."""
    capabilities = models.JSONField(default=dict, editable=False)
    instructions = models.TextField(blank=True, editable=False)
    tools_listed_at = models.DateTimeField(null=True, editable=False)
    lists_stale_at = models.DateTimeField(null=True, editable=False)
    """When the server's own word on how long its lists hold runs out."""

    objects = models.Manager.from_queryset(OfServerQuerySet)()  # type: ignore[misc]  # an instance variable, says the plugin

    class Meta(WorkspaceModel.Meta):
        verbose_name = _("state of an MCP server")
        indexes = [models.Index(fields=["next_check_at"], name="mcp_server_due_for_check")]

    def __str__(self) -> str:
        return self.status

    def write(self, **values: object) -> None:
        """Keep these values, and leave what others wrote meanwhile; nothing if the server is gone."""
        for name, value in values.items():
            setattr(self, name, value)
        if values:
            row = type(self).objects.for_workspace(self.workspace_id).filter(pk=self.pk)
            row.update(**values, updated_at=timezone.now())

    @property
    def server_version(self) -> str:
        """What the server calls itself."""
        info: dict[str, Any] = self.server_info
        return f"{info.get('name', '')} {info.get('version', '')}".strip()
