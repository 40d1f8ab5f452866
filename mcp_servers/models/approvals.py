"""A person's word that one call may be made."""

from __future__ import annotations

from django.db import models

from workspaces.scoping import WorkspaceManager, WorkspaceModel


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
        verbose_name = "approval"
        constraints = [
            models.UniqueConstraint(fields=["workspace", "call_id"], name="approval_one_per_call")
        ]

    def __str__(self) -> str:
        return f"approval of {self.call_id} by {self.approver_label}"
