"""record(): writes an entry. It raises if it cannot, and callers then do nothing."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any
from uuid import UUID

from django.db import DatabaseError, connection, transaction

from audit.actions import Action, Outcome, RefusedBy
from audit.bodies.commitments import commit_to_body
from audit.bodies.storing import clean, keep, make_body
from audit.errors import AuditUnavailable
from audit.models import AuditBody, AuditEntry
from audit.policies import RecordingPolicy, policy_of
from audit.proof.marks import mark_of
from audit.services import unsealed_writes
from audit.services.counting import count_entry
from audit.storable import storable
from workspaces.actors import Actor
from workspaces.process.tracing import current_trace_id
from workspaces.redaction import redact

logger = logging.getLogger(__name__)


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
    """The canonical JSON that is sent."""
    result: bytes | None = None
    duration_ms: int | None = None
    queue_ms: int | None = None
    approval: Mapping[str, object] | None = None
    details: Mapping[str, object] | None = None
    trace_id: str = ""
    credential_id: str = ""


@dataclass(frozen=True, slots=True)
class PreparedEntry:
    """A draft whose texts are masked, compressed and encrypted, so that writing it takes no time."""

    entry: AuditEntry
    body: AuditBody | None


def prepare(draft: EntryDraft) -> PreparedEntry:
    """Do what takes long for a large body. Before a transaction begins: within one, others wait for its locks.

    Raises:
        AuditUnavailable: the workspace's policy could not be read.
    """
    try:
        return PreparedEntry(*drafted(draft, policy_of(draft.workspace_id)))
    except DatabaseError as error:
        raise AuditUnavailable(details={"action": draft.action.value}) from error


def record(draft: EntryDraft | PreparedEntry) -> AuditEntry:
    """Write one entry, in the caller's transaction or in its own.

    Raises:
        AuditUnavailable: it could not be written.
    """
    prepared = prepare(draft) if isinstance(draft, EntryDraft) else draft
    entry = prepared.entry
    try:
        write(entry, prepared.body)
    except DatabaseError as error:
        raise AuditUnavailable(details={"action": entry.action}) from error
    try:
        count_entry(entry)
    except DatabaseError as error:
        if connection.needs_rollback:
            # The caller's transaction is lost, and the entry with it. Django would end it without a word.
            raise AuditUnavailable(details={"action": entry.action}) from error
        # The entry stands; a number that nobody counted does not undo it.
        logger.warning("audit_entry_not_counted", exc_info=True)
    return entry


def write(entry: AuditEntry, body: AuditBody | None) -> None:
    """Mark and insert an entry with its body, both or neither; a failure undoes the caller's transaction, if there is one."""
    is_alone = body is None or connection.in_atomic_block
    entry.mark = mark_of(entry)
    with contextlib.nullcontext() if is_alone else transaction.atomic():
        entry.save(force_insert=True)
        if body is not None:
            body.save(force_insert=True)
    transaction.on_commit(unsealed_writes.tell)


def was_requested(workspace_id: UUID, call_id: UUID) -> bool:
    """Whether a call was recorded as let through, ended or not."""
    return was_recorded(workspace_id, call_id, Action.TOOL_CALL_REQUESTED)


def was_recorded(workspace_id: UUID, call_id: UUID, action: Action) -> bool:
    """Whether this step of a call is in the log."""
    entries = AuditEntry.objects.for_workspace(workspace_id).filter(call_id=call_id)
    return entries.filter(action=action.value).exists()


def is_call_open(workspace_id: UUID, call_id: UUID) -> bool:
    """Whether a call was recorded as requested, and neither as finished nor as refused because that came too late."""
    steps = set(
        AuditEntry.objects.for_workspace(workspace_id)
        .filter(call_id=call_id)
        .values_list("action", "refused_by")
    )
    return (Action.TOOL_CALL_REQUESTED.value, "") in steps and not steps & _ENDS


_ENDS = {
    (Action.TOOL_CALL_FINISHED.value, ""),
    (Action.TOOL_CALL_REFUSED.value, RefusedBy.AUDIT.value),
}


def drafted(draft: EntryDraft, policy: RecordingPolicy) -> tuple[AuditEntry, AuditBody | None]:
    """The rows of a draft, masked as the workspace wishes; nothing is written."""
    actor = draft.actor
    masked = partial(redact, workspace_id=draft.workspace_id)
    masking = policy.masking_for(
        draft.server.name if draft.server else "",
        draft.tool.name if draft.tool else "",
        workspace_id=draft.workspace_id,
    )
    arguments = keep(
        draft.arguments, root="arguments", masking=masking, most_bytes=policy.body_bytes
    )
    result = keep(draft.result, root="result", masking=masking, most_bytes=policy.body_bytes)
    marks = [mark.as_json() for mark in (*arguments.marks, *result.marks)]
    entry = AuditEntry(
        workspace_id=draft.workspace_id,
        action=draft.action.value,
        actor_kind=actor.kind.value,
        actor_id=actor.user_id,
        actor_label=clean(actor.label)[:254],
        actor_role=actor.role.value if actor.role else "",
        on_behalf_of=clean(actor.on_behalf_of)[:254],
        sign_in=actor.sign_in[:20],
        token_id=actor.token_id,
        source=actor.source.value,
        ip_address=actor.ip_address,
        request_id=clean(actor.request_id)[:64],
        trace_id=clean(draft.trace_id or current_trace_id())[:64],
        call_id=draft.call_id,
        bud_id=draft.bud.id if draft.bud else None,
        bud_name=_name(draft.bud, 200, masked),
        conversation_id=draft.conversation_id,
        turn_id=draft.turn_id,
        model=clean(draft.model)[:200],
        server_id=draft.server.id if draft.server else None,
        server_name=_name(draft.server, 200, masked),
        transport=draft.transport,
        protocol_revision=draft.protocol_revision[:20],
        credential_id=draft.credential_id[:64],
        tool_id=draft.tool.id if draft.tool else None,
        tool_name=_name(draft.tool, 256, masked),
        definition_hash=draft.definition_hash,
        annotations=storable(draft.annotations) if draft.annotations is not None else None,
        arguments_preview=arguments.preview,
        arguments_size=arguments.size_bytes,
        arguments_commitment=arguments.commitment,
        result_preview=result.preview,
        result_size=result.size_bytes,
        result_commitment=result.commitment,
        redactions=marks or None,
        outcome=draft.outcome.value if draft.outcome else "",
        refused_by=draft.refused_by.value if draft.refused_by else "",
        rule=clean(draft.rule)[:100],
        duration_ms=draft.duration_ms,
        queue_ms=draft.queue_ms,
        approval=storable(masked(draft.approval)) if draft.approval is not None else None,
        details=storable(
            masked(draft.details or {})
            | ({} if actor.is_address_confirmed else {"address": "not confirmed"})
            | ({"client": clean(actor.client)[:100]} if actor.client else {})
        ),
    )
    # With a result come the arguments once more; their body is that of *requested*.
    body = make_body(
        entry.pk,
        draft.workspace_id,
        arguments=arguments.text if draft.result is None else None,
        result=result.text,
        is_cut=result.is_cut if draft.result is not None else arguments.is_cut,
    )
    if body is not None or entry.arguments_preview or entry.result_preview:
        entry.body_commitment = commit_to_body(entry, body)
    return entry, body


def _name(ref: Ref | None, length: int, masked: Callable[[str], Any]) -> str:
    return clean(masked(ref.name))[:length] if ref else ""
