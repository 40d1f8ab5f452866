"""An instance's row, locked until the caller's transaction ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcp_servers.klavis.models import KlavisInstance

if TYPE_CHECKING:
    from workspaces.scoping import WorkspaceQuerySet


def fetch_locked(instance: KlavisInstance) -> KlavisInstance:
    """Give the row as it is now.

    Raises:
        NotFound: it is uninstalled.
    """
    return _rows(instance).fetch(instance.pk)


def find_locked(instance: KlavisInstance) -> KlavisInstance | None:
    """Give the row as it is now; None where it is uninstalled."""
    return _rows(instance).find(instance.pk)


def _rows(instance: KlavisInstance) -> WorkspaceQuerySet[KlavisInstance]:
    rows = KlavisInstance.objects.for_workspace(instance.workspace_id)
    return rows.select_for_update(of=("self",)).select_related("workspace")
