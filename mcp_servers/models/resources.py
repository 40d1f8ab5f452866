"""The resources and prompts that servers offer, as they were last seen."""

from __future__ import annotations

from typing import Any, Self

from django.db import models
from django.utils.translation import gettext_lazy as _

from mcp_servers.models.servers import McpServer
from mcp_servers.models.visibility import OfServerQuerySet
from workspaces.scoping import WorkspaceModel

MAX_NAME_LENGTH = 256
MAX_URI_LENGTH = 2048


class OfferedQuerySet(OfServerQuerySet[Any]):
    """Resources or prompts, with the one rule on which of them may be used."""

    def usable(self) -> Self:
        """Still there, switched on, of an active server."""
        return self.filter(removed_at__isnull=True, is_enabled=True, server__is_active=True)

    def offered(self) -> Self:
        """Those that the server still has."""
        return self.filter(removed_at__isnull=True)


class McpResource(WorkspaceModel):
    """One resource of one server, or one template for the addresses of many."""

    server = models.ForeignKey(
        McpServer, on_delete=models.CASCADE, related_name="resources", editable=False
    )
    uri = models.CharField(_("URI"), max_length=MAX_URI_LENGTH, editable=False)
    """For a template: an RFC 6570 template."""
    is_template = models.BooleanField(default=False, editable=False)
    name = models.CharField(max_length=MAX_NAME_LENGTH, blank=True, editable=False)
    title = models.CharField(max_length=MAX_NAME_LENGTH, blank=True, editable=False)
    description = models.TextField(blank=True, editable=False)
    mime_type = models.CharField(max_length=200, blank=True, editable=False)
    size = models.PositiveBigIntegerField(null=True, editable=False)
    """In bytes, if the server says so."""
    annotations = models.JSONField(default=dict, editable=False)
    icons = models.JSONField(default=list, editable=False)
    is_enabled = models.BooleanField(_("switched on"), default=True)
    is_watched = models.BooleanField(default=False, editable=False)
    """Somebody attached it, so connections subscribe to its changes."""
    changed_at = models.DateTimeField(null=True, editable=False)
    """When the server last said that its content changed."""
    first_seen_at = models.DateTimeField(auto_now_add=True)
    last_seen_at = models.DateTimeField(editable=False)
    removed_at = models.DateTimeField(null=True, editable=False)

    objects = models.Manager.from_queryset(OfferedQuerySet)()  # type: ignore[misc]  # an instance variable, says the plugin

    class Meta(WorkspaceModel.Meta):
        ordering = ["name", "id"]
        verbose_name = _("resource")
        constraints = [
            models.UniqueConstraint(
                fields=["server", "is_template", "uri"], name="mcp_resource_once"
            )
        ]

    def __str__(self) -> str:
        return self.title or self.name or self.uri


class McpPrompt(WorkspaceModel):
    """One prompt of one server."""

    server = models.ForeignKey(
        McpServer, on_delete=models.CASCADE, related_name="prompts", editable=False
    )
    name = models.CharField(max_length=MAX_NAME_LENGTH, editable=False)
    title = models.CharField(max_length=MAX_NAME_LENGTH, blank=True, editable=False)
    description = models.TextField(blank=True, editable=False)
    arguments = models.JSONField(default=list, editable=False)
    """A list of {"name", "title", "description", "required"}."""
    icons = models.JSONField(default=list, editable=False)
    is_enabled = models.BooleanField(_("switched on"), default=True)
    first_seen_at = models.DateTimeField(auto_now_add=True)
    last_seen_at = models.DateTimeField(editable=False)
    removed_at = models.DateTimeField(null=True, editable=False)

    objects = models.Manager.from_queryset(OfferedQuerySet)()  # type: ignore[misc]  # an instance variable, says the plugin

    class Meta(WorkspaceModel.Meta):
        ordering = ["name", "id"]
        verbose_name = _("prompt")
        constraints = [models.UniqueConstraint(fields=["server", "name"], name="mcp_prompt_once")]

    def __str__(self) -> str:
        return self.title or self.name
