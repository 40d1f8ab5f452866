"""Entries of a workspace, for those who may see them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING
from uuid import UUID

from django.utils import timezone

from audit.models import AuditEntry, Dimension
from audit.rollups.reading import TimeRange, UncountedEntries, read_with_tail, values_of
from workspaces.roles import Permission, has_permission, require

if TYPE_CHECKING:
    from workspaces.actors import Actor
    from workspaces.scoping import WorkspaceQuerySet

MAX_CHOICES = 1000
"""Of each kind. The search field completes them; a list of the panel holds fewer."""
MOST_RELATED = 100
_LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class FilterChoices:
    """Values that occur, as (value, label), for the filters."""

    servers: Sequence[tuple[str, str]]
    tools: Sequence[tuple[str, str]]
    users: Sequence[tuple[str, str]]
    buds: Sequence[str]
    models: Sequence[str]
    is_cut: bool
    """More of a kind occur than MAX_CHOICES."""


def entries_of(workspace_id: UUID, *, actor: Actor) -> WorkspaceQuerySet[AuditEntry]:
    """Give the workspace's entries to those who may see the log.

    Raises:
        PermissionDenied: the actor is neither admin nor auditor here.
    """
    require(actor, Permission.VIEW_AUDIT, workspace_id=workspace_id)
    rows: WorkspaceQuerySet[AuditEntry] = AuditEntry.objects.for_workspace(workspace_id)
    return rows


def choices_of(workspace_id: UUID, since: datetime | None) -> FilterChoices:
    """Give the servers, tools and people that occur since then, at most MAX_CHOICES of each."""
    span = TimeRange.around(since or _LONG_AGO, timezone.now())

    def read(tail: UncountedEntries) -> FilterChoices:
        is_cut = False

        def of(dimension: Dimension) -> list[tuple[str, str]]:
            nonlocal is_cut
            found = values_of(workspace_id, dimension, span, tail)
            is_cut = is_cut or len(found) > MAX_CHOICES
            return sorted(found.items())[:MAX_CHOICES]

        people = of(Dimension.ACTOR)
        return FilterChoices(
            servers=[(value, value) for value, _ in of(Dimension.SERVER)],
            tools=[(value, value) for value, _ in of(Dimension.TOOL)],
            buds=[value for value, _ in of(Dimension.BUD) if value],
            models=[value for value, _ in of(Dimension.MODEL) if value],
            users=sorted(((pk, label) for pk, label in people), key=lambda one: one[1]),
            is_cut=is_cut,
        )

    return read_with_tail(workspace_id, read)


def person_named(workspace_id: UUID, user_id: UUID) -> str:
    """Give the name by which the workspace's newest entry knows a person; nothing where none does."""
    rows = AuditEntry.objects.for_workspace(workspace_id).filter(actor_id=user_id)
    found = rows.order_by("-created_at", "-id").values_list("actor_label", flat=True).first()
    return found or ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallEntries:
    """Entries of one call, oldest first."""

    entries: Sequence[AuditEntry] = ()
    has_more: bool = False


def related_to(entry: AuditEntry, rows: WorkspaceQuerySet[AuditEntry]) -> CallEntries:
    """Give the entries of the entry's call, at most MOST_RELATED; nothing for what is no call."""
    if entry.call_id is None:
        return CallEntries()
    found = list(rows.filter(call_id=entry.call_id).order_by("id")[: MOST_RELATED + 1])
    return CallEntries(entries=found[:MOST_RELATED], has_more=len(found) > MOST_RELATED)


def may_see_bodies(entry: AuditEntry, *, actor: Actor) -> bool:
    """Whether the actor may read an entry's arguments and result: an auditor, or whose call it was."""
    if has_permission(actor, Permission.VIEW_AUDIT_BODIES, workspace_id=entry.workspace_id):
        return True
    return entry.actor_id is not None and entry.actor_id == actor.user_id
