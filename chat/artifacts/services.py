"""What people and buds do with a conversation's files. Each change is one transaction, and one event."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db.models import Sum
from django.utils.translation import gettext as _

from chat.artifacts import storage
from chat.artifacts.errors import FileTooLarge
from chat.artifacts.rows import contents_of, drop_contents, newest_of, version_of
from chat.artifacts.sizes import size_in_words
from chat.files.kinds import find_type, is_text
from chat.files.names import clean_name, numbered
from chat.live.recording import Changes, changing
from chat.models import (
    Artifact,
    ArtifactVersion,
    Attachment,
    Conversation,
    FileReading,
    QueuedMessage,
    ToolCall,
)
from chat.values import ArtifactOrigin
from workspaces.actors import Actor
from workspaces.database import after_commit
from workspaces.errors import Conflict, DomainError, InvalidInput
from workspaces.roles import Permission, require

MOST_ARTIFACTS = 200
MOST_VERSIONS = 500


class WhenTaken(StrEnum):
    """What becomes of a new file whose name another one has."""

    REFUSE = "refuse"
    NUMBER = "number"
    """It gets another name: `note (2).md`."""
    ADD_VERSION = "add_version"


@dataclass(frozen=True, slots=True)
class SavedFile:
    """A file, and the version that was made."""

    artifact: Artifact
    version: ArtifactVersion


def create_artifact(
    *,
    conversation: Conversation,
    name: str,
    content: bytes,
    actor: Actor,
    origin: ArtifactOrigin,
    call: ToolCall | None = None,
    when_taken: WhenTaken = WhenTaken.REFUSE,
) -> SavedFile:
    """Make a file with its first version.

    Args:
        call: the tool call that makes it; the same one again makes nothing, and gives what it made.

    Raises:
        PermissionDenied: the actor may not.
        Conflict: the name is taken, or the conversation has too many files.
        FileTooLarge, StorageUnavailable: its content cannot be kept.
    """
    require(actor, Permission.USE_CHAT, workspace_id=conversation.workspace_id)
    name = clean_name(name)
    if (made := _made_by(call)) is not None:
        return made
    with _stored(conversation.workspace_id, content) as stored:
        content_type = find_type(content, name)
        with changing(conversation.pk, conversation.workspace_id) as changes:
            if (made := _made_by(call)) is not None:
                storage.drop([stored.path])
                return made
            rows = Artifact.objects.for_workspace(conversation.workspace_id).filter(
                conversation_id=conversation.pk
            )
            taken = rows.filter(name=name, is_deleted=False).first()
            if taken is not None and when_taken is WhenTaken.REFUSE:
                raise Conflict(_("There is a file named “%(name)s” already.") % {"name": name})
            if taken is not None and when_taken is WhenTaken.NUMBER:
                name, taken = _free_name(rows, name), None
            if taken is None:
                if rows.count() >= MOST_ARTIFACTS:
                    raise Conflict(
                        _("A conversation has at most %(most)s files.") % {"most": MOST_ARTIFACTS}
                    )
                taken = Artifact(
                    workspace_id=conversation.workspace_id,
                    conversation_id=conversation.pk,
                    name=name,
                )
                taken.save(force_insert=True)
            version = _add(
                taken,
                stored,
                changes,
                content_type=content_type,
                origin=origin,
                actor=actor,
                call=call,
            )
        return SavedFile(taken, version)


def add_version(
    *,
    artifact: Artifact,
    content: bytes,
    actor: Actor,
    origin: ArtifactOrigin,
    base: int | None = None,
    call: ToolCall | None = None,
) -> SavedFile:
    """Save new content as the next version.

    Args:
        base: the version that was read before; None saves whatever has been saved since.

    Raises:
        Conflict: somebody has saved another version meanwhile, or the file has been deleted.
        Others as create_artifact().
    """
    require(actor, Permission.USE_CHAT, workspace_id=artifact.workspace_id)
    if (made := _made_by(call)) is not None:
        return made
    with _stored(artifact.workspace_id, content) as stored:
        content_type = find_type(content, artifact.name)
        with _changing(artifact) as (changes, row):
            if (made := _made_by(call)) is not None:
                storage.drop([stored.path])
                return made
            if base is not None and base != row.newest:
                raise Conflict(
                    _(
                        "Someone saved version %(newest)s in the meantime. Yours is based on version %(base)s."
                    )
                    % {"newest": row.newest, "base": base}
                )
            version = _add(
                row,
                stored,
                changes,
                content_type=content_type,
                origin=origin,
                actor=actor,
                call=call,
            )
        return SavedFile(row, version)


def restore_version(*, artifact: Artifact, number: int, actor: Actor) -> SavedFile:
    """Make an older version the newest again, as a version of its own; that of the newest one changes nothing.

    Raises:
        NotFound: there is no such version.
    """
    require(actor, Permission.USE_CHAT, workspace_id=artifact.workspace_id)
    with _changing(artifact) as (changes, row):
        old = version_of(row, number)
        if old.number == row.newest:
            return SavedFile(row, old)
        stored = storage.StoredContent(old.path, old.sha256, old.size)
        version = _add(
            row,
            stored,
            changes,
            content_type=old.content_type,
            origin=ArtifactOrigin.RESTORE,
            actor=actor,
            is_new=False,
        )
    return SavedFile(row, version)


def rename_artifact(*, artifact: Artifact, name: str, actor: Actor) -> Artifact:
    """Give a file another name; among texts the newest version's type follows it.

    Raises:
        InvalidInput: it is empty, or a path.
        Conflict: the name is taken.
    """
    require(actor, Permission.USE_CHAT, workspace_id=artifact.workspace_id)
    if not name.strip():
        raise InvalidInput(fields={"name": [_("Give the file a name.")]})
    if "/" in name or "\\" in name:
        raise InvalidInput(fields={"name": [_("A name cannot contain / or \\.")]})
    name = clean_name(name)
    read = newest_of(artifact)
    if is_text(read.content_type):
        read.content_type = find_type(storage.read(read.path), name)
    with _changing(artifact) as (changes, row):
        if row.name == name:
            return row
        others = Artifact.objects.for_workspace(row.workspace_id).filter(
            conversation_id=row.conversation_id, name=name, is_deleted=False
        )
        if others.exclude(pk=row.pk).exists():
            raise Conflict(_("There is a file named “%(name)s” already.") % {"name": name})
        row.name = name
        row.save(update_fields=["name", "updated_at"])
        read.save(update_fields=["content_type", "updated_at"])
        changes.artifact(row, newest_of(row))
    return row


def delete_artifact(*, artifact: Artifact, actor: Actor, unless_sent: bool = False) -> Artifact:
    """Take a file away; `undelete_artifact` brings it back.

    Raises:
        Conflict: a message has taken it along, and `unless_sent` says that it stays then.
    """
    require(actor, Permission.USE_CHAT, workspace_id=artifact.workspace_id)
    with _changing(artifact, with_deleted=True) as (changes, row):
        if unless_sent and _is_taken_along(row):
            raise Conflict(_("A message has taken this file along, so it stays in the chat."))
        if not row.is_deleted:
            row.is_deleted = True
            row.save(update_fields=["is_deleted", "updated_at"])
            changes.artifact(row, newest_of(row))
    return row


def _is_taken_along(row: Artifact) -> bool:
    """Whether a message has this file, also one that waits for the running turn."""
    sent = Attachment.objects.for_workspace(row.workspace_id).filter(version__artifact=row)
    if sent.exists():
        return True
    queued = QueuedMessage.objects.for_workspace(row.workspace_id)
    waiting = queued.filter(conversation_id=row.conversation_id)
    lists = waiting.values_list("attachments", flat=True)
    return any(one.get("artifact_id") == str(row.pk) for attached in lists for one in attached)


def undelete_artifact(*, artifact: Artifact, actor: Actor) -> Artifact:
    """Bring a deleted file back; if another one has its name by now, under a numbered one."""
    require(actor, Permission.USE_CHAT, workspace_id=artifact.workspace_id)
    with _changing(artifact, with_deleted=True) as (changes, row):
        if row.is_deleted:
            rows = Artifact.objects.for_workspace(row.workspace_id).filter(
                conversation_id=row.conversation_id
            )
            if rows.filter(name=row.name, is_deleted=False).exists():
                row.name = _free_name(rows, row.name)
            row.is_deleted = False
            row.save(update_fields=["is_deleted", "name", "updated_at"])
            changes.artifact(row, newest_of(row))
    return row


def copy_artifacts(*, source: Conversation, target: Conversation) -> dict[UUID, ArtifactVersion]:
    """Give a new conversation the files of another one, in the caller's transaction; contents are shared, not doubled.

    Gives the copies of the versions, by the originals' ids.
    """
    rows = Artifact.objects.for_workspace(source.workspace_id).filter(
        conversation=source, is_deleted=False
    )
    copies: dict[UUID, ArtifactVersion] = {}
    for row in rows:
        copy = Artifact(
            workspace_id=row.workspace_id, conversation=target, name=row.name, newest=row.newest
        )
        copy.save(force_insert=True)
        versions = ArtifactVersion.objects.for_workspace(row.workspace_id).filter(artifact=row)
        for version in versions:
            old = version.pk
            version.pk = ArtifactVersion._meta.pk.get_default()
            version.artifact = copy
            version.tool_call_id = version.message_id = None
            copies[old] = version
    ArtifactVersion.objects.across_workspaces().bulk_create(copies.values())
    readings = list(
        FileReading.objects.for_workspace(source.workspace_id).filter(version__in=list(copies))
    )
    for reading in readings:
        reading.pk = FileReading._meta.pk.get_default()
        reading.version = copies[reading.version_id]
    FileReading.objects.across_workspaces().bulk_create(readings)
    return copies


def forget_contents(conversation: Conversation) -> None:
    """In the transaction that deletes a conversation, before it does: have the contents removed after."""
    paths = contents_of(conversation)
    if paths:
        after_commit(drop_contents, conversation.workspace_id, paths)


@contextmanager
def _stored(workspace_id: UUID, content: bytes) -> Iterator[storage.StoredContent]:
    """Content in the storage while its row is written; it goes again if that was refused.

    After any other failure it stays: whether the row was committed may not be known, and orphans are swept.
    """
    _check_size(len(content))
    stored = storage.store(workspace_id, content)
    try:
        yield stored
    except DomainError:
        storage.drop([stored.path])
        raise


@contextmanager
def _changing(
    artifact: Artifact, *, with_deleted: bool = False
) -> Iterator[tuple[Changes, Artifact]]:
    with changing(artifact.conversation_id, artifact.workspace_id) as changes:
        row = Artifact.objects.for_workspace(artifact.workspace_id).fetch(artifact.pk)
        if row.is_deleted and not with_deleted:
            raise Conflict(_("This file has been deleted."))
        yield changes, row


def _add(
    artifact: Artifact,
    stored: storage.StoredContent,
    changes: Changes,
    *,
    content_type: str,
    origin: ArtifactOrigin,
    actor: Actor,
    call: ToolCall | None = None,
    is_new: bool = True,
) -> ArtifactVersion:
    if artifact.newest >= MOST_VERSIONS:
        raise Conflict(_("A file has at most %(most)s versions.") % {"most": MOST_VERSIONS})
    if is_new:
        _check_room(artifact, stored.size)
    version = ArtifactVersion(
        workspace_id=artifact.workspace_id,
        artifact=artifact,
        number=artifact.newest + 1,
        content_type=content_type,
        size=stored.size,
        sha256=stored.sha256,
        path=stored.path,
        origin=origin.value,
        message_id=call.message_id if call is not None else None,
        tool_call=call,
        made_by_id=actor.user_id,
    )
    version.save(force_insert=True)
    artifact.newest = version.number
    artifact.save(update_fields=["newest", "updated_at"])
    if not changes.conversation.has_files:
        changes.conversation.has_files = True
        changes.save_with_number("has_files")
    version = version_of(artifact, version.number)
    changes.artifact(artifact, version)
    return version


def _check_size(size: int) -> None:
    most = settings.TRELLIS.artifact_max_bytes
    if size > most:
        raise FileTooLarge(
            _("A file has at most %(most)s; this one has %(size)s.")
            % {"most": size_in_words(most), "size": size_in_words(size)}
        )


def _check_room(artifact: Artifact, size: int) -> None:
    most = settings.TRELLIS.artifact_conversation_max_bytes
    rows = ArtifactVersion.objects.for_workspace(artifact.workspace_id).filter(
        artifact__conversation_id=artifact.conversation_id
    )
    counted = rows.exclude(origin=ArtifactOrigin.RESTORE.value).aggregate(total=Sum("size"))
    if (counted["total"] or 0) + size > most:
        raise FileTooLarge(
            _("All files of a conversation together have at most %(most)s.")
            % {"most": size_in_words(most)}
        )


def _free_name(rows: Any, name: str) -> str:
    taken = set(rows.filter(is_deleted=False).values_list("name", flat=True))
    return next(
        candidate
        for number in range(2, MOST_ARTIFACTS + 3)
        if (candidate := numbered(name, number)) not in taken
    )


def _made_by(call: ToolCall | None) -> SavedFile | None:
    if call is None:
        return None
    versions = ArtifactVersion.objects.for_workspace(call.workspace_id)
    version = versions.filter(tool_call=call).select_related("artifact", "made_by").first()
    return SavedFile(version.artifact, version) if version is not None else None
