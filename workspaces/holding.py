"""Changing a row that others may change, too: one after the other, each with what the one before has saved.

What a request has read is old by the time that it saves. Whoever changes a row holds it first, then looks whether the
change is still right, then saves.
"""

from __future__ import annotations

from collections.abc import Collection
from uuid import UUID

from django.db import models

from workspaces.errors import NotFound
from workspaces.models import Workspace


def hold(row: models.Model, *, fields: Collection[str] | None = None) -> None:
    """In a transaction: wait for whoever is changing this row, and read into it what they saved.

    On SQLite the transaction itself is what they wait for.

    Args:
        fields: what is read anew, if not all of it. Related rows that were read before stay only with it.

    Raises:
        NotFound: they have deleted it.
    """
    rows = type(row)._base_manager.filter(pk=row.pk)
    if rows.select_for_update(no_key=True).values_list("pk").first() is None:
        raise NotFound.of(row)
    row.refresh_from_db(fields=fields)


def hold_workspace(workspace_id: UUID) -> None:
    """In a transaction: let those who count rows of a workspace, or look whether there is one, come one after another.

    A membership is held before its workspace, all other rows after it: so nobody waits in a circle.
    """
    Workspace.objects.select_for_update(no_key=True).filter(pk=workspace_id).values_list(
        "pk"
    ).first()
