"""Access that ends, ends at once: open sockets of the person are told to check again."""

from __future__ import annotations

from functools import partial
from uuid import UUID

from django.db import transaction

from workspaces.delivery.announcements import send_to_group, user_group


def end_access(user_id: UUID, workspace_id: UUID | None = None) -> None:
    """Tell the person's sockets, after the commit, to check whether they may stay open."""
    message: dict[str, object] = {
        "type": "access.changed",
        "workspace_id": str(workspace_id) if workspace_id else None,
    }
    transaction.on_commit(partial(send_to_group, user_group(user_id), message))
