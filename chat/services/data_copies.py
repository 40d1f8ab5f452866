"""Copies of what is a person's: asking for one, ending it, erasing it. Each step is an entry in the log."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from functools import partial
from typing import Any, Final
from uuid import UUID

from django.conf import settings
from django.db import IntegrityError, transaction
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from audit.actions import Action
from audit.services import EntryDraft, record
from chat.artifacts import storage
from chat.enqueue import enqueue
from chat.models import OPEN_COPIES, Conversation, DataCopy, DataCopyPart
from chat.services.person_jobs import FORGOTTEN_DAYS
from chat.values import CopyStatus
from workspaces.actors import Actor, Source
from workspaces.database import database_now
from workspaces.delivery import bell
from workspaces.delivery.announcements import Announcement, announce
from workspaces.errors import Conflict, PermissionDenied
from workspaces.jobs.sweeping import sweep
from workspaces.models import User, Workspace
from workspaces.roles import Permission, require

TASK: Final = "chat.tasks.make_data_copies"
NOTICE_KIND: Final = "data_copy"
_MOST_ERASED: Final = 200
"""In one round; the next one goes on."""


def request_copy(
    *, workspace: Workspace, owner: User, actor: Actor, with_files: bool = True
) -> DataCopy:
    """Ask for a copy, which is made in the background. Once it is ready, it takes the place of an earlier one.

    Args:
        with_files: whether files of chats are in it.

    Raises:
        Conflict: another copy of this person is being made.
    """
    require(actor, Permission.USE_CHAT, workspace_id=workspace.pk)
    check_is_theirs(owner.pk, actor)
    mine = DataCopy.objects.for_workspace(workspace).filter(owner=owner)
    busy = Conflict(_("A copy of your data is being made. Wait until it is ready, or cancel it."))
    if mine.filter(status__in=OPEN_COPIES).exists():
        raise busy
    try:
        with transaction.atomic():
            row = DataCopy.objects.create(workspace=workspace, owner=owner, with_files=with_files)
            enter(Action.DATA_COPY_REQUESTED, row, actor, with_files=with_files)
            announce_copy(row)
            transaction.on_commit(partial(enqueue, TASK, expires=60))
    except IntegrityError as error:
        raise busy from error  # two came at once, and the other was first
    return row


def cancel_copy(*, row: DataCopy, actor: Actor) -> None:
    """Stop making it. What is made of it is erased.

    Raises:
        Conflict: it is not being made any more.
    """
    require(actor, Permission.USE_CHAT, workspace_id=row.workspace_id)
    check_is_theirs(row.owner_id, actor)
    if not end_copy(row, OPEN_COPIES, CopyStatus.CANCELLED, actor):
        raise Conflict(_("This copy is not being made any more."))
    row.refresh_from_db()


def erase_copy(*, row: DataCopy, actor: Actor) -> None:
    """Erase one that is ready.

    Raises:
        Conflict: it is not there any more.
    """
    require(actor, Permission.USE_CHAT, workspace_id=row.workspace_id)
    check_is_theirs(row.owner_id, actor)
    if not end_copy(row, [CopyStatus.READY.value], CopyStatus.ERASED, actor):
        raise Conflict(_("This copy is not there any more."))
    row.refresh_from_db()


def record_download(start: int, length: int, *, part: DataCopyPart, actor: Actor) -> None:
    """Enter in the log that a person downloads a part of their copy, or goes on with it.

    Args:
        start: the first byte that they are given.
        length: how many bytes.

    Raises:
        PermissionDenied: it is somebody else's.
    """
    require(actor, Permission.USE_CHAT, workspace_id=part.workspace_id)
    check_is_theirs(part.copy.owner_id, actor)
    given = {"bytes": length, **({"offset": start} if start else {})}
    enter(Action.DATA_COPY_DOWNLOADED, part.copy, actor, part=part.number, **given)


def end_copies_of(workspace_id: UUID, user_id: UUID, actor: Actor) -> None:
    """End and erase all copies of a person who is no member any more, or suspended. In the caller's transaction."""
    rows = DataCopy.objects.for_workspace(workspace_id).filter(owner_id=user_id)
    for row in rows.filter(status__in=[*OPEN_COPIES, CopyStatus.READY.value]):
        is_ready = row.status == CopyStatus.READY
        end_copy(row, [row.status], CopyStatus.ERASED if is_ready else CopyStatus.CANCELLED, actor)


