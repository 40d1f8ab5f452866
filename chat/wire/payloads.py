"""Rows as the web app, the API and the terminal see them. One shape for all of them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from chat.files.kinds import kind_of
from chat.models import (
    Artifact,
    ArtifactVersion,
    Attachment,
    Bud,
    Conversation,
    KnowledgeFile,
    Message,
    QueuedMessage,
    ToolCall,
    Turn,
)
from chat.sampling import model_for
from chat.summaries import summary_of
from chat.tools.accounts import credential_of, sign_in_json
from chat.tools.builtin.files import arguments_for_people
from chat.values import MessageRole, ToolCallStatus, TurnStatus
from mcp_servers.client.decisions import CALL_RULE
from mcp_servers.client.hidden_text import show_hidden
from mcp_servers.client.inputs import InputKind
from mcp_servers.models import InputRequest, McpResource
from mcp_servers.registry.consent.policy import may_remember_rule
from mcp_servers.registry.elicitation import input_json

_UNKNOWN = {
    ToolCallStatus.OUTCOME_UNKNOWN.value,
    ToolCallStatus.MARKED_DONE.value,
    ToolCallStatus.GIVEN_UP.value,
    ToolCallStatus.REPEATED.value,
}
_SHOWS_SCHEMA = {ToolCallStatus.QUEUED.value, ToolCallStatus.WAITING_FOR_APPROVAL.value}


def bud_brief(bud: Bud) -> dict[str, Any]:
    return {"id": str(bud.pk), "slug": bud.slug, "name": bud.name, "avatar": bud.avatar}


def conversation_json(conversation: Conversation, *, turn_status: str | None) -> dict[str, Any]:
    """`turn_status` is that of the active turn, if there is one. Needs `bud` loaded."""
    return {
        "id": str(conversation.pk),
        "title": conversation.title,
        "bud": bud_brief(conversation.bud),
        "chosen_model": chosen_model_json(conversation),
        "folder_id": _id(conversation.folder_id),
        "is_pinned": conversation.is_pinned,
        "is_archived": conversation.is_archived,
        "is_shared": conversation.shared_at is not None,
        "is_temporary": conversation.is_temporary,
        "deleted_at": moment(conversation.deleted_at),
        "leaf_id": _id(conversation.leaf_id),
        "comparison_id": _id(conversation.comparison),
        "forked_from": _id(conversation.forked_from),
        "status": conversation_status(turn_status),
        "usage": usage_json(conversation),
        "unseen_answer_at": moment(conversation.unseen_answer_at),
        "created_at": moment(conversation.created_at),
        "updated_at": moment(conversation.last_message_at),
    }


def chosen_model_json(conversation: Conversation) -> dict[str, Any] | None:
    """The model that the person chose; None: the bud's own answers."""
    chosen = None if conversation.bud.is_model_fixed else conversation.chosen_model
    if chosen is None:
        return None
    return {"provider_id": _id(chosen.provider_id), "name": chosen.model}


def conversation_status(turn_status: str | None) -> str:
    """What the list of conversations shows: idle, running or waiting."""
    if turn_status in (TurnStatus.WAITING_FOR_APPROVAL, TurnStatus.WAITING_FOR_INPUT):
        return "waiting"
    return "running" if turn_status in (TurnStatus.QUEUED, TurnStatus.RUNNING) else "idle"


def attachments_of(workspace_id: UUID, messages: Iterable[Message]) -> dict[UUID, list[Attachment]]:
    """What is attached to each of these messages, in order."""
    asked = [message.pk for message in messages if message.role == MessageRole.USER]
    if not asked:
        return {}
    rows = Attachment.objects.for_workspace(workspace_id).filter(message__in=asked)
    return by_message(workspace_id, list(rows.for_wire()))


def by_message(workspace_id: UUID, rows: Collection[Attachment]) -> dict[UUID, list[Attachment]]:
    """The same from their rows, which are in order; each learns when its resource last changed."""
    found: dict[UUID, list[Attachment]] = {}
    if rows:
        resources = McpResource.objects.for_workspace(workspace_id).filter(
            pk__in={row.resource_id for row in rows}, changed_at__isnull=False, is_template=False
        )
        changes = dict(resources.values_list("pk", "changed_at"))
        for row in rows:
            row.changed_at = changes.get(row.resource_id)
            found.setdefault(row.message_id, []).append(row)
    return found


