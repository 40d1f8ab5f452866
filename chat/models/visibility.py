"""Who sees the rows that belong to a conversation or a bud."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self, TypeVar

from django.db import models

from chat.models.buds import BudVisibility
from workspaces.scoping import WorkspaceQuerySet

if TYPE_CHECKING:
    from workspaces.models import User

_Row = TypeVar("_Row", bound=models.Model, covariant=True)  # noqa: PLC0105 - as Django's stubs do


class OfConversationQuerySet(WorkspaceQuerySet[_Row]):
    """Rows of a conversation, which are seen by its owner alone, and not once it is deleted."""

    conversation = "conversation"
    """The way to it."""

    def visible_to(self, user: User) -> Self:
        """As the conversation."""
        way = self.conversation
        wanted = {f"{way}__owner": user, f"{way}__deleted_at": None}
        return super().visible_to(user).filter(**wanted)


class OfBudQuerySet(WorkspaceQuerySet[_Row]):
    """Rows of a bud, which are seen by whoever sees the bud."""

    bud = "bud"
    """The way to it."""

    def visible_to(self, user: User) -> Self:
        """As the bud."""
        shared = models.Q(**{f"{self.bud}__visibility": BudVisibility.WORKSPACE.value})
        return super().visible_to(user).filter(shared | models.Q(**{f"{self.bud}__owner": user}))
