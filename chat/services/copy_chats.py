"""Chats in a copy of somebody's data: each with all branches as JSON, its shown path as Markdown, and its files.

Messages are read some at a time, so a chat of any length takes little memory. Secrets are masked as in an export.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from django.db.models import Q
from django.utils.text import slugify

from chat.artifacts import storage
from chat.artifacts.errors import ContentMissing
from chat.importing.trellis_zip import CHAT
from chat.models import Artifact, ArtifactVersion, Attachment, Conversation, Message
from chat.services.copy_archive import ArchiveParts
from chat.services.exports import (
    attached_name,
    attachments_of,
    entries_of,
    markdown_head,
    markdown_of,
)
from chat.wire.payloads import moment
from workspaces.redaction import redact_text

_BATCH: Final = 300
_TITLE_CHARACTERS: Final = 50
_Entries = Sequence[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class CopiedFile:
    """One version of a file, and the place of its content in the ZIP; "": it cannot be read."""

    version: ArtifactVersion
    place: str


def write_chat(parts: ArchiveParts, chat: Conversation, *, with_files: bool) -> list[CopiedFile]:
    """Write one chat; its files may go on in the next part. Needs `bud` and `folder` loaded.

    Returns:
        its files: all versions of those that are not deleted.
    """
    folder = f"chats/{_folder_name(chat)}"
    files = _files(chat, folder) if with_files and chat.has_files else []
    at = chat.last_message_at
    entries = _Messages(chat)
    target = parts.current
    target.add_text(f"{folder}/{CHAT}", _json(_head(chat, files), entries), at)
    target.add_text(f"{folder}/chat.md", _markdown(chat, entries), at)
    target.chats += 1
    return [_write_file(parts, one) if one.place else one for one in files]


def _write_file(parts: ArchiveParts, file: CopiedFile) -> CopiedFile:
    version = file.version
    try:
        with storage.open_content(version.path) as content:
            if not parts.current.has_room(version.size):
                parts.begin_next()
            parts.current.add_content(file.place, content, version.content_type, version.created_at)
    except ContentMissing:
        return CopiedFile(version, "")
    return file


def _folder_name(chat: Conversation) -> str:
    """Its day, its title, and what tells it from others."""
    title = redact_text(chat.title, workspace_id=chat.workspace_id)
    words = slugify(title, allow_unicode=True)[:_TITLE_CHARACTERS].strip("-_")
    return "-".join(filter(None, [f"{chat.created_at:%Y-%m-%d}", words, chat.pk.hex[-8:]]))


def _files(chat: Conversation, folder: str) -> list[CopiedFile]:
    rows = ArtifactVersion.objects.for_workspace(chat.workspace_id).filter(
        artifact__conversation=chat, artifact__is_deleted=False
    )
    found = rows.select_related("artifact").order_by("artifact_id", "number")
    stored = storage.artifact_storage()
    return [
        CopiedFile(
            row,
            f"{folder}/files/{row.artifact_id.hex[-8:]}-v{row.number}/{row.artifact.name}"
            if stored.exists(row.path)
            else "",
        )
        for row in found
    ]


def _head(chat: Conversation, files: Iterable[CopiedFile]) -> dict[str, Any]:
    """What is told of a chat before its messages."""
    folder = chat.folder
    return {
        "id": str(chat.pk),
        "title": redact_text(chat.title, workspace_id=chat.workspace_id),
        "bud": chat.bud.name,
        "created_at": moment(chat.created_at),
        "updated_at": moment(chat.last_message_at),
        "folder": {"name": folder.name, "colour": folder.colour} if folder else None,
        "is_pinned": chat.is_pinned,
        "is_archived": chat.is_archived,
        "is_temporary": chat.is_temporary,
        "leaf": str(chat.leaf_id) if chat.leaf_id else None,
        "files": _files_in_json(files),
    }


def _files_in_json(files: Iterable[CopiedFile]) -> list[dict[str, Any]]:
    artifacts: dict[UUID, Artifact] = {}
    versions: defaultdict[UUID, list[dict[str, Any]]] = defaultdict(list)
    for one in files:
        row = one.version
        artifacts[row.artifact_id] = row.artifact
        versions[row.artifact_id].append(
            {
                "number": row.number,
                "content_type": row.content_type,
                "size": row.size,
                "sha256": row.sha256,
                "origin": row.origin,
                "created_at": moment(row.created_at),
                "path": one.place or None,
            }
        )
    return [
        {"id": str(pk), "name": row.name, "versions": versions[pk]} for pk, row in artifacts.items()
    ]


class _Messages:
    """A chat's messages as they are told: read anew each time, unless they are few."""

    def __init__(self, chat: Conversation) -> None:
        self._chat = chat
        self._parents: dict[str, str | None] = {}
        self._few: _Entries | None = None

    def every(self) -> Iterator[dict[str, Any]]:
        """All branches, each message after its parent."""
        self._parents = {}
        for number, batch in enumerate(self._batches()):
            self._few = batch if number == 0 and len(batch) < _BATCH else None
            self._parents.update((one["id"], one["parent"]) for one in batch)
            yield from batch

    def shown(self) -> Iterator[dict[str, Any]]:
        """Those that the chat shows, after all have been read once."""
        path = self._path()
        batches = self._batches() if self._few is None else [self._few]
        for batch in batches:
            yield from (one for one in batch if one["id"] in path)

    def _path(self) -> Container[str]:
        if self._chat.leaf_id is None:
            return self._parents
        path: set[str] = set()
        here: str | None = str(self._chat.leaf_id)
        while here is not None and here not in path:
            path.add(here)
            here = self._parents.get(here)
        return path

    def _batches(self) -> Iterator[_Entries]:
        chat = self._chat
        rows: Any = Message.objects.for_workspace(chat.workspace_id).filter(conversation=chat)
        rows = rows.defer("reasoning").order_by("order_key", "pk")
        last: Message | None = None
        while True:
            beyond = Q()
            if last is not None:
                beyond = Q(order_key__gt=last.order_key) | Q(
                    order_key=last.order_key, pk__gt=last.pk
                )
            batch = list(rows.filter(beyond)[:_BATCH])
            if batch:
                last = batch[-1]
                yield _entries(chat.workspace_id, batch)
            if len(batch) < _BATCH:
                return


