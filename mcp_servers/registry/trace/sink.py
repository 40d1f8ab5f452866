"""Messages of the connections, redacted and stored. Called in a thread, with a batch about twice a second."""

from __future__ import annotations

import json
import logging
import math
from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from django.db import DataError, IntegrityError, close_old_connections, transaction
from django.utils import timezone

from mcp_servers.client.canonical import clean_text
from mcp_servers.client.connections.hooks import hooks
from mcp_servers.client.hidden_text import show_hidden
from mcp_servers.models import McpServer, TraceMessage
from mcp_servers.registry.trace.outline import is_open, outline_of
from workspaces.database.prepared_writes import insert
from workspaces.database.row_security import everywhere
from workspaces.redaction import redact, redact_text

if TYPE_CHECKING:
    from mcp_servers.client.connections.hooks import TraceRecord

logger = logging.getLogger(__name__)

MAX_ROWS: Final = 2_000
"""Of one server."""
MAX_CHECK_ROWS: Final = 200
"""Of its regular checks, which take no room from the others."""
KEPT_FOR: Final = timedelta(hours=24)
_TRIM_AFTER: Final = 500
"""New rows of one server after which the oldest go at once, so that a storm fills no disk between two tasks."""
_BATCH: Final = 500

_MOST_BITS: Final = 63
_LARGEST: Final = 2**31 - 1
"""In an integer column."""

_since_trim: Counter[UUID] = Counter()


def listen_to_traces() -> None:
    """Keep what the connections send and receive. Called once at start."""
    hooks.traced = keep_batch


@everywhere()
def keep_batch(records: Sequence[TraceRecord]) -> None:
    """Keep a batch; runs in a thread that Django knows nothing of."""
    close_old_connections()
    try:
        store(records)
    finally:
        close_old_connections()


def store(records: Sequence[TraceRecord]) -> int:
    """Keep these messages, redacted; how many. Those of servers that are not saved, or gone, are dropped."""
    asked = {record.server_id for record in records}
    known = dict(
        McpServer.objects.across_workspaces().filter(pk__in=asked).values_list("pk", "workspace_id")
    )
    rows = _kept(
        [record for record in records if known.get(record.server_id) == record.workspace_id]
    )
    for row in rows:
        _since_trim[row.server_id] += 1
    for server_id in {row.server_id for row in rows}:
        if _since_trim[server_id] >= _TRIM_AFTER:
            del _since_trim[server_id]
            trim_server(server_id)
    return len(rows)


def _kept(records: Sequence[TraceRecord]) -> list[TraceMessage]:
    """What could be stored: whatever one server sent costs nobody else's messages, nor its own other ones."""
    rows = [row for row in map(_row_or_none, records) if row is not None]
    if _insert(rows):
        return rows
    kept: list[TraceMessage] = []
    for server_id in {row.server_id for row in rows}:
        own = [row for row in rows if row.server_id == server_id]
        if _insert(own):
            kept += own
        elif McpServer.objects.across_workspaces().filter(pk=server_id).exists():
            kept += [row for row in own if _insert([row])]
    logger.info("trace_dropped", extra={"rows": len(rows) - len(kept)})
    return kept


def _row_or_none(record: TraceRecord) -> TraceMessage | None:
    try:
        return _row(record)
    except Exception:  # noqa: BLE001  whatever a server sent, it costs its own row only
        # Without the message: what is wrong with it is in it.
        logger.warning("trace_dropped", extra={"server": str(record.server_id), "rows": 1})
        return None


def _insert(rows: Sequence[TraceMessage]) -> bool:
    """Store these rows or none; False if the database refuses one. A database that is away raises."""
    try:
        with transaction.atomic():
            insert(rows)
    except (IntegrityError, DataError, ValueError, TypeError, OverflowError):
        return False
    return True


def trim() -> int:
    """Delete what is too old or too much, in batches; how many went."""
    limit = timezone.now() - KEPT_FOR
    removed = 0
    while batch := list(
        TraceMessage.objects.across_workspaces()
        .filter(at__lt=limit)
        .order_by("at")
        .values_list("pk", flat=True)[:_BATCH]
    ):
        removed += TraceMessage.objects.across_workspaces().filter(pk__in=batch).delete()[0]
    servers = (
        TraceMessage.objects.across_workspaces().order_by().values_list("server_id").distinct()
    )
    return removed + sum(trim_server(server_id) for (server_id,) in list(servers))


def trim_server(server_id: UUID) -> int:
    """Delete the oldest messages of one server beyond its limits; how many went."""
    limits = ((False, MAX_ROWS), (True, MAX_CHECK_ROWS))
    return sum(_trim_rows(server_id, is_check=is_check, most=most) for is_check, most in limits)


def _trim_rows(server_id: UUID, *, is_check: bool, most: int) -> int:
    rows = TraceMessage.objects.across_workspaces().filter(server=server_id, is_check=is_check)
    newest_gone = rows.order_by("-pk").values_list("pk", flat=True)[most : most + 1].first()
    if newest_gone is None:
        return 0
    removed = 0
    too_old = rows.filter(pk__lte=newest_gone)
    while batch := list(too_old.order_by("pk").values_list("pk", flat=True)[:_BATCH]):
        removed += TraceMessage.objects.across_workspaces().filter(pk__in=batch).delete()[0]
    return removed


def _row(record: TraceRecord) -> TraceMessage:
    # In one look: beside a message, its id and its method cost next to nothing.
    masked = redact([record.method, record.rpc_id, record.body], workspace_id=record.workspace_id)
    method, rpc_id, body = masked[0], masked[1], _sound(masked[2])
    is_of_call = record.user_id is not None or record.call_id is not None
    return TraceMessage(
        workspace_id=record.workspace_id,
        server_id=record.server_id,
        at=record.at,
        principal=record.principal[:60],
        connection=record.connection[:20],
        direction=record.direction,
        kind=record.kind,
        method=clean_text(method)[:100],
        rpc_id=clean_text(rpc_id)[:100],
        call_id=record.call_id,
        user_id=record.user_id,
        outline=_storable(outline_of(body, method=record.method, is_of_call=is_of_call)),
        body=clean_text(json.dumps(body, ensure_ascii=False)) if body is not None else "",
        text=_text(record, is_of_call=is_of_call),
        size=min(record.size, _LARGEST),
        is_check=record.is_check,
        duration_ms=None if record.duration_ms is None else min(record.duration_ms, _LARGEST),
    )


def _text(record: TraceRecord, *, is_of_call: bool) -> str:
    """Words for the list. What a server says about somebody's call may repeat what they put into it."""
    if record.kind != "event" and (is_of_call or not is_open(record.method)):
        return "The server answered with an error." if record.kind == "error" else ""
    return show_hidden(redact_text(clean_text(record.text), workspace_id=record.workspace_id))[
        :4000
    ]


def _sound(value: Any) -> Any:
    """The value without numbers that JSON, a database or a browser cannot carry."""
    if isinstance(value, dict):
        return {key: inner if type(inner) is str else _sound(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_sound(inner) for inner in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, int) and value.bit_length() > _MOST_BITS:
        return f"a number of {value.bit_length()} bits"
    return value


def _storable(outline: object) -> object:
    """The outline without characters that a database refuses."""
    return json.loads(clean_text(json.dumps(outline, ensure_ascii=False)).replace("\\u0000", "�"))
