"""Who sees the rows that belong to a server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self, TypeVar

from django.db import models

from workspaces.scoping import WorkspaceQuerySet

if TYPE_CHECKING:
    from workspaces.models import User

_Row = TypeVar("_Row", bound=models.Model, covariant=True)  # noqa: PLC0105 - as Django's stubs do


class OfServerQuerySet(WorkspaceQuerySet[_Row]):
    """Rows that belong to a server, and are seen by whoever sees it."""

    def visible_to(self, user: User) -> Self:
        """Those of the workspace's servers, and of this person's own; nobody sees what belongs to another person's."""
        owner = models.Q(server__owner__isnull=True) | models.Q(server__owner=user)
        return super().visible_to(user).filter(owner)
