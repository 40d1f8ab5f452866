"""Reading a chat that somebody shared, and going on with it in a chat of one's own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from uuid import UUID

from django.db import IntegrityError, transaction
from django.utils.translation import gettext as _

from chat.models import (
    Artifact,
    ArtifactVersion,
    Attachment,
    Bud,
    Conversation,
    Message,
    SharedChat,
)
from chat.services.sharing import hash_of
from chat.services.turns import check_client_id, check_same, digest_of
from chat.shared_document import SharedDocument, SharedFile, SharedMessage
from chat.values import (
    ORIGIN,
    AttachmentStatus,
    MessageOrigin,
    MessageRole,
    MessageStatus,
    TitleSource,
)
from workspaces.actors import Actor
from workspaces.changes import record_changed
from workspaces.delivery.announcements import Announcement, announce
from workspaces.errors import InvalidInput, NotFound
from workspaces.models import User, Workspace
from workspaces.roles import Permission, require
from workspaces.secret_memory import remember_secret

_Versions = dict[tuple[UUID, int], ArtifactVersion]
_MOST_GIVEN: Final = 100
"""Chats of others, newest first; whoever wants an older one has its link."""


def chats_given_to(person: User, workspace: Workspace) -> list[SharedChat]:
    """What others of a workspace have chosen this person to read, each with its owner and its title: `shared_title`."""
    rows = SharedChat.objects.for_workspace(workspace).given_to(person)
    return list(
        rows.select_related("owner", "workspace").order_by("-shared_at", "-id")[:_MOST_GIVEN]
    )


def find_shared(token: str, person: User | None) -> SharedChat:
    """Find what somebody may read by this link, with its text, owner and workspace.

    Args:
        person: who asks; None: somebody who is not signed in.

    The log masks its token from then on.

    Raises:
        NotFound: unknown, ended, deleted, or not for them; which is not said.
    """
    rows = SharedChat.objects.across_workspaces().select_related("workspace", "owner", "text")
    shared = rows.readable_by(person).filter(token_hash=hash_of(token)).first()
    if shared is None:
        raise NotFound(_("This chat is not shared with you, or its link no longer works."))
    remember_secret(token, workspace_id=shared.workspace_id)
    return shared


def is_open(token: str) -> bool:
    """Whether somebody may read by this link, so that it is worth signing in."""
    rows = SharedChat.objects.across_workspaces().open_now()
    return bool(rows.filter(token_hash=hash_of(token)).exists())


def find_file(shared: SharedChat, artifact_id: UUID, number: int) -> ArtifactVersion:
    """Find a version of a file that is shared, with its artifact.

    Raises:
        NotFound: it is not shared, or was deleted since.
    """
    version = None
    if shared.text.value.find_file(artifact_id, number) is not None:
        rows = ArtifactVersion.objects.for_workspace(shared.workspace_id).filter(
            artifact=artifact_id,
            artifact__conversation=shared.conversation_id,
            artifact__is_deleted=False,
            number=number,
        )
        version = rows.select_related("artifact").first()
    if version is None:
        raise NotFound(_("This file is not shared."))
    return version


@transaction.atomic
def copy_shared(
    *, shared: SharedChat, bud: Bud, owner: User, actor: Actor, client_id: str | None = None
) -> Conversation:
    """Begin a conversation with the shared text and files, which the person goes on with. Tool calls are not copied.

    Args:
        bud: who answers in it; one that the person may use.
        client_id: the caller's own id for it; the same one again gives the same conversation.

    Raises:
        InvalidInput: the bud is archived, or a malformed client id.
        Conflict: the client id stands for something else.
    """
    workspace_id = shared.workspace_id
    require(actor, Permission.USE_CHAT, workspace_id=workspace_id)
    digest = digest_of("copy", str(shared.pk), str(bud.pk))
    if client_id is not None:
        check_client_id(client_id)
        if (made := _made(workspace_id, owner, client_id, digest)) is not None:
            return made
    if bud.is_archived:
        raise InvalidInput(fields={"bud_id": [_("This bud is archived.")]})
    document = shared.text.value
    try:
        with transaction.atomic():
            new = Conversation.objects.create(
                workspace_id=workspace_id,
                owner=owner,
                bud=bud,
                title=document.title,
                title_source=TitleSource.MESSAGE.value if document.title else "",
                client_id=client_id,
                client_digest=digest if client_id is not None else "",
            )
    except IntegrityError:
        # The same request came twice at once, and the other was first.
        made = _made(workspace_id, owner, client_id or "", digest)
        if made is None:
            raise
        return made
    versions = _copy_files(shared, document, new)
    leaf = _copy_messages(document, new, _attachments(shared, document), versions)
    Conversation.objects.for_workspace(workspace_id).filter(pk=new.pk).update(
        leaf=leaf, has_files=bool(versions)
    )
    record_changed(
        shared,
        actor=actor,
        before={},
        after={"copied_by": owner.email, "copied_to": str(new.pk)},
    )
    announce(
        workspace_id,
        Announcement(kind="conversation.changed", id=str(new.pk), user_id=str(owner.pk)),
    )
    return Conversation.objects.for_workspace(workspace_id).select_related("bud").fetch(new.pk)


def _made(workspace_id: UUID, owner: User, client_id: str, digest: str) -> Conversation | None:
    mine = Conversation.objects.for_workspace(workspace_id).filter(owner=owner)
    made: Conversation | None = mine.select_related("bud").filter(client_id=client_id).first()
    if made is not None:
        check_same(made.client_digest, digest)
    return made


def _shared_files(document: SharedDocument) -> list[SharedFile]:
    return [file for message in document.messages for file in message.files]


def _versions_of(shared: SharedChat, document: SharedDocument) -> _Versions:
    """The versions that are shared and still there."""
    wanted = {(file.artifact_id, file.number) for file in _shared_files(document)}
    rows = ArtifactVersion.objects.for_workspace(shared.workspace_id).filter(
        artifact__in={pk for pk, _number in wanted},
        artifact__conversation=shared.conversation_id,
        artifact__is_deleted=False,
    )
    found = {(row.artifact_id, row.number): row for row in rows.select_related("artifact")}
    return {key: row for key, row in found.items() if key in wanted}


def _copy_files(shared: SharedChat, document: SharedDocument, new: Conversation) -> _Versions:
    """Give the new conversation the shared versions, by the originals' places; contents are not doubled."""
    copies: _Versions = {}
    artifacts: dict[UUID, Artifact] = {}
    for key, row in sorted(_versions_of(shared, document).items(), key=lambda pair: pair[0][1]):
        artifact = artifacts.get(row.artifact_id)
        if artifact is None:
            artifact = Artifact(
                workspace_id=new.workspace_id, conversation=new, name=row.artifact.name
            )
            artifact.save(force_insert=True)
            artifacts[row.artifact_id] = artifact
        artifact.newest += 1
        copies[key] = ArtifactVersion(
            workspace_id=new.workspace_id,
            artifact=artifact,
            number=artifact.newest,
            content_type=row.content_type,
            size=row.size,
            sha256=row.sha256,
            path=row.path,
            origin=row.origin,
            made_by=new.owner,
        )
    ArtifactVersion.objects.bulk_create(copies.values())
    for artifact in artifacts.values():
        artifact.save(update_fields=["newest", "updated_at"])
    return copies


