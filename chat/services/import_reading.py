"""Reading the files that people bring along, in the background: one chat after the other, each whole or not at all.

The row says how far a file is read, so any process goes on where another one stopped, and a chat is stored once.
"""

from __future__ import annotations

import logging
import time
from datetime import timedelta
from functools import partial
from typing import Any, Final

from django.db import transaction
from django.db.models import Exists, OuterRef
from django.utils.translation import gettext as _

from audit.actions import Action
from audit.services import EntryDraft, record
from chat.artifacts import storage
from chat.artifacts.errors import ContentMissing, StorageUnavailable
from chat.importing.reading import MOST_CHATS, RawChat, TextFile, UnreadableImport
from chat.importing.trellis_zip import PackedCopy, is_copy
from chat.importing.values import ImportedChat, LeftOut
from chat.models import OPEN_IMPORTS, ChatImport, Conversation
from chat.services.import_storing import ImportedContents, check_is_kept, keep_contents, store_chat
from chat.services.imports import tell
from chat.services.person_jobs import FORGOTTEN_DAYS, RUN_SECONDS, JobKind, held_row, renewed, work
from chat.values import ImportStatus
from workspaces.actors import Source
from workspaces.database import database_now
from workspaces.middleware import actor_for

logger = logging.getLogger(__name__)

MOST_REASONS: Final = 200
"""Chats that were left out of which the row says why."""
_TELL_SECONDS: Final = 2.0
_KIND: Final = JobKind(
    model=ChatImport,
    open=OPEN_IMPORTS,
    running=ImportStatus.RUNNING.value,
    related=("owner", "workspace", "bud"),
    turn_seconds=RUN_SECONDS / 2,
)


def read_due(seconds: float = RUN_SECONDS) -> int:
    """Read files of all people in turn, until nothing is due or the time is up; gives how many chats were looked at."""
    return work(_KIND, _go_on, seconds=seconds)


def forget_old() -> int:
    """Forget imports of which nothing is left; gives how many."""
    oldest = database_now() - timedelta(days=FORGOTTEN_DAYS)
    rows = ChatImport.objects.across_workspaces().filter(finished_at__lt=oldest)
    chats = Conversation.objects.across_workspaces().filter(chat_import=OuterRef("pk"))
    forgotten: int = rows.filter(~Exists(chats)).delete()[0]
    return forgotten


def _go_on(row: ChatImport, until: float) -> int:
    """Read some of it. One file must not keep those of others from being read, so no fault leaves this."""
    try:
        with storage.open_content(row.path) as opened:
            return _read(row, _opened(opened), until)
    except UnreadableImport as error:
        _end(row, error=str(error))
    except ContentMissing:
        _end(row, error=_("The file is no longer there. Choose it again."))
    except StorageUnavailable as error:
        _end(row, error=error.message)
    except Exception:
        logger.exception("chats_not_imported", extra={"import": str(row.pk)})
        _end(row, error=_("Trellis could not read it. The platform's log says why."))
    return 0


def _opened(file: Any) -> TextFile | PackedCopy:
    return PackedCopy(file) if is_copy(file) else TextFile(file)


def _read(row: ChatImport, file: TextFile | PackedCopy, until: float) -> int:
    if not row.total:
        _count(row, file)
    told_at = time.monotonic()
    looked_at = 0
    for raw in file.chats(row.position):
        if not _take(row, raw, file):
            return looked_at  # it was ended, or another process has it
        del raw  # before the next one is read: each may take much memory
        looked_at += 1
        now = time.monotonic()
        if now - told_at > _TELL_SECONDS:
            told_at = now
            tell(row)
        if now > until:
            break
    if row.position >= row.total:
        _end(row)
    else:
        row.alive_until = None
        row.save(update_fields=["alive_until", "updated_at"])
    return looked_at


def _count(row: ChatImport, file: TextFile | PackedCopy) -> None:
    """Read it through once, so that nothing comes of a file that is damaged further on."""
    total, source = 0, None
    for raw in file.skim():
        total += 1
        source = source or raw.source
        if total > MOST_CHATS:
            raise UnreadableImport(_("It holds more than %(most)s chats.") % {"most": MOST_CHATS})
    if source is None:
        raise UnreadableImport(
            _(
                "It holds no chats that Trellis can read. Choose an export of Trellis, ChatGPT or Claude."
            )
        )
    row.total, row.origin = total, source.value
    row.save(update_fields=["total", "origin", "updated_at"])


def _take(row: ChatImport, raw: RawChat, file: TextFile | PackedCopy) -> bool:
    """Look at the next chat, and store it if it can be imported; False if the row is no longer this process's."""
    chat, why = None, ""
    contents = ImportedContents()
    try:
        # Before the transaction, in which others wait. No other import of theirs is read meanwhile.
        chat = raw.read()
        check_is_kept(row, raw, chat)
        contents = keep_contents(row.workspace_id, chat, file.content_of)
    except LeftOut as error:
        why = str(error)
    with transaction.atomic():
        if not held_row(_KIND, row).exists():
            contents.drop()
            return False
        _note(row, raw, chat, contents, why)
    return True


def _note(
    row: ChatImport, raw: RawChat, chat: ImportedChat | None, contents: ImportedContents, why: str
) -> None:
    if chat is not None and not why:
        store_chat(row, raw, chat, contents)
        row.messages += len(chat.messages)
        row.files += len(contents.stored)
        row.files_left_out += contents.left_out
        row.imported += 1
    else:
        row.left_out += 1
        if len(row.reasons) < MOST_REASONS:
            title = raw.title or _("Chat without a title")
            row.reasons = [*row.reasons, {"title": title, "reason": why}]
    row.position += 1
    row.alive_until = renewed()
    row.save()


def _end(row: ChatImport, *, error: str = "") -> None:
    """Note that the file is read, or cannot be, and enter it in the log. Nobody needs the file any more."""
    actor = actor_for(row.owner, row.workspace, source=Source.TASK)
    with transaction.atomic():
        mine = ChatImport.objects.for_workspace(row.workspace_id).filter(pk=row.pk)
        status = ImportStatus.FAILED if error else ImportStatus.DONE
        if not mine.filter(status__in=OPEN_IMPORTS).update(
            status=status.value, error=error, finished_at=database_now(), alive_until=None, path=""
        ):
            return
        counts = {"imported": row.imported, "left_out": row.left_out, "messages": row.messages}
        record(
            EntryDraft(
                action=Action.CHATS_IMPORTED,
                actor=actor,
                workspace_id=row.workspace_id,
                details={"import": str(row.pk), "from": row.origin, "error": error, **counts},
            )
        )
        tell(row)
        transaction.on_commit(partial(storage.drop, [row.path]))
