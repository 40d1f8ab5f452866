"""A person's word that one call may be made."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from mcp_servers.models.tools import McpTool
from workspaces.scoping import WorkspaceManager, WorkspaceModel, WorkspaceQuerySet

if TYPE_CHECKING:
    from workspaces.models import User


class Approval(WorkspaceModel):
    """The right to make exactly one call, until it is used or runs out.

    Holds values and no foreign keys to what it is bound to: if any of it changes, the approval just no longer fits.
    """

    call_id = models.UUIDField(editable=False)
    server_id = models.UUIDField(editable=False)
    tool_id = models.UUIDField(editable=False)
    definition_hash = models.CharField(max_length=64, editable=False)
    arguments_hash = models.CharField(max_length=64, editable=False)
    principal = models.CharField(max_length=60, editable=False)
    """Whose credentials the call would use."""
    requester_id = models.UUIDField(null=True, editable=False)
    """For whom the call is made."""
    approver_id = models.UUIDField(null=True, editable=False)
    approver_label = models.CharField(max_length=254, editable=False)
    expires_at = models.DateTimeField(editable=False)
    consumed_at = models.DateTimeField(null=True, editable=False)

    objects = WorkspaceManager()  # type: ignore[misc]  # an instance variable, says the plugin

    class Meta(WorkspaceModel.Meta):
        verbose_name = _("approval")
        constraints = [
            models.UniqueConstraint(fields=["workspace", "call_id"], name="approval_one_per_call")
        ]

    def __str__(self) -> str:
        return f"approval of {self.call_id} by {self.approver_label}"


class ToolPermissionQuerySet(WorkspaceQuerySet["ToolPermission"]):
    """Remembered permissions, each its giver's own."""

    def visible_to(self, user: User) -> Self:
        """Those that this person gave."""
        return super().visible_to(user).filter(user=user)


class ToolPermission(WorkspaceModel):
    """A person's "always": calls of this tool, as it is defined now, need no asking, here or everywhere."""

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+", editable=False
    )
    tool = models.ForeignKey(
        McpTool, on_delete=models.CASCADE, related_name="permissions", editable=False
    )
    definition_hash = models.CharField(max_length=64, editable=False)
    """Void as soon as the tool's is another."""
    conversation_id = models.UUIDField(null=True, editable=False)
    """The one conversation it is for; none: all of this person's."""
    action = models.CharField(max_length=64, blank=True, editable=False)
    """Key of the one action of the tool that it is for, where the tool runs actions by name; see meta_tools."""
    action_label = models.CharField(max_length=300, blank=True, editable=False)
    asks_always = models.BooleanField(default=False, db_default=False, editable=False)
    """The opposite: this person wants to be asked each time, whatever the policy would let run."""

    objects = models.Manager.from_queryset(ToolPermissionQuerySet)()  # type: ignore[misc]  # an instance variable, says the plugin

    class Meta(WorkspaceModel.Meta):
        ordering = ["-id"]
        verbose_name = _("tool permission")
        constraints = [
            models.UniqueConstraint(
                fields=["user", "tool", "conversation_id", "action"],
                name="tool_permission_here_once",
            ),
            models.UniqueConstraint(
                fields=["user", "tool", "action"],
                condition=models.Q(conversation_id__isnull=True),
                name="tool_permission_everywhere_once",
            ),
        ]

    def __str__(self) -> str:
        return f"{'ask always' if self.asks_always else 'always'}: {self.tool_id}"
