"""Rules on actions that a tool of a hosted server runs by name."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from mcp_servers.models.call_rules import EFFECT_CHOICES
from mcp_servers.models.servers import McpServer
from workspaces.scoping import WorkspaceManager, WorkspaceModel


class ActionRule(WorkspaceModel):
    """What an administrator decided about an action that a tool runs by name, see meta_tools."""

    server = models.ForeignKey(McpServer, on_delete=models.CASCADE, related_name="action_rules")
    key = models.CharField(max_length=64, editable=False)
    """Over the three names; see meta_tools.EffectiveAction."""
    service = models.CharField(max_length=200, blank=True)
    category = models.CharField(max_length=200, blank=True)
    action = models.CharField(max_length=200)
    effect = models.CharField(max_length=10, choices=EFFECT_CHOICES)

    objects = WorkspaceManager()  # type: ignore[misc]  # an instance variable, says the plugin

    class Meta(WorkspaceModel.Meta):
        ordering = ["service", "category", "action", "id"]
        verbose_name = _("rule on an action")
        verbose_name_plural = _("rules on actions")
        constraints = [models.UniqueConstraint(fields=["server", "key"], name="action_rule_once")]

    def __str__(self) -> str:
        return " / ".join(part for part in (self.service, self.category, self.action) if part)
