"""Entries of a workspace, for those who may see them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import UUID

from django.db.models import Max

from audit.filters import REFUSED, EntryFilter
from audit.models import AuditEntry
from workspaces.roles import Permission, has_permission, require

if TYPE_CHECKING:
    from workspaces.actors import Actor
    from workspaces.scoping import WorkspaceQuerySet

PAGE_SIZE = 50
MAX_CHOICES = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Some entries, newest first, and the ids after which the neighbouring pages begin."""

    entries: Sequence[AuditEntry]
    newer_than: UUID | None
    older_than: UUID | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """Values that occur, as (value, label), for the filters."""

    servers: Sequence[tuple[str, str]]
    tools: Sequence[tuple[str, str]]
    users: Sequence[tuple[str, str]]


def entries_of(workspace_id: UUID, *, actor: Actor) -> WorkspaceQuerySet[AuditEntry]:
    """Give the workspace's entries to those who may see the log.

    Raises:
        PermissionDenied: the actor is neither admin nor auditor here.
    """
    require(actor, Permission.VIEW_AUDIT, workspace_id=workspace_id)
    rows: WorkspaceQuerySet[AuditEntry] = AuditEntry.objects.for_workspace(workspace_id)
    return rows


def matching(
    rows: WorkspaceQuerySet[AuditEntry], wanted: EntryFilter
) -> WorkspaceQuerySet[AuditEntry]:
    """Narrow entries to a filter."""
    if wanted.since:
        rows = rows.filter(created_at__gte=wanted.since)
    if wanted.until:
        rows = rows.filter(created_at__lt=wanted.until)
    if wanted.action:
        rows = rows.filter(action=wanted.action)
    if wanted.outcome == REFUSED:
        rows = rows.exclude(refused_by="")
    elif wanted.outcome:
        rows = rows.filter(outcome=wanted.outcome)
    if wanted.server:
        rows = rows.filter(server_name=wanted.server)
    if wanted.tool:
        rows = rows.filter(tool_name=wanted.tool)
    if wanted.user_id:
        rows = rows.filter(actor_id=wanted.user_id)
    elif wanted.user:
        rows = rows.filter(actor_label=wanted.user, actor_id=None)
    return rows


def page_of(
    rows: WorkspaceQuerySet[AuditEntry],
    *,
    older_than: UUID | None = None,
    newer_than: UUID | None = None,
) -> Page:
    """Give one page, found by key: entries that arrive meanwhile shift nothing."""
    if newer_than is not None:
        found = list(rows.filter(id__gt=newer_than).order_by("id")[: PAGE_SIZE + 1])
        has_newer = len(found) > PAGE_SIZE
        entries = found[:PAGE_SIZE][::-1]
        has_older = True
    else:
        older = rows if older_than is None else rows.filter(id__lt=older_than)
        found = list(older.order_by("-id")[: PAGE_SIZE + 1])
        has_older = len(found) > PAGE_SIZE
        entries = found[:PAGE_SIZE]
        has_newer = older_than is not None
    return Page(
        entries=entries,
        newer_than=entries[0].pk if entries and has_newer else None,
        older_than=entries[-1].pk if entries and has_older else None,
    )


def choices_of(rows: WorkspaceQuerySet[AuditEntry]) -> Choices:
    """Give the servers, tools and people that occur, at most MAX_CHOICES of each."""

    def names(column: str) -> list[tuple[str, str]]:
        found = rows.exclude(**{column: ""}).order_by(column).values_list(column, flat=True)
        return [(name, name) for name in found.distinct()[:MAX_CHOICES]]

    # A person who changed the address keeps one place in the list, under the newest one.
    people = rows.values("actor_id").annotate(label=Max("actor_label")).order_by("label")
    users = [
        (str(person["actor_id"] or person["label"]), person["label"])
        for person in people[:MAX_CHOICES]
    ]
    return Choices(servers=names("server_name"), tools=names("tool_name"), users=users)


def related_to(entry: AuditEntry, rows: WorkspaceQuerySet[AuditEntry]) -> Sequence[AuditEntry]:
    """Give all entries of the entry's call, oldest first; nothing for what is no call."""
    if entry.call_id is None:
        return []
    return list(rows.filter(call_id=entry.call_id).order_by("id")[:100])


def may_see_bodies(entry: AuditEntry, *, actor: Actor) -> bool:
    """Whether the actor may read an entry's arguments and result: an auditor, or whose call it was."""
    if has_permission(actor, Permission.VIEW_AUDIT_BODIES, workspace_id=entry.workspace_id):
        return True
    return entry.actor_id is not None and entry.actor_id == actor.user_id
