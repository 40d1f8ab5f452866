"""The bell: short lines for one person each, in the pages' header."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import Any, Final
from uuid import UUID

from django.db.models import Count, Q

from audit.models import Notice
from workspaces.actors import Role
from workspaces.database import database_now
from workspaces.database.prepared import PreparedRows
from workspaces.delivery.announcements import Announcement, announce
from workspaces.models import Membership, User, Workspace
from workspaces.scoping import WorkspaceQuerySet

MOST_SHOWN: Final = 20
KEEP_DAYS: Final = 60
CHANGED: Final = "notice.changed"


def notify(
    *, workspace_id: UUID, user_ids: Iterable[UUID], kind: str, title: str, text: str, url: str
) -> None:
    """Put a line into each person's bell, in the caller's transaction; open pages are told once it commits."""
    people = list(dict.fromkeys(user_ids))
    Notice.objects.bulk_create(
        Notice(
            workspace_id=workspace_id,
            user_id=person,
            kind=kind,
            title=title[:200],
            text=text[:500],
            url=url,
        )
        for person in people
    )
    for person in people:
        _tell(workspace_id, person)


def readers_of(workspace_id: UUID) -> list[UUID]:
    """The people who may see the workspace's log."""
    may = Q(role__in=[Role.OWNER.value, Role.ADMIN.value]) | Q(is_auditor=True)
    members = Membership.objects.for_workspace(workspace_id).filter(may, user__is_active=True)
    return list(members.values_list("user_id", flat=True))


def notices_of(workspace: Workspace, user: User) -> WorkspaceQuerySet[Notice]:
    """A person's lines in a workspace, newest first."""
    return Notice.objects.for_workspace(workspace).filter(user=user).order_by("-id")


def unread(workspace: Workspace, user: User) -> int:
    """How many of them were not read."""
    counted = _UNREAD.first_values(workspace.pk, user.pk)
    return counted[0] if counted is not None else 0


def mark_read(workspace: Workspace, user: User, *, only: UUID | None = None) -> None:
    """All of them are read now, or one; other pages of the person are told."""
    rows = notices_of(workspace, user).filter(read_at=None)
    if only is not None:
        rows = rows.filter(pk=only)
    if rows.update(read_at=database_now()):
        _tell(workspace.pk, user.pk)


def trim_notices() -> int:
    """Forget what is two months old."""
    old = Notice.objects.across_workspaces().filter(
        created_at__lt=database_now() - timedelta(days=KEEP_DAYS)
    )
    return old.delete()[0]


def _unread(workspace_id: UUID, user_id: UUID) -> Any:
    rows = Notice.objects.for_workspace(workspace_id).filter(user_id=user_id, read_at=None)
    return rows.values("user_id").annotate(count=Count("id")).values_list("count")


_UNREAD = PreparedRows[Notice](_unread, UUID, UUID)


def _tell(workspace_id: UUID, user_id: UUID) -> None:
    announce(workspace_id, Announcement(kind=CHANGED, id=str(user_id), user_id=str(user_id)))
