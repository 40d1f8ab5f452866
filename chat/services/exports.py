"""A conversation as a file: the path that is shown, in Markdown for people or JSON for programs."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

from django.utils.text import slugify

from chat.call_texts import call_in_markdown
from chat.message_paths import path_to
from chat.models import Attachment, Conversation, Message, ToolCall, Turn
from chat.values import MessageRole
from chat.wire.payloads import moment, summary_json
from mcp_servers.client.hidden_text import show_hidden
from workspaces.redaction import redact, redact_text
from workspaces.words.formats import moment_and_zone, whole

MOST_RESULT_CHARACTERS = 20_000


class ExportFormat(StrEnum):
    MARKDOWN = "md"
    JSON = "json"


@dataclass(frozen=True, slots=True)
class ExportedFile:
    name: str
    content_type: str
    body: str


def export_conversation(conversation: Conversation, form: ExportFormat) -> ExportedFile:
    """The shown path with its tool calls; what looks like a secret is masked. Needs `bud` loaded."""
    entries = _entries(conversation)
    title = (
        redact_text(conversation.title, workspace_id=conversation.workspace_id) or "Conversation"
    )
    stem = slugify(title)[:60] or "conversation"
    if form is ExportFormat.JSON:
        head = {
            "id": str(conversation.pk),
            "title": title,
            "bud": conversation.bud.name,
            "created_at": moment(conversation.created_at),
            "messages": entries,
        }
        body = json.dumps(head, ensure_ascii=False, indent=2)
        return ExportedFile(f"{stem}.json", "application/json", body)
    body = _markdown(title, conversation.bud.name, entries)
    return ExportedFile(f"{stem}.md", "text/markdown; charset=utf-8", body)


def shown_path(conversation: Conversation) -> Any:
    """Query the messages that the chat shows, in their order, without what the model thought."""
    workspace_id = conversation.workspace_id
    if conversation.leaf_id is not None:
        rows = path_to(workspace_id, conversation.leaf_id)
    else:
        rows = Message.objects.for_workspace(workspace_id).filter(conversation=conversation)
    return rows.defer("reasoning")


def calls_of(workspace_id: UUID, path: Iterable[Message]) -> dict[UUID, list[ToolCall]]:
    """The tool calls of each answer on a path, in their order."""
    calls: defaultdict[UUID, list[ToolCall]] = defaultdict(list)
    for call in ToolCall.objects.for_workspace(workspace_id).filter(
        message__in=[row.pk for row in path if row.role == MessageRole.ASSISTANT]
    ):
        calls[call.message_id].append(call)
    return calls


def _entries(conversation: Conversation) -> list[dict[str, Any]]:
    path = list(shown_path(conversation))
    files = attachments_of(conversation.workspace_id, path)
    return [
        entry | {"attachments": [attached_name(one) for one in files[row.pk]]}
        for row, entry in entries_of(conversation.workspace_id, path)
        if row.text or files[row.pk] or entry["tool_calls"]
    ]


def entries_of(
    workspace_id: UUID, rows: Sequence[Message]
) -> Iterator[tuple[Message, dict[str, Any]]]:
    """What is told of each message, but for what was attached. Needs two statements."""
    calls = calls_of(workspace_id, rows)
    named = named_buds(workspace_id, rows)
    for row in rows:
        yield (
            row,
            {
                "role": row.role,
                "bud": named.get(row.turn_id) if row.role == MessageRole.ASSISTANT else None,
                "text": redact(row.text, workspace_id=workspace_id),
                "attachments": [],
                "created_at": moment(row.created_at),
                "tool_calls": [call_values(call) for call in calls.get(row.pk, ())],
                "summary": redact(summary_json(row), workspace_id=workspace_id),
            },
        )


def attachments_of(
    workspace_id: UUID, rows: Iterable[Message]
) -> defaultdict[UUID, list[Attachment]]:
    """What was attached to each of these messages, in its order, without what was read of it."""
    attached: defaultdict[UUID, list[Attachment]] = defaultdict(list)
    found = Attachment.objects.for_workspace(workspace_id).filter(
        message__in=[row.pk for row in rows if row.role == MessageRole.USER]
    )
    for one in found.select_related("version__artifact").without_content():
        attached[one.message_id].append(one)
    return attached


def attached_name(one: Attachment) -> str:
    """The name of what was attached, as others may read it."""
    return show_hidden(redact_text(one.title or one.uri, workspace_id=one.workspace_id))


def named_buds(workspace_id: UUID, path: Iterable[Message]) -> dict[UUID | None, str]:
    """The names of buds that answered in place of the conversation's, by their turns."""
    turns = Turn.objects.for_workspace(workspace_id).filter(mentioned_bud__isnull=False)
    turns = turns.filter(pk__in={row.turn_id for row in path if row.turn_id})
    return dict(turns.values_list("pk", "mentioned_bud__name"))


def call_values(call: ToolCall) -> dict[str, Any]:
    """A call as others may read it: masked, and its result cut."""
    result = redact(call.model_text, workspace_id=call.workspace_id)
    return {
        "server": call.server_name,
        "tool": show_hidden(call.tool_name or call.function_name),
        "arguments": redact(call.arguments, workspace_id=call.workspace_id),
        "status": call.status,
        "result": result[:MOST_RESULT_CHARACTERS],
        "result_left_out": max(0, len(result) - MOST_RESULT_CHARACTERS),
    }


def _markdown(title: str, bud: str, entries: Iterable[dict[str, Any]]) -> str:
    parts = [markdown_head(title, bud), *(markdown_of(entry, bud) for entry in entries)]
    return "\n\n".join(parts) + "\n"


def markdown_head(title: str, bud: str) -> str:
    """How a conversation begins."""
    return f"# {title}\n\nWith {bud}."


def markdown_of(entry: Mapping[str, Any], bud: str) -> str:
    """One message. Its attachments are names."""
    who = "You" if entry["role"] == MessageRole.USER else entry["bud"] or bud
    said_at = datetime.fromisoformat(entry["created_at"])
    parts = [f"## {who}, {moment_and_zone(said_at)}"]
    if entry["text"]:
        parts.append(entry["text"])
    if entry["attachments"]:
        parts.append(f"Attached: {', '.join(entry['attachments'])}")
    parts += [_call_in_markdown(call) for call in entry["tool_calls"]]
    if summary := entry["summary"]:
        use = "" if summary["is_used"] else ", not used"
        parts.append(f"## Summary of the messages above{use}\n\n{summary['text']}")
    return "\n\n".join(parts)


def _call_in_markdown(call: Mapping[str, Any]) -> str:
    hidden = call["result_left_out"]
    return call_in_markdown(
        name=f"{call['server']}.{call['tool']}" if call["server"] else call["tool"],
        status=call["status"],
        arguments=call["arguments"],
        result=call["result"],
        left_out=f"The other {whole(hidden)} characters are in the chat." if hidden else "",
    )
