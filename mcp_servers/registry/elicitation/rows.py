"""Rows of questions to people: settled, told of and written into the log in one way, whoever asks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING
from uuid import UUID

from django.db import transaction

from audit.actions import Action
from audit.services import EntryDraft, Ref, record
from mcp_servers.client.canonical import JsonValue, canonical_json
from mcp_servers.client.inputs import InputKind
from mcp_servers.models import InputRequest, InputStatus
from mcp_servers.registry.elicitation import checks, waiting
from workspaces.actors import Actor
from workspaces.database import database_now
from workspaces.delivery.announcements import Announcement, announce

if TYPE_CHECKING:
    from mcp_servers.models import McpServer

_listener: Callable[[InputRequest], None] | None = None


def register_listener(listener: Callable[[InputRequest], None]) -> None:
    """Set who is told, after the commit, of rows that nobody answered by hand: completed, withdrawn, run out."""
    global _listener
    _listener = listener


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionOrigin:
    """The call during which a server asks."""

    call_id: UUID
    server: McpServer
    tool_name: str
    actor: Actor
    conversation_id: UUID | None = None
    turn_id: UUID | None = None


def lock(row: InputRequest) -> InputRequest:
    """The row as it stands, until the end of the transaction nobody else's to change."""
    rows = InputRequest.objects.for_workspace(row.workspace_id).select_for_update()
    locked: InputRequest = rows.fetch(row.pk)
    return locked


def tell_listener(row: InputRequest) -> None:
    """Once this is committed, let whoever registered know of a row that nobody answered by hand."""
    if _listener is not None:
        transaction.on_commit(partial(_listener, row))


def settle(
    row: InputRequest,
    status: InputStatus,
    action: Action,
    actor: Actor,
    content: Mapping[str, JsonValue],
) -> InputRequest:
    """End a locked row: kept, on record, and whoever waits for it is woken after the commit."""
    row.status = status
    row.answered_at = database_now()
    row.answer = canonical_json(content).decode() if content else None
    row.save(update_fields=["status", "answered_at", "answer", "updated_at"])
    record(draft_of(row, action, actor, details={**facts_of(row), "status": str(status.value)}))
    announce_row(row)
    transaction.on_commit(partial(waiting.wake, row.pk))
    return row


def facts_of(row: InputRequest) -> dict[str, object]:
    """What the log may know of a question: its nature, and never what was said."""
    facts: dict[str, object] = {"kind": row.kind, "question": row.message[:500]}
    if row.kind == InputKind.FORM:
        facts["fields"] = sorted(row.schema.get("properties", {}))[:50]
    if row.kind == InputKind.URL:
        facts["host"] = checks.host_of(row.url)
    if row.kind == InputKind.SIGN_IN:
        facts |= {name: row.params.get(name) for name in ("host", "scopes", "account", "reason")}
    if row.warnings:
        facts["warnings"] = row.warnings
    return facts


def draft_of(
    row: InputRequest, action: Action, actor: Actor, *, details: dict[str, object]
) -> EntryDraft:
    """An entry about a question."""
    return EntryDraft(
        action=action,
        actor=actor,
        workspace_id=row.workspace_id,
        call_id=row.call_id,
        conversation_id=row.conversation_id,
        turn_id=row.turn_id,
        server=Ref(id=row.server_id, name=row.server_name),
        tool=Ref(id=None, name=row.tool_name),
        details=details,
    )


def announce_row(row: InputRequest) -> None:
    """Tell the open pages of the person who was asked."""
    announce(
        row.workspace_id,
        Announcement(kind="input_request.changed", id=str(row.pk), user_id=str(row.asked_of_id)),
    )
