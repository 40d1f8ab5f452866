"""record(): the one way to write an entry. It raises if it cannot, and callers then do nothing."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import DatabaseError

from audit.actions import Action, Outcome, RefusedBy
from audit.errors import AuditUnavailable
from audit.models import AuditEntry
from workspaces.actors import Actor
from workspaces.redaction import redact, redact_text

PREVIEW_CHARACTERS = 4_000
"""How much of arguments and results an entry shows; the commitment covers the whole."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ref:
    """An id together with the name it had at the time."""

    id: UUID | None
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryDraft:
    """What is to be recorded; `record` adds time, previews, sizes and commitments."""

    action: Action
    actor: Actor
    workspace_id: UUID | None
    call_id: UUID | None = None
    outcome: Outcome | None = None
    refused_by: RefusedBy | None = None
    rule: str = ""
    bud: Ref | None = None
    conversation_id: UUID | None = None
    turn_id: UUID | None = None
    model: str = ""
    server: Ref | None = None
    transport: str = ""
    protocol_revision: str = ""
    tool: Ref | None = None
    definition_hash: str = ""
    annotations: Mapping[str, object] | None = None
    arguments: bytes | None = None
    """The canonical JSON that is sent; never stored whole."""
    result: bytes | None = None
    duration_ms: int | None = None
    queue_ms: int | None = None
    approval: Mapping[str, object] | None = None
    details: Mapping[str, object] | None = None
    trace_id: str = ""


def record(draft: EntryDraft) -> AuditEntry:
    """Write one entry, in the caller's transaction or in its own.

    Raises:
        AuditUnavailable: it could not be written.
    """
    entry = _entry_of(draft)
    try:
        # One statement, so it needs no transaction of its own; a failed one undoes the caller's.
        entry.save(force_insert=True)
    except DatabaseError as error:
        raise AuditUnavailable(details={"action": draft.action.value}) from error
    return entry


def was_requested(workspace_id: UUID, call_id: UUID) -> bool:
    """Whether a call was recorded as let through, ended or not."""
    entries = AuditEntry.objects.for_workspace(workspace_id).filter(call_id=call_id)
    return entries.filter(action=Action.TOOL_CALL_REQUESTED.value).exists()


def is_call_open(workspace_id: UUID, call_id: UUID) -> bool:
    """Whether a call was recorded as requested, and not as finished."""
    actions = set(
        AuditEntry.objects.for_workspace(workspace_id)
        .filter(call_id=call_id)
        .values_list("action", flat=True)
    )
    return (
        Action.TOOL_CALL_REQUESTED.value in actions
        and Action.TOOL_CALL_FINISHED.value not in actions
    )


def _entry_of(draft: EntryDraft) -> AuditEntry:
    actor = draft.actor
    arguments = _Body.of(draft.arguments)
    result = _Body.of(draft.result)
    return AuditEntry(
        workspace_id=draft.workspace_id,
        action=draft.action.value,
        actor_kind=actor.kind.value,
        actor_id=actor.user_id,
        actor_label=actor.label[:254],
        actor_role=actor.role.value if actor.role else "",
        token_id=actor.token_id,
        source=actor.source.value,
        ip_address=actor.ip_address,
        request_id=actor.request_id[:64],
        trace_id=draft.trace_id[:64],
        call_id=draft.call_id,
        bud_id=draft.bud.id if draft.bud else None,
        bud_name=_name(draft.bud, 200),
        conversation_id=draft.conversation_id,
        turn_id=draft.turn_id,
        model=draft.model[:200],
        server_id=draft.server.id if draft.server else None,
        server_name=_name(draft.server, 200),
        transport=draft.transport,
        protocol_revision=draft.protocol_revision[:20],
        tool_id=draft.tool.id if draft.tool else None,
        tool_name=_name(draft.tool, 256),
        definition_hash=draft.definition_hash,
        annotations=dict(draft.annotations) if draft.annotations is not None else None,
        arguments_preview=arguments.preview,
        arguments_size=arguments.size_bytes,
        arguments_commitment=arguments.commitment,
        result_preview=result.preview,
        result_size=result.size_bytes,
        result_commitment=result.commitment,
        outcome=draft.outcome.value if draft.outcome else "",
        refused_by=draft.refused_by.value if draft.refused_by else "",
        rule=draft.rule[:100],
        duration_ms=draft.duration_ms,
        queue_ms=draft.queue_ms,
        approval=redact(draft.approval) if draft.approval is not None else None,
        details=redact(draft.details or {}),
    )


def _name(ref: Ref | None, length: int) -> str:
    return clean(redact_text(ref.name))[:length] if ref else ""


@dataclass(frozen=True, slots=True)
class _Body:
    """What an entry keeps of a body: a redacted beginning, its size, and a keyed commitment."""

    preview: str = ""
    size_bytes: int | None = None
    commitment: str = ""

    @classmethod
    def of(cls, raw: bytes | None) -> _Body:
        if raw is None:
            return cls()
        return cls(
            preview=_preview(raw),
            size_bytes=len(raw),
            commitment=commit_to(raw),
        )


def commit_to(raw: bytes) -> str:
    """HMAC-SHA256 of the whole body: proves it later, and cannot be guessed from short values."""
    return hmac.new(settings.TRELLIS.audit_key_bytes, raw, hashlib.sha256).hexdigest()


def _preview(raw: bytes) -> str:
    """The redacted beginning of a body. Redacting by name needs the parsed value, so what does not parse is not shown."""
    try:
        value = redact(_shortened(json.loads(raw)))
    except (ValueError, RecursionError):
        return f"(not JSON, {len(raw)} bytes)"
    text = clean(json.dumps(value, ensure_ascii=False))
    if len(text) > PREVIEW_CHARACTERS or len(raw) > len(text.encode()) + PREVIEW_CHARACTERS:
        return f"{text[:PREVIEW_CHARACTERS]}… (cut, {len(raw)} bytes in all)"
    return text


def _shortened(value: Any) -> Any:
    """The value with long texts cut, well behind where a preview ends: redaction need not read the rest."""
    if isinstance(value, str):
        return value[: 2 * PREVIEW_CHARACTERS]
    if isinstance(value, dict):
        return {key: _shortened(item) for key, item in list(value.items())[:PREVIEW_CHARACTERS]}
    if isinstance(value, list):
        return [_shortened(item) for item in value[:PREVIEW_CHARACTERS]]
    return value


def clean(text: str) -> str:
    """The text without what a database or a terminal would choke on."""
    return "".join(c if c in "\n\t" or c.isprintable() else "\ufffd" for c in text)
