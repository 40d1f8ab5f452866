"""Which model providers the platform's owner shares, and what would stop without one of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db.models import Count, Q
from django.utils.translation import gettext as _

from chat.models import Bud, Conversation, ModelProvider, SharedProvider, WithheldReason
from chat.providers.shared import find_shared
from workspaces.actors import Actor
from workspaces.database.row_security import everywhere
from workspaces.errors import NotFound
from workspaces.models import Workspace
from workspaces.roles import require_platform_owner
from workspaces.scoping import WorkspaceQuerySet


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedProviderUses:
    """What a shared provider is used for."""

    workspaces: int
    """That have it."""
    buds: int
    chats: int
    """Whose model is one of its."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedRow:
    """A shared provider in the list."""

    shared: SharedProvider
    workspaces: int
    """That may use it."""


def list_shared(*, actor: Actor) -> list[SharedRow]:
    """All of them, by name.

    Raises:
        PermissionDenied: the actor does not own the platform.
    """
    with everywhere():
        rows = list(shared_rows(actor=actor).order_by("name", "pk"))
    return [SharedRow(shared=row, workspaces=row.workspaces) for row in rows]


def shared_rows(*, actor: Actor) -> Any:
    """All of them, each with how many `workspaces` may use it.

    Raises:
        PermissionDenied: the actor does not own the platform.
    """
    require_platform_owner(actor)
    is_given = ~Q(given__withheld=WithheldReason.WITHDRAWN.value)
    return SharedProvider.objects.annotate(workspaces=Count("given", filter=is_given))


def uses_of(shared: SharedProvider) -> SharedProviderUses:
    """Count who would notice that it is gone."""
    rows = ModelProvider.objects.across_workspaces().filter(shared=shared)
    rows = rows.exclude(withheld=WithheldReason.WITHDRAWN.value)
    return SharedProviderUses(
        workspaces=rows.count(), buds=buds_of(shared).count(), chats=chats_of(shared).count()
    )


def uses_by_workspace(
    shared: SharedProvider, workspaces: Sequence[Workspace]
) -> dict[UUID, SharedProviderUses]:
    """The same for each of these workspaces, in two statements."""
    counts = [
        dict(
            rows.filter(workspace__in=workspaces)
            .order_by()
            .values_list("workspace_id")
            .annotate(number=Count("pk"))
        )
        for rows in (buds_of(shared), chats_of(shared))
    ]
    buds, chats = counts
    return {
        one.pk: SharedProviderUses(
            workspaces=1, buds=buds.get(one.pk, 0), chats=chats.get(one.pk, 0)
        )
        for one in workspaces
    }


def buds_of(shared: SharedProvider) -> WorkspaceQuerySet[Bud]:
    """Buds of all workspaces that a shared provider serves."""
    rows: WorkspaceQuerySet[Bud] = Bud.objects.across_workspaces()
    return rows.filter(provider__shared=shared, is_draft=False)


def chats_of(shared: SharedProvider) -> WorkspaceQuerySet[Conversation]:
    """Chats whose model is one of its: chosen, or their bud's."""
    is_chosen = Q(chosen_model__provider__shared=shared)
    by_bud = Q(chosen_model=None, bud__provider__shared=shared)
    rows: WorkspaceQuerySet[Conversation] = Conversation.objects.across_workspaces()
    return rows.filter(is_chosen | by_bud, deleted_at=None, bud__is_draft=False)


def fetch_for_owner(shared_id: UUID, *, actor: Actor) -> SharedProvider:
    """One of them, for whoever owns the platform.

    Raises:
        PermissionDenied: the actor does not.
        NotFound: there is no such one.
    """
    require_platform_owner(actor)
    shared = find_shared(shared_id)
    if shared is None:
        raise NotFound(_("Model provider not found."))
    return shared