def erase_old() -> int:
    """Erase copies whose days are over, and forget those that ended long ago; gives how many were erased."""
    now = database_now()
    rows = DataCopy.objects.across_workspaces()
    over = rows.filter(status=CopyStatus.READY.value, expires_at__lte=now)
    erased = sweep(over, _erase_over, label="erase_data_copies", most=_MOST_ERASED)
    ended = [CopyStatus.FAILED.value, CopyStatus.CANCELLED.value, CopyStatus.ERASED.value]
    oldest = now - timedelta(days=FORGOTTEN_DAYS)
    rows.filter(status__in=ended, updated_at__lt=oldest).delete()
    return erased


def _erase_over(row: DataCopy) -> bool:
    workspace_id = row.workspace_id
    actor = Actor.system(label="copies of data", source=Source.TASK, workspace_id=workspace_id)
    return end_copy(row, [CopyStatus.READY.value], CopyStatus.ERASED, actor)


@transaction.atomic
def end_copy(
    row: DataCopy, statuses: Sequence[str], status: CopyStatus, actor: Actor, *, error: str = ""
) -> bool:
    """End a copy that has one of these statuses, and remove its files; False if it has none of them."""
    mine = DataCopy.objects.for_workspace(row.workspace_id).filter(pk=row.pk)
    now = database_now()
    changes: dict[str, Any] = {"status": status.value, "error": error, "alive_until": None}
    changes |= {"expires_at": None, "updated_at": now}
    if row.finished_at is None:
        changes["finished_at"] = now
    if not mine.filter(status__in=statuses).update(**changes):
        return False
    parts = DataCopyPart.objects.for_workspace(row.workspace_id).filter(copy=row)
    paths = list(parts.values_list("path", flat=True))
    parts.delete()
    transaction.on_commit(partial(storage.drop, paths))
    action = Action.DATA_COPY_ERASED
    if status is CopyStatus.FAILED:
        action = Action.DATA_COPY_FINISHED
    enter(action, row, actor, status=status.value, error=error)
    announce_copy(row)
    return True


def enter(action: Action, row: DataCopy, actor: Actor, **details: object) -> None:
    """Enter in the log what became of a copy: counts, and never what is in it."""
    record(
        EntryDraft(
            action=action,
            actor=actor,
            workspace_id=row.workspace_id,
            details={"copy": str(row.pk), **details},
        )
    )


def tell_owner(row: DataCopy) -> None:
    """Put a line about a copy that is ready, or failed, into its owner's bell. In the caller's transaction."""
    days = settings.TRELLIS.data_copy_days
    if row.status == CopyStatus.READY:
        title = _("Your copy of your data is ready")
        text = ngettext(
            "Download it within %(days)s day.", "Download it within %(days)s days.", days
        ) % {"days": days}
    else:
        title, text = _("Your copy of your data could not be made"), row.error
    bell.tell(
        workspace_id=row.workspace_id,
        user_ids=[row.owner_id],
        kind=NOTICE_KIND,
        title=title,
        text=text,
        url=reverse("chat:data_copies", args=[row.workspace.slug]),
    )


def announce_copy(row: DataCopy) -> None:
    """Have the person's open pages look again; in the caller's transaction."""
    announcement = Announcement(kind="data_copy.changed", id=str(row.pk), user_id=str(row.owner_id))
    announce(row.workspace_id, announcement)


def chats_to_copy(row: DataCopy) -> Any:
    """The person's chats: not deleted ones, and not those of a bud's editor. Temporary ones while they live."""
    rows = Conversation.objects.for_workspace(row.workspace_id)
    return rows.filter(owner_id=row.owner_id, deleted_at=None, bud__is_draft=False)


def check_is_theirs(owner_id: UUID, actor: Actor) -> None:
    """A copy is for the person alone, whatever else others may do in the workspace."""
    if actor.user_id != owner_id:
        raise PermissionDenied(_("Only the person whose data it is can do that."))
