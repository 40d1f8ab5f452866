"""The log piece by piece, of any size, in constant memory."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

from audit.actions import Action
from audit.models import AuditEntry
from audit.reports.searching import key_condition
from workspaces.database import in_database

if TYPE_CHECKING:
    from workspaces.scoping import WorkspaceQuerySet

BATCH = 1_000
Encode = Callable[[Sequence[AuditEntry], bool], bytes]
"""Turns a batch into bytes; the flag is true for the first one."""
Check = Callable[[], object]
"""Raises what ends a file before its next batch."""
_Key = tuple[datetime, UUID]


def go_on() -> None:
    """Let a file come to its end, whatever happens meanwhile."""


def batches(*parts: WorkspaceQuerySet[AuditEntry], check: Check) -> Iterator[Sequence[AuditEntry]]:
    """Read entries in batches, each part oldest first; each is a query of its own that begins after the last entry."""
    for rows in parts:
        last: _Key | None = None
        while batch := _checked_batch(check, rows, last):
            yield batch
            if len(batch) < BATCH:
                break
            last = batch[-1].created_at, batch[-1].pk


async def batches_async(
    *parts: WorkspaceQuerySet[AuditEntry], check: Check
) -> AsyncIterator[Sequence[AuditEntry]]:
    """The same for an asynchronous server: no transaction stays open while a slow reader reads."""
    for rows in parts:
        last: _Key | None = None
        while batch := await in_database(_checked_batch, check, rows, last):
            yield batch
            if len(batch) < BATCH:
                break
            last = batch[-1].created_at, batch[-1].pk


def first_batch(rows: WorkspaceQuerySet[AuditEntry], number: int) -> Sequence[AuditEntry]:
    """Give the first entries of a file, in its order."""
    return _next_batch(rows, None, number)


def stream(parts: Iterable[Sequence[AuditEntry]], encode: Encode) -> Iterator[bytes]:
    """Give the file piece by piece, for a synchronous server."""
    is_first = True
    for batch in parts:
        yield encode(batch, is_first)
        is_first = False
    if is_first:
        yield encode([], True)


async def stream_async(
    parts: AsyncIterator[Sequence[AuditEntry]], encode: Encode
) -> AsyncIterator[bytes]:
    """Give the same for an asynchronous server; a reader who leaves ends it at the next batch."""
    is_first = True
    async for batch in parts:
        yield await in_database(encode, batch, is_first)
        is_first = False
    if is_first:
        yield encode([], True)


def removals_since(workspace_id: UUID, moment: datetime) -> WorkspaceQuerySet[AuditEntry]:
    """Give the entries that say what went from the log after a moment.

    They end a file that was begun then: what it lacks is not among its entries, and nothing else would say so.
    """
    rows: WorkspaceQuerySet[AuditEntry] = AuditEntry.objects.for_workspace(workspace_id)
    return rows.filter(
        action=Action.RETENTION_APPLIED.value, created_at__gt=moment, details__kind="entries"
    )


def _checked_batch(
    check: Check, rows: WorkspaceQuerySet[AuditEntry], last: _Key | None
) -> list[AuditEntry]:
    check()
    return _next_batch(rows, last)


def _next_batch(
    rows: WorkspaceQuerySet[AuditEntry], last: _Key | None, number: int | None = None
) -> list[AuditEntry]:
    columns = ("created_at", "id")
    following = rows if last is None else rows.filter(key_condition(">", columns, last))
    return list(following.order_by(*columns)[: number or BATCH])
