"""Making copies of people's data, in the background. The row says how far one is, so any process goes on with it.

Whatever a round has written is kept at its end as whole ZIPs, together with the last chat that is in them. Of a round
that did not end nothing counts.
"""

from __future__ import annotations

import logging
import time
from copy import copy
from datetime import timedelta
from functools import partial
from typing import Any, Final
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import F, Q, Sum
from django.db.models.functions import Length
from django.utils.translation import gettext as _

from audit.actions import Action
from chat.artifacts import storage
from chat.artifacts.errors import StorageUnavailable
from chat.models import (
    OPEN_COPIES,
    ArtifactVersion,
    Conversation,
    DataCopy,
    DataCopyPart,
    Message,
)
from chat.services.copy_account import write_beginning
from chat.services.copy_archive import ArchiveParts, KeptPart
from chat.services.copy_chats import CopiedFile, write_chat
from chat.services.data_copies import (
    announce_copy,
    chats_to_copy,
    end_copy,
    enter,
    tell_owner,
)
from chat.services.person_jobs import RUN_SECONDS, JobKind, held_row, renewed, work
from chat.values import CopyStatus
from workspaces.actors import Actor, Source
from workspaces.database import database_now
from workspaces.errors import DomainError
from workspaces.middleware import actor_for
from workspaces.words.formats import whole

logger = logging.getLogger(__name__)

MOST_MISSING: Final = 200
"""Files that could not be read of which the row gives the names."""
_KIND: Final = JobKind(model=DataCopy, open=OPEN_COPIES, running=CopyStatus.RUNNING.value)
_BATCH: Final = 50
_TELL_SECONDS: Final = 2.0
_ENTRIES_OF_CHAT: Final = 2


class _TooMuch(DomainError):
    """The files are more than a copy may hold."""


def make_due(seconds: float = RUN_SECONDS) -> int:
    """Make copies of all people in turn, until nothing is due or the time is up; gives how many chats were copied."""
    return work(_KIND, _go_on, seconds=seconds)


def _go_on(row: DataCopy, until: float) -> int:
    """Make some of it. One copy must not keep those of others from being made, so no fault leaves this."""
    try:
        if row.cursor is None:
            _measure(row)
        return _make(row, until)
    except (_TooMuch, StorageUnavailable) as error:
        _fail(row, error.message)
    except Exception:
        logger.exception("data_not_copied", extra={"copy": str(row.pk)})
        _fail(row, _("Trellis could not make the copy. The platform's log says why. Try again."))
    return 0


