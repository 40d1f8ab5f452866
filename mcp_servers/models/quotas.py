"""How many calls of a server a workspace has made on a day."""

from __future__ import annotations

from django.db import models

from workspaces.scoping import WorkspaceModel


class CallCount(WorkspaceModel):
    """One server's calls of one day (UTC); only kept where there is a limit."""

    # A value: a server that is deleted and made anew begins anew.
    server_id = models.UUIDField()
    day = models.DateField()
    used = models.PositiveIntegerField(default=0)

    class Meta(WorkspaceModel.Meta):
        constraints = [
            models.UniqueConstraint(
                fields=["workspace", "server_id", "day"], name="call_count_once"
            )
        ]

    def __str__(self) -> str:
        return f"{self.day}: {self.used}"
