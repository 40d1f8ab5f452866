"""Changing a row that others may change, too: one after the other, each with what the one before has saved.

What a request has read is old by the time that it saves. Whoever changes a row holds it first, then looks whether the
change is still right, then saves.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any
from uuid import UUID

from django.db import models

from workspaces.errors import DomainError, NotFound
from workspaces.models import User, Workspace


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


def take_room(
    rows: models.QuerySet[Any],
    *,
    most: int,
    refusal: DomainError,
    workspace_id: UUID | None,
    person_id: UUID | None = None,
) -> None:
    """In a transaction that is about to make one more of these rows: refuse where there is no room for it.

    Two who count at one moment would both find room. So whoever makes another one waits for the end of this transaction.

    Args:
        most: how many there may be.
        refusal: what is raised.
        workspace_id: whose rows they are; None: the platform's, for which the caller holds a row of its own.
        person_id: whose they are, where each person has a number of their own.

    Raises:
        DomainError: the refusal.
    """
    if person_id is not None:
        User.objects.select_for_update(no_key=True).filter(pk=person_id).values_list("pk").first()
    elif workspace_id is not None:
        hold_workspace(workspace_id)
    if rows.count() >= most:
        raise refusal