def message_json(
    message: Message,
    *,
    own_text: tuple[str, str] | None = None,
    attachments: Iterable[Attachment] = (),
) -> dict[str, Any]:
    """`own_text` (text, reasoning) stands in for the row's where this process knows newer partial ones."""
    text, reasoning = own_text or (message.text, message.reasoning)
    return {
        "id": str(message.pk),
        "conversation_id": str(message.conversation_id),
        "turn_id": _id(message.turn_id),
        "parent_id": _id(message.parent_id),
        "role": message.role,
        "step": message.step,
        "text": text,
        "reasoning": reasoning,
        "status": message.status,
        "client_id": message.client_id,
        "attachments": [attachment_json(row) for row in attachments],
        "usage": usage_json(message),
        "context_window": message.json_meta.get("context"),
        "is_cut": bool(message.json_meta.get("is_cut")),
        "is_outline": False,
        "summary": summary_json(message),
        "created_at": moment(message.created_at),
    }


OUTLINE = (
    "id",
    "conversation_id",
    "turn_id",
    "parent_id",
    "role",
    "step",
    "status",
    "client_id",
    "created_at",
)
"""Columns that `outline_json` needs."""


def outline_json(row: Mapping[str, Any]) -> dict[str, Any]:
    """A message without what it says: enough to know that there are other branches, and to go there."""
    return {
        "id": str(row["id"]),
        "conversation_id": str(row["conversation_id"]),
        "turn_id": _id(row["turn_id"]),
        "parent_id": _id(row["parent_id"]),
        "role": row["role"],
        "step": row["step"],
        "text": "",
        "reasoning": "",
        "status": row["status"],
        "client_id": row["client_id"],
        "attachments": [],
        "usage": None,
        "context_window": None,
        "is_cut": False,
        "is_outline": True,
        "summary": None,
        "created_at": moment(row["created_at"]),
    }


def summary_json(message: Message) -> dict[str, Any] | None:
    """The summary that ends with this message."""
    summary = summary_of(message)
    return summary.as_json() if summary is not None else None


def usage_json(row: Message | Turn | Conversation) -> dict[str, Any] | None:
    """What has been counted for it; None: nothing yet. The cost is None where no prices are known."""
    if not row.prompt_tokens and not row.completion_tokens:
        return None
    cost = None if isinstance(row, Message) else row.cost
    return {
        "prompt_tokens": row.prompt_tokens,
        "cached_tokens": row.cached_tokens,
        "completion_tokens": row.completion_tokens,
        "cost": str(cost) if cost is not None else None,
    }


def attachment_json(row: Attachment) -> dict[str, Any]:
    """One of `attachments_of`, which knows when it last changed, without its content."""
    return {
        "id": str(row.pk),
        "server": {"id": str(row.server_id), "name": row.server_name} if row.server_id else None,
        "file": row.file,
        "resource_id": _id(row.resource_id),
        "uri": show_hidden(row.uri),
        "title": show_hidden(row.title),
        "mime_type": row.mime_type,
        "status": row.status,
        "error": row.error or None,
        "preview": row.preview if row.server_id else "",
        "size": row.size,
        "read_at": moment(row.read_at),
        "changed_at": moment(row.changed_at),
    }


def artifact_json(artifact: Artifact, newest: ArtifactVersion) -> dict[str, Any]:
    """A file of the conversation with its newest version."""
    return {
        "id": str(artifact.pk),
        "conversation_id": str(artifact.conversation_id),
        "name": artifact.name,
        "is_deleted": artifact.is_deleted,
        "version": artifact_version_json(artifact, newest),
        "created_at": moment(artifact.created_at),
        "updated_at": moment(artifact.updated_at),
    }


def artifact_version_json(artifact: Artifact, version: ArtifactVersion) -> dict[str, Any]:
    """One version of a file, without its content. Needs `made_by` loaded."""
    return {
        "number": version.number,
        "kind": kind_of(version.content_type, artifact.name).value,
        "content_type": version.content_type,
        "size": version.size,
        "sha256": version.sha256,
        "origin": version.origin,
        "made_by": version.made_by.display_name if version.made_by else None,
        "tool_call_id": _id(version.tool_call_id),
        "message_id": _id(version.message_id),
        "created_at": moment(version.created_at),
    }


def knowledge_json(file: KnowledgeFile, meaning: Mapping[str, Any] | None) -> dict[str, Any]:
    """A file that a bud knows.

    Args:
        meaning: how far it can be searched by meaning; None: its bud's files are not.
    """
    return {
        "id": str(file.pk),
        "bud_id": str(file.bud_id),
        "name": file.name,
        "kind": kind_of(file.content_type, file.name).value,
        "content_type": file.content_type,
        "size": file.size,
        "sha256": file.sha256,
        "characters": file.characters,
        "lines": file.lines,
        "parts": len(file.outline),
        "is_cut": file.is_cut,
        "meaning": meaning,
        "added_by": file.added_by,
        "created_at": moment(file.created_at),
    }


