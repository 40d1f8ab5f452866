"""The text of a shared chat: the path as it is now, masked as exports are, and no more than was chosen."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from django.utils.translation import gettext as _

from chat.message_paths import path_to
from chat.models import Artifact, ArtifactVersion, Attachment, Conversation, Message, ToolCall, Turn
from chat.models.turns import ACTIVE
from chat.services.exports import (
    attached_name,
    attachments_of,
    call_values,
    calls_of,
    named_buds,
    shown_path,
)
from chat.shared_document import SharedCall, SharedDocument, SharedFile, SharedMessage
from chat.values import MessageRole, MessageStatus
from mcp_servers.client.hidden_text import show_hidden
from workspaces.errors import InvalidInput
from workspaces.redaction import redact_text
from workspaces.words.formats import whole

MOST_MESSAGES: Final = 1_000
MOST_CHARACTERS: Final = 2_000_000
"""Of all texts together."""


class ChatTooLong(InvalidInput):
    """A chat of which no page is made."""


class NothingSaid(InvalidInput):
    """A chat in which nothing has been said, or nothing has been answered yet."""


@dataclass(frozen=True, slots=True)
class BuiltText:
    """A document, and the message that it ends with."""

    document: SharedDocument
    end: UUID
    left_out: list[list[str]]
    """Names of what each message of the document took along and the document leaves out, for the person themselves."""


def build_text(
    conversation: Conversation, *, until: UUID | None, with_files: bool, with_calls: bool
) -> BuiltText:
    """Build what others will read. Answers that are still being written are left out.

    Args:
        conversation: with its `bud` loaded.
        until: the message that it ends with; None: the end of what the chat shows.

    Raises:
        InvalidInput: there is no such message.
        NothingSaid, ChatTooLong: there is nothing to share, or too much.
    """
    workspace_id = conversation.workspace_id
    path = _finished(workspace_id, _path(conversation, until))
    if not path:
        raise NothingSaid(_("There is nothing to share yet. Wait for the first answer."))
    calls = calls_of(workspace_id, path)
    named = named_buds(workspace_id, path)
    attached = attachments_of(workspace_id, path)
    made = _made(workspace_id, path) if with_files else {}
    shown = [row for row in path if row.text or attached[row.pk] or calls.get(row.pk)]
    left_out = [
        [attached_name(one) for one in attached[row.pk] if not _is_there(one, with_files)]
        for row in shown
    ]
    messages = [
        SharedMessage(
            role=MessageRole(row.role),
            bud=_bud_of(row, conversation, named),
            text=redact_text(row.text, workspace_id=workspace_id),
            created_at=row.created_at,
            is_whole=row.status == MessageStatus.COMPLETE,
            files=[*_files(attached[row.pk], with_files), *made.get(row.pk, ())],
            left_out=len(names),
            calls=[_call(call, with_calls) for call in calls.get(row.pk, ())],
        )
        for row, names in zip(shown, left_out, strict=True)
    ]
    document = SharedDocument(
        title=redact_text(conversation.title, workspace_id=workspace_id),
        bud=conversation.bud.name,
        avatar=conversation.bud.avatar,
        messages=messages,
    )
    _check_size(document)
    return BuiltText(document, path[-1].pk, left_out)


def _path(conversation: Conversation, until: UUID | None) -> list[Message]:
    workspace_id = conversation.workspace_id
    if until is None:
        rows = shown_path(conversation)
    else:
        in_it = Message.objects.for_workspace(workspace_id).filter(conversation=conversation)
        if in_it.find(until) is None:
            raise InvalidInput(
                fields={"until_message_id": [_("There is no such message in this chat.")]}
            )
        rows = path_to(workspace_id, until).defer("reasoning")
    path = list(rows[: MOST_MESSAGES + 1])
    if len(path) > MOST_MESSAGES:
        raise ChatTooLong(
            _(
                "This chat is too long to share: it has more than %(most)s messages. Share an earlier part of it with “Share up to here” in the menu of an answer."
            )
            % {"most": whole(MOST_MESSAGES)}
        )
    return path


def _finished(workspace_id: UUID, path: Sequence[Message]) -> list[Message]:
    """Without answers that are still being written."""
    turns = {row.turn_id for row in path[-20:] if row.turn_id}
    active = set(
        Turn.objects.for_workspace(workspace_id)
        .filter(pk__in=turns, status__in=ACTIVE)
        .values_list("pk", flat=True)
    )
    return [
        row
        for row in path
        if row.status != MessageStatus.STREAMING
        and not (row.role == MessageRole.ASSISTANT and row.turn_id in active)
    ]


def _bud_of(row: Message, conversation: Conversation, named: dict[UUID | None, str]) -> str:
    if row.role != MessageRole.ASSISTANT:
        return ""
    return named.get(row.turn_id) or conversation.bud.name


def _files(attached: Iterable[Attachment], with_files: bool) -> list[SharedFile]:
    there = [one.version for one in attached if _is_there(one, with_files)]
    return [_file(one.artifact, one) for one in there if one is not None]


def _is_there(one: Attachment, with_files: bool) -> bool:
    """A file of the conversation. What a server gave as a resource stays with the person."""
    return with_files and one.version is not None and not one.version.artifact.is_deleted


def _made(workspace_id: UUID, path: Iterable[Message]) -> dict[UUID, list[SharedFile]]:
    """The files that each answer made."""
    found: defaultdict[UUID, list[SharedFile]] = defaultdict(list)
    rows = ArtifactVersion.objects.for_workspace(workspace_id).filter(
        message__in=[row.pk for row in path if row.role == MessageRole.ASSISTANT],
        artifact__is_deleted=False,
    )
    for version in rows.select_related("artifact").order_by("pk"):
        if version.message_id is not None:
            found[version.message_id].append(_file(version.artifact, version))
    return found


def _file(artifact: Artifact, version: ArtifactVersion) -> SharedFile:
    name = redact_text(artifact.name, workspace_id=artifact.workspace_id)
    return SharedFile(
        artifact_id=artifact.pk,
        number=version.number,
        name=show_hidden(name),
        content_type=version.content_type,
        size=version.size,
    )


def _call(call: ToolCall, with_calls: bool) -> SharedCall:
    """Of a built-in tool its name alone: it reads and writes files, and what a bud knows."""
    values = call_values(call)
    is_own = bool(call.builtin) and call.server_id is None
    if not with_calls or is_own:
        values |= {"arguments": None, "result": None, "result_left_out": 0}
    return SharedCall(**values)


def _check_size(document: SharedDocument) -> None:
    if len(document.model_dump_json()) > MOST_CHARACTERS:
        raise ChatTooLong(
            _(
                "This chat is too long to share: its text has more than %(most)s characters. Leave out tool calls, or share an earlier part of it."
            )
            % {"most": whole(MOST_CHARACTERS)}
        )
