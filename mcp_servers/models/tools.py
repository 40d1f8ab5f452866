"""The tools that servers offer, as they were last seen."""

from __future__ import annotations

from typing import Any, Self

from django.db import models
from django.db.models import F
from django.utils.translation import gettext_lazy as _

from mcp_servers.client.values import Effect, ToolAnnotations, ToolFacts
from mcp_servers.models import meta_tools
from mcp_servers.models.servers import McpServer
from mcp_servers.models.visibility import OfServerQuerySet
from workspaces.scoping import WorkspaceModel

MAX_NAME_LENGTH = 256


class ApprovalOverride(models.TextChoices):
    INHERIT = "inherit", _("Default")
    AUTO = "auto", _("Runs by itself")
    CONFIRM = "confirm", _("Asks first")
    DENY = "deny", _("Blocked")


class McpToolQuerySet(OfServerQuerySet["McpTool"]):
    """Tools, with the one rule on which of them may be called."""

    def callable(self) -> Self:
        """Tools that may be offered and called: switched on, accepted, still there, sound, of an active server."""
        return self.filter(
            is_enabled=True,
            removed_at__isnull=True,
            problem="",
            approved_hash=F("definition_hash"),
            server__is_active=True,
        ).exclude(approval_override=ApprovalOverride.DENY)

    def offered(self) -> Self:
        """Tools that the server still has."""
        return self.filter(removed_at__isnull=True)

    def held(self) -> Self:
        """Sound tools whose definition nobody has accepted."""
        return self.filter(problem="").exclude(approved_hash=F("definition_hash"))


class McpTool(WorkspaceModel):
    """One tool of one server; its definition is what the server said last."""

    server = models.ForeignKey(
        McpServer, on_delete=models.CASCADE, related_name="tools", editable=False
    )
    name = models.CharField(max_length=MAX_NAME_LENGTH, editable=False)
    title = models.CharField(max_length=MAX_NAME_LENGTH, blank=True, editable=False)
    description = models.TextField(blank=True, editable=False)
    input_schema = models.JSONField(default=dict, editable=False)
    output_schema = models.JSONField(null=True, editable=False)
    annotations = models.JSONField(default=dict, editable=False)
    """As on the wire; read it with typed_annotations()."""
    meta = models.JSONField(default=dict, editable=False)
    """The definition's `_meta`."""
    icons = models.JSONField(default=list, editable=False)
    task_support = models.CharField(max_length=10, blank=True, editable=False)
    """What the definition says on running as a task: forbidden, optional or required."""
    warnings = models.JSONField(default=list, editable=False)
    """What a person should know before accepting it, in plain words: hidden characters, look-alike names."""
    renamed_from = models.CharField(max_length=MAX_NAME_LENGTH, blank=True, editable=False)
    """The tool that went when this one came, with the same definition but for the name."""
    is_enabled = models.BooleanField(_("switched on"), default=True)
    approval_override = models.CharField(
        _("approval"),
        max_length=10,
        choices=ApprovalOverride.choices,
        default=ApprovalOverride.INHERIT,
    )
    cache_seconds = models.PositiveIntegerField(
        _("keep results for"),
        null=True,
        blank=True,
        help_text=_(
            "Seconds for which the result of an identical call is used again; only for tools that just read."
        ),
    )
    definition_hash = models.CharField(max_length=64, editable=False)
    approved_hash = models.CharField(max_length=64, blank=True, editable=False)
    """The definition that an administrator accepted; empty for a tool that nobody has accepted yet."""
    approved_definition = models.JSONField(default=dict, editable=False)
    """What was accepted, for showing what changed."""
    problem = models.TextField(blank=True, editable=False)
    """Why the tool cannot be used, in plain words; empty for a sound one."""
    output_problem = models.TextField(blank=True, default="", db_default="", editable=False)
    """Why its structured results are not checked, in plain words; nothing that keeps it from being called."""
    first_seen_at = models.DateTimeField(auto_now_add=True)
    last_seen_at = models.DateTimeField(editable=False)
    removed_at = models.DateTimeField(null=True, editable=False)

    objects = models.Manager.from_queryset(McpToolQuerySet)()  # type: ignore[misc]  # an instance variable, says the plugin

    has_call_rules: bool = False
    """Whether its workspace has call rules that are on; filled in where a query asks for it."""

    class Meta(WorkspaceModel.Meta):
        ordering = ["name", "id"]
        verbose_name = _("tool")
        constraints = [
            models.UniqueConstraint(fields=["server", "name"], name="mcp_tool_name_in_server"),
            models.UniqueConstraint(fields=["workspace", "id"], name="mcp_tool_id_in_workspace"),
        ]
        indexes = [
            models.Index(fields=["workspace", "name", "id"], name="mcp_tool_list"),
            # Few are held: pages that ask each server for one look at no other tool.
            models.Index(
                fields=["server"],
                condition=~models.Q(approved_hash=models.F("definition_hash"))
                & models.Q(removed_at__isnull=True),
                name="mcp_tool_held",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.server.name}.{self.name}"

    @property
    def is_removed(self) -> bool:
        """The server no longer offers it."""
        return self.removed_at is not None

    @property
    def is_quarantined(self) -> bool:
        """Its definition is not the one that was accepted."""
        return self.approved_hash != self.definition_hash

    @property
    def typed_annotations(self) -> ToolAnnotations:
        """The hints as a value."""
        return ToolAnnotations.from_wire(self.annotations)

    @property
    def is_indirect(self) -> bool:
        """It runs an action that its arguments name."""
        return meta_tools.runs_actions(
            hosted_by=self.server.hosted_by, tool_name=self.name, input_schema=self.input_schema
        )

    @property
    def definition(self) -> dict[str, Any]:
        """Everything that the hash covers."""
        return {
            "name": self.name,
            "title": self.title,
            "description": self.description,
            "inputSchema": self.input_schema,
            "outputSchema": self.output_schema,
            "annotations": self.annotations,
            "_meta": self.meta,
        }

    def facts(self) -> ToolFacts:
        """What policy decides on."""
        override = ApprovalOverride(self.approval_override)
        return ToolFacts(
            is_server_active=self.server.is_active,
            is_enabled=self.is_enabled,
            is_removed=self.is_removed,
            is_quarantined=self.is_quarantined,
            problem=self.problem,
            trusts_annotations=self.server.trusts_annotations,
            annotations=self.typed_annotations,
            override=None if override is ApprovalOverride.INHERIT else Effect(override.value),
            is_indirect=self.is_indirect,
        )
