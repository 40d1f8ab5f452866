"""Chats that a person imports: taking the file, and taking back what came with it."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import Any, Final

from django.conf import settings
from django.core.files.base import File
from django.db import IntegrityError, transaction
from django.db.models import Exists, OuterRef, Q
from django.utils.translation import gettext as _

from chat.artifacts import storage
from chat.enqueue import enqueue
from chat.importing.trellis_zip import is_copy
from chat.models import OPEN_IMPORTS, Bud, ChatImport, Conversation, Turn
from chat.services.conversations import delete_conversation
from chat.values import ImportStatus
from workspaces.actors import Actor
from workspaces.database import database_now
from workspaces.delivery.announcements import Announcement, announce
from workspaces.errors import Conflict, InvalidInput, NotFound
from workspaces.holding import hold
from workspaces.models import User, Workspace
from workspaces.roles import Permission, require

TASK: Final = "chat.tasks.read_imports"
ENDED: Final = (ImportStatus.DONE.value, ImportStatus.FAILED.value)
"""What came with these can be removed; of one that failed on the way, some chats may have come."""
_BEGINNINGS: Final = (b"PK", b"[", b"{", b"\xef\xbb\xbf")
_BATCH: Final = 500


def start_import(
    *, workspace: Workspace, owner: User, bud: Bud, name: str, file: File[bytes], actor: Actor
) -> ChatImport:
    """Take a file, which is read in the background.

    Args:
        bud: who goes on with the chats.
        file: a ZIP that is a part of a copy of somebody's data may be larger than others.

    Raises:
        InvalidInput: the bud is archived, or the file is too large or of another kind.
        Conflict: another file of this person is being read.
        StorageUnavailable: the file cannot be kept.
    """
    require(actor, Permission.USE_CHAT, workspace_id=workspace.pk)
    if bud.is_archived or bud.is_draft:
        raise InvalidInput(fields={"bud_id": [_("This bud is archived.")]})
    _check_file(file)
    mine = ChatImport.objects.for_workspace(workspace).filter(owner=owner)
    busy = Conflict(_("Another file of yours is being read. Wait until that is done."))
    if mine.filter(status__in=OPEN_IMPORTS).exists():
        raise busy
    kept = storage.store_file(workspace.pk, file)
    try:
        with transaction.atomic():
            row = ChatImport.objects.create(
                workspace=workspace,
                owner=owner,
                bud=bud,
                file_name=" ".join(name.replace("\x00", "").split())[:200],
                path=kept.path,
            )
            tell(row)
            transaction.on_commit(partial(enqueue, TASK, expires=60))
    except IntegrityError as error:
        # Two came at once, and the other was first.
        storage.drop([kept.path])
        raise busy from error
    return row


def _check_file(file: File[bytes]) -> None:
    """Check its size and beginning.

    Raises:
        InvalidInput: they do not fit.
    """
    most, most_of_copies = settings.TRELLIS.artifact_max_bytes, settings.TRELLIS.import_max_bytes
    size = file.size
    if size > max(most, most_of_copies):
        raise _not_taken(_("This file is larger than %(most)s MB."), max(most, most_of_copies))
    if size > most and not is_copy(file):
        why = _(
            "This file is larger than %(most)s MB. Put conversations.json alone into a ZIP. Only a copy of your data from Trellis may be larger."
        )
        raise _not_taken(why, most)
    beginning = file.read(1024)
    file.seek(0)
    if not beginning.lstrip().startswith(_BEGINNINGS):
        raise InvalidInput(fields={"file": [_("Choose a JSON file, or a ZIP that holds one.")]})


def _not_taken(why: str, most: int) -> InvalidInput:
    return InvalidInput(fields={"file": [why % {"most": most // 1024**2}]})


def chats_of(row: ChatImport) -> Any:
    """The chats that came with an import and that its owner has not deleted."""
    rows = Conversation.objects.for_workspace(row.workspace_id)
    return rows.filter(owner_id=row.owner_id, chat_import=row, deleted_at=None)


def remove_import(*, row: ChatImport, actor: Actor) -> int:
    """Delete all chats that came with an import, as one; gives how many.

    They can be brought back as long as deleted conversations can.

    Raises:
        Conflict: it is still being read, or has been removed.
    """
    require(actor, Permission.USE_CHAT, workspace_id=row.workspace_id)
    now = database_now()
    mine = ChatImport.objects.for_workspace(row.workspace_id).filter(pk=row.pk)
    if not mine.filter(status__in=ENDED).update(status=ImportStatus.REMOVED.value, removed_at=now):
        raise Conflict(_("Only chats of an import that is done can be removed."))
    turns = Turn.objects.for_workspace(row.workspace_id).filter(conversation=OuterRef("pk"))
    removed = 0
    # What somebody went on with may have work under way.
    for chat in chats_of(row).filter(Q(Exists(turns)) | Q(has_files=True)).select_related("bud"):
        if not mine.filter(status=ImportStatus.REMOVED.value, removed_at=now).exists():
            break
        with suppress(NotFound):  # erased in another tab
            delete_conversation(conversation=chat, actor=actor)
            removed += 1
    with transaction.atomic():
        hold(row)
        if (row.status, row.removed_at) != (ImportStatus.REMOVED.value, now):
            pass  # they were brought back before all of them were gone
        elif settings.TRELLIS.deleted_conversation_days:
            removed += chats_of(row).update(deleted_at=now)
        else:
            removed += _erase(row)
        tell(row)
    row.refresh_from_db()
    return removed


def _erase(row: ChatImport) -> int:
    erased = 0
    while some := list(chats_of(row).values_list("pk", flat=True)[:_BATCH]):
        Conversation.objects.for_workspace(row.workspace_id).filter(pk__in=some).delete()
        erased += len(some)
    return erased


def restore_import(*, row: ChatImport, actor: Actor) -> int:
    """Bring the chats back that were removed as one; gives how many there still are.

    Raises:
        Conflict: it has not been removed.
    """
    require(actor, Permission.USE_CHAT, workspace_id=row.workspace_id)
    mine = ChatImport.objects.for_workspace(row.workspace_id).filter(pk=row.pk)
    with transaction.atomic():
        hold(row)
        if not mine.filter(status=ImportStatus.REMOVED.value).update(
            status=ImportStatus.DONE.value, removed_at=None
        ):
            raise Conflict(_("Only chats that were removed can be brought back."))
        rows = Conversation.objects.for_workspace(row.workspace_id).filter(
            owner_id=row.owner_id, chat_import=row, deleted_at__gte=row.removed_at
        )
        restored: int = rows.update(deleted_at=None)
        tell(row)
    row.refresh_from_db()
    return restored


def tell(row: ChatImport) -> None:
    """Have the person's open pages look again; in the caller's transaction."""
    announcement = Announcement(kind="import.changed", id=str(row.pk), user_id=str(row.owner_id))
    announce(row.workspace_id, announcement)