def queued_json(row: QueuedMessage) -> dict[str, Any]:
    """A message that waits for the running turn to end."""
    return {
        "id": str(row.pk),
        "conversation_id": str(row.conversation_id),
        "client_id": row.client_id,
        "text": row.text,
        "attachments": [
            {name: one.get(name) for name in ("server_id", "uri", "artifact_id")}
            for one in row.attachments
        ],
        "is_next": row.is_next,
        "held_after": row.held_after or None,
        "bud_id": _id(row.mentioned_bud_id),
        "compare": [
            {"provider_id": one["provider_id"], "name": one["name"]} for one in row.compare or ()
        ],
        "created_at": moment(row.created_at),
    }


def turn_json(turn: Turn) -> dict[str, Any]:
    error = None
    if turn.error_code:
        error = {
            "code": turn.error_code,
            "message": turn.error_message,
            "can_retry": turn.can_retry,
        }
    return {
        "id": str(turn.pk),
        "conversation_id": str(turn.conversation_id),
        "user_message_id": str(turn.user_message_id),
        "status": turn.status,
        "error": error,
        "notice": turn.notice or None,
        "created_at": moment(turn.created_at),
        "finished_at": moment(turn.finished_at),
        "usage": usage_json(turn),
        "model": turn.model or None,
        "bud_id": _id(turn.mentioned_bud_id),
        "comparison_id": _id(turn.comparison),
        "place": turn.place,
        "asked_model": _asked_model_json(turn),
        "wish": turn.wish or None,
        "rating": turn.rating or None,
        "rating_reason": turn.rating_reason,
    }


def _asked_model_json(turn: Turn) -> dict[str, Any] | None:
    """The model that was asked for an answer beside others; of other turns nobody has to read it."""
    chosen = turn.chosen_model if turn.comparison is not None else None
    return {"provider_id": _id(chosen.provider_id), "name": chosen.model} if chosen else None


def tool_call_json(call: ToolCall) -> dict[str, Any]:
    """Needs `decided_by` loaded where there was a decision."""
    server = {"id": _id(call.server_id), "name": call.server_name} if call.server_name else None
    sent = arguments_for_people(call)
    return {
        "id": str(call.pk),
        "turn_id": str(call.turn_id),
        "message_id": str(call.message_id),
        "position": call.position,
        "server": server,
        "tool": {
            "id": _id(call.tool_id),
            "name": show_hidden(call.tool_name or call.function_name),
            "title": show_hidden(call.tool_title),
        },
        "builtin": call.builtin or None,
        "artifact": call.artifact,
        "annotations": call.annotations,
        "arguments": call.arguments if sent is None else sent,
        "proposed_arguments": call.proposed_arguments if sent is None else sent,
        "input_schema": call.input_schema if call.status in _SHOWS_SCHEMA else None,
        "status": call.status,
        "approval": _approval_json(call),
        "resolution": _resolution_json(call),
        "repeats": _id(call.repeats_id),
        "result": call.result,
        "cached_at": (call.result or {}).get("cached_at"),
        "error": call.error or None,
        "started_at": moment(call.started_at),
        "finished_at": moment(call.finished_at),
        "duration_ms": call.duration_ms,
    }


def input_request_json(request: InputRequest) -> dict[str, Any]:
    """What a server asked, for the person who was asked; also which model would answer, and where to sign in."""
    is_sampling = request.kind == InputKind.SAMPLING
    return {
        **input_json(request),
        "model": model_for(request) if is_sampling else "",
        "sign_in": sign_in_json(request),
    }


def _approval_json(call: ToolCall) -> dict[str, Any] | None:
    if not call.approval_rule:
        return None
    return {
        "rule": call.approval_rule,
        "reason": call.approval_reason,
        "credential": credential_of(call),
        "expires_at": moment(call.approval_expires_at),
        "decision": call.decision or None,
        "decided_by": call.decided_by.display_name if call.decided_by else None,
        "decided_at": moment(call.decided_at),
        "note": call.decision_note or None,
        "edited": call.arguments != call.proposed_arguments,
        "can_remember": may_remember_rule(call.approval_rule),
        "needs_second_person": call.needs_second_person,
        "call_rule": call_rule_json(call),
    }


def call_rule_json(call: ToolCall) -> dict[str, str] | None:
    """The workspace's call rule that asks; None: none does."""
    if not call.approval_rule.startswith(CALL_RULE):
        return None
    return {
        "id": call.approval_rule.removeprefix(CALL_RULE),
        "name": call.approval_rule_name,
    }


def _resolution_json(call: ToolCall) -> dict[str, Any] | None:
    """Of a call whose outcome is or was unknown: until when somebody may say what becomes of it, and what they said."""
    if call.status not in _UNKNOWN:
        return None
    return {"due_at": moment(call.resolution_due_at), "note": call.resolution_note or None}


def moment(value: datetime | None) -> str | None:
    """ISO 8601 in UTC."""
    return value.isoformat() if value is not None else None


def _id(value: object) -> str | None:
    return str(value) if value is not None else None
