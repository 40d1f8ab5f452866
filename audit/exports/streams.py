"""The log piece by piece, of any size, in constant memory."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING
from uuid import UUID

from audit.models import AuditEntry
from workspaces.database import in_database

if TYPE_CHECKING:
    from audit.exports.formats import Encode
    from workspaces.scoping import WorkspaceQuerySet

BATCH = 1_000


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
