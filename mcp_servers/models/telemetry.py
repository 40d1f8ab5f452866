"""What was measured."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from mcp_servers.models.servers import McpServer
from mcp_servers.models.visibility import OfServerQuerySet
from workspaces.database.prepared_writes import WrittenOften
from workspaces.scoping import WorkspaceModel
from workspaces.secrets import EncryptedTextField


class HealthCheck(WorkspaceModel):
    """One look at whether a server answers."""

    server = models.ForeignKey(
        McpServer, on_delete=models.CASCADE, related_name="health_checks", editable=False
    )
    checked_at = models.DateTimeField(editable=False)
    is_ok = models.BooleanField(editable=False)
    latency_ms = models.PositiveIntegerField(null=True, editable=False)
    error = models.TextField(blank=True, editable=False)

    objects = models.Manager.from_queryset(OfServerQuerySet)()  # type: ignore[misc]  # an instance variable, says the plugin

    class Meta(WorkspaceModel.Meta):
        ordering = ["-checked_at"]
        verbose_name = _("health check")
        indexes = [
            models.Index(fields=["server", "-checked_at"], name="health_check_by_server"),
            models.Index(fields=["checked_at"], name="health_check_by_age"),
        ]

    def __str__(self) -> str:
        text = _("%(server)s answered") if self.is_ok else _("%(server)s did not answer")
        return str(text) % {"server": self.server.name}


class TraceMessage(WrittenOften, WorkspaceModel):
    """One JSON-RPC message, or one event of a connection; kept for a while, redacted before it is stored."""

    server = models.ForeignKey(
        McpServer, on_delete=models.CASCADE, related_name="trace", editable=False
    )
    at = models.DateTimeField(editable=False)
    principal = models.CharField(max_length=60, editable=False)
    connection = models.CharField(max_length=20, editable=False)
    """Which of the connections to this server, by a short name."""
    direction = models.CharField(max_length=10, editable=False)
    """sent, received or event."""
    kind = models.CharField(max_length=15, editable=False)
    """request, response, notification, error or event."""
    method = models.CharField(max_length=100, blank=True, editable=False)
    rpc_id = models.CharField(max_length=100, blank=True, editable=False)
    call_id = models.UUIDField(null=True, editable=False)
    user_id = models.UUIDField(null=True, editable=False)
    """Whose call it belongs to."""
    outline = models.JSONField(null=True, editable=False)
    """The message with the values of people's calls replaced by their types and sizes."""
    body = EncryptedTextField(editable=False)
    """The message as JSON, redacted; for auditors and for whoever made the call."""
    text = models.TextField(blank=True, editable=False)
    """An event, an error or a line of the server's log, in plain words."""
    size = models.PositiveIntegerField(default=0, editable=False)
    duration_ms = models.PositiveIntegerField(null=True, editable=False)
    is_check = models.BooleanField(default=False, db_default=False, editable=False)
    """It belongs to a regular check that went well."""

    objects = models.Manager.from_queryset(OfServerQuerySet)()  # type: ignore[misc]  # an instance variable, says the plugin

    class Meta(WorkspaceModel.Meta):
        ordering = ["-id"]
        verbose_name = _("trace message")
        indexes = [
            models.Index(fields=["server", "-id"], name="trace_by_server"),
            models.Index(fields=["at"], name="trace_by_age"),
        ]

    def __str__(self) -> str:
        return f"{self.direction} {self.method or self.kind}"