def _attachments(
    shared: SharedChat, document: SharedDocument
) -> dict[tuple[UUID, int], Attachment]:
    """The attachments by which the shared files came in, with what a model reads of them."""
    rows = Attachment.objects.for_workspace(shared.workspace_id).filter(
        message__conversation=shared.conversation_id,
        version__artifact__in={file.artifact_id for file in _shared_files(document)},
        status=AttachmentStatus.READY.value,
    )
    found = rows.select_related("version")
    return {(row.version.artifact_id, row.version.number): row for row in found if row.version}


def _copy_messages(
    document: SharedDocument,
    new: Conversation,
    attached: Mapping[tuple[UUID, int], Attachment],
    versions: _Versions,
) -> Message | None:
    """Write the messages; gives the last one. No turns: nobody here has asked, and no bud has answered."""
    messages: list[Message] = []
    attachments: list[Attachment] = []
    for original in _answers_joined(document):
        message = Message(
            workspace_id=new.workspace_id,
            conversation=new,
            parent=messages[-1] if messages else None,
            role=original.role.value,
            text=original.text,
            status=MessageStatus.COMPLETE.value,
            order_key=len(messages) + 1,
            json_meta={ORIGIN: MessageOrigin.SHARED.value},
        )
        messages.append(message)
        attachments += _copied(original, message, attached, versions)
    Message.objects.bulk_create(messages)
    Attachment.objects.bulk_create(attachments)
    return messages[-1] if messages else None


def _answers_joined(document: SharedDocument) -> list[SharedMessage]:
    """Questions, and each answer as one message. Steps that only called tools are left out: calls are not copied."""
    joined: list[SharedMessage] = []
    for original in document.messages:
        is_answer = original.role is MessageRole.ASSISTANT
        if is_answer and not original.text:
            continue
        if is_answer and joined and joined[-1].role is MessageRole.ASSISTANT:
            text = f"{joined[-1].text}\n\n{original.text}"
            joined[-1] = joined[-1].model_copy(update={"text": text})
        else:
            joined.append(original)
    return joined


def _copied(
    original: SharedMessage,
    message: Message,
    attached: Mapping[tuple[UUID, int], Attachment],
    versions: _Versions,
) -> list[Attachment]:
    copies: list[Attachment] = []
    for file in original.files:
        key = (file.artifact_id, file.number)
        old, version = attached.get(key), versions.get(key)
        if old is None or version is None:
            continue
        copies.append(
            Attachment(
                workspace_id=message.workspace_id,
                message=message,
                position=len(copies),
                version=version,
                file={
                    **(old.file or {}),
                    "id": str(version.artifact_id),
                    "version": version.number,
                },
                title=old.title,
                mime_type=old.mime_type,
                status=old.status,
                content=old.content,
                model_text=old.model_text,
                overview=old.overview,
                characters=old.characters,
                read_at=old.read_at,
            )
        )
    return copies
