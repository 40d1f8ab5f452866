"""Storing one imported chat: its messages with their times and branches, its folder, and files that came with it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db.models import Q
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from chat.artifacts import storage
from chat.artifacts.services import MOST_ARTIFACTS, MOST_VERSIONS
from chat.engine.attaching import file_attachment
from chat.engine.beginning import title_from
from chat.files.kinds import find_type
from chat.files.names import clean_name, numbered
from chat.importing.reading import RawChat
from chat.importing.values import ImportedChat, ImportedFile, ImportedFolder, LeftOut, with_files
from chat.models import (
    Artifact,
    ArtifactVersion,
    Attachment,
    ChatImport,
    Conversation,
    Folder,
    Message,
)
from chat.services.dated_ids import id_said_at
from chat.services.folders import LONGEST_NAME, take_room_for_folder
from chat.values import (
    ORIGIN,
    ArtifactOrigin,
    AttachmentStatus,
    FolderColour,
    MessageOrigin,
    MessageStatus,
    TitleSource,
)
from workspaces.database import database_now
from workspaces.database.prepared_writes import insert, update_if_there
from workspaces.errors import Conflict

ContentOf = Callable[[str, int], bytes | None]
"""Gives what a place of the ZIP holds, if that has no more bytes than wanted."""
_Key = tuple[str, int]
_READ_WITH_TOOLS: Final = gettext_noop(
    "This file came with an imported chat. Read it with read_artifact."
)


@dataclass(slots=True)
class ImportedContents:
    """Contents of a chat's files that are in the storage, and in no row yet."""

    stored: dict[_Key, tuple[storage.StoredContent, str]] = field(default_factory=dict)
    """By file and version: where it is, and its type."""
    left_out: int = 0

    def drop(self) -> None:
        """Remove them: no row will name them."""
        storage.drop(one.path for one, _type in self.stored.values())
        self.stored = {}


def check_is_kept(row: ChatImport, raw: RawChat, chat: ImportedChat) -> None:
    """Check that a chat can come.

    Raises:
        LeftOut: it is too old to be kept, or is here already.
    """
    now = database_now()
    days = settings.TRELLIS.idle_conversation_days
    last = max(_moments(chat, now))
    if days is not None and not chat.is_pinned and last < now - timedelta(days=days):
        raise LeftOut(
            _("It is older than the %(days)s days that chats are kept here.") % {"days": days}
        )
    mine = Conversation.objects.for_workspace(row.workspace_id).filter(owner_id=row.owner_id)
    is_it = Q(client_id=_client_id(row, raw, chat))
    if (own := _as_id(chat.key)) is not None:
        is_it |= Q(pk=own)
    for deleted_at in mine.filter(is_it).values_list("deleted_at", flat=True):
        if deleted_at is not None:
            raise LeftOut(_("You have deleted it here. Restore it under “Recently deleted”."))
        raise LeftOut(_("You have it already."))


def keep_contents(
    workspace_id: UUID, chat: ImportedChat, content_of: ContentOf
) -> ImportedContents:
    """Store what the chat's files hold, one after the other, within the bounds that hold for every chat.

    Raises:
        StorageUnavailable: the disk is full, or the storage out of reach.
    """
    kept = ImportedContents(left_out=chat.files_elsewhere)
    room = settings.TRELLIS.artifact_conversation_max_bytes
    for place, file in enumerate(chat.files):
        for version in file.versions:
            is_room = place < MOST_ARTIFACTS and version.number <= MOST_VERSIONS
            most = min(room, settings.TRELLIS.artifact_max_bytes)
            content = content_of(version.place, most) if is_room else None
            if content is None:
                kept.left_out += 1
                continue
            stored = storage.store(workspace_id, content)
            kept.stored[file.key, version.number] = (stored, find_type(content, file.name))
            room -= stored.size
    return kept


def store_chat(
    row: ChatImport, raw: RawChat, chat: ImportedChat, contents: ImportedContents
) -> None:
    """Store one chat, in the caller's transaction."""
    now = database_now()
    moments = _moments(chat, now)
    first = chat.messages[0].text
    new = Conversation(
        workspace_id=row.workspace_id,
        owner_id=row.owner_id,
        bud_id=row.bud_id,
        title=chat.title or title_from(first),
        title_source=(TitleSource.PERSON if chat.title else TitleSource.MESSAGE).value,
        client_id=_client_id(row, raw, chat),
        chat_import=row,
        folder=_folder(row, chat.folder) if chat.folder else None,
        is_pinned=chat.is_pinned,
        is_archived=chat.is_archived,
        has_files=bool(contents.stored),
    )
    new.save(force_insert=True)
    # Searches find the newest messages and files by their ids.
    ids = {
        one.key: id_said_at(moment, place)
        for place, (one, moment) in enumerate(zip(chat.messages, moments, strict=True))
    }
    messages = [
        Message(
            id=ids[one.key],
            workspace_id=row.workspace_id,
            conversation=new,
            parent_id=ids[one.parent] if one.parent is not None else None,
            role=one.role.value,
            text=with_files(one.text, _lost(chat, contents, one.attached)),
            status=MessageStatus.COMPLETE.value,
            order_key=place,
            json_meta={ORIGIN: MessageOrigin.FILE.value},
        )
        for place, one in enumerate(chat.messages, start=1)
    ]
    insert(messages)
    # They keep their times, which storing sets to now.
    for message, moment in zip(messages, moments, strict=True):
        message.created_at = moment
        update_if_there(message, ["created_at"])
    if contents.stored:
        files = _store_files(row, chat.files, new, contents, at=max(moments))
        _attach(chat, messages, files)
    new.leaf_id = ids[chat.leaf]
    new.created_at = min(chat.began_at or moments[0], now)
    new.last_message_at = max(moments)
    update_if_there(new, ["leaf", "created_at", "last_message_at"])


