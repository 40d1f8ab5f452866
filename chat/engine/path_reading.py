"""A path through a conversation, read from its end backwards in parts: nobody holds a long conversation as a whole."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple
from uuid import UUID

from django.db.models import Q
from django.db.models.expressions import RawSQL

from chat.message_paths import UP, as_param, ids_of_walk
from chat.models import Attachment, Message, ToolCall, Turn
from chat.values import MessageRole
from workspaces.database.prepared import PreparedRows

MOST_IN_PART = 2_000
"""Messages that one statement reads."""
_MOST_CHARACTERS = 1_000_000
"""About how many a part holds that is only looked through."""
_COLUMNS = ("parent_id", "turn_id", "role", "status", "text", "json_meta", "order_key")
_OF_CALLS = (
    "message_id",
    "provider_call_id",
    "model_text",
    "annotations",
    "arguments",
    "builtin",
    "server_id",
    "server_name",
    "tool_name",
    "artifact",
    "approval_rule",
    "approval_id",
    "decision",
)
# The sizes are those that `context_window` counts at the least: results of earlier turns are shortened.
_PATH = f"""
WITH RECURSIVE path(id, parent_id, place, size) AS (
    SELECT m.id, m.parent_id, 1, CAST(0 AS bigint)
    FROM chat_message m WHERE m.id = {{start}}
  UNION ALL
    SELECT m.id, m.parent_id, path.place + 1, CAST(
        path.size + 13 + length(m.text) + coalesce((
            SELECT sum(CASE WHEN length(c.model_text) < 500 THEN length(c.model_text) ELSE 500 END + 39)
            FROM chat_toolcall c WHERE c.message_id = m.id
        ), 0) AS bigint)
    FROM path {UP}
    WHERE path.place < {MOST_IN_PART} AND path.size < %s
)
SELECT id FROM path"""  # noqa: S608  a number of ours
_OF_TURN = """(
    SELECT id FROM chat_message WHERE turn_id = %s ORDER BY order_key DESC, id DESC LIMIT 1
)"""
_NEWEST = f"""{_PATH.format(start=f"coalesce({_OF_TURN}, %s)")}
UNION SELECT id FROM chat_message WHERE turn_id = %s OR turn_id = %s OR id = %s"""  # noqa: S608  our own words


class PathSegment(NamedTuple):
    """Messages that follow each other, with what belongs to them."""

    messages: Sequence[Message]
    calls: Sequence[ToolCall]
    attachments: Sequence[Attachment]


def newest_messages(turn: Turn, characters: int) -> list[Message]:
    """The end of a turn's path, at least so long; with all messages of the turn, and of the one that it revises."""
    ids = (turn.workspace_id, turn.pk, turn.user_message_id, turn.revises or turn.pk)
    return _NEWEST_MESSAGES.all(*ids, characters)


def messages_up_to(workspace_id: UUID, message_id: UUID, characters: int) -> list[Message]:
    """The end of the path to a message, at least so long."""
    return _MESSAGES_UP_TO.all(workspace_id, message_id, characters)


def parts_up_to(workspace_id: UUID, message_id: UUID | None) -> Iterator[list[Message]]:
    """The whole path to a message, the newest part first."""
    while message_id is not None:
        rows = messages_up_to(workspace_id, message_id, _MOST_CHARACTERS)
        yield rows
        message_id = rows[0].parent_id if rows else None


def with_belongings(
    workspace_id: UUID, rows: Sequence[Message], *, has_attachments: bool = True
) -> PathSegment:
    """The messages with their calls, and with what is attached to them."""
    asking = [row.id for row in rows if row.json_meta.get("tool_calls")]
    calls: Sequence[ToolCall] = ()
    if asking:
        found = ToolCall.objects.for_workspace(workspace_id).filter(message__in=asking)
        # What people are shown of results may be megabytes.
        calls = list(found.annotate(has_result=Q(result__isnull=False)).only(*_OF_CALLS))
    attachments: Sequence[Attachment] = ()
    asked = [row.id for row in rows if row.role == MessageRole.USER]
    if has_attachments and asked:
        attached = Attachment.objects.for_workspace(workspace_id).filter(message__in=asked)
        attachments = list(attached.defer("content"))
    return PathSegment(rows, calls, attachments)


def has_result(call: ToolCall) -> bool:
    """Whether a call has brought something."""
    known: bool | None = getattr(
        call, "has_result", None
    )  # annotated, where the result was left out
    return call.result is not None if known is None else known


def _newest(
    workspace_id: UUID, turn_id: UUID, question_id: UUID, revised_id: UUID, characters: int
) -> Any:
    turn, question, revised = map(as_param, (turn_id, question_id, revised_id))
    params = (turn, question, characters, turn, revised, question)
    return _those(workspace_id, ids_of_walk(_NEWEST, params))


def _up_to(workspace_id: UUID, message_id: UUID, characters: int) -> Any:
    params = (as_param(message_id), characters)
    return _those(workspace_id, ids_of_walk(_PATH.format(start="%s"), params))


def _those(workspace_id: UUID, ids: RawSQL) -> Any:
    # Thoughts are for people to read; models are not sent them again.
    return Message.objects.for_workspace(workspace_id).filter(pk__in=ids).only(*_COLUMNS)


_NEWEST_MESSAGES = PreparedRows[Message](_newest, UUID, UUID, UUID, UUID, int)
_MESSAGES_UP_TO = PreparedRows[Message](_up_to, UUID, UUID, int)
