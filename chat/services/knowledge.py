"""Files that a bud knows: adding, removing and copying them. Each is read before it is taken, or not taken at all."""

from __future__ import annotations

import asyncio
from typing import Final

from django.conf import settings
from django.db import transaction
from django.db.models import Q, Sum
from django.utils.translation import gettext as _

from chat.artifacts import storage
from chat.artifacts.errors import FileTooLarge
from chat.artifacts.rows import drop_contents
from chat.documents.extracting import (
    HTML,
    Extracted,
    UnreadableFile,
    extract,
    extract_page,
    is_document,
)
from chat.documents.passages import cut
from chat.files.kinds import as_text, find_type, is_text
from chat.files.names import clean_name
from chat.models import Bud, KnowledgeFile, KnowledgePassage
from chat.services.buds import require_edit
from workspaces.actors import Actor
from workspaces.changes import record_created, record_deleted
from workspaces.database import after_commit, wait_for
from workspaces.delivery.announcements import Announcement, announce
from workspaces.errors import Conflict, InvalidInput
from workspaces.holding import hold

MOST_FILES: Final = 50
MOST_BYTES: Final = 200 * 1024 * 1024
"""Of all files of a bud together."""
READABLE: Final = (
    "PDF, Word, Excel, PowerPoint, EPUB, HTML, Markdown, CSV, JSON, code and plain text"
)
_BATCH: Final = 500


def add_knowledge(*, bud: Bud, name: str, content: bytes, actor: Actor) -> KnowledgeFile:
    """Read a file and give it to a bud. Reading takes up to some minutes; the file is there once it has been read.

    Raises:
        PermissionDenied: the actor may not edit the bud.
        Conflict: there is a file of this name, or there are too many.
        FileTooLarge: the file is, or all of them together would be.
        UnreadableFile: no text can be got out of it.
        NotReadNow, StorageUnavailable: it did not work this time.
    """
    require_edit(bud, actor)
    name = _checked_name(name)
    most = settings.TRELLIS.artifact_max_bytes
    if len(content) > most:
        raise FileTooLarge(_("A file has at most %(most)s MB.") % {"most": most // (1024 * 1024)})
    _check_room(bud, name, len(content))
    content_type = find_type(content, name)
    text = wait_for(_read, content, content_type)
    stored = storage.store(bud.workspace_id, content)
    try:
        with transaction.atomic():
            locked = _locked(bud, actor)
            _check_room(locked, name, stored.size)
            file = KnowledgeFile(
                workspace_id=bud.workspace_id,
                bud=locked,
                name=name,
                content_type=content_type,
                size=stored.size,
                sha256=stored.sha256,
                path=stored.path,
                characters=len(text.text),
                lines=text.text.rstrip("\n").count("\n") + 1,
                outline=[list(part) for part in text.outline],
                is_cut=text.is_cut,
                added_by=actor.label[:254],
            )
            file.save(force_insert=True)
            _store_passages(file, text)
            record_created(file, actor=actor)
            _tell(locked, has_knowledge=True)
    except BaseException:
        storage.drop([stored.path])
        raise
    return file


def remove_knowledge(*, file: KnowledgeFile, actor: Actor) -> None:
    """Take a file from a bud, with all that was read of it.

    Raises:
        PermissionDenied: the actor may not edit the bud.
    """
    with transaction.atomic():
        bud = _locked(file.bud, actor)
        rows = KnowledgeFile.objects.for_workspace(bud.workspace_id).filter(bud=bud)
        found = rows.filter(pk=file.pk).first()
        if found is None:
            return  # somebody else has removed it
        record_deleted(found, actor=actor)
        after_commit(drop_contents, bud.workspace_id, [found.path])
        found.delete()
        _tell(bud, has_knowledge=rows.exists())


def copy_knowledge(*, source: Bud, target: Bud, actor: Actor) -> None:
    """Give a new bud the files of another, in the caller's transaction; contents are shared, not doubled."""
    hold(
        source
    )  # whoever takes a file from it meanwhile would drop the content that the copy shares
    files = KnowledgeFile.objects.for_workspace(source.workspace_id).filter(bud=source)
    for file in list(files):
        passages = KnowledgePassage.objects.for_workspace(source.workspace_id).filter(file=file)
        copied = list(passages)
        file.pk = KnowledgeFile._meta.pk.get_default()
        file.bud, file.added_by = target, actor.label[:254]
        file.save(force_insert=True)
        for passage in copied:
            passage.pk = KnowledgePassage._meta.pk.get_default()
            passage.file = file
        KnowledgePassage.objects.across_workspaces().bulk_create(copied, batch_size=_BATCH)
        record_created(file, actor=actor)
        _tell(target, has_knowledge=True)


def _checked_name(raw: str) -> str:
    if not raw.strip():
        raise InvalidInput(fields={"name": [_("Give the file a name.")]})
    return clean_name(raw)


def _check_room(bud: Bud, name: str, size: int) -> None:
    rows = KnowledgeFile.objects.for_workspace(bud.workspace_id).filter(bud=bud)
    if rows.filter(name__iexact=name).exists():
        raise Conflict(
            _("There is a file named “%(name)s” already. Remove it first to replace it.")
            % {"name": name}
        )
    if rows.count() >= MOST_FILES:
        raise Conflict(_("A bud has at most %(most)s knowledge files.") % {"most": MOST_FILES})
    total = rows.aggregate(total=Sum("size"))["total"] or 0
    if total + size > MOST_BYTES:
        most = MOST_BYTES // (1024 * 1024)
        raise FileTooLarge(
            _("All knowledge files of a bud together have at most %(most)s MB.") % {"most": most}
        )


async def _read(content: bytes, content_type: str) -> Extracted:
    if is_text(content_type):
        text: str | None = await asyncio.to_thread(as_text, content)
        is_page = content_type == HTML
        found = await extract_page(text or "") if is_page else Extracted(text=text or "")
    elif is_document(content_type):
        found = await extract(content, content_type)
    else:
        raise UnreadableFile(
            _("There is no text in this kind of file. Trellis reads %(readable)s.")
            % {"readable": READABLE}
        )
    if not found.text.strip():
        raise UnreadableFile(_("This file holds no text."))
    return found


def _locked(bud: Bud, actor: Actor) -> Bud:
    rows = Bud.objects.for_workspace(bud.workspace_id).select_for_update(of=("self",))
    found: Bud = rows.fetch(bud.pk)
    require_edit(found, actor)
    return found


def _store_passages(file: KnowledgeFile, text: Extracted) -> None:
    rows = [
        KnowledgePassage(
            workspace_id=file.workspace_id,
            file=file,
            position=position,
            first_line=one.first_line,
            last_line=one.last_line,
            text=one.text,
        )
        for position, one in enumerate(cut(text.text, [line for _, line in text.outline]))
    ]
    KnowledgePassage.objects.across_workspaces().bulk_create(rows, batch_size=_BATCH)


def _tell(bud: Bud, *, has_knowledge: bool) -> None:
    """Have the bud and its drafts say whether there are files, and open pages hear of it."""
    rows = Bud.objects.for_workspace(bud.workspace_id)
    rows.filter(Q(pk=bud.pk) | Q(draft_of=bud)).update(has_knowledge=has_knowledge)
    announce(bud.workspace_id, Announcement(kind="bud.changed", id=str(bud.pk)))