def _lost(chat: ImportedChat, contents: ImportedContents, attached: Sequence[_Key]) -> list[str]:
    """Names of what was attached to a message and did not come."""
    names = {file.key: file.name for file in chat.files}
    return [names[key[0]] for key in attached if key not in contents.stored]


def _folder(row: ChatImport, wanted: ImportedFolder) -> Folder | None:
    """The person's folder of that name, made anew if there is none and room for one."""
    mine = Folder.objects.for_workspace(row.workspace_id).filter(owner_id=row.owner_id)
    name = wanted.name[:LONGEST_NAME].strip()
    known: Folder | None = mine.filter(name=name).first()
    if known is not None:
        return known
    try:
        take_room_for_folder(row.workspace_id, row.owner_id)
    except Conflict:
        return None
    colour = wanted.colour if wanted.colour in set(FolderColour) else FolderColour.GREEN.value
    # Another tab may make the same one at the same time.
    return mine.get_or_create(
        workspace_id=row.workspace_id,
        owner_id=row.owner_id,
        name=name,
        defaults={"colour": colour},
    )[0]


def _store_files(
    row: ChatImport,
    files: Sequence[ImportedFile],
    new: Conversation,
    contents: ImportedContents,
    *,
    at: datetime,
) -> dict[_Key, ArtifactVersion]:
    made: dict[_Key, ArtifactVersion] = {}
    taken: set[str] = set()
    for place, file in enumerate(files):
        came = [one for one in file.versions if (file.key, one.number) in contents.stored]
        if not came:
            continue
        name = _free_name(clean_name(file.name), taken)
        artifact = Artifact(
            id=id_said_at(at, place),
            workspace_id=row.workspace_id,
            conversation=new,
            name=name,
            newest=came[-1].number,
        )
        artifact.save(force_insert=True)
        for one in came:
            stored, content_type = contents.stored[file.key, one.number]
            made[file.key, one.number] = ArtifactVersion(
                workspace_id=row.workspace_id,
                artifact=artifact,
                number=one.number,
                content_type=content_type,
                size=stored.size,
                sha256=stored.sha256,
                path=stored.path,
                origin=(ArtifactOrigin.UPLOAD if one.is_upload else ArtifactOrigin.TOOL).value,
                made_by_id=row.owner_id if one.is_upload else None,
            )
    ArtifactVersion.objects.bulk_create(made.values())
    return made


def _free_name(name: str, taken: set[str]) -> str:
    free, number = name, 2
    while free in taken:
        free, number = numbered(name, number), number + 1
    taken.add(free)
    return free


def _attach(
    chat: ImportedChat, messages: Sequence[Message], versions: Mapping[_Key, ArtifactVersion]
) -> None:
    rows: list[Attachment] = []
    for one, message in zip(chat.messages, messages, strict=True):
        came = [versions[key] for key in one.attached if key in versions]
        rows += [
            file_attachment(
                message,
                position,
                version,
                status=AttachmentStatus.READY.value,
                model_text=_READ_WITH_TOOLS,
            )
            for position, version in enumerate(came)
        ]
    Attachment.objects.bulk_create(rows)


def _moments(chat: ImportedChat, now: datetime) -> list[datetime]:
    """When each message was said: as the file says, else as the one before it; nothing in the time to come."""
    before = min(chat.began_at or now, now)
    found = []
    for one in chat.messages:
        before = min(one.at or before, now)
        found.append(before)
    return found


def _client_id(row: ChatImport, raw: RawChat, chat: ImportedChat) -> str:
    """The same for the same chat, so that it is stored once however often its file comes."""
    source = raw.source.value if raw.source else ""
    named = f"{row.workspace_id}\n{source}\n{chat.key}".encode(errors="surrogatepass")
    return f"imported-{hashlib.sha256(named).hexdigest()[:48]}"


def _as_id(key: str) -> Any:
    """The id of a conversation of this installation, if it is one."""
    try:
        return Conversation._meta.pk.to_python(key)
    except ValidationError:
        return None
