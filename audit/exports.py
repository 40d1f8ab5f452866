"""The log as a file: CSV for people, JSON lines for programs; of any size, in constant memory."""

from __future__ import annotations

import csv
import io
import json
import unicodedata
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any
from uuid import UUID

from audit.actions import Action
from audit.models import AuditEntry
from audit.services import EntryDraft, record
from workspaces.database import in_database
from workspaces.roles import Permission, require

if TYPE_CHECKING:
    from audit.filters import EntryFilter
    from workspaces.actors import Actor
    from workspaces.scoping import WorkspaceQuerySet

BATCH = 1_000
COLUMNS = (
    *("id", "created_at", "action", "actor_kind", "actor_id", "actor_label", "actor_role"),
    *("token_id", "source", "ip_address", "request_id", "trace_id", "call_id"),
    *("bud_id", "bud_name", "conversation_id", "turn_id", "model"),
    *("server_id", "server_name", "transport", "protocol_revision"),
    *("tool_id", "tool_name", "definition_hash", "annotations"),
    *("arguments_preview", "arguments_size", "arguments_commitment"),
    *("result_preview", "result_size", "result_commitment"),
    *("outcome", "refused_by", "rule", "duration_ms", "queue_ms", "approval", "details"),
)
_QUOTES = frozenset("\"'`´‘’“”«»")
_DANGEROUS = frozenset("=+-@")

Encode = Callable[[Sequence[AuditEntry], bool], bytes]
"""Turns a batch into bytes; the flag is true for the first one."""


def record_export(
    *, actor: Actor, workspace_id: UUID, format_name: str, wanted: EntryFilter
) -> None:
    """Write down who takes the log away, before anything of it is given.

    Raises:
        PermissionDenied: the actor may not export.
        AuditUnavailable: it could not be written; then nothing is given.
    """
    require(actor, Permission.EXPORT_AUDIT, workspace_id=workspace_id)
    filters = {name: value for name, value in wanted.typed.items() if value}
    record(
        EntryDraft(
            action=Action.EXPORT_CREATED,
            actor=actor,
            workspace_id=workspace_id,
            details={"format": format_name, "filters": filters},
        )
    )


def stream(rows: WorkspaceQuerySet[AuditEntry], encode: Encode) -> Iterator[bytes]:
    """Give the file piece by piece, oldest entry first, for a synchronous server."""
    last: UUID | None = None
    is_first = True
    while True:
        batch = _next_batch(rows, last)
        if batch or is_first:
            yield encode(batch, is_first)
        if len(batch) < BATCH:
            return
        last, is_first = batch[-1].pk, False


async def stream_async(rows: WorkspaceQuerySet[AuditEntry], encode: Encode) -> AsyncIterator[bytes]:
    """Give the same for an asynchronous server; a reader who leaves ends it at the next batch.

    Each batch is a query of its own that begins after the last id: no transaction stays open
    while a slow reader reads.
    """
    last: UUID | None = None
    is_first = True
    while True:
        batch = await in_database(_next_batch, rows, last)
        if batch or is_first:
            yield await in_database(encode, batch, is_first)
        if len(batch) < BATCH:
            return
        last, is_first = batch[-1].pk, False


def _next_batch(rows: WorkspaceQuerySet[AuditEntry], last: UUID | None) -> list[AuditEntry]:
    following = rows if last is None else rows.filter(id__gt=last)
    return list(following.order_by("id")[:BATCH])


def as_csv(batch: Sequence[AuditEntry], is_first: bool) -> bytes:
    """Write rows that spreadsheet programs show as text and never run."""
    out = io.StringIO()
    writer = csv.writer(out, quoting=csv.QUOTE_ALL)
    if is_first:
        out.write("\ufeff")  # otherwise Excel reads UTF-8 as something else
        writer.writerow(COLUMNS)
    for entry in batch:
        writer.writerow([neutral(_as_text(getattr(entry, name))) for name in COLUMNS])
    return out.getvalue().encode()


def as_jsonl(batch: Sequence[AuditEntry], is_first: bool) -> bytes:
    """Write one JSON object a line, values as they are."""
    return b"".join(
        json.dumps(as_json(entry), ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
        for entry in batch
    )


def as_json(entry: AuditEntry) -> dict[str, Any]:
    """Give an entry as JSON values, by column."""
    return {name: _as_value(getattr(entry, name)) for name in COLUMNS}


def neutral(text: str) -> str:
    """Put an apostrophe before what a spreadsheet would run as a formula.

    Blanks, quotes and full-width forms before or of the sign do not hide it. Source: OWASP ASVS 1.2.10.
    """
    text = text.replace("\x00", "")
    first = next((char for char in text if not _is_blank(char)), "")
    start = unicodedata.normalize("NFKC", first)[:1]
    if start in _DANGEROUS or text[:1] in {"\t", "\r", "\n"}:
        return f"'{text}"
    return text


def _is_blank(char: str) -> bool:
    return char.isspace() or char in _QUOTES or unicodedata.category(char) in {"Cc", "Cf", "Zs"}


def _as_value(value: Any) -> Any:
    if value is None or isinstance(value, bool | int | float | str | dict | list):
        return value
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def _as_text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=False, sort_keys=True)
    return str(_as_value(value))


FORMATS: dict[str, tuple[str, str, Encode]] = {
    "csv": ("CSV, for spreadsheets", "text/csv; charset=utf-8", as_csv),
    "jsonl": ("JSON lines, for programs", "application/x-ndjson", as_jsonl),
}
"""Extension → label, media type, how a batch is written."""
