"""The trace as a file: one JSON object on each line, streamed, with the rights of whoever takes it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Iterator
from typing import TYPE_CHECKING, Final, TypeAlias
from uuid import UUID

from audit.actions import Action
from audit.services import EntryDraft, Ref, record
from mcp_servers.registry.trace.reading import TraceFilter, as_json, body_of, may_open_body
from workspaces.database import in_database

if TYPE_CHECKING:
    from mcp_servers.models import McpServer, TraceMessage
    from workspaces.actors import Actor
    from workspaces.scoping import WorkspaceQuerySet

    Reader: TypeAlias = Callable[[], Actor]
    """Whoever takes the file, with their rights of now. Asked for each piece; raises once they may not read on."""

MEDIA_TYPE: Final = "application/x-ndjson"
_BATCH: Final = 200


def record_download(server: McpServer, *, wanted: TraceFilter, actor: Actor) -> None:
    """Write down who takes the trace away, before anything of it is given.

    Raises:
        AuditUnavailable: it could not be written; then nothing is given.
    """
    record(
        EntryDraft(
            action=Action.EXPORT_CREATED,
            actor=actor,
            workspace_id=server.workspace_id,
            server=Ref(id=server.pk, name=server.name),
            details={"what": "trace", "format": "jsonl", "filters": wanted.as_query()},
        )
    )


def stream(rows: WorkspaceQuerySet[TraceMessage], reader: Reader) -> Iterator[bytes]:
    """The file piece by piece, oldest first, for a synchronous server."""
    last: UUID | None = None
    while batch := _batch(rows, last):
        yield _encode(batch, reader)
        last = batch[-1].pk


async def stream_async(
    rows: WorkspaceQuerySet[TraceMessage], reader: Reader
) -> AsyncIterator[bytes]:
    """The same for an asynchronous server; a reader who leaves ends it at the next batch."""
    last: UUID | None = None
    while batch := await in_database(_batch, rows, last):
        yield await in_database(_encode, batch, reader)
        last = batch[-1].pk


def _batch(rows: WorkspaceQuerySet[TraceMessage], last: UUID | None) -> list[TraceMessage]:
    rows = rows.order_by("pk")
    return list((rows.filter(pk__gt=last) if last is not None else rows)[:_BATCH])


def _encode(batch: list[TraceMessage], reader: Reader) -> bytes:
    actor = reader()
    lines = []
    for message in batch:
        as_shown = as_json(message)
        if may_open_body(actor, message):
            as_shown["body"] = body_of(message)
        lines.append(json.dumps(as_shown, ensure_ascii=False))
    return "".join(f"{line}\n" for line in lines).encode()