def _measure(row: DataCopy) -> None:
    """Count what is to be copied.

    Raises:
        _TooMuch: the files are more than a copy may hold.
    """
    chats = chats_to_copy(row)
    row.total = chats.count()
    row.save(update_fields=["total", "updated_at"])
    if not row.with_files:
        return
    files = _versions(row).filter(artifact__conversation__in=chats)
    size = files.aggregate(size=Sum("size"))["size"] or 0
    most = settings.TRELLIS.data_copy_max_bytes
    if size > most:
        raise _TooMuch(
            _(
                "Your files have %(size)s MB together, and a copy holds at most %(most)s MB. Ask for a copy without files, or ask whoever runs Trellis to allow more."
            )
            % {"size": whole(size // 1024**2), "most": whole(most // 1024**2)}
        )


def _versions(row: DataCopy) -> Any:
    versions = ArtifactVersion.objects.for_workspace(row.workspace_id)
    return versions.filter(artifact__is_deleted=False)


def _make(row: DataCopy, until: float) -> int:
    kept = DataCopyPart.objects.for_workspace(row.workspace_id).filter(copy=row)
    last = kept.order_by("-number").first()
    copied = 0
    told_at = time.monotonic()
    with ArchiveParts(row.workspace_id, last, partial(write_beginning, copy=row)) as parts:
        is_over = True
        for chat, size, versions in _chats(row):
            parts.make_room(size, _ENTRIES_OF_CHAT + versions)
            _note(row, chat, write_chat(parts, chat, with_files=row.with_files))
            copied += 1
            now = time.monotonic()
            if now - told_at > _TELL_SECONDS:
                told_at = now
                _show(row)
            if now > until:
                is_over = False
                break
        parts.keep()
        if not _save(row, parts.kept, last, is_over=is_over):
            parts.drop()  # it was cancelled, or another process has it
            return 0
    return copied


def _chats(row: DataCopy) -> Any:
    """The chats that are still to be copied, in the order of their ids, each with its bytes of texts and files, and how many files."""
    while True:
        beyond = Q(pk__gt=row.cursor) if row.cursor else Q()
        batch = list(
            chats_to_copy(row)
            .filter(beyond)
            .select_related("bud", "folder")
            .order_by("pk")[:_BATCH]
        )
        sizes = _sizes(row, [chat.pk for chat in batch])
        for chat in batch:
            yield (chat, *sizes.get(chat.pk, (0, 0)))
        if len(batch) < _BATCH:
            return


def _sizes(row: DataCopy, chats: list[UUID]) -> dict[UUID, tuple[int, int]]:
    messages = Message.objects.for_workspace(row.workspace_id).filter(conversation__in=chats)
    texts = messages.order_by().values_list("conversation_id").annotate(size=Sum(Length("text")))
    sizes = {pk: (size or 0, 0) for pk, size in texts}
    if row.with_files:
        chat_id = F("artifact__conversation_id")
        files = _versions(row).filter(artifact__conversation__in=chats).order_by()
        for pk, size in files.annotate(chat_id=chat_id).values_list("chat_id", "size"):
            before = sizes.get(pk, (0, 0))
            sizes[pk] = (before[0] + size, before[1] + 1)
    return sizes


def _note(row: DataCopy, chat: Conversation, files: list[CopiedFile]) -> None:
    row.cursor = chat.pk
    row.position += 1
    row.files += sum(bool(one.place) for one in files)
    missing = [
        {"chat": chat.title or _("New chat"), "file": one.version.artifact.name}
        for one in files
        if not one.place
    ]
    row.missing = [*row.missing, *missing][:MOST_MISSING]


def _show(row: DataCopy) -> None:
    """Tell how far it is, and that this process is alive. What counts is kept at the end of the round."""
    now = database_now()
    mine = DataCopy.objects.for_workspace(row.workspace_id).filter(
        pk=row.pk, alive_until=row.alive_until, status=CopyStatus.RUNNING.value
    )
    lease = renewed()
    if mine.update(shown=row.position, alive_until=lease, updated_at=now):
        row.alive_until = lease
        announce_copy(row)


def _save(row: DataCopy, kept: list[KeptPart], last: DataCopyPart | None, *, is_over: bool) -> bool:
    """Keep what the round has made; False if the row is no longer this process's."""
    row = copy(row)  # where this is rolled back, the caller's still says who works on it
    with transaction.atomic():
        if not held_row(_KIND, row).exists():
            return False
        parts = DataCopyPart.objects.for_workspace(row.workspace_id).filter(copy=row)
        if last is not None:
            parts.filter(pk=last.pk).delete()
            transaction.on_commit(partial(storage.drop, [last.path]))
        DataCopyPart.objects.bulk_create(
            DataCopyPart(
                workspace_id=row.workspace_id,
                copy=row,
                number=one.number,
                path=one.stored.path,
                size=one.stored.size,
                sha256=one.stored.sha256,
                chats=one.chats,
                entries=one.entries,
            )
            for one in kept
        )
        row.size = parts.aggregate(size=Sum("size"))["size"] or 0
        row.alive_until = None
        row.shown = row.position
        if is_over:
            _finish(row)
        row.save()
        announce_copy(row)
    return True


def _finish(row: DataCopy) -> None:
    """Let its person have it, in the place of an earlier one."""
    now = database_now()
    row.status = CopyStatus.READY.value
    row.total = row.position
    row.finished_at = now
    row.expires_at = now + timedelta(days=settings.TRELLIS.data_copy_days)
    system = Actor.system(label="copies of data", source=Source.TASK, workspace_id=row.workspace_id)
    ready = [CopyStatus.READY.value]
    earlier = DataCopy.objects.for_workspace(row.workspace_id).filter(
        owner_id=row.owner_id, status__in=ready
    )
    for one in earlier.exclude(pk=row.pk):
        end_copy(one, ready, CopyStatus.ERASED, system)
    counts = {"chats": row.position, "files": row.files, "bytes": row.size}
    actor = actor_for(row.owner, row.workspace, source=Source.TASK)
    enter(Action.DATA_COPY_FINISHED, row, actor, status=row.status, **counts)
    tell_owner(row)


def _fail(row: DataCopy, why: str) -> None:
    actor = actor_for(row.owner, row.workspace, source=Source.TASK)
    with transaction.atomic():
        if held_row(_KIND, row).exists() and end_copy(
            row, OPEN_COPIES, CopyStatus.FAILED, actor, error=why
        ):
            row.status, row.error = CopyStatus.FAILED.value, why
            tell_owner(row)