def _entries(workspace_id: UUID, rows: Sequence[Message]) -> _Entries:
    files = attachments_of(workspace_id, rows)
    return [
        {
            "id": str(row.pk),
            "parent": str(row.parent_id) if row.parent_id else None,
            **entry,
            "attachments": [_attachment(one) for one in files[row.pk]],
        }
        for row, entry in entries_of(workspace_id, rows)
    ]


def _attachment(one: Attachment) -> dict[str, Any]:
    version = one.version
    return {
        "name": attached_name(one),
        "file": str(version.artifact_id) if version else None,
        "version": version.number if version else None,
    }


def _json(head: dict[str, Any], entries: _Messages) -> Iterator[str]:
    """The whole, a message a line."""
    yield json.dumps(head, ensure_ascii=False, indent=2).removesuffix("\n}")
    yield ',\n  "messages": ['
    before = "\n"
    for one in entries.every():
        yield f"{before}    {json.dumps(one, ensure_ascii=False)}"
        before = ",\n"
    yield "\n  ]\n}\n"


def _markdown(chat: Conversation, entries: _Messages) -> Iterator[str]:
    title = redact_text(chat.title, workspace_id=chat.workspace_id) or "Conversation"
    yield markdown_head(title, chat.bud.name)
    for one in entries.shown():
        names = [attached["name"] for attached in one["attachments"]]
        if one["text"] or names or one["tool_calls"]:
            yield f"\n\n{markdown_of({**one, 'attachments': names}, chat.bud.name)}"
    yield "\n"
